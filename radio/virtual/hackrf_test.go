package virtual_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

const serial = "0000000000000000a06063c8234e5f5f"

func TestDescriptors(t *testing.T) {
	h := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serial, API: virtual.API2026})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
	get := func(value uint16, length int) string {
		t.Helper()
		data := make([]byte, length)
		s := virtual.Setup{RequestType: 0x80, Request: 6, Value: value, Index: 0x0409, Length: uint16(length)}
		n, err := virtual.Answer(context.Background(), h, s, data)
		if err != nil {
			t.Fatalf("descriptor %04x: %v", value, err)
		}
		return hex.EncodeToString(data[:n])
	}
	// Written out by the tables of USB 2.0, section 9.6.
	for _, c := range []struct {
		value  uint16
		length int
		want   string
	}{
		{0x0100, 64, "1201000200000040501d896012010102" + "0401"},
		{0x0100, 8, "1201000200000040"},
		{0x0200, 9, "0902200001010380fa"},
		{0x0200, 255, "0902200001010380fa" + "0904000002ffffff00" + "07058102000200" + "07050202000200"},
		{0x0300, 255, "04030904"},
		{0x0302, 255, "1603" + "4800610063006b00520046002000" + "4f006e006500"},
		{0x0600, 10, "0a060002000000400100"},
	} {
		if got := get(c.value, c.length); got != c.want {
			t.Errorf("descriptor %04x is %s, want %s", c.value, got, c.want)
		}
	}
	if s := get(0x0304, 255); len(s) != 2*(2+64) {
		t.Errorf("the serial number's descriptor has %d digits, want %d", len(s), 2*(2+64))
	}
	for _, s := range []virtual.Setup{
		{RequestType: 0x80, Request: 6, Value: 0x0305, Length: 255},
		{RequestType: 0x80, Request: 6, Value: 0x0201, Length: 255},
		{RequestType: 0x00, Request: 9, Value: 2},
		{RequestType: 0x00, Request: 77},
	} {
		if _, err := virtual.Answer(context.Background(), h, s, make([]byte, s.Length)); !errors.Is(err, virtual.ErrStall) {
			t.Errorf("request %+v gives %v, want a stall", s, err)
		}
	}
}

// TestRequestsByAPI: each request is refused by firmware that is older than it.
func TestRequestsByAPI(t *testing.T) {
	newer := map[byte]uint16{
		27: 0x0105, 29: 0x0102, 32: 0x0103, 33: 0x0103, 37: 0x0104,
		41: 0x0106, 42: 0x0106, 43: 0x0106, 44: 0x0106, 45: 0x0106, 46: 0x0106,
		47: 0x0107, 48: 0x0108, 61: 0x0112,
	}
	answers := map[byte]int{27: 8, 33: 2, 41: 40, 44: 1, 45: 1, 46: 4, 61: 4}
	for _, api := range []uint16{virtual.API2018, virtual.API2022, 0x0109, 0x0111, virtual.API2026} {
		h := radiotest.HackRF(t, virtual.HackRFConfig{API: api})
		radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
		d := open(t, h)
		for number, since := range newer {
			var err error
			length, in := answers[number], answers[number] > 0
			if in {
				var answer []byte
				if answer, err = d.tryIn(number, 0, length); err == nil && len(answer) != length {
					t.Errorf("request %d is answered by %d bytes, want %d", number, len(answer), length)
				}
			} else {
				err = d.tryOut(number, 0, 0, nil)
			}
			switch {
			case api >= since && err != nil:
				t.Errorf("API %04x: request %d: %v", api, number, err)
			case api < since && !errors.Is(err, usb.ErrStall):
				t.Errorf("API %04x: request %d gives %v, want a stall", api, number, err)
			}
		}
		// What no firmware has, or no emulated board.
		for _, number := range []byte{0, 13, 22, 26, 28, 31, 35, 38, 49, 51, 53, 62, 255} {
			if err := d.tryOut(number, 0, 0, nil); !errors.Is(err, usb.ErrStall) {
				t.Errorf("request %d gives %v, want a stall", number, err)
			}
		}
		if err := d.tryOut(1, 3, 0, nil); !errors.Is(err, usb.ErrStall) {
			t.Errorf("mode 3 gives %v, want a stall", err)
		}
	}
}

func TestSettings(t *testing.T) {
	h := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serial, Revision: virtual.R9})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h, Reference: true}}})
	d := open(t, h)
	// As seen on the wire of a board: 20 Msps, its filter, 433.92 MHz.
	d.out(6, 0, 0, []byte{0x00, 0x2d, 0x31, 0x01, 0x01, 0, 0, 0})
	d.out(7, 0xe1c0, 0x00e4, nil)
	d.out(16, 0, 0, []byte{0xb1, 0x01, 0, 0, 0xc0, 0x09, 0x0e, 0})
	d.out(17, 1, 0, nil)
	d.out(23, 1, 0, nil)
	d.out(29, 1, 0, nil)
	d.out(32, 1, 0, nil)
	d.out(42, 0x2345, 0x0001, nil)
	d.out(43, 0x0000, 0x0010, nil)
	for _, g := range []struct {
		request byte
		gain    uint16
		taken   byte
	}{{19, 40, 1}, {19, 41, 0}, {19, 48, 0}, {20, 62, 1}, {20, 61, 0}, {21, 47, 1}, {21, 48, 0}} {
		if got := d.in(g.request, g.gain, 1); got[0] != g.taken {
			t.Errorf("request %d with %d is answered %d, want %d", g.request, g.gain, got[0], g.taken)
		}
	}
	want := virtual.Settings{
		Frequency: 433.92e6, Rate: 20e6, Filter: 15e6,
		Gains:   virtual.Gains{LNA: 40, VGA: 62, TXVGA: 47, Amp: true},
		BiasTee: true, HardwareSync: true, ClockOut: true, UnderrunLimit: 0x12345, OverrunLimit: 0x100000,
	}
	if got := h.Settings(); got != want {
		t.Errorf("settings are\n%+v, want\n%+v", got, want)
	}
	// 2.6 GHz less 500 MHz by the low-pass filter.
	explicit := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 2600e6), 500e6)
	d.out(24, 0, 0, append(explicit, 1, 0, 0, 0, 0, 0, 0, 0))
	if f := h.Settings().Frequency; f != 2100e6 {
		t.Errorf("the frequency is %v, want 2.1 GHz", f)
	}
	d.mode(virtual.ModeOff)
	if h.Settings().BiasTee {
		t.Error("the bias tee is on after mode off")
	}
	if got := d.in(44, 0, 1); got[0] != 1 {
		t.Errorf("the clock input is told as %d, want 1", got[0])
	}
	if got := hex.EncodeToString(d.in(18, 0, 24)[8:]); got != "0000000000000000c86360a05f5f4e23" {
		t.Errorf("the serial number's words are %s", got)
	}
	if rev, id := d.in(45, 0, 1)[0], d.in(14, 0, 1)[0]; rev != 0x84 || id != 4 {
		t.Errorf("revision %#x and board %d, want 0x84 and 4", rev, id)
	}
	log := h.Transcript()
	if s := log[0].String(); s != "out  6 value 0000 index 0000 length 8 data 002d310101000000" {
		t.Errorf("the first request is %q", s)
	}
	d.out(30, 0, 0, nil)
	if got := h.Settings(); got.Gains != (virtual.Gains{}) || got.HardwareSync {
		t.Errorf("after a reset, settings are %+v", got)
	}
}

func TestRefusesBadConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  virtual.HackRFConfig
		want string
	}{
		{virtual.HackRFConfig{Serial: "12"}, "32 lower-case"},
		{virtual.HackRFConfig{Serial: strings.ToUpper(serial)}, "32 lower-case"},
		{virtual.HackRFConfig{API: 0x0101}, "allowed is 0x0102"},
		{virtual.HackRFConfig{Revision: 3}, "revision"},
	} {
		if _, err := virtual.NewHackRF(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v gives %v, want %q", c.cfg, err, c.want)
		}
	}
	h := radiotest.HackRF(t, virtual.HackRFConfig{})
	for _, cfg := range []virtual.Config{
		{Boards: []virtual.Place{{}}},
		{Boards: []virtual.Place{{Radio: h, OffsetPPM: 2000}}},
		{Boards: []virtual.Place{{Radio: h, SamplePPM: math.NaN()}}},
		{Boards: []virtual.Place{{Radio: h}}, Links: []virtual.Link{{From: 0, To: 1}}},
		{Boards: []virtual.Place{{Radio: h}}, Links: []virtual.Link{{Delay: -1}}},
		{Boards: []virtual.Place{{Radio: h}}, Triggers: []virtual.Wire{{From: -1}}},
		{Boards: []virtual.Place{{Radio: h}}, Ears: []virtual.Ear{{Board: 3}}},
		{Boards: []virtual.Place{{Radio: h}}, Await: []int{1}},
		{Boards: []virtual.Place{{Radio: h}}, Backlog: -1},
	} {
		if _, err := virtual.NewBench(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// TestNotOnABench: a board without a bench is plugged in nowhere.
func TestNotOnABench(t *testing.T) {
	h := radiotest.HackRF(t, virtual.HackRFConfig{})
	if _, err := h.In(context.Background(), 0x81, make([]byte, 512)); !errors.Is(err, virtual.ErrUnplugged) {
		t.Errorf("a transfer gives %v", err)
	}
	if _, err := virtual.NewHost(h).Open(context.Background(), usb.Address{Bus: 1, Device: 1}); !errors.Is(err, usb.ErrUnplugged) {
		t.Errorf("opening gives %v", err)
	}
	h.Unplug()
}

// realTime returns a bench in real time whose clock is moved by hand.
func realTime(t *testing.T, api uint16) (*virtual.HackRF, driver, *loopback.ManualClock) {
	clock := &loopback.ManualClock{}
	h := radiotest.HackRF(t, virtual.HackRFConfig{API: api})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}, Clock: clock})
	d := open(t, h)
	d.rate(8e6)
	d.reference()
	return h, d, clock
}

// capacity is what the firmware of an API holds.
func capacity(api uint16) uint32 {
	if api == virtual.API2026 {
		return 65536
	}
	return 32768
}

// TestOverrun: a host that does not read loses all that the board has no room for.
func TestOverrun(t *testing.T) {
	for _, api := range []uint16{virtual.API2022, virtual.API2026} {
		t.Run(fmt.Sprintf("%04x", api), func(t *testing.T) {
			radiotest.Leaks(t)
			h, d, clock := realTime(t, api)
			d.mode(virtual.ModeReceive)
			clock.Advance(10 * time.Millisecond)
			const made = 80000 * 2 // 10 ms at 8 Msps
			lost := made - capacity(api)
			m := h.M0()
			if m.Active != virtual.M0Receive || m.M0Count != capacity(api) || m.Shortfalls != 1 || m.LongestShortfall != lost {
				t.Errorf("counters are %+v, want %d bytes, 1 shortfall of %d", m, capacity(api), lost)
			}
			// What is in the buffers comes first, then there is room again.
			if got := d.read(int(capacity(api))); len(got) != int(capacity(api)) {
				t.Errorf("%d bytes were left", len(got))
			}
			clock.Advance(time.Millisecond)
			if m := h.M0(); m.M0Count != capacity(api)+16000 || m.Shortfalls != 1 {
				t.Errorf("counters are %+v, want 1 ms more", m)
			}
			clock.Advance(10 * time.Millisecond)
			if m := h.M0(); m.Shortfalls != 2 {
				t.Errorf("counters are %+v, want a second shortfall", m)
			}
			d.mode(virtual.ModeOff)
			if m := h.M0(); m.Shortfalls != 1 || m.LongestShortfall != lost || m.Active != virtual.M0Idle {
				t.Errorf("after the stop counters are %+v, want those without the last shortfall", m)
			}
		})
	}
}

// TestOverrunLimit: streaming ends when a shortfall is as long as the limit.
func TestOverrunLimit(t *testing.T) {
	h, d, clock := realTime(t, virtual.API2022)
	d.out(43, 16000, 0, nil) // 1 ms
	d.mode(virtual.ModeReceive)
	clock.Advance(3 * time.Millisecond) // 2.048 ms fill the ring
	if m := h.M0(); m.Error != virtual.M0NoError {
		t.Errorf("counters are %+v, want no error yet", m)
	}
	clock.Advance(time.Millisecond)
	if m := h.M0(); m.Error != virtual.M0RXTimeout || m.Active != virtual.M0Idle {
		t.Errorf("counters are %+v, want the end", m)
	}
	if got := d.in(41, 0, 40); got[36] != 1 || got[4] != 0 {
		t.Errorf("request 41 gives % x", got)
	}
}

// TestUnderrun: transmission starts when the ring is full, and ends by the limit
// when nothing more comes.
func TestUnderrun(t *testing.T) {
	h, d, clock := realTime(t, virtual.API2022)
	d.out(42, 16000, 0, nil) // 1 ms
	d.mode(virtual.ModeTransmit)
	d.write(make([]byte, 32768-512))
	clock.Advance(time.Millisecond)
	if m := h.M0(); m.Active != virtual.M0TXStart || m.M0Count != 0 {
		t.Errorf("counters are %+v, want those before the start", m)
	}
	d.write(make([]byte, 512))
	clock.Advance(time.Millisecond)
	if m := h.M0(); m.Active != virtual.M0TXRun || m.M0Count != 16000 || m.Shortfalls != 0 {
		t.Errorf("counters are %+v, want 1 ms", m)
	}
	clock.Advance(2 * time.Millisecond) // 2.048 ms were there
	if m := h.M0(); m.M0Count != 32768 || m.Shortfalls != 1 || m.LongestShortfall != 48000-32768 || m.Error != virtual.M0NoError {
		t.Errorf("counters are %+v, want a shortfall", m)
	}
	clock.Advance(time.Millisecond)
	if m := h.M0(); m.Error != virtual.M0TXTimeout || m.Active != virtual.M0Idle {
		t.Errorf("counters are %+v, want the end", m)
	}
	// The carrier is off, and transfers pend.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if n, err := h.Out(ctx, 0x02, make([]byte, 512)); !errors.Is(err, context.Canceled) || n != 0 {
		t.Errorf("a transfer gives %d bytes and %v, want none", n, err)
	}
	d.mode(virtual.ModeOff)
	d.mode(virtual.ModeTransmit)
	d.write(make([]byte, 32768))
	if m := h.M0(); m.Error != virtual.M0NoError || m.Active != virtual.M0TXRun {
		t.Errorf("after a restart counters are %+v", m)
	}
}

// TestPacing: a host that always has data is held to the sample rate, without a
// shortfall, whatever the pace of the clock.
func TestPacing(t *testing.T) {
	radiotest.Leaks(t)
	h, d, clock := realTime(t, virtual.API2026)
	d.mode(virtual.ModeTransmit)
	ended := make(chan error, 1)
	go func() { ended <- d.tryWrite(make([]byte, 1<<20)) }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			// 65536 bytes lie in the board when the last was taken.
			if m := h.M0(); m.M0Count < 1<<20-65536 || m.M0Count > 1<<20 {
				t.Errorf("counters are %+v", m)
			}
			return
		default:
			if m := h.M0(); m.Active == virtual.M0TXRun && m.M4Count-m.M0Count == 0 {
				continue // the writer's turn
			}
			clock.Advance(50 * time.Microsecond)
		}
	}
}

// flush has a board send data and flush as the firmware of its API wants it, and
// gives what another one received.
func flush(t *testing.T, api uint16, zeros int, askSize bool, data []byte) []byte {
	t.Helper()
	a, b := radiotest.HackRF(t, virtual.HackRFConfig{API: api}), radiotest.HackRF(t, virtual.HackRFConfig{})
	radiotest.Bench(t, virtual.Config{
		Boards: []virtual.Place{{Radio: a}, {Radio: b}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 1}},
		Await:  []int{0, 1},
	})
	tx, rx := open(t, a), open(t, b)
	for _, d := range []driver{tx, rx} {
		d.rate(2e6)
		d.reference()
	}
	if askSize {
		if size := binary.LittleEndian.Uint32(tx.in(61, 0, 4)); size != 65536 {
			t.Fatalf("the buffer size is %d, want 65536", size)
		}
	}
	rx.mode(virtual.ModeReceive)
	tx.mode(virtual.ModeTransmit)
	in, err := rx.tr.OpenIn(usb.InConfig{Endpoint: 0x81, Size: 16 << 10, Count: 2, Ring: 2, Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	got := make(chan []byte)
	go func() { got <- readAll(t, in, len(data)) }()
	tx.write(append(append([]byte(nil), data...), make([]byte, zeros)...))
	tx.mode(virtual.ModeOff)
	return <-got
}

func TestFlush(t *testing.T) {
	radiotest.Leaks(t)
	data := ramp(208<<10, 1) // whole blocks: what is less the board does not flush
	for _, c := range []struct {
		name  string
		api   uint16
		zeros int
		ask   bool
	}{
		{"a: by the size asked for", virtual.API2026, 65536, true},
		{"b: by 32 KiB", virtual.API2022, 32768, false},
		{"b: by 32 KiB, the last before the size can be asked for", 0x0111, 32768, false},
		{"b: by 32 KiB, oldest", virtual.API2018, 32768, false},
		{"c: by the board", virtual.API2026, 0, false},
	} {
		if got := flush(t, c.api, c.zeros, c.ask, data); !bytes.Equal(got, data) {
			t.Errorf("%s: what was received is not what was sent", c.name)
		}
	}
}

// TestLastDataLost: without a flush, mode off loses what is in the board.
func TestLastDataLost(t *testing.T) {
	h, d, clock := realTime(t, virtual.API2022)
	d.mode(virtual.ModeTransmit)
	d.write(make([]byte, 32768))
	clock.Advance(time.Millisecond)
	d.mode(virtual.ModeOff)
	if m := h.M0(); m.M0Count != 16000 {
		t.Errorf("%d bytes were sent, want 16000", m.M0Count)
	}
}

// TestDrainEnds: the wait of firmware that flushes by itself ends with its caller's
// patience and with the board.
func TestDrainEnds(t *testing.T) {
	radiotest.Leaks(t)
	h, d, clock := realTime(t, virtual.API2026)
	d.mode(virtual.ModeTransmit)
	d.write(make([]byte, 65536))
	off := usb.Setup{RequestType: usb.VendorOut, Request: 1}
	if _, err := d.tr.Control(off, nil, time.Nanosecond); !errors.Is(err, usb.ErrTimeout) {
		t.Errorf("the request gives %v, want a timeout", err)
	}
	if m := h.M0(); m.Active != virtual.M0TXRun {
		t.Errorf("counters are %+v, want transmission to go on", m)
	}
	ended := make(chan error, 1)
	go func() { _, err := d.tr.Control(off, nil, radiotest.Patience); ended <- err }()
	for i := 0; ; i++ {
		select {
		case err := <-ended:
			if m := h.M0(); err != nil || m.M0Count != 65536 || m.Shortfalls != 0 {
				t.Errorf("the request gives %v with counters %+v", err, m)
			}
			return
		default:
			clock.Advance(100 * time.Microsecond)
		}
	}
}

func TestLose(t *testing.T) {
	a, b := radiotest.HackRF(t, virtual.HackRFConfig{}), radiotest.HackRF(t, virtual.HackRFConfig{})
	radiotest.Bench(t, virtual.Config{
		Boards: []virtual.Place{{Radio: a}, {Radio: b}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 1}},
		Await:  []int{0, 1},
	})
	tx, rx := open(t, a), open(t, b)
	tx.reference()
	rx.reference()
	if err := a.Lose(1000, 10); err != nil {
		t.Fatal(err)
	}
	if err := b.Lose(3000, 20); err != nil {
		t.Fatal(err)
	}
	if a.Lose(-1, 1) == nil || a.Lose(0, 0) == nil {
		t.Error("a loss that cannot be is taken")
	}
	tx.mode(virtual.ModeTransmit)
	rx.mode(virtual.ModeReceive)
	data := ramp(128<<10, 2)
	go func() { _ = tx.tryWrite(data) }()
	got := rx.read(32 << 10)
	// Zeros in place of samples 1000 to 1009, which come later; 3000 to 3019 of what
	// arrives are not there.
	want := append(append(append([]byte(nil), data[:2000]...), make([]byte, 20)...), data[2000:]...)
	want = append(append([]byte(nil), want[:6000]...), want[6040:]...)
	if !bytes.Equal(got, want[:len(got)]) {
		t.Error("what was received is not what was sent, less what was lost")
	}
	if m := a.M0(); m.Shortfalls != 1 || m.LongestShortfall != 20 {
		t.Errorf("the transmitter's counters are %+v", m)
	}
	if m := b.M0(); m.Shortfalls != 1 || m.LongestShortfall != 40 {
		t.Errorf("the receiver's counters are %+v", m)
	}
}

// A board that loses samples again and again loses those, in each stream.
func TestLoseEvery(t *testing.T) {
	for _, cfg := range []virtual.HackRFConfig{{LoseEvery: 10}, {LoseLength: 10}, {LoseEvery: 10, LoseLength: 11}, {LoseEvery: -1, LoseLength: -1}} {
		if _, err := virtual.NewHackRF(cfg); err == nil {
			t.Errorf("%d of %d samples can be lost", cfg.LoseLength, cfg.LoseEvery)
		}
	}
	a, b := radiotest.HackRF(t, virtual.HackRFConfig{}), radiotest.HackRF(t, virtual.HackRFConfig{LoseEvery: 5000, LoseLength: 100})
	radiotest.Bench(t, virtual.Config{
		Boards: []virtual.Place{{Radio: a}, {Radio: b}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 1}},
		Await:  []int{0, 1},
	})
	tx, rx := open(t, a), open(t, b)
	tx.reference()
	rx.reference()
	tx.mode(virtual.ModeTransmit)
	rx.mode(virtual.ModeReceive)
	data := ramp(128<<10, 2)
	go func() { _ = tx.tryWrite(data) }()
	got := rx.read(32 << 10)
	var want []byte
	for first := 0; len(want) < len(got); first += 10000 {
		want = append(want, data[first:first+9800]...)
	}
	if !bytes.Equal(got, want[:len(got)]) {
		t.Error("what was received is not what was sent, less what was lost")
	}
	if m := b.M0(); m.Shortfalls < 3 || m.LongestShortfall != 200 {
		t.Errorf("the receiver's counters are %+v", m)
	}
}

// A board that is broken so goes on sending once it is off, though not before it has sent.
func TestStays(t *testing.T) {
	a, b := radiotest.HackRF(t, virtual.HackRFConfig{Stays: 0.25}), radiotest.HackRF(t, virtual.HackRFConfig{})
	bench := radiotest.Bench(t, virtual.Config{
		Boards: []virtual.Place{{Radio: a}, {Radio: b}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 1}},
	})
	tx, rx := open(t, a), open(t, b)
	tx.reference()
	rx.reference()
	heard := func() byte {
		rx.mode(virtual.ModeReceive)
		defer rx.mode(virtual.ModeOff)
		return rx.read(64 << 10)[32<<10]
	}
	if got := heard(); got != 0 || len(bench.Carriers()) != 0 {
		t.Errorf("before it has sent %d is heard, and carriers are on at %v", got, bench.Carriers())
	}
	tx.mode(virtual.ModeTransmit)
	tx.write(make([]byte, 64<<10))
	tx.mode(virtual.ModeOff)
	if got := heard(); got != 32 || len(bench.Carriers()) != 1 {
		t.Errorf("once it is off %d is heard, and carriers are on at %v", got, bench.Carriers())
	}
}
