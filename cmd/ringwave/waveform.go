package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/cmd/internal/config"
	"ringwave/cmd/internal/runfolder"
	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/sigmf"
)

// kindWaveform is the value of link.kind for symbols that really superpose.
const kindWaveform = "waveform"

// groupScale bounds the integers that bring groups to one scale.
const groupScale = 50

// designAlpha gives the scale that a design must bear: the channel's, or the
// finest that a blind receiver may find, times the groups' integers.
func designAlpha(c config.Config, ch *channel.Channel) float64 {
	if c.Link.Kind != kindWaveform || c.Experiment.Aggregator != aggregatorXMK || !ch.Continuous() {
		return ch.Alpha()
	}
	if g := c.Link.GroupSize; g > 0 && g < c.Devices.Count {
		return c.Link.MaxAlpha * groupScale
	}
	return c.Link.MaxAlpha
}

// waveLink is the waveform link over a bench in memory: one transmitter a device
// and one receiver, joined sample by sample.
type waveLink struct {
	*phy.Waveform
	medium  *loopback.Medium
	front   *channel.Front
	channel *channel.Channel
	group   int
	phases  []float64
	bits    int

	slot     phy.Slot
	receiver radio.Receiver
	recorder *recorder

	view             waveView // of the last round, for plots
	sampleRate       float64
	samplesPerSymbol int

	h     []float64 // of the last transmission
	row   runfolder.LinkRow
	fresh bool // the last transmission's report is not in row yet
}

// pathOf lets a channel.Path distort a device of the medium.
type pathOf struct{ *channel.Path }

func (p pathOf) Apply(dst, src []complex64, _ int64) { p.Path.Apply(dst, src) }

// noiseOf lets a channel.Front be the receiver's noise.
type noiseOf struct{ *channel.Front }

func (n noiseOf) Add(dst []complex64, _ int64) { n.Front.Apply(dst) }

// modemConfig gives the modem of a configuration.
func modemConfig(l config.Link) modem.Config {
	m := modem.Config{SamplesPerSymbol: l.SamplesPerSymbol, Preamble: modem.Preamble{Length: modem.Symbols(l.PreambleSymbols)}}
	if l.Pulse == "flat-top" {
		m.Pulse = modem.FlatTop{Edge: modem.Samples(l.EdgeSamples), Tolerance: modem.Samples(l.ToleranceSamples)}
		return m
	}
	m.Pulse = modem.RootRaisedCosine{RollOff: l.RollOff, Span: modem.Symbols(l.SpanSymbols)}
	return m
}

// receiverNoise gives the deviation a branch and sample that gives the SNR of a
// soft real symbol, E[d^2]/variance with d in units of the received digit.
func receiverNoise(l config.Link, m modem.Config, scale float64) float64 {
	digitPower := float64(l.Base*l.Base-1) / 12
	noise := digitPower / math.Pow(10, l.SNRdB/10)
	return scale * math.Sqrt(noise/modem.NoiseBandwidth(m.Pulse, m.SamplesPerSymbol))
}

// receiveConfig is what the receiver knows of a link: all of its configuration but
// the streams and the observers.
func receiveConfig(c config.Config, root keystream.Seed, ch *channel.Channel, ctx *xmkckks.Context) phy.WaveformConfig {
	cfg := phy.WaveformConfig{
		Modulus: ctx.Modulus(), Devices: ch.Devices(), Group: c.Link.GroupSize, Base: c.Link.Base, BlockSymbols: c.Link.BlockSymbols,
		Modem: modemConfig(c.Link), Repeats: c.Link.FrameRepeats, GroupScale: groupScale, Run: uint16(c.Experiment.Seed),
		Public:  root.Derive("public link"),
		Lattice: lattice.Options{MaxAlpha: c.Link.MaxAlpha},
	}
	if !ch.Continuous() {
		// The emulated real gain is what lies on the lattice, sign and all.
		cfg.Alpha, cfg.Phase = ch.Alpha(), new(modem.Radians)
	}
	return cfg
}

// payloadLength gives the number of coefficients of a transmission.
func payloadLength(ctx *xmkckks.Context, t phy.Transmission) int {
	if t == phy.TxC0 || t == phy.TxShare {
		return ctx.Revealed()
	}
	return ctx.Params.N
}

func newWaveLink(c config.Config, root keystream.Seed, ch *channel.Channel, ctx *xmkckks.Context) (*waveLink, error) {
	l := &waveLink{
		channel: ch, group: c.Link.GroupSize, sampleRate: c.Link.SampleRateHz, samplesPerSymbol: c.Link.SamplesPerSymbol,
		h: make([]float64, ch.Devices()), phases: make([]float64, ch.Devices()),
	}
	if l.group == 0 {
		l.group = ch.Devices()
	}
	if err := l.build(c, root, ctx); err != nil {
		return nil, bad(fmt.Errorf("waveform link: %w", errors.Join(err, l.close())))
	}
	return l, nil
}

func (l *waveLink) build(c config.Config, root keystream.Seed, ctx *xmkckks.Context) error {
	m := modemConfig(c.Link)
	probe, err := modem.NewModulator(m, modem.Drive{Peak: float32(c.Link.Base-1) / 2})
	if err != nil {
		return err
	}
	delays := make([]modem.Samples, len(l.h))
	noiseStd := receiverNoise(c.Link, m, float64(probe.Scale()))
	if err := l.makeMedium(c, root, noiseStd, delays); err != nil {
		return err
	}
	cfg := receiveConfig(c, root, l.channel, ctx)
	cfg.OnTransmission, cfg.OnFrame = l.begin, l.heard
	if c.Link.Pulse != "flat-top" {
		cfg.Advance = delays // as a calibration would have measured them
	}
	if cfg.Transmitters, l.receiver, err = l.open(); err != nil {
		return err
	}
	cfg.Receiver = l.receiver
	if c.Link.Record != recordNone {
		l.recorder = &recorder{cfg: sigmf.Config{
			Datatype: sigmf.Datatype(c.Link.Record), SampleRate: radio.Hertz(c.Link.SampleRateHz),
			FullScale: fullScale(c.Link, l.channel, l.group, noiseStd), Recorder: "ringwave",
			Description: "superposed frames of experiment " + c.Experiment.Name,
		}}
		cfg.Receiver = radio.Tee(newConverter(l.receiver, l.recorder.cfg), l.recorder)
	}
	if l.Waveform, err = phy.NewWaveform(cfg); err != nil {
		return err
	}
	return l.countBits(c, ctx, m)
}

// makeMedium draws the devices' delays and phases and joins them.
func (l *waveLink) makeMedium(c config.Config, root keystream.Seed, noiseStd float64, delays []modem.Samples) error {
	rnd := rand.New(root.Derive("positions").Stream())
	config := loopback.Config{Rate: radio.Hertz(c.Link.SampleRateHz), Window: 1 << 25}
	for i := range delays {
		delays[i] = modem.Samples(c.Link.DelaySpreadSamples * rnd.Float64())
		if phase := c.Link.PhaseSpreadRad * (rnd.Float64() - 0.5); l.channel.Continuous() {
			l.phases[i] = phase // an emulated gain is real by itself
		}
		p, err := channel.NewPath(channel.Impairments{DelaySamples: float64(delays[i]), PhaseRad: l.phases[i]}, root.Derive("path", uint64(i)))
		if err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
		config.Devices = append(config.Devices, loopback.Device{Gain: 1, Path: pathOf{p}})
	}
	front, err := channel.NewFront(channel.Impairments{}, noiseStd, 1, root.Derive("front"))
	if err != nil {
		return err
	}
	l.front, config.Noise = front, noiseOf{front}
	l.medium, err = loopback.New(config)
	return err
}

// open opens and starts all streams.
func (l *waveLink) open() (tx []radio.Transmitter, rx radio.Receiver, err error) {
	ctx := context.Background() // they live as long as the link
	for i := range l.h {
		d, err := l.medium.Transmitter(i)
		if err != nil {
			return nil, nil, err
		}
		s, err := d.(radio.TransmitOpener).OpenTransmitter(ctx)
		if err != nil {
			return nil, nil, err
		}
		if err := s.Start(ctx); err != nil {
			return nil, nil, err
		}
		tx = append(tx, s)
	}
	d, err := l.medium.Receiver(0)
	if err != nil {
		return nil, nil, err
	}
	if rx, err = d.(radio.ReceiveOpener).OpenReceiver(ctx); err != nil {
		return nil, nil, err
	}
	return tx, rx, rx.Start(ctx)
}

// countBits adds up what a device's frames carry besides the payload, a symbol
// counted as the bits of a digit.
func (l *waveLink) countBits(c config.Config, ctx *xmkckks.Context, m modem.Config) error {
	samples := 0
	for t := range phy.Transmission(phy.Transmissions) {
		s, err := l.FrameSamples(t, payloadLength(ctx, t))
		if err != nil {
			return err
		}
		samples += s
	}
	symbols := float64(samples) / float64(m.SamplesPerSymbol)
	l.bits = int(symbols*math.Log2(float64(c.Link.Base))) - ctx.Params.UplinkBits(ctx.Form, ctx.Witnesses)
	return nil
}

// begin sets the gains of a transmission from its first sample on.
func (l *waveLink) begin(slot phy.Slot, at radio.SampleIndex) error {
	l.keep()
	if slot.Transmission == phy.TxKey && slot.Attempt == 0 {
		l.view.read = false
		nan := math.NaN()
		l.row = runfolder.LinkRow{Alpha: nan, Quality: nan, Misfit: nan, ZeroGains: nan}
	}
	l.fresh = true
	if l.recorder != nil {
		if err := l.recorder.begin(slot.Round); err != nil {
			return err
		}
	}
	// Noise by name, as everything: a resumed run meets the same.
	l.front.Start(slot.Round, slot.Attempt*phy.Transmissions+uint32(slot.Transmission))
	l.channel.Scaled(l.h, slot.Round, slot.Attempt, int(slot.Transmission))
	for i := range l.h {
		l.h[i] /= l.channel.Alpha()
		if err := l.medium.SetGain(i, at, complex(float32(l.h[i]), 0)); err != nil {
			return err
		}
	}
	return nil
}

// heard hears of each frame.
func (l *waveLink) heard(o phy.Observation) error {
	l.view.keep(o)
	if l.recorder == nil {
		return nil
	}
	comment := fmt.Sprintf("repeat %d", o.Repeat)
	return l.recorder.annotate(o.First, o.Slot, o.Group, l.receiver.Epoch(), labelFrame, comment)
}

// Open begins a transmission: phy.Uplink.
func (l *waveLink) Open(slot phy.Slot, n int) error {
	l.slot = slot
	return l.Waveform.Open(slot, n)
}

// Receive receives the transmission, and says in the recording what came of it:
// phy.Uplink.
func (l *waveLink) Receive(rx *phy.Reception) error {
	if l.recorder == nil {
		return l.Waveform.Receive(rx)
	}
	first := l.recorder.due
	if err := l.Waveform.Receive(rx); err != nil {
		return err
	}
	return l.recorder.annotate(first, l.slot, -1, l.receiver.Epoch(), labelTransmission, verdict(rx, l.Waveform.Report()))
}

// record begins to keep what is received in a run folder, if it is to be kept.
func (l *waveLink) record(dir string) error {
	if l.recorder == nil {
		return nil
	}
	return l.recorder.start(dir)
}

// endRound is called when a round is over.
func (l *waveLink) endRound() error {
	if l.recorder == nil {
		return nil
	}
	return l.recorder.end()
}

// keep adds the last transmission's report to the round's, once.
func (l *waveLink) keep() {
	if !l.fresh || l.Waveform == nil {
		return
	}
	l.fresh = false
	r := l.Waveform.Report()
	l.row.FramesRepeated += float64(r.Repeated)
	if r.Failure == "" && !(r.Quality >= l.row.Quality) {
		l.row.Quality = r.Quality
	}
}

// effective writes the real gains that the receiver meets: what is left of h_i
// after each group's common phase.
func (l *waveLink) effective(dst []float64) {
	copy(dst, l.h)
	if !l.channel.Continuous() {
		return
	}
	for first := 0; first < len(l.h); first += l.group {
		to := min(first+l.group, len(l.h))
		var re, im float64
		for i := first; i < to; i++ {
			re += l.h[i] * math.Cos(l.phases[i])
			im += l.h[i] * math.Sin(l.phases[i])
		}
		theta := math.Atan2(im, re)
		for i := first; i < to; i++ {
			dst[i] = l.h[i] * math.Cos(l.phases[i]-theta)
		}
	}
}

func (l *waveLink) truth(dst []float64, _, _ uint32) {
	h := make([]float64, len(dst))
	l.effective(h)
	if !l.Waveform.Gains(dst) { // a pattern that passed its comparison can be solved
		l.Waveform.Scaled(dst, h)
	}
	alpha := l.Waveform.Alpha()
	l.row.Alpha, l.row.Misfit, l.row.ZeroGains = alpha, 0, 0
	for i := range dst {
		if dst[i] == 0 {
			l.row.ZeroGains++
		}
		l.row.Misfit = math.Max(l.row.Misfit, math.Abs(dst[i]/alpha-h[i])/math.Abs(h[i]))
	}
}

func (l *waveLink) overheadBits() int { return l.bits }

func (l *waveLink) report() *runfolder.LinkRow {
	l.keep()
	row := l.row
	return &row
}

func (l *waveLink) close() error {
	if l.recorder != nil {
		l.recorder.abort()
	}
	if l.medium == nil {
		return nil
	}
	return l.medium.Close()
}
