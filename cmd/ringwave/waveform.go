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
	"ringwave/radio/array"
	"ringwave/radio/loopback"
)

// kindWaveform is the value of link.kind for symbols that really superpose.
const kindWaveform = "waveform"

// groupScale bounds the integers that bring groups to one scale.
const groupScale = 50

// groupSize gives G.
func groupSize(c config.Config) int {
	if g := c.Link.GroupSize; g > 0 {
		return min(g, c.Devices.Count)
	}
	return c.Devices.Count
}

// designAlpha gives the scale that a design must bear: the channel's, that of
// aligned gains, or the finest that a blind receiver may find, times the groups'
// integers.
func designAlpha(c config.Config, ch *channel.Channel) float64 {
	if !isWaveform(c) || !ch.Continuous() {
		return ch.Alpha()
	}
	if regimeOf(c) == meanAligned {
		return alignedAlpha * (1 + alignedTolerance(ch, groupSize(c)))
	}
	if g := c.Link.GroupSize; g > 0 && g < c.Devices.Count {
		return c.Link.MaxAlpha * groupScale
	}
	return c.Link.MaxAlpha
}

// waveLink is the waveform link over a bench in memory, one transmitter a device and
// one receiver joined sample by sample, or over radios once connect was called.
type waveLink struct {
	*phy.Waveform
	known  phy.WaveformConfig // what the receiver knows, without streams
	radios *array.Array       // nil for the bench in memory
	// onAir, if not nil, hears of each transmission over radios, and the transmitters'
	// index at which it begins at the earliest, before it is sent; onReception of what
	// was received. They are for benches whose gains are set.
	onAir       func(slot phy.Slot, at radio.SampleIndex) error
	onReception func(slot phy.Slot, rx *phy.Reception)
	first       radio.SampleIndex // of the transmission's first capture, over radios

	medium  *loopback.Medium
	front   *channel.Front
	channel *channel.Channel
	group   int
	phases  []float64
	delays  []modem.Samples
	bits    int

	slot         phy.Slot
	transmitters []radio.Transmitter
	receiver     radio.Receiver
	recorder     *recorder
	atOpen       []radio.Epoch // of the transmitters, as the transmission was opened
	paced        *paced        // nil unless in real time
	regime       regime
	clipped      radio.SampleCount // by the receiver, in the round

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

// symbolScale gives the amplitude of the digit 1 from a device at full drive.
func symbolScale(c config.Config) (float64, error) {
	m, err := modem.NewModulator(modemConfig(c.Link), modem.Drive{Peak: float32(c.Link.Base-1) / 2, Amplitude: transmitAmplitude(c)})
	if err != nil {
		return 0, err
	}
	return float64(m.Scale()), nil
}

// receiveConfig is what the receiver knows of a link: all of its configuration but
// the streams and the observers.
func receiveConfig(c config.Config, root keystream.Seed, ch *channel.Channel, ctx *xmkckks.Context) phy.WaveformConfig {
	cfg := phy.WaveformConfig{
		Modulus: ctx.Modulus(), Devices: ch.Devices(), Group: c.Link.GroupSize, Base: c.Link.Base, BlockSymbols: c.Link.BlockSymbols,
		Modem: modemConfig(c.Link), Repeats: c.Link.FrameRepeats, GroupScale: groupScale, Run: uint16(c.Experiment.Seed),
		Public:  root.Derive("public link"),
		Lattice: lattice.Options{MaxAlpha: c.Link.MaxAlpha}, Amplitude: transmitAmplitude(c),
	}
	if c.OverRadios() {
		cfg.Level = radioLevel(c)
	}
	switch regimeOf(c) {
	case emulated:
		// The emulated real gain is what lies on the lattice, sign and all.
		cfg.Alpha, cfg.Phase = ch.Alpha(), new(modem.Radians)
	case meanAligned:
		cfg.Alpha, cfg.Tolerance, cfg.Level = alignedAlpha, alignedTolerance(ch, groupSize(c)), levelOf(c, ch)
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
		channel: ch, group: groupSize(c), regime: regimeOf(c), sampleRate: c.Link.SampleRateHz, samplesPerSymbol: c.Link.SamplesPerSymbol,
		h: make([]float64, ch.Devices()), phases: make([]float64, ch.Devices()),
		delays: make([]modem.Samples, ch.Devices()),
	}
	if err := l.build(c, root, ctx); err != nil {
		return nil, bad(fmt.Errorf("waveform link: %w", errors.Join(err, l.close())))
	}
	return l, nil
}

func (l *waveLink) build(c config.Config, root keystream.Seed, ctx *xmkckks.Context) error {
	m := modemConfig(c.Link)
	scale, err := symbolScale(c)
	if err != nil {
		return err
	}
	noiseStd := receiverNoise(c.Link, m, scale)
	if err := l.makeMedium(c, root, noiseStd); err != nil {
		return err
	}
	l.known = receiveConfig(c, root, l.channel, ctx)
	l.known.OnTransmission, l.known.OnFrame = l.begin, l.heard
	cfg := l.known
	if c.OverRadios() { // but this is the bench in memory
		cfg.Level = 1
	}
	if c.Link.Pulse != "flat-top" {
		cfg.Advance = l.delays // as a calibration would have measured them
	}
	if cfg.Transmitters, l.receiver, err = l.open(); err != nil {
		return err
	}
	if l.regime == meanAligned {
		if cfg.Trim, _, err = align(l.channel, l.phases); err != nil {
			return err
		}
	}
	l.transmitters = cfg.Transmitters
	cfg.Receiver = l.receiver
	if c.Link.RealTime {
		l.paced = &paced{Receiver: l.receiver, clock: loopback.WallClock(), rate: radio.Hertz(c.Link.SampleRateHz)}
		cfg.Receiver = l.paced
	}
	if c.Link.Record != recordNone {
		l.recorder = &recorder{cfg: recordConfig(c, l.channel, l.group, noiseStd)}
		cfg.Receiver = l.recorder.tape(cfg.Receiver)
	}
	if l.Waveform, err = phy.NewWaveform(cfg); err != nil {
		return err
	}
	return l.countBits(c, ctx, m)
}

// makeMedium draws the devices' delays and phases and joins them.
func (l *waveLink) makeMedium(c config.Config, root keystream.Seed, noiseStd float64) error {
	rnd := rand.New(root.Derive("positions").Stream())
	medium := loopback.Config{Rate: radio.Hertz(c.Link.SampleRateHz), Window: 1 << 25}
	for i := range l.delays {
		l.delays[i] = modem.Samples(c.Link.DelaySpreadSamples * rnd.Float64())
		if phase := c.Link.PhaseSpreadRad * (rnd.Float64() - 0.5); l.channel.Continuous() {
			l.phases[i] = phase // an emulated gain is real by itself
		}
		imp := impairments(c, i)
		imp.DelaySamples, imp.PhaseRad = float64(l.delays[i]), l.phases[i]
		p, err := channel.NewPath(imp, root.Derive("path", uint64(i)))
		if err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
		medium.Devices = append(medium.Devices, loopback.Device{Gain: 1, Path: pathOf{p}})
	}
	front, err := newFront(c, l.channel, l.group, noiseStd, root.Derive("front"))
	if err != nil {
		return err
	}
	l.front, medium.Converter = front.Front, front
	l.medium, err = loopback.New(medium)
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
	if l.paced != nil {
		l.paced.begin(at)
	}
	if slot.Transmission == phy.TxKey && slot.Attempt == 0 {
		l.view.read, l.clipped = false, 0
		nan := math.NaN()
		l.row = runfolder.LinkRow{Alpha: nan, Quality: nan, Misfit: nan, ZeroGains: nan}
	}
	l.fresh = true
	if l.recorder != nil {
		if err := l.recorder.begin(slot.Round); err != nil {
			return err
		}
	}
	if l.radios != nil {
		if l.onAir == nil {
			return nil
		}
		return l.onAir(slot, at)
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
	if o.Group == 0 && o.Repeat == 0 {
		l.first = o.First
	}
	if l.recorder == nil {
		return nil
	}
	return l.recorder.annotate(note{
		slot: o.Slot, group: o.Group, first: o.First, end: l.Waveform.Next(), epoch: l.receiver.Epoch(),
		transmitters: l.epochs(), label: labelFrame, comment: fmt.Sprintf("repeat %d", o.Repeat),
	})
}

// epochs gives the present tuning epochs of the transmitters.
func (l *waveLink) epochs() []radio.Epoch {
	epochs := make([]radio.Epoch, len(l.transmitters))
	for i, t := range l.transmitters {
		epochs[i] = t.Epoch()
	}
	return epochs
}

// Open begins a transmission: phy.Uplink.
func (l *waveLink) Open(slot phy.Slot, n int) error {
	l.slot = slot
	if l.recorder != nil {
		l.atOpen = l.epochs()
	}
	return l.Waveform.Open(slot, n)
}

// Receive receives the transmission, and says in the recording what came of it:
// phy.Uplink.
func (l *waveLink) Receive(rx *phy.Reception) error {
	n := note{slot: l.slot, group: -1, first: l.Waveform.Next(), transmitters: l.atOpen, label: labelTransmission}
	if err := l.Waveform.Receive(rx); err != nil {
		return err
	}
	if l.onReception != nil {
		l.onReception(l.slot, rx)
	}
	if l.recorder == nil {
		return nil
	}
	if l.radios != nil { // they send when they can
		n.first = l.first
	}
	n.end, n.epoch, n.comment = l.Waveform.Next(), l.receiver.Epoch(), verdict(rx, l.Waveform.Report())
	return l.recorder.annotate(n)
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
	l.clipped += r.Clipped
	l.row.FramesRepeated += float64(r.Repeated)
	if r.Failure == "" && !(r.Quality >= l.row.Quality) {
		l.row.Quality = r.Quality
	}
}

// effective writes the real gains that the receiver meets: what is left of h_i
// after each group's common phase, or after the devices' trims.
func (l *waveLink) effective(dst []float64) {
	copy(dst, l.h)
	switch l.regime {
	case emulated:
		return
	case meanAligned:
		mu, _ := l.channel.Moments()
		for i := range dst {
			dst[i] /= mu[i]
		}
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
	if l.radios != nil {
		l.read(dst)
		return
	}
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

// clippedSamples is called after report.
func (l *waveLink) clippedSamples() int64 { return int64(l.clipped) }

func (l *waveLink) report() *runfolder.LinkRow {
	l.keep()
	row := l.row
	return &row
}

func (l *waveLink) close() error {
	if l.recorder != nil {
		l.recorder.abort()
	}
	var errs []error
	if l.radios != nil {
		errs = append(errs, l.radios.Close())
	}
	if l.medium != nil {
		errs = append(errs, l.medium.Close())
	}
	return errors.Join(errs...)
}
