package array_test

import (
	"context"
	"errors"
	"math/cmplx"
	"net"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/hackrf"
	"ringwave/radio/loopback"
	"ringwave/radio/pluto"
	"ringwave/radio/rtlsdr"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/iiod"
)

// patience bounds every wait of these tests; none comes near it unless something
// hangs.
const patience = 30 * time.Second

// permitted is what these tests may send.
func permitted(t testing.TB, rate radio.Hertz) radio.TransmitPermit {
	t.Helper()
	p, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 430e6, Max: 440e6}, rate, 20)
	ok(t, err)
	return p
}

// plutos are emulated Plutos on a bench in lock-step, the last of which hears all
// others.
func plutos(t testing.TB, boards int) *rig {
	t.Helper()
	const rate radio.Hertz = 4e6
	r := &rig{cfg: array.Config{Rate: rate, Frequency: carrier, Clock: array.SharedClock, Trigger: array.LockStep}}
	var cfg virtual.Config
	var places []iiod.Config
	for i := range boards {
		tx, rx := iiod.NewPlace(radio.Transmit), iiod.NewPlace(radio.Receive)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: tx}, virtual.Place{Radio: rx})
		places = append(places, iiod.Config{Transmit: tx, Receive: rx})
		if i == boards-1 {
			cfg.Await = append(cfg.Await, 2*i+1)
			break
		}
		cfg.Await = append(cfg.Await, 2*i)
		cfg.Links = append(cfg.Links, virtual.Link{From: 2 * i, To: 2*boards - 1, Gain: 1})
	}
	r.awaited = cfg.Await
	var err error
	r.bench, err = virtual.NewBench(cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, r.bench.Close()) })
	for i, p := range places {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		ok(t, err)
		s, err := iiod.Serve(ln, p)
		ok(t, err)
		t.Cleanup(func() { ok(t, s.Close()) })
		uri := "pluto:" + ln.Addr().String() + "?block=2048&hold=on&rx_gain=0&tx_gain=0&feed=strict"
		if i == boards-1 {
			r.cfg.Receiver = uri
		} else {
			r.cfg.Transmitters = append(r.cfg.Transmitters, uri)
		}
	}
	session, end := context.WithCancel(context.Background())
	r.end = end
	t.Cleanup(end)
	r.devices, err = radio.NewRegistry(map[string]radio.Opener{"pluto": pluto.NewOpener(session, permitted(t, rate), virtual.NewGuard())})
	ok(t, err)
	return r
}

// frame has each transmitter send a ramp of its own and gives what arrives around it,
// the ramps beginning at index at, a transmitter's length one after the other.
func frame(t testing.TB, a *array.Array, at radio.SampleIndex, length int) (got []complex64, first radio.SampleIndex) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	end := at + radio.SampleIndex(length*len(a.Transmitters()))
	for i, tx := range a.Transmitters() {
		ramp := make([]complex64, length)
		for k := range ramp {
			ramp[k] = complex(0.5*float32(k+1)/float32(length), 0)
		}
		_, err := tx.Write(ctx, ramp, radio.TxMeta{Timed: true, Start: at + radio.SampleIndex(i*length), BurstEnd: true})
		ok(t, err)
		ok(t, tx.(radio.Idler).Idle(ctx, end+radio.SampleIndex(length)+radio.SampleIndex(a.Flush())))
	}
	got = make([]complex64, end+radio.SampleIndex(length))
	n, meta, err := radio.ReadFull(ctx, a.Receiver(), got)
	if err != nil || len(meta.Gaps) > 0 {
		t.Fatalf("%d of %d samples: %v; %+v", n, len(got), err, meta)
	}
	return got, meta.First
}

// Plutos on a bench in lock-step have one start: frames arrive where they were sent,
// with what a radio.Idler promises behind them and no more.
func TestPlutos(t *testing.T) {
	r := plutos(t, 3)
	a := r.open(t)
	const at, length = 5001, 3000
	for range 2 {
		ok(t, r.bench.AwaitRestart(r.awaited...)) // so that time begins again with all
		ok(t, a.Start(t.Context()))
		got, first := frame(t, a, at, length)
		for k, x := range got {
			want := float32(0)
			if j := k + int(first) - at; j >= 0 && j < 2*length {
				want = 0.5 * float32(j%length+1) / length
			}
			if d := real(x) - want; d > 2e-3 || d < -2e-3 {
				t.Fatalf("sample %d is %v, was sent as %v", k, x, want)
			}
		}
		ok(t, a.Coherent(t.Context()))
	}
}

// Plutos that go on by themselves are located as any other board is.
func TestPlutosSounded(t *testing.T) {
	r := plutos(t, 3)
	for i, uri := range r.cfg.Transmitters {
		r.cfg.Transmitters[i] = strings.TrimSuffix(uri, "&feed=strict")
	}
	r.sounded(t)
}

// Outside such a bench several Plutos have no common start, and are refused with the
// reason.
func TestPlutosIncoherent(t *testing.T) {
	for _, c := range []struct {
		name    string
		clock   array.Clock
		trigger array.Trigger
		want    string
	}{
		{"no trigger input", array.SharedClock, array.WiredTrigger, "has no trigger input"},
		{"no trigger", array.SharedClock, array.NoTrigger, "2 transmitters have no trigger, so that they start at different times"},
		{"not asked for a clock", array.ExternalClock, array.LockStep, "does not tell whether it follows a reference clock"},
		{"own clocks", array.InternalClock, array.LockStep, "2 transmitters have no common clock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := plutos(t, 3)
			r.cfg.Clock, r.cfg.Trigger = c.clock, c.trigger
			r.refused(t, c.want, false)
		})
	}
}

// rtlRate is one that a HackRF and an RTL2832U both have: the latter's oscillator divided
// by 12.
const rtlRate radio.Hertz = 2.4e6

// newRTLRig makes two HackRFs and an RTL2832U that hears them.
func newRTLRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{cfg: array.Config{Rate: rtlRate, Frequency: carrier, Clock: array.SharedClock, Receiver: "rtlsdr:?hold=on&deadline_ms=0&transfer=4096"}}
	cfg := virtual.Config{
		Links:    []virtual.Link{{From: 0, To: 2, Gain: 1}, {From: 1, To: 2, Gain: 1}},
		Triggers: []virtual.Wire{{From: 0, To: 1}},
		Await:    []int{0, 2}, // the receiver's ring must not be full before the edge
	}
	var plugged []virtual.Board
	for i := range 2 {
		b, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(i), Reference: &virtual.Gains{}})
		ok(t, err)
		r.boards, plugged = append(r.boards, b), append(plugged, b)
		r.cfg.Transmitters = append(r.cfg.Transmitters, "hackrf:"+serial(i)+params)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: b, Reference: true})
	}
	rtl, err := virtual.NewRTL2832U(virtual.RTL2832UConfig{})
	ok(t, err)
	plugged, cfg.Boards = append(plugged, rtl), append(cfg.Boards, virtual.Place{Radio: rtl, Reference: true})
	r.bench, err = virtual.NewBench(cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, r.bench.Close()) })
	host := virtual.NewHost(plugged...)
	session, end := context.WithCancel(context.Background())
	r.end = end
	t.Cleanup(end)
	r.devices, err = radio.NewRegistry(map[string]radio.Opener{
		"hackrf": hackrf.NewOpener(session, host, permitted(t, rtlRate), virtual.NewGuard()), "rtlsdr": rtlsdr.NewOpener(host, radio.TransmitPermit{}),
	})
	ok(t, err)
	return r
}

// HackRFs that are started together are heard by an RTL2832U, which has no trigger
// input: by a constant its index differs from theirs. Nor does its synthesizer have
// their carrier: their phases stand still all the same.
func TestRTLReceiver(t *testing.T) {
	r := newRTLRig(t)
	a := r.open(t)
	ok(t, a.Start(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const length, apart = 4000, 6000
	at := radio.SampleIndex(0)
	for _, tx := range a.Transmitters() {
		at = max(at, tx.(radio.Pacer).Earliest()+radio.SampleIndex(rtlRate)/5)
	}
	for i, tx := range a.Transmitters() {
		block := make([]complex64, length)
		for k := range block {
			block[k] = 0.5
		}
		_, err := tx.Write(ctx, block, radio.TxMeta{Timed: true, Start: at + radio.SampleIndex(i*apart), BurstEnd: true})
		ok(t, err)
	}
	var heard []complex64
	var first, last radio.SampleIndex
	for dst := make([]complex64, 1<<14); len(heard) == 0 || last < first+2*apart; {
		n, meta, err := a.Receiver().Read(ctx, dst)
		ok(t, err)
		for k, x := range dst[:n] {
			if cmplx.Abs(complex128(x)) < 0.1 {
				continue
			}
			if len(heard) == 0 {
				first = meta.Index(k)
			}
			if i := meta.Index(k) - first; i >= length && i < apart || i >= apart+length {
				t.Fatalf("something is heard %d samples after the first", i)
			}
			heard = append(heard, x)
		}
		last = meta.Index(n - 1)
	}
	if len(heard) != 2*length {
		t.Fatalf("%d samples were heard, %d were sent", len(heard), 2*length)
	}
	for k, x := range heard {
		// A code of 8 bits is 1/128 wide.
		if d := x - heard[0]; cmplx.Abs(complex128(d)) > 0.03 {
			t.Fatalf("sample %d is %v, and was %v at first", k, x, heard[0])
		}
	}
	ok(t, a.Coherent(t.Context()))
	r.close(t, a)
	r.off(t)
}

// What an RTL2832U cannot have of an array is refused with the reason.
func TestRTLIncoherent(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*array.Config)
	}{
		{"it takes a sample rate of", func(c *array.Config) { c.Rate = 2e6 }},
		{"the receiver, rtlsdr:", func(c *array.Config) { c.Clock = array.ExternalClock }},
	} {
		r := newRTLRig(t)
		c.change(&r.cfg)
		r.refused(t, c.want, false)
	}
}

// odd is a transmitter of a medium whose streams start in a way of their own.
type odd struct {
	radio.Device
	radio.RateControl
	radio.FrequencyControl
	start func(ctx context.Context, tx radio.Transmitter) error
}

func (o odd) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	tx, err := o.Device.(radio.TransmitOpener).OpenTransmitter(ctx)
	return oddStream{tx, o.start}, err
}

type oddStream struct {
	radio.Transmitter
	start func(ctx context.Context, tx radio.Transmitter) error
}

func (s oddStream) Start(ctx context.Context) error { return s.start(ctx, s.Transmitter) }

type oddOpener struct {
	radio.Opener
	start func(ctx context.Context, tx radio.Transmitter) error
}

func (o oddOpener) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	d, err := o.Opener.Open(ctx, u)
	if err != nil || !u.Params.Has("tx") {
		return d, err
	}
	return odd{d, d.(radio.RateControl), d.(radio.FrequencyControl), o.start}, nil
}

// oddArray opens an array over a medium, whose transmitter starts in a way of its own.
func oddArray(t *testing.T, start func(ctx context.Context, tx radio.Transmitter) error) *array.Array {
	t.Helper()
	m, err := loopback.New(loopback.Config{Name: "m", Rate: rate, Devices: make([]loopback.Device, 1)})
	ok(t, err)
	t.Cleanup(func() { m.Close() })
	o, err := loopback.NewOpener(m)
	ok(t, err)
	devices, err := radio.NewRegistry(map[string]radio.Opener{"loopback": oddOpener{o, start}})
	ok(t, err)
	a, err := array.Open(t.Context(), devices, array.Config{
		Transmitters: []string{"loopback:m?tx=0"}, Receiver: "loopback:m", Rate: rate, Frequency: carrier, Clock: array.SharedClock, Trigger: array.NoTrigger,
	})
	ok(t, err)
	t.Cleanup(func() { ok(t, a.Close()) })
	return a
}

// Streams start again where one has starved before all ran; not without end, and not for
// other reasons.
func TestStarvesInStart(t *testing.T) {
	for _, c := range []struct {
		err    error
		fails  int // the first so many starts
		starts int
	}{
		{radio.ErrStarved, 2, 3},
		{radio.ErrStarved, 9, 3},
		{radio.ErrBusy, 1, 1},
	} {
		starts := 0
		a := oddArray(t, func(ctx context.Context, tx radio.Transmitter) error {
			if starts++; starts <= c.fails {
				return c.err
			}
			return tx.Start(ctx)
		})
		if err := a.Start(t.Context()); starts != c.starts || c.fails < c.starts && err != nil || c.fails >= c.starts && !errors.Is(err, c.err) {
			t.Errorf("%d times %v: %d starts, %v", c.fails, c.err, starts, err)
		}
	}
}

// A stream that does not start ends the start, and says which.
func TestNeverStarts(t *testing.T) {
	a := oddArray(t, func(ctx context.Context, _ radio.Transmitter) error {
		<-ctx.Done()
		return nil // as of a stream that starts without being full
	})
	a.SetStarting(100 * time.Millisecond)
	err := a.Start(t.Context())
	if !errors.Is(err, array.ErrIncoherent) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "transmitter 1, loopback:m?tx=0, did not start within 100ms") {
		t.Error(err)
	}
}
