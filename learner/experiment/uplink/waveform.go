package uplink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/diagnosis"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/intake"
	"ringwave/radio/loopback"
)

// Waveform is the waveform link over the bench in memory, or over radios once Connect
// was called.
type Waveform struct {
	*phy.Waveform
	receiving phy.WaveformConfig // what the receiver knows, without streams
	known     *LinkStats         // of the links; nil for all that their simulation knows
	Radios    *array.Array       // nil for the bench in memory
	// OnAir, if not nil, hears of each transmission over radios, and the transmitters'
	// index at which it begins at the earliest, before it is sent; OnReception of what
	// was received. They are for benches whose gains are set.
	OnAir       func(s slot.Slot, at radio.SampleIndex) error
	OnReception func(s slot.Slot, rx *phy.Reception)
	first       radio.SampleIndex // of the transmission's first capture, over radios
	// carriers is by how much the bench's nominal time, by which carriers turn, is ahead of
	// the transmitters' index in the attempt.
	carriers radio.SampleIndex

	*setup.Simulated
	Group int
	bits  int
	// seconds is how long an attempt takes.
	seconds float64

	slot         slot.Slot
	Transmitters []radio.Transmitter
	receiver     radio.Receiver
	Trims        []phy.Trim // nil for none
	level        float64    // the amplitude that counts as gain 1
	recorder     *Recorder
	coefficients func(slot.Transmission) int // of a payload
	atOpen       []radio.Epoch               // of the transmitters, as the transmission was opened
	paced        *paced                      // nil unless in real time
	Regime       bench.Regime
	clipped      radio.SampleCount // by the receiver, in the round

	Tally            *diagnosis.Tally // of frames
	view             waveView         // of the last round, for plots
	sampleRate       float64
	samplesPerSymbol int

	Watch *GainWatch

	row   runfolder.LinkRow
	fresh bool // the last transmission's report is not in row yet
}

// ReceiveConfig returns what the receiver knows of a link: all of its configuration but
// the streams and the observers. No receiver is told gains: of the channel it takes
// the scale of emulated ones, and the moments by which devices are aligned, which are those
// of the statistics where there are any.
func ReceiveConfig(c config.Config, secret keystream.Seed, ch *channel.Channel, stats *LinkStats, ctx *xmkckks.Context) phy.WaveformConfig {
	cfg := phy.WaveformConfig{
		Modulus: ctx.Modulus(), Devices: ch.Devices(), Group: c.Link.GroupSize, Base: c.Link.Base, BlockSymbols: c.Link.BlockSymbols,
		Modem: setup.ModemConfig(c.Link), Repeats: c.Link.FrameRepeats, GroupScale: bench.GroupScale, Run: uint16(c.Experiment.Seed),
		Secret:  secret,
		Lattice: lattice.Options{MaxAlpha: c.Link.MaxAlpha}, Amplitude: setup.TransmitAmplitude(c) * modem.Amplitude(setup.Drive(c, ch)),
	}
	if stats != nil {
		ch = stats.Channel
	}
	cfg.Level = stats.unitOf(c)
	switch setup.RegimeOf(c) {
	case bench.Emulated:
		// The emulated real gain is what lies on the lattice, sign and all.
		cfg.Alpha, cfg.Phase = ch.Alpha(), new(modem.Radians)
	case bench.MeanAligned:
		cfg.Alpha, cfg.Tolerance, cfg.Level = bench.AlignedScale, setup.LinksOf(ch).AlignedTolerance(setup.GroupSize(c)), setup.LevelOf(c, ch)*stats.unitOf(c)
	}
	return cfg
}

// newWaveform makes a waveform link over the bench in memory of a configuration, as New
// does. Its errors are the user's to mend (intake.UserError).
func newWaveform(c config.Config, root, secret keystream.Seed, ch *channel.Channel, stats *LinkStats, ctx *xmkckks.Context) (*Waveform, error) {
	l := &Waveform{
		known: stats,
		Group: setup.GroupSize(c), Regime: setup.RegimeOf(c), sampleRate: c.Link.SampleRateHz, samplesPerSymbol: c.Link.SamplesPerSymbol,
	}
	if err := l.build(c, root, secret, ch, stats, ctx); err != nil {
		return nil, intake.UserError(fmt.Errorf("waveform link: %w", errors.Join(err, l.Close())))
	}
	return l, nil
}

func (l *Waveform) build(c config.Config, root, secret keystream.Seed, ch *channel.Channel, stats *LinkStats, ctx *xmkckks.Context) (err error) {
	if l.Simulated, err = setup.NewSimulated(c, root, root, ch); err != nil {
		return err
	}
	l.receiving = ReceiveConfig(c, secret, l.Channel, stats, ctx)
	l.receiving.OnTransmission, l.receiving.OnFrame = l.begin, l.heard
	l.Tally = diagnosis.NewTally(diagnosis.Link{
		SampleRate: c.Link.SampleRateHz, SamplesPerSymbol: c.Link.SamplesPerSymbol, PreambleSymbols: c.Link.PreambleSymbols,
		MaxOffset: searched(l.receiving), NoiseBandwidth: modem.NoiseBandwidth(l.receiving.Modem.Pulse, c.Link.SamplesPerSymbol), Held: l.receiving.Phase != nil,
	})
	cfg := l.receiving
	if c.OverRadios() { // but this is the bench in memory
		cfg.Level = 1
	}
	if cfg.Transmitters, l.receiver, err = l.Streams(); err != nil {
		return err
	}
	cfg.CarrierTime = func(at radio.SampleIndex) radio.SampleIndex { return at + l.carriers }
	if err := compensate(&cfg, c, stats, ch, l.Delays, l.Phases); err != nil {
		return err
	}
	l.Transmitters, l.Trims, l.level = cfg.Transmitters, cfg.Trim, cfg.Level
	cfg.Receiver = l.receiver
	if c.Link.RealTime {
		l.paced = &paced{from: l.receiver, clock: loopback.WallClock(), rate: radio.Hertz(c.Link.SampleRateHz)}
		cfg.Receiver = l.paced.receiver()
	}
	if c.Link.Record != setup.RecordNone {
		l.recorder = &Recorder{Cfg: setup.RecordConfig(c, l.Channel, l.Group, l.NoiseStd), Band: setup.SignalBand(c)}
		l.recorder.Cfg.Primes, l.recorder.Cfg.FrameFormat = ctx.Params.Primes, uint8(frame.Present)
		cfg.Receiver = l.recorder.Tape(cfg.Receiver)
	}
	if l.Waveform, err = phy.NewWaveform(cfg); err != nil {
		return err
	}
	l.coefficients = ctx.PayloadLength
	l.describeFrames()
	if l.Watch, err = newGainWatch(c, l); err != nil {
		return err
	}
	samples, err := l.attemptSamples(ctx)
	if err != nil {
		return err
	}
	l.bits = overheadBits(c, ctx, samples)
	l.seconds = attemptSeconds(c, samples)
	if stats == nil {
		return nil
	}
	stats.carriers = stats.carrierNote(c, l.seconds)
	return stats.checkCarriers(c, l.seconds)
}

// searched returns up to which offset a receiver searches for preambles: as far as they tell,
// unless the phase is known or it says otherwise.
func searched(c phy.WaveformConfig) modem.CyclesPerSample {
	if c.Phase != nil || c.Search.MaxOffset > 0 {
		return c.Search.MaxOffset
	}
	return c.Modem.MaxOffset()
}

// describeFrames says in what is recorded from now on what frames are like.
func (l *Waveform) describeFrames() {
	if l.recorder != nil {
		l.recorder.Cfg.Frames = setup.RecordedFrames(l.receiving, l.coefficients, l.Waveform.DigitLevel())
	}
}

// compensate has devices make up for what is known of their delays, phases and gains: what
// a calibration has found, or would have found of the bench in memory. Flat-top pulses
// bear delays up to their tolerance as they are.
func compensate(cfg *phy.WaveformConfig, c config.Config, stats *LinkStats, ch *channel.Channel, delays []modem.Samples, phases []float64) (err error) {
	if stats != nil && stats.File != nil {
		cfg.Alignment, err = stats.alignment(c)
		return err
	}
	if pulse, flat := cfg.Modem.Pulse.(modem.FlatTop); !flat || modem.Samples(c.Link.DelaySpreadSamples) > cmp.Or(pulse.Tolerance, pulse.Edge) {
		cfg.Advance = advances(c, delays)
	}
	if setup.RegimeOf(c) == bench.MeanAligned {
		cfg.Trim, _, err = setup.Align(ch, phases)
	}
	return err
}

// attemptSamples returns the samples that a group's frames of an attempt take.
func (l *Waveform) attemptSamples(ctx *xmkckks.Context) (samples int, err error) {
	for t := range slot.Transmission(slot.Transmissions) {
		s, err := l.FrameSamples(t, ctx.PayloadLength(t))
		if err != nil {
			return 0, err
		}
		samples += s
	}
	return samples, nil
}

// overheadBits returns what a device's frames of so many samples carry besides the payload,
// a symbol counted as the bits of a digit.
func overheadBits(c config.Config, ctx *xmkckks.Context, samples int) int {
	symbols := float64(samples) / float64(c.Link.SamplesPerSymbol)
	return int(symbols*math.Log2(float64(c.Link.Base))) - ctx.Params.UplinkBits(ctx.Form, ctx.Messages, ctx.Witnesses)
}

// attemptSeconds returns how long an attempt takes whose frames of one group have so many
// samples, with what radios put each frame off by.
func attemptSeconds(c config.Config, samples int) float64 {
	groups := math.Ceil(float64(c.Devices.Count) / float64(setup.GroupSize(c)))
	each := float64(samples) / c.Link.SampleRateHz
	if c.OverRadios() {
		each += slot.Transmissions * c.Radio.LeadSeconds
	}
	return groups * each
}

// begin sets the gains of a transmission from its first sample on.
func (l *Waveform) begin(_ context.Context, s slot.Slot, at radio.SampleIndex) error {
	l.keep()
	if l.paced != nil {
		l.paced.begin(at)
	}
	if s.Transmission == slot.TxKey && s.Attempt == 0 {
		l.clipped = 0
		nan := math.NaN()
		l.row = runfolder.LinkRow{Alpha: nan, Quality: nan, Misfit: nan, ZeroGains: nan, WrongSigns: nan, MeansLeft: nan}
	}
	l.fresh = true
	if l.recorder != nil {
		if err := l.recorder.Begin(s.Round); err != nil {
			return err
		}
	}
	if l.Radios != nil {
		if l.OnAir == nil {
			return nil
		}
		return l.OnAir(s, at)
	}
	l.Again = s.Again
	if s.Transmission == slot.TxKey {
		l.carriers = radio.SampleIndex(l.Nominal(s.Round, s.Attempt)) - at
	}
	return l.Fade(s.Round, s.Attempt, int(s.Transmission), at)
}

// heard hears of each frame.
func (l *Waveform) heard(o phy.Observation) error {
	l.Tally.Add(o)
	l.view.keep(o)
	if o.Group == 0 && o.Repeat == 0 {
		l.first = o.First
	}
	if l.recorder == nil {
		return nil
	}
	alpha := o.Alpha
	if o.Failure != "" {
		alpha = 0 // it is b's, or of a part
	}
	return l.recorder.Annotate(Note{
		Slot: o.Slot, Group: o.Group, First: o.First, End: l.Waveform.Next(), epoch: l.receiver.Epoch(),
		transmitters: l.epochs(), alpha: alpha, Label: LabelFrame, Comment: fmt.Sprintf("repeat %d", o.Repeat),
	})
}

// epochs returns the present tuning epochs of the transmitters.
func (l *Waveform) epochs() []radio.Epoch {
	epochs := make([]radio.Epoch, len(l.Transmitters))
	for i, t := range l.Transmitters {
		epochs[i] = t.Epoch()
	}
	return epochs
}

// Open begins a transmission: phy.Uplink.
func (l *Waveform) Open(ctx context.Context, s slot.Slot, n int) error {
	l.slot = s
	if l.recorder != nil {
		l.atOpen = l.epochs()
	}
	return l.Waveform.Open(ctx, s, n)
}

// Receive receives the transmission, and says in the recording what came of it:
// phy.Uplink.
func (l *Waveform) Receive(ctx context.Context, rx *phy.Reception) error {
	n := Note{Slot: l.slot, Group: -1, First: l.Waveform.Next(), transmitters: l.atOpen, Label: LabelTransmission}
	if err := l.Waveform.Receive(ctx, rx); err != nil {
		return err
	}
	if l.OnReception != nil {
		l.OnReception(l.slot, rx)
	}
	if l.recorder == nil {
		return nil
	}
	if l.Radios != nil { // they send when they can
		n.First = l.first
	}
	n.End, n.epoch, n.Comment = l.Waveform.Next(), l.receiver.Epoch(), Verdict(rx, l.Waveform.Report())
	if rx.CheckPassed {
		n.alpha = rx.Alpha
		for _, c := range l.Waveform.Factors() {
			n.factors = append(n.factors, int(c))
		}
	}
	return l.recorder.Annotate(n)
}

// Record begins to keep what is received in a run folder, if it is to be kept: Link.
func (l *Waveform) Record(dir string) error {
	if l.recorder == nil {
		return nil
	}
	return l.recorder.Start(dir)
}

// EndRound makes the recording of the round be in the folder: Link.
func (l *Waveform) EndRound() error {
	if l.recorder == nil {
		return nil
	}
	return l.recorder.End()
}

// keep adds the last transmission's report to the round's, once.
func (l *Waveform) keep() {
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
func (l *Waveform) effective(dst []float64) {
	copy(dst, l.H)
	if l.Regime == bench.Emulated {
		return
	}
	for first := 0; first < len(l.H); first += l.Group {
		to := min(first+l.Group, len(l.H))
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

// arriving returns device i's complex gain with its trim.
func (l *Waveform) arriving(i int) complex128 {
	g := cmplx.Rect(l.H[i], l.Phases[i])
	if l.Trims != nil {
		g *= complex128(l.Trims[i])
	}
	return g
}

// Truth writes the gains that the receiver met in the last attempt, and completes the
// round's row with scale and misfit: Link.
func (l *Waveform) Truth(dst []float64, k, _ uint32) {
	l.row.WrongSigns, l.row.MeansLeft = l.Watch.verdict()
	if l.Radios != nil {
		l.read(dst)
		l.view.keepGains(int(k), dst, l.Waveform.Alpha())
		return
	}
	h := make([]float64, len(dst))
	l.effective(h)
	if !l.Waveform.Gains(dst) { // a pattern that passed its comparison can be solved
		l.Waveform.Scaled(dst, h)
	}
	alpha := l.Waveform.Alpha()
	l.view.keepGains(int(k), dst, alpha)
	l.row.Alpha, l.row.Misfit, l.row.ZeroGains = alpha, 0, 0
	for i := range dst {
		if dst[i] == 0 {
			l.row.ZeroGains++
		}
		l.row.Misfit = math.Max(l.row.Misfit, math.Abs(dst[i]/alpha-h[i])/math.Abs(h[i]))
	}
}

// OverheadBits returns what a device's frames carry besides the payload, a symbol counted
// as the bits of a digit: Link.
func (l *Waveform) OverheadBits() int { return l.bits }

// ClippedSamples returns the samples that the receiver clipped in the round, once Row was
// called: Link.
func (l *Waveform) ClippedSamples() int64 { return int64(l.clipped) }

// Row returns the round's figures, NaN where nothing tells: Link.
func (l *Waveform) Row() *runfolder.LinkRow {
	l.keep()
	row := l.row
	return &row
}

// Close drops the recording of a round that is not over, and closes the radios, if there
// are any, and the bench in memory: Link.
func (l *Waveform) Close() error {
	if l.recorder != nil {
		l.recorder.Abort()
	}
	var errs []error
	if l.Radios != nil {
		errs = append(errs, l.Radios.Close())
	}
	if l.Simulated != nil {
		errs = append(errs, l.Bench.Close())
	}
	return errors.Join(errs...)
}
