package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/intake"
	"ringwave/radio/loopback"
)

// kindWaveform is the value of link.kind for symbols that really superpose.
const kindWaveform = "waveform"

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
	if !c.OverWaveform() || !ch.Continuous() {
		return ch.Alpha()
	}
	if regimeOf(c) == bench.MeanAligned {
		return bench.AlignedScale * (1 + linksOf(ch).AlignedTolerance(groupSize(c)))
	}
	if g := c.Link.GroupSize; g > 0 && g < c.Devices.Count {
		return c.Link.MaxAlpha * bench.GroupScale
	}
	return c.Link.MaxAlpha
}

// waveLink is the waveform link over the bench in memory, or over radios once connect
// was called.
type waveLink struct {
	*phy.Waveform
	receiving phy.WaveformConfig // what the receiver knows, without streams
	known     *known             // of the links; nil for all that their simulation knows
	radios    *array.Array       // nil for the bench in memory
	// onAir, if not nil, hears of each transmission over radios, and the transmitters'
	// index at which it begins at the earliest, before it is sent; onReception of what
	// was received. They are for benches whose gains are set.
	onAir       func(slot phy.Slot, at radio.SampleIndex) error
	onReception func(slot phy.Slot, rx *phy.Reception)
	first       radio.SampleIndex // of the transmission's first capture, over radios

	*simulated
	group int
	bits  int

	slot         phy.Slot
	transmitters []radio.Transmitter
	receiver     radio.Receiver
	trims        []phy.Trim      // nil for none
	advances     []modem.Samples // of a calibration
	level        float64         // the amplitude that counts as gain 1
	recorder     *recorder
	atOpen       []radio.Epoch // of the transmitters, as the transmission was opened
	paced        *paced        // nil unless in real time
	regime       bench.Regime
	clipped      radio.SampleCount // by the receiver, in the round

	view             waveView // of the last round, for plots
	sampleRate       float64
	samplesPerSymbol int

	gains *gainWatch

	row   runfolder.LinkRow
	fresh bool // the last transmission's report is not in row yet
}

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

// receiverNoise returns the deviation a branch and sample that gives the SNR of a
// soft real symbol.
func receiverNoise(l config.Link, scale float64) float64 {
	return bench.NoiseStd(modemConfig(l), l.Base, l.SNRdB, scale)
}

// symbolScale returns the amplitude of the digit 1 from a device at full drive.
func symbolScale(c config.Config) (float64, error) {
	return bench.SymbolScale(modemConfig(c.Link), c.Link.Base, transmitAmplitude(c))
}

// receiveConfig is what the receiver knows of a link: all of its configuration but
// the streams and the observers.
func receiveConfig(c config.Config, secret keystream.Seed, ch *channel.Channel, k *known, ctx *xmkckks.Context) phy.WaveformConfig {
	cfg := phy.WaveformConfig{
		Modulus: ctx.Modulus(), Devices: ch.Devices(), Group: c.Link.GroupSize, Base: c.Link.Base, BlockSymbols: c.Link.BlockSymbols,
		Modem: modemConfig(c.Link), Repeats: c.Link.FrameRepeats, GroupScale: bench.GroupScale, Run: uint16(c.Experiment.Seed),
		Secret:  secret,
		Lattice: lattice.Options{MaxAlpha: c.Link.MaxAlpha}, Amplitude: transmitAmplitude(c),
	}
	if k != nil {
		ch = k.channel
	}
	cfg.Level = k.unitOf(c)
	switch regimeOf(c) {
	case bench.Emulated:
		// The emulated real gain is what lies on the lattice, sign and all.
		cfg.Alpha, cfg.Phase = ch.Alpha(), new(modem.Radians)
	case bench.MeanAligned:
		cfg.Alpha, cfg.Tolerance, cfg.Level = bench.AlignedScale, linksOf(ch).AlignedTolerance(groupSize(c)), levelOf(c, ch)*k.unitOf(c)
	}
	return cfg
}

func newWaveLink(c config.Config, root, secret keystream.Seed, ch *channel.Channel, k *known, ctx *xmkckks.Context) (*waveLink, error) {
	l := &waveLink{
		known: k,
		group: groupSize(c), regime: regimeOf(c), sampleRate: c.Link.SampleRateHz, samplesPerSymbol: c.Link.SamplesPerSymbol,
	}
	if err := l.build(c, root, secret, ch, k, ctx); err != nil {
		return nil, intake.UserError(fmt.Errorf("waveform link: %w", errors.Join(err, l.close())))
	}
	return l, nil
}

func (l *waveLink) build(c config.Config, root, secret keystream.Seed, ch *channel.Channel, k *known, ctx *xmkckks.Context) (err error) {
	if l.simulated, err = newSimulated(c, root, root, ch); err != nil {
		return err
	}
	l.receiving = receiveConfig(c, secret, l.channel, k, ctx)
	l.receiving.OnTransmission, l.receiving.OnFrame = l.begin, l.heard
	cfg := l.receiving
	if c.OverRadios() { // but this is the bench in memory
		cfg.Level = 1
	}
	if cfg.Transmitters, l.receiver, err = l.Streams(); err != nil {
		return err
	}
	if err := l.compensate(&cfg, c); err != nil {
		return err
	}
	l.transmitters, l.trims, l.level = cfg.Transmitters, cfg.Trim, cfg.Level
	cfg.Receiver = l.receiver
	if c.Link.RealTime {
		l.paced = &paced{from: l.receiver, clock: loopback.WallClock(), rate: radio.Hertz(c.Link.SampleRateHz)}
		cfg.Receiver = l.paced.receiver()
	}
	if c.Link.Record != recordNone {
		l.recorder = &recorder{cfg: recordConfig(c, l.channel, l.group, l.noiseStd)}
		l.recorder.cfg.Primes, l.recorder.cfg.FrameFormat = ctx.Params.Primes, uint8(frame.Format2)
		cfg.Receiver = l.recorder.tape(cfg.Receiver)
	}
	if l.Waveform, err = phy.NewWaveform(cfg); err != nil {
		return err
	}
	if l.gains, err = newGainWatch(c, l); err != nil {
		return err
	}
	return l.countBits(c, ctx, modemConfig(c.Link))
}

// compensate has devices make up for what is known of their delays, phases and gains.
func (l *waveLink) compensate(cfg *phy.WaveformConfig, c config.Config) (err error) {
	if l.known != nil && l.known.file != nil {
		cfg.Trim, err = l.known.trims(c)
		l.advances = l.known.advances(c)
		cfg.Advance = l.advances
		return err
	}
	if c.Link.Pulse != "flat-top" {
		cfg.Advance = l.delays // as a calibration would have measured them
	}
	if l.regime == bench.MeanAligned {
		cfg.Trim, _, err = align(l.channel, l.phases)
	}
	return err
}

// countBits adds up what a device's frames carry besides the payload, a symbol
// counted as the bits of a digit.
func (l *waveLink) countBits(c config.Config, ctx *xmkckks.Context, m modem.Config) error {
	samples := 0
	for t := range phy.Transmission(phy.Transmissions) {
		s, err := l.FrameSamples(t, ctx.PayloadLength(t))
		if err != nil {
			return err
		}
		samples += s
	}
	symbols := float64(samples) / float64(m.SamplesPerSymbol)
	l.bits = int(symbols*math.Log2(float64(c.Link.Base))) - ctx.Params.UplinkBits(ctx.Form, ctx.Messages, ctx.Witnesses)
	return nil
}

// begin sets the gains of a transmission from its first sample on.
func (l *waveLink) begin(_ context.Context, slot phy.Slot, at radio.SampleIndex) error {
	l.keep()
	if l.paced != nil {
		l.paced.begin(at)
	}
	if slot.Transmission == phy.TxKey && slot.Attempt == 0 {
		l.view.read, l.clipped = false, 0
		nan := math.NaN()
		l.row = runfolder.LinkRow{Alpha: nan, Quality: nan, Misfit: nan, ZeroGains: nan, WrongSigns: nan, MeansLeft: nan}
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
	return l.Fade(slot.Round, slot.Attempt, int(slot.Transmission), at)
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
func (l *waveLink) Open(ctx context.Context, slot phy.Slot, n int) error {
	l.slot = slot
	if l.recorder != nil {
		l.atOpen = l.epochs()
	}
	return l.Waveform.Open(ctx, slot, n)
}

// Receive receives the transmission, and says in the recording what came of it:
// phy.Uplink.
func (l *waveLink) Receive(ctx context.Context, rx *phy.Reception) error {
	n := note{slot: l.slot, group: -1, first: l.Waveform.Next(), transmitters: l.atOpen, label: labelTransmission}
	if err := l.Waveform.Receive(ctx, rx); err != nil {
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

// effective writes the real gains that the receiver meets, in units of what counts as
// gain 1: what is left of h_i after the devices' trims and each group's common phase.
func (l *waveLink) effective(dst []float64) {
	copy(dst, l.H)
	if l.regime == bench.Emulated {
		return
	}
	for first := 0; first < len(l.H); first += l.group {
		to := min(first+l.group, len(l.H))
		var sum complex128
		for i := first; i < to; i++ {
			sum += l.arriving(i)
		}
		theta := cmplx.Phase(sum)
		for i := first; i < to; i++ {
			dst[i] = real(l.arriving(i)*cmplx.Rect(1, -theta)) / l.level
		}
	}
}

// arriving gives device i's complex gain with its trim.
func (l *waveLink) arriving(i int) complex128 {
	g := cmplx.Rect(l.H[i], l.phases[i])
	if l.trims != nil {
		g *= complex128(l.trims[i])
	}
	return g
}

func (l *waveLink) truth(dst []float64, _, _ uint32) {
	l.row.WrongSigns, l.row.MeansLeft = l.gains.verdict()
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
	if l.simulated != nil {
		errs = append(errs, l.Bench.Close())
	}
	return errors.Join(errs...)
}
