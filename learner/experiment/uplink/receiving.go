package uplink

import (
	"context"
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/diagnosis"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/frame"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/intake"
)

// Receiving is the receiving half of a waveform link as a run has it: what its owner is told
// of each round, the watch over gains, and the recording.
type Receiving struct {
	Link      *phy.WaveformReceiver
	through   phy.Receiver       // Link, or the whole that it is half of
	receiving phy.WaveformConfig // what the receiver knows, without streams
	known     *LinkStats         // of the links; nil for all that their simulation knows
	channel   *channel.Channel
	phases    []float64 // static, of the bench in memory
	Group     int
	Regime    bench.Regime
	Radios    *array.Array // nil before Connect
	Elsewhere Elsewhere    // nil unless the radios of devices are on other hosts
	open      func() (*array.Array, error)
	stale     bool // Radios is to be opened anew
	// OnReception, if not nil, hears of what was received. It is for benches whose gains are
	// set.
	OnReception func(s slot.Slot, rx *phy.Reception)
	seconds     float64 // an attempt takes

	slot         slot.Slot
	Transmitters []radio.Transmitter // of this process
	receiver     radio.Receiver
	putOff       bool              // frames are sent when radios can
	first        radio.SampleIndex // of the transmission's first capture
	recorder     *Recorder
	coefficients func(slot.Transmission) int // of a payload
	atOpen       []radio.Epoch               // of the transmitters, as the transmission was opened
	clipped      radio.SampleCount           // by the receiver, in the round
	carrier      radio.Hertz                 // the common offset of the last frame that was found; NaN before

	Tally            *diagnosis.Tally // of frames
	view             waveView         // of the last round, for plots
	sampleRate       float64
	samplesPerSymbol int

	Watch *GainWatch
	// Viewer, if not nil, is shown what is received.
	Viewer Viewer

	row   runfolder.LinkRow
	fresh bool // the last transmission's report is not in row yet
}

func newReceiving(c config.Config, stats *LinkStats, ch *channel.Channel) Receiving {
	return Receiving{
		known: stats, channel: ch, Group: setup.GroupSize(c), Regime: setup.RegimeOf(c),
		sampleRate: c.Link.SampleRateHz, samplesPerSymbol: c.Link.SamplesPerSymbol,
		carrier: radio.Hertz(math.NaN()),
	}
}

// Hosted is what the hosts of a waveform link compute alike from a run's configuration.
type Hosted struct {
	Config  config.Config
	Seed    keystream.Seed // the root of every random stream
	Secret  keystream.Seed // of patterns and check weights
	Channel *channel.Channel
	Stats   *LinkStats // nil for all that the channel's simulation knows
	Context *xmkckks.Context
}

// Link describes the link to its halves: what the receiver knows, with what devices make up
// for, and no streams.
func (h Hosted) Link() (phy.WaveformConfig, error) {
	cfg := ReceiveConfig(h.Config, h.Secret, h.Channel, h.Stats, h.Context)
	if h.Config.OverRadios() {
		return cfg, nil // devices hear what they make up for once it was measured
	}
	delays, phases := setup.Positions(h.Config, h.Seed)
	err := compensate(&cfg, h.Config, h.Stats, h.Channel, delays, phases)
	return cfg, err
}

// NewReceiving makes the receiving half of a waveform link whose devices are on other hosts.
// What they send, after call was called, comes over a stream whose converter clips at a level.
// Its errors are the user's to mend (intake.UserError).
func NewReceiving(h Hosted, stream *phy.Feed, call func(ctx context.Context, d phy.Due) error) (*Receiving, error) {
	l := newReceiving(h.Config, h.Stats, h.Channel)
	if err := l.build(h, stream, call); err != nil {
		return nil, intake.UserError(fmt.Errorf("waveform link: %w", err))
	}
	return &l, nil
}

func (l *Receiving) build(h Hosted, stream *phy.Feed, call func(ctx context.Context, d phy.Due) error) (err error) {
	if l.receiving, err = h.Link(); err != nil {
		return err
	}
	l.receiving.OnTransmission = func(_ context.Context, s slot.Slot, _ radio.SampleIndex) error { return l.begin(s) }
	l.receiving.OnFrame, l.receiving.Call = l.heard, call
	sim, err := setup.SimulatedConfig(h.Config, h.Seed, h.Seed, h.Channel)
	if err != nil {
		return err
	}
	stream.Clip = sim.ClipLevel()
	l.receiver = stream
	cfg := l.receiving
	cfg.Receiver = l.tape(h.Config, h.Context, sim.NoiseStd, stream)
	link, err := phy.NewWaveformReceiver(cfg)
	if err != nil {
		return err
	}
	_, phases := setup.Positions(h.Config, h.Seed)
	if err := l.take(h.Config, link, link, h.Context, phases); err != nil || h.Stats == nil {
		return err
	}
	h.Stats.carriers = h.Stats.carrierNote(h.Config, l.seconds)
	return h.Stats.checkCarriers(h.Config, l.seconds)
}

// tape returns a receiver whose samples are shown, and kept if they are to be.
func (l *Receiving) tape(c config.Config, ctx *xmkckks.Context, noiseStd float64, rx radio.Receiver) radio.Receiver {
	rx = radio.Tee(rx, shown{l})
	if c.Link.Record == setup.RecordNone {
		return rx
	}
	l.recorder = &Recorder{Cfg: setup.RecordConfig(c, l.channel, l.Group, noiseStd), Band: setup.SignalBand(c)}
	l.recorder.Cfg.Primes, l.recorder.Cfg.FrameFormat = ctx.Params.Primes, uint8(frame.Present)
	return l.recorder.Tape(rx)
}

// take takes up a link, through the whole that it is half of.
func (l *Receiving) take(c config.Config, through phy.Receiver, link *phy.WaveformReceiver, ctx *xmkckks.Context, phases []float64) (err error) {
	l.through, l.Link, l.coefficients, l.phases = through, link, ctx.PayloadLength, phases
	l.Tally = diagnosis.NewTally(diagnosis.Link{
		SampleRate: c.Link.SampleRateHz, SamplesPerSymbol: c.Link.SamplesPerSymbol, PreambleSymbols: c.Link.PreambleSymbols,
		MaxOffset: searched(l.receiving), NoiseBandwidth: modem.NoiseBandwidth(l.receiving.Modem.Pulse, c.Link.SamplesPerSymbol), Held: l.receiving.Phase != nil,
	})
	l.describeFrames()
	if l.Watch, err = newGainWatch(c, l); err != nil {
		return err
	}
	samples, err := l.AttemptSamples()
	l.seconds = attemptSeconds(c, samples)
	return err
}

// describeFrames says in what is recorded from now on what frames are like.
func (l *Receiving) describeFrames() {
	if l.recorder != nil {
		l.recorder.Cfg.Frames = setup.RecordedFrames(l.receiving, l.coefficients, l.Link.DigitLevel())
	}
}

// AttemptSamples returns the samples that a group's frames of an attempt take.
func (l *Receiving) AttemptSamples() (samples int, err error) {
	for t := range slot.Transmission(slot.Transmissions) {
		s, err := l.Link.FrameSamples(t, l.coefficients(t))
		if err != nil {
			return 0, err
		}
		samples += s
	}
	return samples, nil
}

// begin takes note of a transmission that begins.
func (l *Receiving) begin(s slot.Slot) error {
	l.keep()
	if s.Transmission == slot.TxKey && s.Attempt == 0 {
		l.clipped = 0
		nan := math.NaN()
		l.row = runfolder.LinkRow{Alpha: nan, Quality: nan, Misfit: nan, ZeroGains: nan, WrongSigns: nan, MeansLeft: nan}
	}
	l.fresh = true
	if l.recorder == nil {
		return nil
	}
	return l.recorder.Begin(s.Round)
}

// heard hears of each frame.
func (l *Receiving) heard(o phy.Observation) error {
	l.Tally.Add(o)
	l.view.keep(o)
	l.show(o)
	if o.Sync != (modem.Sync{}) {
		l.carrier = radio.Hertz(float64(o.Report.Offset) * l.sampleRate)
	}
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
		Slot: o.Slot, Group: o.Group, First: o.First, End: l.Link.Next(), epoch: l.receiver.Epoch(),
		transmitters: l.epochs(), alpha: alpha, Label: LabelFrame, Comment: fmt.Sprintf("repeat %d", o.Repeat),
	})
}

// epochs returns the present tuning epochs of the transmitters.
func (l *Receiving) epochs() []radio.Epoch {
	epochs := make([]radio.Epoch, len(l.Transmitters))
	for i, t := range l.Transmitters {
		epochs[i] = t.Epoch()
	}
	return epochs
}

// PatternSymbols returns the length of a Reception's pattern: phy.Receiver.
func (l *Receiving) PatternSymbols() int { return l.Link.PatternSymbols() }

// Open begins a transmission: phy.Receiver.
func (l *Receiving) Open(ctx context.Context, s slot.Slot, n int) error {
	l.slot = s
	if l.recorder != nil {
		l.atOpen = l.epochs()
	}
	return l.through.Open(ctx, s, n)
}

// Receive receives the transmission, and says in the recording what came of it:
// phy.Receiver.
func (l *Receiving) Receive(ctx context.Context, rx *phy.Reception) error {
	n := Note{Slot: l.slot, Group: -1, First: l.Link.Next(), transmitters: l.atOpen, Label: LabelTransmission}
	if err := l.through.Receive(ctx, rx); err != nil {
		return err
	}
	if l.OnReception != nil {
		l.OnReception(l.slot, rx)
	}
	if l.recorder == nil {
		return nil
	}
	if l.putOff { // they send when they can
		n.First = l.first
	}
	n.End, n.epoch, n.Comment = l.Link.Next(), l.receiver.Epoch(), Verdict(rx, l.Link.Report())
	if rx.CheckPassed {
		n.alpha = rx.Alpha
		for _, c := range l.Link.Factors() {
			n.factors = append(n.factors, int(c))
		}
	}
	return l.recorder.Annotate(n)
}

// Record begins to keep what is received in a run folder, if it is to be kept: Link.
func (l *Receiving) Record(dir string) error {
	if l.recorder == nil {
		return nil
	}
	return l.recorder.Start(dir)
}

// EndRound takes in which attempts at round k were void, and makes the recording of the round
// be in the folder.
func (l *Receiving) EndRound(k int, failures []round.Failure) error {
	for _, f := range failures {
		l.Tally.Void(f.Check)
	}
	l.Watch.EndRound(k, failures)
	if l.recorder == nil {
		return nil
	}
	return l.recorder.End()
}

// keep adds the last transmission's report to the round's, once.
func (l *Receiving) keep() {
	if !l.fresh || l.Link == nil {
		return
	}
	l.fresh = false
	r := l.Link.Report()
	l.clipped += r.Clipped
	l.row.FramesRepeated += float64(r.Repeated)
	if r.Failure == "" && !(r.Quality >= l.row.Quality) {
		l.row.Quality = r.Quality
	}
}

// ClippedSamples returns the samples that the receiver clipped in the round, once Row was
// called: Link.
func (l *Receiving) ClippedSamples() int64 { return int64(l.clipped) }

// CarrierOffset returns by how much the carrier that devices have in common was off in the last
// frame that was found; NaN before.
func (l *Receiving) CarrierOffset() radio.Hertz { return l.carrier }

// Row returns the round's figures, NaN where nothing tells: Link.
func (l *Receiving) Row() *runfolder.LinkRow {
	l.keep()
	row := l.row
	return &row
}

// Read writes the scaled gains H_i that the patterns of round k's last attempt show to dst, NaN
// where they show none, and completes the round's row with what a receiver knows.
func (l *Receiving) Read(dst []float64, k int) {
	l.row.WrongSigns, l.row.MeansLeft = l.Watch.verdict()
	l.read(dst)
	l.view.keepGains(k, dst, l.Link.Alpha())
}

// read writes the scaled gains H_i that the patterns of an attempt show to dst, NaN where
// they show none. Over the air nothing tells their misfit, which is NaN in the row.
func (l *Receiving) read(dst []float64) {
	nan := math.NaN()
	l.row.Alpha, l.row.Misfit, l.row.ZeroGains = l.Link.Alpha(), nan, nan
	if !l.Link.Gains(dst) {
		for i := range dst {
			dst[i] = nan
		}
		return
	}
	l.row.ZeroGains = 0
	for _, h := range dst {
		if h == 0 {
			l.row.ZeroGains++
		}
	}
}

// Close drops the recording of a round that is not over, and closes the radios, if there are
// any.
func (l *Receiving) Close() error {
	if l.recorder != nil {
		l.recorder.Abort()
	}
	if l.Radios == nil {
		return nil
	}
	return l.Radios.Close()
}
