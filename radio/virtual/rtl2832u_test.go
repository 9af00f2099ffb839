package virtual_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/bits"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/rtlsdr"
	"ringwave/radio/virtual"
)

func newRTL(t *testing.T, cfg virtual.RTL2832UConfig) *virtual.RTL2832U {
	t.Helper()
	b, err := virtual.NewRTL2832U(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rtl is a very small driver of an RTL2832U.
type rtl struct {
	t *testing.T
	b *virtual.RTL2832U
}

func (r rtl) write(value, index uint16, data ...byte) error {
	s := virtual.Setup{RequestType: 0x40, Value: value, Index: index | 0x10, Length: uint16(len(data))}
	n, err := r.b.Control(context.Background(), s, data)
	if err == nil && n != len(data) {
		r.t.Errorf("%04x %04x took %d of % x", value, index, n, data)
	}
	return err
}

func (r rtl) read(value, index uint16, n int) ([]byte, error) {
	data := make([]byte, n)
	_, err := r.b.Control(context.Background(), virtual.Setup{RequestType: 0xc0, Value: value, Index: index, Length: uint16(n)}, data)
	return data, err
}

func (r rtl) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// begin makes the board send its counter at 2.4 Msps.
func (r rtl) begin() {
	r.t.Helper()
	r.must(r.write(0x3000, 0x0200, 0xe8))
	r.must(r.write(0x1920, 0x0000, 0x03))
	r.must(r.write(0x9f20, 0x0001, 0x03, 0x00))
	r.must(r.write(0xa120, 0x0001, 0x00, 0x00))
	r.must(r.write(0x2148, 0x0100, 0x00, 0x00))
}

// counts returns n bytes that count up.
func counts(first, n int) []byte {
	b := make([]byte, n)
	for k := range b {
		b[k] = byte(first + k)
	}
	return b
}

func TestRTLDescriptors(t *testing.T) {
	for serial, want := range map[string]string{"": "00000001", "77": "77"} {
		d := newRTL(t, virtual.RTL2832UConfig{Serial: serial}).Descriptors()
		if d.Vendor() != 0x0bda || d.Product() != 0x2838 || d.Serial() != want || len(d.Device) != 18 ||
			len(d.Configuration) != int(d.Configuration[2])|int(d.Configuration[3])<<8 {
			t.Errorf("%+v", d)
		}
	}
	for _, tuner := range []virtual.RTLTuner{-1, virtual.NoTuner + 1} {
		if _, err := virtual.NewRTL2832U(virtual.RTL2832UConfig{Tuner: tuner}); err == nil {
			t.Errorf("tuner %d is taken", tuner)
		}
	}
}

// The tuner is behind the repeater, answers with its bits in reverse from register
// 0 on, and takes no more than 8 bytes at a time.
func TestRTLTuner(t *testing.T) {
	for tuner, address := range map[virtual.RTLTuner]uint16{virtual.R820T: 0x34, virtual.R828D: 0x74} {
		b := newRTL(t, virtual.RTL2832UConfig{Tuner: tuner})
		radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: b}}})
		r := rtl{t, b}
		if err := r.write(address, 0x0600, 0x00); !errors.Is(err, virtual.ErrStall) {
			t.Errorf("without repeater: %v", err)
		}
		r.must(r.write(0x0120, 0x0001, 0x18))
		for _, no := range []uint16{0x34 ^ 0x74 ^ address, 0xc8, 0xa0} {
			if err := r.write(no, 0x0600, 0x00); !errors.Is(err, virtual.ErrStall) {
				t.Errorf("address %02x: %v", no, err)
			}
		}
		r.must(r.write(address, 0x0600, 0x05, 1, 2, 3, 4, 5, 6, 7))
		if err := r.write(address, 0x0600, 0x05, 1, 2, 3, 4, 5, 6, 7, 8); !errors.Is(err, virtual.ErrStall) {
			t.Errorf("a message of 9 bytes: %v", err)
		}
		// Not those that are only read, nor those that there are not.
		r.must(r.write(address, 0x0600, 0x00, 9, 9))
		r.must(r.write(address, 0x0600, 0x1f, 8, 9))
		got, err := r.read(address, 0x0600, 8)
		r.must(err)
		if got[0] != 0x69 || got[1] != 0 || !bytes.Equal(got[5:8], []byte{bits.Reverse8(1), bits.Reverse8(2), bits.Reverse8(3)}) {
			t.Errorf("% x", got)
		}
	}
	if err := (rtl{t, newRTL(t, virtual.RTL2832UConfig{})}).write(0x2000, 0x0100, 9); !errors.Is(err, virtual.ErrUnplugged) {
		t.Errorf("a board on no bench: %v", err)
	}
}

// Registers make frequencies and rates by the formulas of the chips; what is out of
// the oscillator's range does not lock.
func TestRTLRegisters(t *testing.T) {
	b := newRTL(t, virtual.RTL2832UConfig{})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: b}}})
	r := rtl{t, b}
	r.must(r.write(0x0120, 0x0001, 0x18))
	tuner := func(reg, v byte) {
		t.Helper()
		r.must(r.write(0x34, 0x0600, reg, v))
	}
	locked := func() bool {
		t.Helper()
		r.must(r.write(0x34, 0x0600, 0))
		got, err := r.read(0x34, 0x0600, 3)
		r.must(err)
		return got[2] == bits.Reverse8(0x40)
	}
	// 28.8 MHz times 2 times (4*11 + 1 + 13 + 0.25) = 3355.2 MHz, by 16.
	tuner(0x14, 11|1<<6)
	tuner(0x12, 0x80)
	tuner(0x15, 0x00)
	tuner(0x16, 0x40)
	tuner(0x10, 3<<5)
	r.must(r.write(0x1520, 0x0001, 0x01)) // through the tuner
	// -3.6 MHz is -2^19.
	r.must(r.write(0x1920, 0x0001, 0x38))
	r.must(r.write(0x1a20, 0x0001, 0x00))
	r.must(r.write(0x1b20, 0x0001, 0x00))
	r.must(r.write(0x9f20, 0x0001, 0x03, 0x00)) // 28.8 MHz * 2^22 / 0x03000000
	r.must(r.write(0xa120, 0x0001, 0x00, 0x00))
	if s := b.State(); math.Abs(float64(s.Frequency-(209.7e6-3.6e6))) > 1e-3 || s.Rate != 2.4e6 || !locked() {
		t.Errorf("%+v, locked: %v", s, locked())
	}
	tuner(0x12, 0x88) // no fraction
	if s := b.State(); math.Abs(float64(s.Frequency-(208.8e6-3.6e6))) > 1e-3 {
		t.Errorf("%+v", s)
	}
	tuner(0x14, 40)
	if locked() {
		t.Error("locks beyond the oscillator's range")
	}
	// Past the tuner, 7.2 MHz.
	r.must(r.write(0x1520, 0x0001, 0x00))
	r.must(r.write(0x1920, 0x0001, 0x30))
	if s := b.State(); s.Frequency != 7.2e6 || s.Gain != 0 {
		t.Errorf("%+v", s)
	}
	// High byte first when written, low byte first when read.
	r.must(r.write(0x2158, 0x0100, 0x12, 0x34))
	if got, err := r.read(0x2158, 0x0100, 2); err != nil || !bytes.Equal(got, []byte{0x34, 0x12}) {
		t.Errorf("% x: %v", got, err)
	}
}

// What is no register of the chips is refused, and told in the transcript.
func TestRTLRegistersRefused(t *testing.T) {
	b := newRTL(t, virtual.RTL2832UConfig{})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: b}}})
	r := rtl{t, b}
	r.must(r.write(0x0120, 0x0001, 0x18))
	for _, s := range []virtual.Setup{
		{RequestType: 0x40, Request: 1, Index: 0x0110}, {RequestType: 0x40, Index: 0x0100}, {RequestType: 0xc0, Index: 0x0110},
		{RequestType: 0x40, Index: 0x0710}, {RequestType: 0x40, Value: 0x0121, Index: 0x0011}, {RequestType: 0x21, Index: 0x0110},
	} {
		if _, err := b.Control(t.Context(), s, []byte{1}); !errors.Is(err, virtual.ErrStall) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	b.ClearTranscript()
	_ = r.write(0x2000, 0x0100, 9)
	_ = r.write(0x99, 0x0600, 9)
	if got := b.Transcript(); len(got) != 2 || got[0].Data[0] != 9 || got[0].Err != nil || !errors.Is(got[1].Err, virtual.ErrStall) {
		t.Errorf("%+v", got)
	}
}

// queued is how a transfer ended.
type queued struct {
	n   int
	err error
}

// queue queues a transfer of n bytes of samples.
func (r rtl) queue(n int) (data []byte, ended chan queued, cancel func()) {
	data, ended = make([]byte, n), make(chan queued, 1)
	cancel = r.b.Queue(0x81, data, func(n int, err error) { ended <- queued{n, err} })
	return data, ended, cancel
}

// Nothing is missing while transfers are queued; without any the board keeps what
// is newest and counts what it lost.
func TestRTLStream(t *testing.T) {
	radiotest.Leaks(t)
	clock := &loopback.ManualClock{}
	b := newRTL(t, virtual.RTL2832UConfig{})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: b}}, Clock: clock})
	r := rtl{t, b}
	first, firstEnded, _ := r.queue(30_000)
	second, secondEnded, _ := r.queue(2_000)
	r.begin()
	clock.Advance(10 * time.Millisecond) // 48,000 bytes: 16,000 remain
	for _, c := range []struct {
		data  []byte
		ended chan queued
		at    int
	}{{first, firstEnded, 0}, {second, secondEnded, 30_000}} {
		if got := <-c.ended; got.err != nil || got.n != len(c.data) || !bytes.Equal(c.data, counts(c.at, len(c.data))) {
			t.Errorf("%+v, % x...", got, c.data[:8])
		}
	}
	clock.Advance(5 * time.Millisecond) // 24,000 more: 16,384 remain
	if s := b.State(); s.Lost != (40_000-16_384)/2 || !s.Receiving {
		t.Errorf("%+v", s)
	}
	third, thirdEnded, cancel := r.queue(20_000)
	clock.Advance(time.Microsecond * 10) // 48 more
	b.State()
	cancel()
	cancel()
	if got := <-thirdEnded; !errors.Is(got.err, context.Canceled) || got.n != 16_384+48 || !bytes.Equal(third[:got.n], counts(72_000-16_384, got.n)) {
		t.Errorf("%+v, % x...", got, third[:8])
	}
}

// What a board has no endpoint for is refused, and whoever waits for one that is unplugged
// is told.
func TestRTLStreamRefuses(t *testing.T) {
	radiotest.Leaks(t)
	b := newRTL(t, virtual.RTL2832UConfig{})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: b}}, Clock: &loopback.ManualClock{}})
	r := rtl{t, b}
	r.begin()
	for _, c := range []struct {
		endpoint byte
		n        int
	}{{0x82, 2}, {0x01, 2}, {0x81, 3}} {
		if n, err := b.In(t.Context(), c.endpoint, make([]byte, c.n)); n != 0 || !errors.Is(err, virtual.ErrStall) {
			t.Errorf("%+v: %d bytes, %v", c, n, err)
		}
	}
	if _, err := b.Out(t.Context(), 0x81, []byte{1, 2}); !errors.Is(err, virtual.ErrStall) {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if n, err := b.In(ctx, 0x81, make([]byte, 100)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes: %v", n, err)
	}
	_, ended, _ := r.queue(100_000)
	b.Unplug()
	b.Unplug()
	if got := <-ended; !errors.Is(got.err, virtual.ErrUnplugged) {
		t.Errorf("%+v", got)
	}
	if _, err := b.In(t.Context(), 0x81, make([]byte, 100)); !errors.Is(err, virtual.ErrUnplugged) {
		t.Error(err)
	}
	if err := r.write(0x2000, 0x0100, 9); !errors.Is(err, virtual.ErrUnplugged) {
		t.Error(err)
	}
	if s := b.State(); s.Receiving {
		t.Errorf("%+v", s)
	}
}

// rtlAt opens a board by its driver, at 433.92 MHz and 2.4 Msps, on a bench that
// may have others.
func rtlAt(t *testing.T, b *virtual.RTL2832U, cfg virtual.Config) radio.Device {
	t.Helper()
	radiotest.Bench(t, cfg)
	d, err := rtlsdr.NewOpener(virtual.NewHost(b), radio.TransmitPermit{}).Open(t.Context(), radio.URI{Scheme: "rtlsdr", Params: map[string][]string{
		"rate_hz": {"2400000"}, "freq_hz": {"433920000"}, "hold": {"on"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// What a HackRF sends arrives at an RTL2832U through an ideal channel: the same
// levels, of which one has 0 in the middle and the other between two.
func TestHackRFToRTL(t *testing.T) {
	radiotest.Leaks(t)
	// The synthesizer's steps are not whole hertz as the HackRF's are: an error of
	// the crystal makes up for it.
	probe := newRTL(t, virtual.RTL2832UConfig{})
	rtlAt(t, probe, virtual.Config{Boards: []virtual.Place{{Radio: probe}}})
	at := float64(probe.State().Frequency)
	h, b := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serial}), newRTL(t, virtual.RTL2832UConfig{})
	d := rtlAt(t, b, virtual.Config{
		Boards: []virtual.Place{{Radio: h}, {Radio: b, OffsetPPM: (math.Round(at)/at - 1) * 1e6}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 1}},
		Await:  []int{0, 1},
	})
	tx := open(t, h)
	tx.rate(2_400_000)
	tx.frequency(uint32(math.Round(at)/1e6), uint32(math.Round(at))%1_000_000)
	tx.reference()
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := rx.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent := quiet(400_000, 1)
	tx.mode(virtual.ModeTransmit)
	done := make(chan error)
	go func() { done <- tx.tryWrite(sent) }()
	x := make([]complex64, 150_000)
	if n, _, err := radio.ReadFull(t.Context(), rx, x); err != nil {
		t.Fatalf("%d samples: %v", n, err)
	}
	for k, got := range x {
		for part, v := range []float32{real(got), imag(got)} {
			was := float64(int8(sent[2*k+part]))
			// What is left of the carriers' difference turns a 0 to either side.
			if level := float64(v)*128 - 0.5; level != was && (was != 0 || level != -1) {
				t.Fatalf("sample %d is %v, sent was % x", k, got, sent[2*k:2*k+2])
			}
		}
	}
	if err := rx.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
