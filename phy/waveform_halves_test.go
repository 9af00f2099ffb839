package phy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// apart is a link whose halves share nothing: a sender a device, the air, and a receiver.
type apart struct {
	*WaveformReceiver
	senders []*WaveformSender
	air     *WaveformAir
	feed    *Feed
	absent  []bool
	frames  []*WaveformFrame
	x       []zq.Vector
	at      slot.Slot
	calls   int
}

func newApart(t *testing.T, a *air, cfg WaveformConfig) *apart {
	t.Helper()
	tx, rx := a.streams(t)
	l := &apart{feed: &Feed{Clip: radio.ClipLevel(rx)}, frames: make([]*WaveformFrame, a.devices), x: make([]zq.Vector, a.devices), absent: make([]bool, a.devices)}
	var err error
	l.air, err = NewWaveformAir(WaveformAirConfig{Modem: cfg.Modem, Base: cfg.Base, Transmitters: tx, Receiver: rx, OnTransmission: cfg.OnTransmission, CarrierTime: cfg.CarrierTime})
	must(t, err)
	cfg.OnTransmission, cfg.CarrierTime = nil, nil
	for i := range a.devices {
		s, err := NewWaveformSender(cfg, i)
		must(t, err)
		l.senders = append(l.senders, s)
	}
	cfg.Receiver, cfg.Call = l.feed, l.call
	l.WaveformReceiver, err = NewWaveformReceiver(cfg)
	must(t, err)
	return l
}

// call has the devices of a group send, as their hosts do.
func (l *apart) call(ctx context.Context, d Due) error {
	l.calls++
	nobody := true
	for i, s := range l.senders {
		if l.absent[i] {
			l.frames[i] = nil
			continue
		}
		nobody = nobody && s.Group() != d.Group
		if d.Repeat > 0 && s.Group() != d.Group {
			continue
		}
		f, err := s.Frame(d.Slot, d.Repeat, l.x[i])
		if err != nil {
			return err
		}
		l.frames[i] = &f
	}
	if nobody {
		return ErrNobody
	}
	var samples []complex64
	clipped := radio.SampleCount(0)
	err := l.air.Superpose(ctx, d.Slot, d.Group, l.frames, func(h Heard) error {
		if h.At != len(samples) || h.Of != d.Samples {
			return fmt.Errorf("sample %d of %d behind %d of %d", h.At, h.Of, len(samples), d.Samples)
		}
		samples, clipped = append(samples, h.Samples...), clipped+h.Clipped
		return nil
	})
	if err == nil && len(samples) != d.Samples {
		err = fmt.Errorf("%d samples of %d", len(samples), d.Samples)
	}
	l.feed.Give(d.At, samples, clipped)
	return err
}

func (l *apart) Open(ctx context.Context, s slot.Slot, n int) error {
	l.at = s
	return l.WaveformReceiver.Open(ctx, s, n)
}

func (l *apart) Transmit(i int, x zq.Vector) error {
	l.x[i] = x
	return nil
}

// halves are the cases in which a link's halves are compared with the whole.
func halves(devices int) map[string]halvesCase {
	clocks := scene{sigma: 0.3, bits: -1, noiseStd: 4e-3, impair: func(i int) channel.Impairments {
		return channel.Impairments{DelaySamples: 0.2 * float64(i)}
	}}
	return map[string]halvesCase{
		"blind":   {clocks, func(c *WaveformConfig) { c.Repeats = 1 }, false},
		"groups":  {clocks, func(c *WaveformConfig) { c.Group, c.Repeats = 2, 1 }, false},
		"repeats": {scene{sigma: 0.3, bits: -1, noiseStd: 5.5e-2}, func(c *WaveformConfig) { c.Group, c.Repeats, c.BlockSymbols = 2, 3, 1000 }, true},
		"corrections": {clocks, func(c *WaveformConfig) {
			c.Group = 2
			c.CarrierTime = func(at radio.SampleIndex) radio.SampleIndex { return at + 12345 }
			for i := range devices {
				c.Trim = append(c.Trim, Trim(complex(0.9, 0.1*float64(i))))
				c.Advance = append(c.Advance, modem.Samples(0.2*float64(i)))
				c.Correction = append(c.Correction, modem.Correction{Offset: 1e-6 * modem.CyclesPerSample(i), Leakage: complex(1e-3*float64(i), 0), Image: 1e-3, Clock: 1e-6 * float64(i)})
			}
			for i := range c.Trim {
				c.Trim[i] *= 0.9
			}
		}, false},
	}
}

type halvesCase struct {
	scene    scene
	change   func(*WaveformConfig)
	repeated bool // some frames are
}

// receiving is what is compared of a link.
type receiving interface {
	Uplink
	PatternSymbols() int
	Report() WaveformReport
}

// compare has both send the same.
func (c halvesCase) compare(t *testing.T, m *zq.Modulus, devices int, whole *Waveform, halves receiving) {
	const n = 300
	repeated, read := 0, 0
	rnd := rand.New(rand.NewPCG(8, 8))
	rounds, least := uint32(6), 4
	if testing.Short() {
		rounds, least = 2, 1
	}
	for round := range rounds {
		for tr := range slot.Transmission(slot.Transmissions) {
			s := slot.Slot{Round: round, Attempt: round % 2, Transmission: tr}
			if tr == slot.TxShare && round == 3 {
				s.Again = 1
			}
			x := randomPayloads(m, devices, n, rnd)
			want := Reception{Y: m.NewVector(n), Pattern: make([]int64, whole.PatternSymbols())}
			got := Reception{Y: m.NewVector(n), Pattern: make([]int64, halves.PatternSymbols())}
			sendOver(t, whole, s, x, &want)
			sendOver(t, halves, s, x, &got)
			if got.CheckPassed != want.CheckPassed || got.Alpha != want.Alpha || got.Reason != want.Reason || !slices.Equal(got.Pattern, want.Pattern) || !equal(got.Y, want.Y) {
				t.Fatalf("%+v: %v at %v (%s), in one process %v at %v (%s)", s, got.CheckPassed, got.Alpha, got.Reason, want.CheckPassed, want.Alpha, want.Reason)
			}
			if halves.Report() != whole.Report() {
				t.Fatalf("%+v: %+v, in one process %+v", s, halves.Report(), whole.Report())
			}
			repeated += halves.Report().Repeated
			if got.CheckPassed {
				read++
			}
		}
	}
	if read < least || c.repeated && repeated == 0 && !testing.Short() {
		t.Errorf("%d transmissions were read, %d frames repeated", read, repeated)
	}
}

// Halves that share nothing give what one process gives, to the bit: in groups, in repeats,
// at retries' gains, with all that devices make up for.
func TestWaveformHalvesAreTheWhole(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	const devices = 5
	for name, c := range halves(devices) {
		t.Run(name, func(t *testing.T) {
			one := newAir(t, devices, c.scene)
			whole := newWaveform(t, one, m, c.change)
			two := newAir(t, devices, c.scene)
			cfg := WaveformConfig{Modulus: m, Devices: devices, Base: 3, Modem: flatTop, Run: 77, Secret: whole.cfg.Secret, OnTransmission: two.set}
			c.change(&cfg)
			c.compare(t, m, devices, whole, newApart(t, two, cfg))
		})
	}
}

// cued is a link whose devices have radios of their own, and are told when to send.
type cued struct {
	*WaveformReceiver
	senders  []*WaveformSender
	transmit []*WaveformTransmitter
	x        []zq.Vector
}

// call has the devices send at the cue, as their hosts do.
func (l *cued) call(ctx context.Context, d Due) error {
	for i, s := range l.senders {
		if d.Repeat == 0 || s.Group() == d.Group {
			f, err := s.Frame(d.Slot, d.Repeat, l.x[i])
			if err != nil {
				return err
			}
			if err := l.transmit[i].Load(f); err != nil {
				return err
			}
		}
		if err := l.transmit[i].Send(ctx, d.Cue, d.Group, d.Slot.Transmission); err != nil {
			return err
		}
	}
	return nil
}

func (l *cued) Transmit(i int, x zq.Vector) error {
	l.x[i] = x
	return nil
}

// Devices that send on radios of their own, at cues, give what one process gives.
func TestWaveformCuesAreTheWhole(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	const devices = 5
	for name, c := range halves(devices) {
		t.Run(name, func(t *testing.T) {
			change := func(cfg *WaveformConfig) {
				c.change(cfg)
				cfg.CarrierTime = nil
			}
			one := newAir(t, devices, c.scene)
			whole := newWaveform(t, one, m, change)
			two := newAir(t, devices, c.scene)
			cfg := WaveformConfig{Modulus: m, Devices: devices, Base: 3, Modem: flatTop, Run: 77, Secret: whole.cfg.Secret, OnTransmission: two.set}
			change(&cfg)
			l := &cued{x: make([]zq.Vector, devices)}
			tx, rx := two.streams(t)
			for i := range devices {
				s, err := NewWaveformSender(cfg, i)
				must(t, err)
				d, err := NewWaveformTransmitter(WaveformTransmitterConfig{Modem: cfg.Modem, Base: cfg.Base})
				must(t, err)
				must(t, d.Begin(tx[i]))
				l.senders, l.transmit = append(l.senders, s), append(l.transmit, d)
			}
			cfg.Transmitters, cfg.Receiver, cfg.Call = tx, rx, l.call
			var err error
			l.WaveformReceiver, err = NewWaveformReceiver(cfg)
			must(t, err)
			c.compare(t, m, devices, whole, l)
		})
	}
}

// A cue beyond what a frame's guard times and a stream have room for is refused before anything
// is made or sent.
func TestWaveformCuesRefused(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	a := newAir(t, 1, scene{bits: -1, noiseStd: 1e-3})
	tx, _ := a.streams(t)
	cfg := WaveformConfig{Modulus: m, Devices: 1, Base: 3, Modem: flatTop, Alignment: Alignment{Correction: []modem.Correction{{Clock: 1e-5}}}}
	s, err := NewWaveformSender(cfg, 0)
	must(t, err)
	f, err := s.Frame(slot.Slot{Round: 1}, 0, m.NewVector(10))
	must(t, err)
	d, err := NewWaveformTransmitter(WaveformTransmitterConfig{Modem: cfg.Modem, Base: cfg.Base})
	must(t, err)
	written := &blocksOf{Transmitter: tx[0]}
	must(t, d.Begin(written))
	must(t, d.Load(f))
	window := radio.SampleIndex(8*len(f.Symbols)) + 1000
	for name, c := range map[string]Cue{
		"gained without end":     {Silent: window, Gained: 1e300},
		"gained less than ever":  {Silent: window, Gained: -1e300},
		"gained too much":        {Silent: window, Gained: 1e4},
		"long ago":               {Silent: window, Elapsed: 1 << 40},
		"before it began":        {Silent: window, Elapsed: -1},
		"before the stream":      {At: -1, Silent: window},
		"where no stream gets":   {At: 1 << 60, Silent: 1<<60 + window},
		"less than the frame":    {Silent: window / 2},
		"backwards":              {At: 2 * window, Silent: window},
		"silence for too long":   {Silent: MaxSilence + 1},
		"silence that runs over": {At: 1 << 62, Silent: -1 << 62},
	} {
		if err := d.Send(t.Context(), c, 0, slot.TxKey); err == nil || written.blocks > 0 {
			t.Errorf("%s: %v, %d blocks are written", name, err, written.blocks)
		}
	}
	must(t, d.Send(t.Context(), Cue{Silent: window}, 0, slot.TxKey))
	if written.blocks == 0 {
		t.Error("nothing is sent")
	}
}

// blocksOf counts those that are written.
type blocksOf struct {
	radio.Transmitter
	blocks int
}

func (c *blocksOf) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (int, error) {
	c.blocks++
	return c.Transmitter.Write(ctx, src, meta)
}

func (c *blocksOf) Idle(ctx context.Context, until radio.SampleIndex) error {
	return c.Transmitter.(radio.Idler).Idle(ctx, until)
}

func equal(a, b zq.Vector) bool {
	return slices.EqualFunc(a, b, func(x, y []uint64) bool { return slices.Equal(x, y) })
}

// A group of which nobody takes part is as if it were not there, and another whose device is
// absent gives the sum of the others.
func TestWaveformWithoutADevice(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	const devices, n = 4, 300
	a := newAir(t, devices, scene{sigma: 0.2, bits: -1, noiseStd: 1e-3})
	cfg := WaveformConfig{Modulus: m, Devices: devices, Group: 2, Base: 3, Modem: flatTop, Run: 77, OnTransmission: a.set}
	l := newApart(t, a, cfg)
	l.absent = []bool{true, true, false, true}
	for tr := range slot.Transmission(slot.Transmissions) {
		x := randomPayloads(m, devices, n, rand.New(rand.NewPCG(9, uint64(tr))))
		rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, l.PatternSymbols())}
		sendOver(t, l, slot.Slot{Round: 1, Transmission: tr}, x, &rx)
		h := make([]float64, devices)
		if own := l.groups[1]; !rx.CheckPassed || !(rx.Alpha > 0) || rx.Alpha != float64(own.scale)*own.alpha || !l.Gains(h) {
			t.Fatalf("%v: %v at %v: %s", tr, rx.CheckPassed, rx.Alpha, rx.Reason)
		}
		want := m.NewVector(n)
		m.AddScaled(want, int64(h[2]), x[2])
		if h[0] != 0 || h[1] != 0 || h[2] == 0 || h[3] != 0 || !equal(want, rx.Y) {
			t.Errorf("%v: gains %v, and the sum of these is read: %v", tr, h, equal(want, rx.Y))
		}
	}
	if l.calls != 2*slot.Transmissions {
		t.Errorf("%d calls", l.calls)
	}
}

// A device that does not send makes its attempt void, and no other.
func TestWaveformCallUnanswered(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	const devices, n = 2, 300
	a := newAir(t, devices, scene{sigma: 0.2, bits: -1, noiseStd: 1e-3})
	l := newApart(t, a, WaveformConfig{Modulus: m, Devices: devices, Base: 3, Modem: flatTop, Repeats: 3, OnTransmission: a.set})
	answer := l.cfg.Call
	l.cfg.Call = func(ctx context.Context, d Due) error {
		if d.Slot.Attempt == 0 && d.Slot.Transmission == slot.TxC0 {
			return fmt.Errorf("device 2: %w", ErrUnsent)
		}
		return answer(ctx, d)
	}
	x := randomPayloads(m, devices, n, rand.New(rand.NewPCG(9, 9)))
	for k, s := range []slot.Slot{{Round: 1}, {Round: 1, Transmission: slot.TxC0}, {Round: 1, Attempt: 1}, {Round: 1, Attempt: 1, Transmission: slot.TxC0}} {
		rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, l.PatternSymbols())}
		sendOver(t, l, s, x, &rx)
		if rx.CheckPassed != (k != 1) || k == 1 && rx.Reason != "device 2: a device does not send" {
			t.Errorf("%+v: %v: %s", s, rx.CheckPassed, rx.Reason)
		}
	}
}
