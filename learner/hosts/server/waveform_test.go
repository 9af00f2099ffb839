package server_test

import (
	"context"
	"testing"
	"time"

	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/hosts/air"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/identity"
	"ringwave/phy"
	simulated "ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// waves is a bench of many hosts over a waveform link, in groups of two.
type waves struct {
	*bench
	noise    float64
	link     *phy.WaveformReceiver
	repeated int // frames
}

// pulse is the modem of these benches.
var pulse = modem.Config{Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, SamplesPerSymbol: 8, Preamble: modem.Preamble{Length: modem.DefaultPreamble}}

// config is what both halves know.
func (w *waves) config() phy.WaveformConfig {
	return phy.WaveformConfig{
		Modulus: w.ctx.Modulus(), Devices: w.n, Group: 2, Base: 3, BlockSymbols: 4096, Modem: pulse, Secret: w.root.Derive("link"),
		Alpha: w.channel.Alpha(), Phase: new(modem.Radians), Repeats: 3, Run: 5,
	}
}

// simulate returns a bench in memory, and what has it meet a transmission.
func (w *waves) simulate() (b *simulated.Bench, meet func(context.Context, slot.Slot, radio.SampleIndex) error) {
	w.t.Helper()
	b, err := simulated.New(simulated.Config{Rate: 10e6, Devices: make([]channel.Impairments, w.n), NoiseStd: w.noise, Channel: w.channel, Seed: w.root})
	w.must(err)
	w.t.Cleanup(func() { b.Close() })
	return b, func(_ context.Context, s slot.Slot, at radio.SampleIndex) error {
		b.Again = s.Again
		return b.Fade(s.Round, s.Attempt, int(s.Transmission), at)
	}
}

// sky begins the air, and returns what ends it.
func (w *waves) sky() (end func()) {
	w.t.Helper()
	b, meet := w.simulate()
	tx, rx, err := b.Streams()
	w.must(err)
	bench, err := phy.NewWaveformAir(phy.WaveformAirConfig{Modem: pulse, Base: 3, Transmitters: tx, Receiver: rx, OnTransmission: meet})
	w.must(err)
	id, conn := w.dial(identity.Air, 0)
	a, err := air.NewWaveform(air.Config{Identity: id, Bus: conn, Devices: w.n, Say: w.said.say}, bench)
	w.must(err)
	w.t.Cleanup(a.Close)
	return a.Close
}

// lead begins a server with an engine over its devices.
func (w *waves) lead() {
	w.t.Helper()
	w.begin()
	antenna, err := w.server.NewAntenna(2)
	w.must(err)
	cfg := w.config()
	cfg.Receiver, cfg.Call = &antenna.Feed, antenna.Call
	w.link, err = phy.NewWaveformReceiver(cfg)
	w.must(err)
	antenna.Gains = w.link.Gains
	w.drive(counting{w.link, &w.repeated})
}

// counting counts the frames that are repeated.
type counting struct {
	*phy.WaveformReceiver
	repeated *int
}

func (c counting) Receive(ctx context.Context, rx *phy.Reception) error {
	err := c.WaveformReceiver.Receive(ctx, rx)
	*c.repeated += c.Report().Repeated
	return err
}

// both counts of a whole link.
type counted struct {
	*phy.Waveform
	repeated *int
}

func (b counted) Receive(ctx context.Context, rx *phy.Reception) error {
	err := b.Waveform.Receive(ctx, rx)
	*b.repeated += b.Report().Repeated
	return err
}

// join begins device i from 1.
func (w *waves) join(ctx context.Context, i int) chan error {
	return w.device(ctx, i, func(_ *device.Config, p *device.Part) {
		if p == nil {
			return
		}
		framer, err := w.framer(i)
		w.must(err)
		p.Framer = framer
	})
}

// framer returns that of device i from 1.
func (w *waves) framer(i int) (device.Framer, error) {
	s, err := phy.NewWaveformSender(w.config(), i-1)
	return device.Waveform{WaveformSender: s}, err
}

// Devices in their own worlds give the M of one process over a waveform link too, to the bit,
// in groups and where frames are sent again.
func TestWaveformRoundsAreThoseOfOneProcess(t *testing.T) {
	const n, rounds = 3, 5
	w := &waves{bench: newBench(t, n, rounds), noise: 0.09}
	w.deadline = 10 * time.Second
	w.sky()
	w.lead()
	var ends []chan error
	for i := range n {
		ends = append(ends, w.join(t.Context(), i+1))
	}
	memory, meet := w.simulate()
	cfg := w.config()
	cfg.OnTransmission = meet
	var err error
	cfg.Transmitters, cfg.Receiver, err = memory.Streams()
	w.must(err)
	whole, err := phy.NewWaveform(cfg)
	w.must(err)
	repeated := 0
	link := counted{whole, &repeated}
	var local []*xmkckks.Device
	var members []*member
	for i := range n {
		local = append(local, w.cipher(i+1, xmkckks.NewLedger(1000)))
		members = append(members, &member{index: i + 1})
	}
	one, err := round.New(round.Config{Context: w.ctx, Participants: round.Locals(local, link), Receiver: link, Server: w.ctx.NewServer(w.design), Attempts: 4})
	w.must(err)
	defer one.Close()
	read := 0
	for k := 1; k <= rounds; k++ {
		out, err := w.step(t.Context(), k)
		w.must(err)
		var deltas [][]float64
		for _, m := range members {
			values, _, _, _, _ := m.Scalars(t.Context(), k)
			deltas = append(deltas, values)
		}
		want, err := one.Run(t.Context(), uint32(k), deltas)
		w.must(err)
		if out.Skipped != want.Skipped || !out.Skipped && out.M[0] != want.M[0] || out.Attempts != want.Attempts || out.Alpha != want.Alpha || w.repeated != repeated {
			t.Fatalf("round %d: M = %v in %d attempts with %d repeats, in one process %v in %d with %d", k, out.M, out.Attempts, w.repeated, want.M, want.Attempts, repeated)
		}
		for _, m := range members {
			if want.Skipped {
				w.must(m.Skip(k))
			} else {
				w.must(m.Apply(k, want.M))
			}
		}
		if !out.Skipped {
			read++
		}
	}
	t.Logf("%d frames were sent again, %d rounds read", repeated, read)
	if repeated == 0 || read < 3 {
		t.Errorf("%d frames were sent again, %d rounds read", repeated, read)
	}
	verdict, err := w.server.End(t.Context(), w.model.Digest())
	w.must(err)
	if verdict.Checked < read || verdict.Unchecked != 0 || len(verdict.Wrong) > 0 {
		t.Errorf("%+v", verdict)
	}
	for i, ended := range ends {
		if err := <-ended; err != nil {
			t.Errorf("device %d: %v", i+1, err)
		}
	}
}

// Without one of two devices of a group, or without a group, the rounds go on with who is
// there: b~ is the sum of their keys, and the models agree.
func TestWaveformRoundsWithoutADevice(t *testing.T) {
	const n, rounds = 3, 4
	w := &waves{bench: newBench(t, n, rounds), noise: 1e-3}
	w.minimum, w.deadline = 2, 10*time.Second
	w.sky()
	w.lead()
	leave, gone := context.WithCancel(t.Context())
	defer gone()
	var ends []chan error
	for i := range n {
		ctx := t.Context()
		if i == n-1 { // all of its group
			ctx = leave
		}
		ends = append(ends, w.join(ctx, i+1))
	}
	w.must(w.server.Await(t.Context(), n))
	for k := 1; k <= rounds; k++ {
		if k == 2 {
			gone()
			<-ends[n-1]
		}
		out, err := w.step(t.Context(), k)
		w.must(err)
		if want := map[bool]int{true: 3, false: 2}[k == 1]; k != 2 && (out.Skipped || out.Present != want) {
			t.Errorf("round %d: %d devices took part: %+v", k, out.Present, out)
		}
	}
	verdict, err := w.server.End(t.Context(), w.model.Digest())
	w.must(err)
	if verdict.Checked < rounds-2 || len(verdict.Wrong) > 0 {
		t.Errorf("%+v", verdict)
	}
}

// A server that is closed between two rounds, as by Ctrl-C, does not wait for devices that
// nobody asks any more.
func TestServerClosesBetweenRounds(t *testing.T) {
	b := newBench(t, 2, 2)
	b.air()
	b.serve()
	for i := range 2 {
		b.device(t.Context(), i+1, nil)
	}
	_, err := b.step(t.Context(), 1)
	b.must(err)
	b.server.Close()
}
