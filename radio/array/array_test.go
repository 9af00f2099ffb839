package array_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/hackrf"
	"ringwave/radio/loopback"
	"ringwave/radio/virtual"
)

const (
	rate    radio.Hertz = 2e6
	carrier radio.Hertz = 433.92e6
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rig is emulated boards, the last of which hears all others. Their time waits for
// whoever is late, so that nothing is lost; the drivers feed them without end.
type rig struct {
	boards  []*virtual.HackRF
	bench   *virtual.Bench
	devices *radio.Registry
	cfg     array.Config
	end     context.CancelFunc // of the session
	awaited []int              // places without which time does not begin
}

// close closes an array at the end of its session: a board whose time stands still, as
// nobody reads the receiver, could not send what it was given.
func (r *rig) close(t testing.TB, a *array.Array) {
	t.Helper()
	r.end()
	ok(t, a.Close())
}

// params let a board wait for the test as long as it likes.
const params = "?transfer=16384&lna=0&vga=0&hold=on&deadline_ms=0"

func serial(i int) string { return fmt.Sprintf("0000000000000000%016x", 0xc0+i) }

// newRig makes boards with trigger wires from the first to all others, and 10 MHz.
func newRig(t testing.TB, boards int, change func(*virtual.Config)) *rig {
	t.Helper()
	r := &rig{cfg: array.Config{Rate: rate, Frequency: carrier}}
	var cfg virtual.Config
	var plugged []virtual.Board
	for i := range boards {
		b, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(i), Reference: &virtual.Gains{}})
		ok(t, err)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: b, Reference: true})
		uri := "hackrf:" + serial(i) + params
		if i == boards-1 {
			r.cfg.Receiver = uri
			break
		}
		r.cfg.Transmitters = append(r.cfg.Transmitters, uri)
		cfg.Links = append(cfg.Links, virtual.Link{From: i, To: boards - 1, Gain: 1})
	}
	for i := 1; i < boards; i++ {
		cfg.Triggers = append(cfg.Triggers, virtual.Wire{From: 0, To: i})
	}
	if change != nil {
		change(&cfg)
	}
	for _, p := range cfg.Boards {
		b := p.Radio.(*virtual.HackRF)
		r.boards, plugged = append(r.boards, b), append(plugged, b)
	}
	var err error
	r.bench, err = virtual.NewBench(cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, r.bench.Close()) })
	permit, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 430e6, Max: 440e6}, rate, 20)
	ok(t, err)
	session, end := context.WithCancel(context.Background())
	r.end = end
	t.Cleanup(end)
	r.devices, err = radio.NewRegistry(map[string]radio.Opener{"hackrf": hackrf.NewOpener(session, virtual.NewHost(plugged...), permit, virtual.NewGuard())})
	ok(t, err)
	return r
}

func (r *rig) open(t testing.TB) *array.Array {
	t.Helper()
	a, err := array.Open(t.Context(), r.devices, r.cfg)
	ok(t, err)
	t.Cleanup(func() { r.close(t, a) })
	return a
}

// refused wants an array to be refused for a reason, and all boards to be off and
// free again.
func (r *rig) refused(t testing.TB, want string, start bool) {
	t.Helper()
	a, err := array.Open(t.Context(), r.devices, r.cfg)
	if err == nil && start {
		if err = a.Start(t.Context()); err == nil {
			t.Error("the array started")
		}
		ok(t, a.Close())
	} else if err == nil {
		ok(t, a.Close())
		t.Fatal("the array was opened")
	}
	if !errors.Is(err, array.ErrIncoherent) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; expected is %q", err, want)
	}
	r.off(t)
}

func (r *rig) off(t testing.TB) {
	t.Helper()
	for i, b := range r.boards {
		if m := b.Settings().Mode; m != virtual.ModeOff {
			t.Errorf("board %d is still on: %v", i, m)
		}
	}
}

// Transmitters that were started by the trigger share an index, and the receiver has
// it too: what each sends at a given index arrives where the other's does.
func TestCommonStart(t *testing.T) {
	r := newRig(t, 3, nil)
	a := r.open(t)
	for again := range 2 {
		ok(t, a.Start(t.Context()))
		at := radio.SampleIndex(0)
		for _, tx := range a.Transmitters() {
			at = max(at, tx.(radio.Pacer).Earliest()+radio.SampleIndex(rate)/5)
		}
		for i, tx := range a.Transmitters() {
			_, err := tx.Write(t.Context(), []complex64{complex(0.5, 0)}, radio.TxMeta{Timed: true, Start: at + radio.SampleIndex(i), BurstEnd: true})
			ok(t, err)
		}
		dst := make([]complex64, 1<<14)
		heard := map[radio.SampleIndex]complex64{}
		for done := false; !done; {
			n, meta, err := a.Receiver().Read(t.Context(), dst)
			ok(t, err)
			for k, x := range dst[:n] {
				if x != 0 {
					heard[meta.Index(k)-at] = x
				}
			}
			done = meta.Index(n-1) > at+1000
		}
		if len(heard) != 2 || heard[0] == 0 || heard[1] == 0 {
			t.Errorf("start %d: heard at %v of %d; expected is 0 and 1", again, heard, at)
		}
	}
	ok(t, a.Coherent(t.Context()))
	r.close(t, a)
	r.off(t)
	if err := a.Start(t.Context()); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// A receiver waits for the trigger with firmware that does not count: it runs once
// something has come.
func TestOldReceiver(t *testing.T) {
	r := newRig(t, 3, func(c *virtual.Config) {
		old, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(2), API: virtual.API2018})
		ok(t, err)
		c.Boards[2].Radio = old
	})
	r.cfg.Clock = array.SharedClock // which such firmware does not tell of
	a := r.open(t)
	ok(t, a.Start(t.Context()))
	if s := a.Receiver().State(); s != radio.Running {
		t.Errorf("the receiver is %v", s)
	}
}

// A board that has two places is named, by whatever it is called.
func TestSameBoardTwice(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*array.Config)
		want   string
	}{
		{"two transmitters", func(c *array.Config) { c.Transmitters[1] = c.Transmitters[0] },
			"transmitter 2, hackrf:" + serial(0) + params + ", is the same board as transmitter 1, hackrf:" + serial(0) + params + "; allowed is"},
		{"transmitter and receiver", func(c *array.Config) { c.Receiver = c.Transmitters[1] }, "the receiver, hackrf:" + serial(1) + params + ", is the same board as transmitter 2"},
		{"by another name", func(c *array.Config) { c.Receiver = "hackrf:C1" }, "the receiver, hackrf:C1, is the same board as transmitter 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 3, nil)
			c.change(&r.cfg)
			a, err := array.Open(t.Context(), r.devices, r.cfg)
			if err == nil {
				ok(t, a.Close())
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "another program") {
				t.Errorf("%v; expected is %q", err, c.want)
			}
			r.off(t)
		})
	}
	t.Run("boards that several programs may open", func(t *testing.T) {
		r := plutos(t, 3)
		r.cfg.Receiver = r.cfg.Transmitters[0]
		a, err := array.Open(t.Context(), r.devices, r.cfg)
		if err == nil {
			ok(t, a.Close())
		}
		if err == nil || !strings.Contains(err.Error(), "is the same board as transmitter 1") {
			t.Error(err)
		}
	})
}

// A transmitter that has no trigger wire says why.
func TestTriggerProblem(t *testing.T) {
	r := newRig(t, 3, nil)
	inner := r.devices
	var err error
	r.devices, err = radio.NewRegistry(map[string]radio.Opener{"hackrf": wireless{inner}})
	ok(t, err)
	r.refused(t, "transmitter 1, "+r.cfg.Transmitters[0]+", can have no trigger wire: the pins are gone", false)
}

// wireless opens boards without trigger pins.
type wireless struct{ devices *radio.Registry }

func (w wireless) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	d, err := w.devices.Open(ctx, u.String())
	if err != nil {
		return nil, err
	}
	return pinless{d.(*hackrf.Device)}, nil
}

type pinless struct{ *hackrf.Device }

func (pinless) TriggerProblem() error { return errors.New("the pins are gone") }

// The receiver has had time to settle before the edge of an only transmitter, too.
func TestSettledBeforeTheEdge(t *testing.T) {
	for _, wire := range []bool{true, false} {
		r := newRig(t, 2, nil)
		if !wire {
			r.cfg.Trigger = array.NoTrigger
		}
		w := &looked{devices: r.devices}
		var err error
		r.devices, err = radio.NewRegistry(map[string]radio.Opener{"hackrf": w})
		ok(t, err)
		ok(t, r.open(t).Start(t.Context()))
		if wire != (w.atStart >= 5) {
			t.Errorf("with a wire: %v; the receiver was looked at %d times before", wire, w.atStart)
		}
	}
}

// looked counts how often the receiver was looked at before the transmitter started.
type looked struct {
	devices        *radio.Registry
	looks, atStart int
}

func (w *looked) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	d, err := w.devices.Open(ctx, u.String())
	if err != nil {
		return nil, err
	}
	return lookedDevice{d.(*hackrf.Device), w}, nil
}

type lookedDevice struct {
	*hackrf.Device
	w *looked
}

func (d lookedDevice) OpenReceiver(ctx context.Context) (radio.Receiver, error) {
	rx, err := d.Device.OpenReceiver(ctx)
	return lookedReceiver{rx, d.w}, err
}

func (d lookedDevice) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	tx, err := d.Device.OpenTransmitter(ctx)
	return lookedTransmitter{tx, d.w}, err
}

type lookedReceiver struct {
	radio.Receiver
	w *looked
}

func (r lookedReceiver) CheckLoss(ctx context.Context) error {
	r.w.looks++
	return r.Receiver.(radio.LossChecker).CheckLoss(ctx)
}

type lookedTransmitter struct {
	radio.Transmitter
	w *looked
}

func (t lookedTransmitter) Start(ctx context.Context) error {
	t.w.atStart = t.w.looks
	return t.Transmitter.Start(ctx)
}

func TestIncoherent(t *testing.T) {
	for _, c := range []struct {
		name   string
		want   string
		bench  func(*virtual.Config)
		config func(*array.Config)
		start  bool // it is found at Start
	}{
		{name: "a board without 10 MHz", want: "transmitter 2, hackrf:" + serial(1), bench: func(c *virtual.Config) { c.Boards[1].Reference = false }},
		{name: "own clocks", want: "2 transmitters have no common clock", config: func(c *array.Config) { c.Clock = array.InternalClock }},
		{name: "no trigger", want: "2 transmitters have no trigger", config: func(c *array.Config) { c.Trigger = array.NoTrigger }},
		{name: "nobody to locate", want: "2 transmitters start at different times, and there is nothing that locates them by soundings", config: func(c *array.Config) { c.Trigger = array.SoundedStart }},
		{name: "nothing to locate by", want: "transmitter 1, hackrf:" + serial(0) + params + "&feed=strict, is not fed while nothing is written", start: true,
			config: func(c *array.Config) {
				c.Trigger, c.Locate = array.SoundedStart, func(context.Context, []radio.Transmitter, radio.Receiver) ([]radio.SampleIndex, error) {
					return nil, errors.New("asked all the same")
				}
				c.Transmitters[0] += "&feed=strict"
			}},
		{name: "no wire", want: "transmitter 2, hackrf:" + serial(1) + params + ", was never triggered", start: true,
			bench: func(c *virtual.Config) { c.Triggers = c.Triggers[1:] }},
		{name: "no wire to the receiver", want: "was never triggered", start: true,
			bench: func(c *virtual.Config) { c.Triggers = c.Triggers[:1] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 3, c.bench)
			if c.config != nil {
				c.config(&r.cfg)
			}
			r.refused(t, c.want, c.start)
		})
	}
}

// Transmitters that begin when they begin have the index that they are located by, and all
// that they are told and tell is by it; at each start they are located anew.
func TestSounded(t *testing.T) {
	r := newRig(t, 3, func(c *virtual.Config) { c.Triggers = nil })
	a := r.sounded(t)
	ahead := a.Offsets()[1]
	tx := a.Transmitters()[1]
	_, err := tx.Write(t.Context(), make([]complex64, 5), radio.TxMeta{Timed: true, Start: ahead + 1, BurstEnd: true})
	ok(t, err)
	for e := (radio.Event{}); e.Kind != radio.Late; {
		e, err = tx.Event(t.Context())
		if ok(t, err); e.Kind == radio.Late && (e.Index != ahead+1 || e.Count != 5) {
			t.Errorf("%+v; expected is index %d", e, ahead+1)
		}
	}
	ok(t, a.Coherent(t.Context()))
}

// sounded starts an array twice whose transmitters are located by impulses, and tries it.
func (r *rig) sounded(t *testing.T) *array.Array {
	t.Helper()
	var found []radio.SampleIndex
	r.cfg.Trigger = array.SoundedStart
	r.cfg.Locate = func(ctx context.Context, tx []radio.Transmitter, rx radio.Receiver) ([]radio.SampleIndex, error) {
		found = nil
		for _, at := range impulses(t, ctx, tx, rx) {
			found = append(found, at[1]-at[0])
		}
		return found, nil
	}
	a := r.open(t)
	for again := range 2 {
		ok(t, a.Start(t.Context()))
		if got := a.Offsets(); !slices.Equal(got, found) || len(got) != 2 {
			t.Errorf("start %d: offsets %d, found were %d", again, got, found)
		}
		for i, at := range impulses(t, t.Context(), a.Transmitters(), a.Receiver()) {
			if at[0] != at[1] {
				t.Errorf("start %d: transmitter %d sent at %d what came at %d", again, i+1, at[0], at[1])
			}
		}
	}
	return a
}

// impulses has each transmitter send one, one after the other, and returns the indices at
// which each was sent and heard.
func impulses(t testing.TB, ctx context.Context, all []radio.Transmitter, rx radio.Receiver) (sent [][2]radio.SampleIndex) {
	t.Helper()
	dst := make([]complex64, 1<<14)
	for _, tx := range all {
		at := tx.(radio.Pacer).Earliest() + radio.SampleIndex(rate)/5
		_, err := tx.Write(ctx, []complex64{complex(0.5, 0)}, radio.TxMeta{Timed: true, Start: at, BurstEnd: true})
		ok(t, err)
		heard := radio.SampleIndex(-1)
		for heard < 0 {
			n, meta, err := rx.Read(ctx, dst)
			ok(t, err)
			if k := slices.IndexFunc(dst[:n], func(x complex64) bool { return x != 0 }); k >= 0 {
				heard = meta.Index(k)
			}
		}
		sent = append(sent, [2]radio.SampleIndex{at, heard})
	}
	return sent
}

// One transmitter needs no trigger, and a clock of its own will do.
func TestOne(t *testing.T) {
	r := newRig(t, 2, func(c *virtual.Config) { c.Triggers, c.Boards[0].Reference = nil, false })
	r.cfg.Clock, r.cfg.Trigger = array.InternalClock, array.NoTrigger
	a := r.open(t)
	ok(t, a.Start(t.Context()))
	if a.Flush() != 0 || len(a.Infos()) != 2 {
		t.Errorf("a flush of %d, %d devices", a.Flush(), len(a.Infos()))
	}
}

// A retune and a lost clock are told, and so is what a device does not take.
func TestNoLongerCoherent(t *testing.T) {
	r := newRig(t, 3, nil)
	a := r.open(t)
	ok(t, a.Start(t.Context()))
	ok(t, r.bench.SetReference(2, false))
	if err := a.Coherent(t.Context()); !errors.Is(err, array.ErrIncoherent) || !strings.Contains(err.Error(), "the receiver") {
		t.Error(err)
	}
	ok(t, r.bench.SetReference(2, true))
	r.close(t, a)
	r.off(t)
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*array.Config)
	}{
		{"0 transmitters", func(c *array.Config) { c.Transmitters = nil }},
		{"transmitter 1: device \"hackrf:none\"", func(c *array.Config) { c.Transmitters = []string{"hackrf:none"} }},
		{"the receiver: device", func(c *array.Config) { c.Receiver = "loopback:x" }},
		{"transmitter 1, hackrf:", func(c *array.Config) { c.Frequency = 500e6 }},
		{"transmitter 1, hackrf:", func(c *array.Config) { c.TransmitGains = map[string]radio.Decibels{"txvga": 21} }},
		{`has no transmit gain "lna"; allowed is txvga, amp`, func(c *array.Config) { c.TransmitGains = map[string]radio.Decibels{"lna": 1} }},
		{"the sample rate of hackrf:", func(c *array.Config) { c.Rate = 1e6 }},
	} {
		r := newRig(t, 2, nil)
		c.change(&r.cfg)
		a, err := array.Open(t.Context(), r.devices, r.cfg)
		if err == nil { // what may be sent is asked for a stream
			err = a.Start(t.Context())
			ok(t, a.Close())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; expected is %q", err, c.want)
		}
		r.off(t)
	}
}

// In memory all count on one clock, and nobody is asked for a reference.
func TestMemory(t *testing.T) {
	m, err := loopback.New(loopback.Config{Name: "m", Rate: rate, Devices: make([]loopback.Device, 2)})
	ok(t, err)
	o, err := loopback.NewOpener(m)
	ok(t, err)
	devices, err := radio.NewRegistry(map[string]radio.Opener{"loopback": o})
	ok(t, err)
	cfg := array.Config{Transmitters: []string{"loopback:m?tx=0", "loopback:m?tx=1"}, Receiver: "loopback:m", Rate: rate, Frequency: carrier, Trigger: array.NoTrigger}
	if _, err := array.Open(t.Context(), devices, cfg); !errors.Is(err, array.ErrIncoherent) || !strings.Contains(err.Error(), "say that the clock is shared") {
		t.Error(err)
	}
	cfg.Clock = array.SharedClock
	a, err := array.Open(t.Context(), devices, cfg)
	ok(t, err)
	ok(t, a.Start(t.Context()))
	if n := len(a.Transmitters()); n != 2 || a.Receiver().State() != radio.Running {
		t.Errorf("%d transmitters, receiver %v", n, a.Receiver().State())
	}
	d, err := m.Transmitter(1)
	ok(t, err)
	_, err = d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Transmit, carrier+1)
	ok(t, err)
	if err := a.Coherent(t.Context()); !errors.Is(err, array.ErrIncoherent) || !strings.Contains(err.Error(), "transmitter 2, loopback:m?tx=1, was retuned in between") {
		t.Error(err)
	}
	_, err = d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Transmit, carrier)
	ok(t, err)
	if err := a.Coherent(t.Context()); !errors.Is(err, array.ErrIncoherent) || !strings.Contains(err.Error(), "its tuning epoch is") {
		t.Error(err)
	}
	ok(t, a.Start(t.Context()))
	ok(t, a.Coherent(t.Context()))
	ok(t, a.Close())
	ok(t, m.Close())
}

// Transmitters that lose samples without a word are started anew where they are not found by
// soundings; others are not.
func TestLocatedAgain(t *testing.T) {
	for _, silent := range []bool{false, true} {
		r := newRig(t, 3, nil)
		inner, tries := r.devices, 0
		var err error
		r.devices, err = radio.NewRegistry(map[string]radio.Opener{"hackrf": mute{inner, silent}})
		ok(t, err)
		unheard := errors.New("not heard")
		r.cfg.Trigger = array.SoundedStart
		r.cfg.Locate = func(context.Context, []radio.Transmitter, radio.Receiver) ([]radio.SampleIndex, error) {
			if tries++; tries < 3 {
				return nil, unheard
			}
			return make([]radio.SampleIndex, 2), nil
		}
		a := r.open(t)
		err = a.Start(t.Context())
		if silent && (err != nil || tries != 3) || !silent && (!errors.Is(err, unheard) || tries != 1) {
			t.Errorf("silent %v: %d tries, %v", silent, tries, err)
		}
	}
}

// mute opens boards that do, or do not, lose samples without a word.
type mute struct {
	devices *radio.Registry
	silent  bool
}

func (m mute) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	d, err := m.devices.Open(ctx, u.String())
	if err != nil {
		return nil, err
	}
	return muteDevice{d.(*hackrf.Device), m.silent}, nil
}

type muteDevice struct {
	*hackrf.Device
	silent bool
}

func (d muteDevice) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	tx, err := d.Device.OpenTransmitter(ctx)
	if err != nil {
		return nil, err
	}
	return muteTransmitter{tx, tx.(radio.Pacer), d.silent}, nil
}

type muteTransmitter struct {
	radio.Transmitter
	radio.Pacer
	silent bool
}

func (t muteTransmitter) LosesSilently() bool { return t.silent }
