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
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/intake"
	"ringwave/radio/loopback"
)

// Waveform is the waveform link over the bench in memory, or over radios once Connect
// was called.
type Waveform struct {
	*phy.Waveform
	Receiving
	// OnAir, if not nil, hears of each transmission over radios, and the transmitters'
	// index at which it begins at the earliest, before it is sent. It is for benches whose
	// gains are set.
	OnAir func(s slot.Slot, at radio.SampleIndex) error

	*setup.Simulated
	bits  int
	Trims []phy.Trim // nil for none
	level float64    // the amplitude that counts as gain 1
	paced *paced     // nil unless in real time
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
	l := &Waveform{Receiving: newReceiving(c, stats, ch)}
	if err := l.build(c, root, secret, ch, stats, ctx); err != nil {
		return nil, intake.UserError(fmt.Errorf("waveform link: %w", errors.Join(err, l.Close())))
	}
	return l, nil
}

func (l *Waveform) build(c config.Config, root, secret keystream.Seed, ch *channel.Channel, stats *LinkStats, ctx *xmkckks.Context) (err error) {
	if l.Simulated, err = setup.NewSimulated(c, root, root, ch); err != nil {
		return err
	}
	l.receiving = ReceiveConfig(c, secret, l.Simulated.Channel, stats, ctx)
	l.receiving.OnTransmission, l.receiving.OnFrame = l.begin, l.heard
	cfg := l.receiving
	if c.OverRadios() { // but this is the bench in memory
		cfg.Level = 1
	}
	if cfg.Transmitters, l.receiver, err = l.Streams(); err != nil {
		return err
	}
	cfg.CarrierTime = l.CarrierTime
	if err := compensate(&cfg, c, stats, ch, l.Delays, l.Phases); err != nil {
		return err
	}
	l.Transmitters, l.Trims, l.level = cfg.Transmitters, cfg.Trim, cfg.Level
	cfg.Receiver = l.receiver
	if c.Link.RealTime {
		l.paced = &paced{from: l.receiver, clock: loopback.WallClock(), rate: radio.Hertz(c.Link.SampleRateHz)}
		cfg.Receiver = l.paced.receiver()
	}
	cfg.Receiver = l.tape(c, ctx, l.NoiseStd, cfg.Receiver)
	if l.Waveform, err = phy.NewWaveform(cfg); err != nil {
		return err
	}
	if err := l.take(c, l.Waveform, l.Waveform.WaveformReceiver, ctx, l.Phases); err != nil {
		return err
	}
	samples, err := l.AttemptSamples()
	if err != nil {
		return err
	}
	l.bits = overheadBits(c, ctx, samples)
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
	if l.paced != nil {
		l.paced.begin(at)
	}
	if err := l.Receiving.begin(s); err != nil {
		return err
	}
	if l.Radios == nil {
		return l.Meet(s, at)
	}
	if l.OnAir == nil {
		return nil
	}
	return l.OnAir(s, at)
}

// Open begins a transmission: phy.Uplink.
func (l *Waveform) Open(ctx context.Context, s slot.Slot, n int) error {
	return l.Receiving.Open(ctx, s, n)
}

// Receive receives the transmission: phy.Uplink.
func (l *Waveform) Receive(ctx context.Context, rx *phy.Reception) error {
	return l.Receiving.Receive(ctx, rx)
}

// PatternSymbols returns the length of a Reception's pattern: phy.Uplink.
func (l *Waveform) PatternSymbols() int { return l.Receiving.PatternSymbols() }

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
	if l.Radios != nil {
		l.Read(dst, int(k))
		return
	}
	l.row.WrongSigns, l.row.MeansLeft = l.Watch.verdict()
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

// Close drops the recording of a round that is not over, and closes the radios, if there
// are any, and the bench in memory: Link.
func (l *Waveform) Close() error {
	errs := []error{l.Receiving.Close()}
	if l.Simulated != nil {
		errs = append(errs, l.Bench.Close())
	}
	return errors.Join(errs...)
}
