package virtual_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// air is a number of transmitters and, last, a receiver in lock-step, all at 8
// Msps, 433.92 MHz and the reference gains.
type air struct {
	t     *testing.T
	bench *virtual.Bench
	radio []*virtual.HackRF
	host  []driver
}

func newAir(t *testing.T, transmitters int, change func(*virtual.Config)) *air {
	t.Helper()
	a := &air{t: t}
	cfg := virtual.Config{}
	for i := range transmitters + 1 {
		h := radiotest.HackRF(t, virtual.HackRFConfig{})
		a.radio = append(a.radio, h)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: h})
		cfg.Await = append(cfg.Await, i)
		if i < transmitters {
			cfg.Links = append(cfg.Links, virtual.Link{From: i, To: transmitters, Gain: 1})
		}
	}
	if change != nil {
		change(&cfg)
	}
	a.bench = radiotest.Bench(t, cfg)
	for _, h := range a.radio {
		d := open(t, h)
		d.rate(8e6)
		d.frequency(433, 920000)
		d.reference()
		a.host = append(a.host, d)
	}
	return a
}

// start starts all boards; the receiver last, so that time begins with it.
func (a *air) start() {
	for _, d := range a.host[:len(a.host)-1] {
		d.mode(virtual.ModeTransmit)
	}
	a.host[len(a.host)-1].mode(virtual.ModeReceive)
}

// pass sends data[i] on board i, which are of one length, and gives the same length
// of what is received. The boards must run.
func (a *air) pass(data ...[]byte) []byte {
	a.t.Helper()
	ended := make(chan error)
	for i, d := range data {
		go func() { ended <- a.host[i].tryWrite(append(slices.Clone(d), make([]byte, 64<<10)...)) }()
	}
	got := a.host[len(a.host)-1].read(len(data[0]) + 32<<10)
	for range data {
		if err := <-ended; err != nil {
			a.t.Fatal(err)
		}
	}
	return got[:len(data[0])]
}

// expect returns what a receiver makes of the sum of f over samples, by the formula.
func expect(n int, f func(k int) complex128) []byte {
	b := make([]byte, 0, n)
	level := func(x float64) byte { return byte(int8(min(127, max(-128, math.Round(x*128))))) }
	for k := range n / 2 {
		y := f(k)
		b = append(b, level(real(y)), level(imag(y)))
	}
	return b
}

// at returns sample k of a stream, 0 before and after.
func at(b []byte, k int) complex128 {
	if k < 0 || 2*k+1 >= len(b) {
		return 0
	}
	return complex(float64(int8(b[2*k]))/128, float64(int8(b[2*k+1]))/128)
}

// compare allows a difference of one level to rounding in single precision.
func compare(t *testing.T, what string, got, want []byte) {
	t.Helper()
	for i := range want {
		if d := int(int8(got[i])) - int(int8(want[i])); d < -1 || d > 1 {
			t.Errorf("%s: byte %d is %d, want %d", what, i, int8(got[i]), int8(want[i]))
			return
		}
	}
}

func TestIdealChannel(t *testing.T) {
	radiotest.Leaks(t)
	a := newAir(t, 1, nil)
	a.start()
	data := ramp(1<<20, 3)
	if got := a.pass(data); !bytes.Equal(got, data) {
		t.Error("what was received is not what was sent")
	}
	if n := a.radio[1].Clipped(); n != 0 {
		t.Errorf("%d samples were clipped", n)
	}
}

// TestSum: gains and delays by the formula.
func TestSum(t *testing.T) {
	gains := []complex64{0.5 + 0.25i, -1, 0.75i}
	delays := []int{0, 3, 5000}
	a := newAir(t, 3, func(c *virtual.Config) {
		for i := range c.Links {
			c.Links[i].Gain, c.Links[i].Delay = gains[i], delays[i]
		}
	})
	a.start()
	data := [][]byte{quiet(128<<10, 1), quiet(128<<10, 2), quiet(128<<10, 3)}
	got := a.pass(data...)
	compare(t, "sum", got, expect(len(got), func(k int) (y complex128) {
		for i := range data {
			y += complex128(gains[i]) * at(data[i], k-delays[i])
		}
		return y
	}))
}

// TestSetGain: a gain changes at its sample, behind the delay.
func TestSetGain(t *testing.T) {
	a := newAir(t, 1, func(c *virtual.Config) { c.Links[0].Delay = 100 })
	for _, s := range []struct {
		at   radio.SampleIndex
		gain complex64
	}{{5000, -0.5}, {1000, 0.25i}, {20000, 1}} {
		if err := a.bench.SetGain(0, 1, s.at, s.gain); err != nil {
			t.Fatal(err)
		}
	}
	if a.bench.SetGain(1, 0, 0, 1) == nil || a.bench.SetGain(0, 2, 0, 1) == nil {
		t.Error("a gain without a link is taken")
	}
	a.start()
	data := quiet(128<<10, 5)
	got := a.pass(data)
	compare(t, "gains", got, expect(len(got), func(k int) complex128 {
		gain := complex128(1)
		switch n := k - 100; {
		case n >= 20000:
		case n >= 5000:
			gain = -0.5
		case n >= 1000:
			gain = 0.25i
		}
		return gain * at(data, k-100)
	}))
}

// TestSettingsGain: decibels against the reference setting.
func TestSettingsGain(t *testing.T) {
	a := newAir(t, 1, nil)
	a.host[0].in(21, 6, 1)
	a.host[0].out(17, 1, 0, nil)
	a.host[1].in(19, 0, 1)
	a.host[1].in(20, 14, 1)
	a.start()
	data := quiet(64<<10, 6)
	got := a.pass(data)
	gain := math.Pow(10, (6+11-8-6)/20.0)
	compare(t, "gain", got, expect(len(got), func(k int) complex128 { return complex(gain, 0) * at(data, k) }))
}

func TestClipping(t *testing.T) {
	a := newAir(t, 1, func(c *virtual.Config) { c.Links[0].Gain = 2 })
	a.start()
	data := ramp(64<<10, 7)
	got := a.pass(data)
	if !bytes.Equal(got, expect(len(got), func(k int) complex128 { return 2 * at(data, k) })) {
		t.Error("clipping differs from the formula")
	}
	if n := a.radio[1].Clipped(); n < 20000 || n > 40000 {
		t.Errorf("%d of 32768 samples and more were clipped, want about 3/4", n)
	}
}

// bend is a Path, a Noise and a check that their calls follow each other.
type bend struct {
	t    *testing.T
	next int64
	turn complex64
}

func (b *bend) Apply(dst, src []complex64, first int64) {
	b.follow(first, len(src))
	for k, x := range src {
		dst[k] = b.turn * x
	}
}

func (b *bend) Add(dst []complex64, first int64) {
	b.follow(first, len(dst))
	for k := range dst {
		dst[k] += complex(float32((first+int64(k))%64)/128, 0)
	}
}

func (b *bend) follow(first int64, n int) {
	if first != b.next {
		b.t.Errorf("a call begins at %d, want %d", first, b.next)
	}
	b.next = first + int64(n)
}

func TestPathAndNoise(t *testing.T) {
	a := newAir(t, 2, func(c *virtual.Config) {
		c.Links[0].Path = &bend{t: t, turn: 1i}
		c.Links[1].Path, c.Links[1].Delay = &bend{t: t, turn: -1, next: -10}, 10
		c.Ears = []virtual.Ear{{Board: 2, Noise: &bend{t: t}}}
	})
	a.start()
	data := [][]byte{quiet(64<<10, 1), quiet(64<<10, 2)}
	got := a.pass(data...)
	compare(t, "path and noise", got, expect(len(got), func(k int) complex128 {
		return 1i*at(data[0], k) - at(data[1], k-10) + complex(float64(k%64)/128, 0)
	}))
}

func TestSuperposition(t *testing.T) {
	a := newAir(t, 2, func(c *virtual.Config) {
		c.Links[0].Gain = 2
		c.Ears = []virtual.Ear{{Board: 2, Superpose: func(dst []complex64, arriving [][]complex64, _ int64) {
			for k := range dst {
				dst[k] = arriving[0][k] - arriving[1][k]
			}
		}}}
	})
	a.start()
	data := [][]byte{quiet(64<<10, 1), quiet(64<<10, 2)}
	got := a.pass(data...)
	compare(t, "difference", got, expect(len(got), func(k int) complex128 { return 2*at(data[0], k) - at(data[1], k) }))
}

// TestCarriers: what two carriers differ in turns what is received; a common clock
// and equal settings leave it alone; a carrier outside is not heard.
func TestCarriers(t *testing.T) {
	const cycles = 10e3 / 8e6
	for _, c := range []struct {
		name   string
		change func(*virtual.Config)
		mhz    uint32
		hz     uint32
		turn   func(k int) complex128
	}{
		{"tuned apart", nil, 433, 930000, func(k int) complex128 { return cmplx.Rect(1, 2*math.Pi*cycles*float64(k)) }},
		{"oscillator", func(c *virtual.Config) { c.Boards[0].OffsetPPM = 10 }, 1000, 0, nil},
		{"common clock", func(c *virtual.Config) {
			c.Boards[0].OffsetPPM = 10
			c.Boards[0].Reference, c.Boards[1].Reference = true, true
		}, 433, 920000, func(int) complex128 { return 1 }},
		{"phases", func(c *virtual.Config) {
			c.Phase = func(board int, turn uint64) loopback.Radians {
				return loopback.Radians(board+1) * loopback.Radians(turn)
			}
		}, 433, 920000, func(int) complex128 { return cmplx.Rect(1, 1-2) }},
		{"outside", nil, 438, 0, func(int) complex128 { return 0 }},
	} {
		a := newAir(t, 1, c.change)
		a.host[0].frequency(c.mhz, c.hz)
		if c.turn == nil { // both at 1 GHz, of which 10 ppm are 10 kHz
			a.host[1].frequency(c.mhz, c.hz)
			c.turn = func(k int) complex128 { return cmplx.Rect(1, 2*math.Pi*cycles*float64(k)) }
		}
		a.start()
		data := quiet(64<<10, 1)
		got := a.pass(data)
		compare(t, c.name, got, expect(len(got), func(k int) complex128 { return c.turn(k) * at(data, k) }))
	}
}

// TestOtherRate: a board at another rate neither hears nor is heard.
func TestOtherRate(t *testing.T) {
	a := newAir(t, 2, nil)
	a.host[1].rate(4e6)
	a.start()
	data := [][]byte{quiet(64<<10, 1), quiet(64<<10, 2)}
	if got := a.pass(data...); !bytes.Equal(got, data[0]) {
		t.Error("what was received is not what was sent at the receiver's rate")
	}
}

// TestSameBytes: what is received does not depend on how transfers are cut nor on
// how goroutines run.
func TestSameBytes(t *testing.T) {
	radiotest.Leaks(t)
	data := [][]byte{quiet(256<<10, 1), quiet(256<<10, 2)}
	var first []byte
	for range 3 {
		a := newAir(t, 2, func(c *virtual.Config) {
			c.Links[0].Gain, c.Links[1].Gain = 0.3+0.1i, -0.7
			c.Boards[0].OffsetPPM = 3
			c.Links[1].Delay = 7
		})
		a.start()
		got := a.pass(data...)
		if first == nil {
			first = got
		}
		if !bytes.Equal(got, first) {
			t.Fatal("two runs received different bytes")
		}
	}
}

// TestTrigger: armed boards start with the one that fires, at the same sample.
func TestTrigger(t *testing.T) {
	radiotest.Leaks(t)
	a := newAir(t, 2, func(c *virtual.Config) {
		c.Triggers = []virtual.Wire{{From: 0, To: 1}, {From: 0, To: 2}}
	})
	for _, d := range a.host[1:] {
		d.out(29, 1, 0, nil)
	}
	a.host[1].mode(virtual.ModeTransmit)
	if a.radio[1].Armed() {
		t.Error("a transmitter is armed before its ring is full")
	}
	a.host[2].mode(virtual.ModeReceive)
	data := [][]byte{quiet(64<<10, 1), quiet(64<<10, 2)}
	a.host[1].write(data[1][:32<<10])
	if !a.radio[1].Armed() || !a.radio[2].Armed() {
		t.Error("the boards are not armed")
	}
	if m := a.radio[2].M0(); m.M0Count != 0 {
		t.Errorf("an armed receiver has %+v", m)
	}
	a.host[0].mode(virtual.ModeTransmit)
	ended := make(chan error, 2)
	go func() { ended <- a.host[0].tryWrite(append(slices.Clone(data[0]), make([]byte, 64<<10)...)) }()
	go func() { ended <- a.host[1].tryWrite(append(slices.Clone(data[1][32<<10:]), make([]byte, 64<<10)...)) }()
	got := a.host[2].read(96 << 10)[:64<<10]
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	compare(t, "sum", got, expect(len(got), func(k int) complex128 { return at(data[0], k) + at(data[1], k) }))
}

// TestTriggerLost: an edge before a board is armed, or on a cut wire, starts
// nothing.
func TestTriggerLost(t *testing.T) {
	wire := virtual.Wire{From: 0, To: 1}
	a := newAir(t, 1, func(c *virtual.Config) { c.Triggers = []virtual.Wire{wire} })
	a.host[1].out(29, 1, 0, nil)
	a.host[0].mode(virtual.ModeReceive) // fires
	a.host[0].mode(virtual.ModeOff)
	a.host[1].mode(virtual.ModeReceive)
	if !a.radio[1].Armed() {
		t.Error("an edge that came before started the board")
	}
	if err := a.bench.CutTrigger(wire); err != nil {
		t.Fatal(err)
	}
	a.host[0].mode(virtual.ModeReceive)
	if !a.radio[1].Armed() {
		t.Error("an edge came over a cut wire")
	}
}

// TestAwait: a board that restarts does so at the same sample in each run.
func TestAwait(t *testing.T) {
	a := newAir(t, 1, nil)
	a.start()
	data := ramp(64<<10, 1)
	in, err := a.host[1].tr.OpenIn(usb.InConfig{Endpoint: 0x81, Size: 16 << 10, Count: 4, Ring: 4, Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	a.host[0].write(data)
	if got := readAll(t, in, 32<<10); !bytes.Equal(got, data[:32<<10]) {
		t.Error("what was received first is not what was sent")
	}
	if err := a.bench.Await(0); err != nil {
		t.Fatal(err)
	}
	// All that was sent has been heard, or lies with the receiver.
	for a.radio[0].M0().M0Count < uint32(len(data)) {
		readAll(t, in, 16<<10)
	}
	a.host[0].mode(virtual.ModeOff)
	before := a.bench.Index()
	again := ramp(64<<10, 2)
	a.host[0].mode(virtual.ModeTransmit)
	if n := a.bench.Index(); n != before {
		t.Errorf("time went from %d to %d without the board", before, n)
	}
	a.host[0].write(again)
	for {
		got := readAll(t, in, 16<<10)
		if bytes.Equal(got, data[:len(got)]) || bytes.Contains(data, got) {
			continue
		}
		if !bytes.Equal(got, again[:len(got)]) {
			t.Error("what was received after the restart is not what was sent")
		}
		return
	}
}

// TestAwaitRestart: boards that end together end, though one of them has less to send,
// and then time waits for both.
func TestAwaitRestart(t *testing.T) {
	a := newAir(t, 2, func(c *virtual.Config) { c.Await = []int{0, 1} })
	for i := range 2 {
		a.host[i].mode(virtual.ModeTransmit)
		a.host[i].write(quiet(32<<10, 1))
	}
	ended := make(chan error, 1)
	go func() { ended <- a.host[1].tryWrite(quiet(96<<10, 2)) }()
	if err := a.bench.AwaitRestart(0, 1); err != nil {
		t.Fatal(err)
	}
	a.host[0].mode(virtual.ModeOff)
	if err := <-ended; err != nil {
		t.Fatalf("once the other board was off: %v", err)
	}
	a.host[1].mode(virtual.ModeOff)
	before := a.bench.Index()
	for i, want := range []int64{before, before + 16<<10} {
		a.host[i].mode(virtual.ModeTransmit)
		a.host[i].write(quiet(32<<10, 3))
		if n := a.bench.Index(); n != want {
			t.Errorf("with %d of two boards time went from %d to %d, want %d", i+1, before, n, want)
		}
	}
	if err := a.bench.AwaitRestart(0, 3); err == nil {
		t.Error("a board that is not there is waited for")
	}
}

// TestReference: a board that loses the clock goes on by its own.
func TestReference(t *testing.T) {
	a := newAir(t, 1, func(c *virtual.Config) {
		c.Boards[0].Reference, c.Boards[1].Reference = true, true
		c.Boards[0].OffsetPPM = 10
	})
	if got := a.host[0].in(44, 0, 1); got[0] != 1 {
		t.Error("the clock input shows nothing")
	}
	a.start()
	data := quiet(64<<10, 1)
	if got := a.pass(data); !bytes.Equal(got, data) {
		t.Error("on a common clock, what was received is not what was sent")
	}
	if err := a.bench.SetReference(0, false); err != nil {
		t.Fatal(err)
	}
	if got := a.host[0].in(44, 0, 1); got[0] != 0 {
		t.Error("the clock input shows what is not there")
	}
	if got := a.pass(data); bytes.Equal(got, data) {
		t.Error("without the clock nothing turns")
	}
}

// TestRealTime: two boards on a clock that is moved by hand; the one at half the
// rate does half the samples.
func TestRealTime(t *testing.T) {
	radiotest.Leaks(t)
	clock := &loopback.ManualClock{}
	a := newAir(t, 1, func(c *virtual.Config) { c.Clock = clock })
	a.host[0].rate(4e6)
	a.start()
	a.host[0].write(make([]byte, 32768))
	clock.Advance(2 * time.Millisecond)
	for i, want := range []uint32{4000 * 2 * 2, 8000 * 2 * 2} {
		if m := a.radio[i].M0(); m.M0Count != want {
			t.Errorf("board %d has done %d bytes, want %d", i, m.M0Count, want)
		}
	}
	if n := a.bench.Index(); n != 16000 && n != 8000 {
		t.Errorf("the bench is at %d, want 2 ms", n)
	}
	if s := a.bench.Slipped(); s != 0 {
		t.Errorf("%v were left out", s)
	}
	clock.Advance(5 * time.Second)
	if s := a.bench.Slipped(); s != 5*time.Second-virtual.DefaultBacklog {
		t.Errorf("%v were left out, want what is beyond %v", s, virtual.DefaultBacklog)
	}
}

// TestQueuedAhead: transfers that are queued take all that comes, however late
// anyone looks.
func TestQueuedAhead(t *testing.T) {
	clock := &loopback.ManualClock{}
	a := newAir(t, 1, func(c *virtual.Config) { c.Clock = clock })
	h := a.radio[1]
	a.host[1].mode(virtual.ModeReceive)
	ended := make(chan error, 4)
	for range 4 {
		h.Queue(0x81, make([]byte, 256<<10), func(n int, err error) {
			if n != 256<<10 && err == nil {
				err = fmt.Errorf("%d bytes", n)
			}
			ended <- err
		})
	}
	clock.Advance(67 * time.Millisecond) // 1 MiB is 65.5 ms
	for range 4 {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(radiotest.Patience):
			t.Fatal("a transfer did not end")
		}
	}
	if m := h.M0(); m.Shortfalls != 0 {
		t.Errorf("counters are %+v, want no shortfall", m)
	}
}

// TestUnplug: all that waits ends, and all that comes fails.
func TestUnplug(t *testing.T) {
	radiotest.Leaks(t)
	a := newAir(t, 1, nil)
	h := a.radio[1]
	a.host[1].mode(virtual.ModeReceive)
	in, err := a.host[1].tr.OpenIn(usb.InConfig{Endpoint: 0x81, Size: 512, Count: 8, Ring: 1})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := in.Next(context.Background()); ended <- err }()
	h.Unplug()
	h.Unplug()
	if err := <-ended; !errorIs(err, usb.ErrUnplugged) {
		t.Errorf("the stream gives %v", err)
	}
	if err := a.host[1].tryOut(1, 0, 0, nil); !errorIs(err, usb.ErrUnplugged) {
		t.Errorf("a request gives %v", err)
	}
	if err := a.host[1].tryWrite(make([]byte, 512)); !errorIs(err, usb.ErrUnplugged) {
		t.Errorf("a write gives %v", err)
	}
}
