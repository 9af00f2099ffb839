package advice

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/trial"
	"ringwave/radio"
)

// Phases says what the blind regime does with the devices' phases.
type Phases int

const (
	// PhasesKept leaves them as measured: static, untrimmed.
	PhasesKept Phases = iota
	// PhasesTrimmed has the devices turn them to 0, within the error of what is known.
	PhasesTrimmed
	// PhasesUnknown draws them for each round, over the whole circle.
	PhasesUnknown
)

// Device is what is known of one link.
type Device struct {
	// Gain is the distribution of the real effective gain, after the phase of the
	// mean: received per sent amplitude. MeanStd and StdStd are the standard errors
	// of its mean and of its deviation, 0 where they are taken as exact.
	Gain            channel.Fading
	MeanStd, StdStd float64
	// Phase is that of the mean, PhaseStd its standard error.
	Phase, PhaseStd modem.Radians
	// Delay is relative to the earliest device, DelayStd its standard error.
	Delay, DelayStd modem.Samples
	// CarrierOffset is that of its carrier from the receiver's, in cycles a sample.
	CarrierOffset float64
	// ConverterBits is the transmitter's resolution of each branch; 0 for none.
	ConverterBits int
}

// Bench is what was measured.
type Bench struct {
	SampleRateHz float64
	// CoherenceSeconds is how long gains last; 0 for longer than any round.
	CoherenceSeconds float64
	// OnLattice says that the bench is a simulated one whose gains are rounded to
	// multiples of 2^-LatticeBits.
	OnLattice   bool
	LatticeBits int

	Devices []Device
	// Noise is the variance of a complex sample, in units of the squared received
	// amplitude of a device of gain 1 that sends amplitude 1.
	Noise modem.Power
	// ReceiverBits is the resolution of each branch of the receiver, 0 for none, and
	// ReceiverFullScale the amplitude at which it clips; 0 for four deviations of
	// what a group sends.
	ReceiverBits      int
	ReceiverFullScale float64
	// Phases is what becomes of phases in the blind regime.
	Phases Phases
	// Compensated has every device send earlier by its delay: by whole samples with
	// flat-top pulses, which absorb fractions that a filter would make overshoot, else
	// exactly. Root-raised-cosine pulses always have it.
	Compensated bool
	// FreshOnRetry draws new gains for each attempt.
	FreshOnRetry bool
}

// maxDevices bounds N: what is simulated grows with it.
const maxDevices = 256

func (b Bench) validate() error {
	if len(b.Devices) == 0 || len(b.Devices) > maxDevices {
		return fmt.Errorf("advice for a bench of %d devices: allowed are 1 to %d", len(b.Devices), maxDevices)
	}
	for i, d := range b.Devices {
		if err := d.validate(); err != nil {
			return fmt.Errorf("device %d %w", i+1, err)
		}
	}
	switch {
	case !(b.Noise > 0) || math.IsInf(float64(b.Noise), 0):
		return fmt.Errorf("the noise of a sample has the variance %v: it must be positive", b.Noise)
	case b.ReceiverBits < 0 || b.ReceiverBits > 24 || !(b.ReceiverFullScale >= 0) || math.IsInf(b.ReceiverFullScale, 0):
		return fmt.Errorf("a receiver of %d bits with a full scale of %v: allowed are 1 to 24 bits, or 0 for none, and a full scale of 0 or more", b.ReceiverBits, b.ReceiverFullScale)
	case !(b.SampleRateHz > 0) || math.IsInf(b.SampleRateHz, 0):
		return fmt.Errorf("the sample rate is %v Hz: it must be positive", b.SampleRateHz)
	case !(b.CoherenceSeconds >= 0):
		return fmt.Errorf("the coherence time is %v s: it must be 0 or more", b.CoherenceSeconds)
	case b.OnLattice && (b.LatticeBits < 0 || b.LatticeBits > channel.MaxLatticeBits):
		return fmt.Errorf("gains on a lattice of 2^-%d: allowed are 0 to %d bits", b.LatticeBits, channel.MaxLatticeBits)
	}
	return nil
}

func (d Device) validate() error {
	if d.Gain == nil {
		return fmt.Errorf("has no distribution of gains")
	}
	mu, omega := d.Gain.Mean(), d.Gain.SecondMoment()
	if mu == 0 || math.IsNaN(mu) || math.IsInf(mu, 0) || !(omega >= mu*mu*(1-1e-9)) || math.IsInf(omega, 0) {
		return fmt.Errorf("has a gain of mean %v and second moment %v: the mean must not be 0, nor the second moment below its square", mu, omega)
	}
	for _, v := range []float64{d.MeanStd, d.StdStd, float64(d.PhaseStd), float64(d.DelayStd)} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("has a standard error of %v: it must be 0 or more, and finite", v)
		}
	}
	if !(d.Delay >= 0 && d.Delay <= channel.MaxDelaySamples) || math.IsNaN(float64(d.Phase)) || math.IsInf(float64(d.Phase), 0) {
		return fmt.Errorf("has the delay %v and the phase %v: the delay must be from 0 to %d samples, the phase finite", d.Delay, d.Phase, channel.MaxDelaySamples)
	}
	if !(math.Abs(d.CarrierOffset) <= 0.5) {
		return fmt.Errorf("has a carrier offset of %v cycles a sample: allowed are -0.5 to 0.5", d.CarrierOffset)
	}
	if d.ConverterBits < 0 || d.ConverterBits > 24 {
		return fmt.Errorf("has a converter of %d bits: allowed are 1 to 24, and 0 for none", d.ConverterBits)
	}
	return nil
}

// Links returns the moments of all devices' gains.
func (b Bench) Links() bench.Links {
	var l bench.Links
	for _, d := range b.Devices {
		l.Mu, l.Omega = append(l.Mu, d.Gain.Mean()), append(l.Omega, d.Gain.SecondMoment())
	}
	return l
}

// Amplitude returns the largest magnitude of a sample that devices send.
func (b Bench) Amplitude() modem.Amplitude {
	var bits []int
	for _, d := range b.Devices {
		bits = append(bits, d.ConverterBits)
	}
	return bench.Amplitude(bits...)
}

// trials returns trials of a candidate's rounds in one of the search's stages, which have
// rounds of their own.
func (s *search) trials(c *candidate, g stage) trial.Config {
	seed := s.opt.Seed.Derive(c.name(), uint64(g))
	cfg := trial.Config{
		Setup: func(number uint32) (bench.Config, phy.WaveformConfig, error) {
			return s.trial(c, seed.Derive("round", uint64(number)))
		},
		Lengths: c.lengths, Attempts: s.opt.Attempts, Spare: true, Seed: seed,
	}
	if c.regime == bench.Blind {
		cfg.Least = s.opt.Minimum
	}
	return cfg
}

// trial makes a bench as it may be, within what is not known of it, and the link of a
// candidate, which goes by what was measured.
func (s *search) trial(c *candidate, seed keystream.Seed) (bench.Config, phy.WaveformConfig, error) {
	b := s.bench
	air := bench.Config{Rate: radio.Hertz(b.SampleRateHz), NoiseStd: math.Sqrt(float64(b.Noise) / 2), Seed: seed}
	if b.ReceiverBits > 0 {
		air.Receiver.ConverterBits, air.FullScale = b.ReceiverBits, b.fullScale(c)
	}
	gains := channel.Config{Continuous: !b.OnLattice, LatticeBits: b.LatticeBits, FreshOnRetry: b.FreshOnRetry}
	rnd := rand.New(seed.Derive("bench").Stream())
	for _, d := range b.Devices {
		air.Devices = append(air.Devices, d.drawn(rnd, b.phases(c.regime)))
		gains.Devices = append(gains.Devices, d.law(rnd))
	}
	var err error
	if air.Channel, err = channel.New(gains, seed.Derive("gains")); err != nil {
		return bench.Config{}, phy.WaveformConfig{}, err
	}
	link := s.link(c)
	link.Secret = seed.Derive("link")
	if err := b.compensate(&link, c.regime); err != nil {
		return bench.Config{}, phy.WaveformConfig{}, err
	}
	return air, link, nil
}

// phases returns what becomes of phases: emulated gains are real by themselves, and aligned
// devices turn theirs.
func (b Bench) phases(r Regime) Phases {
	if r == bench.MeanAligned {
		return PhasesTrimmed
	}
	return b.Phases
}

// drawn returns what a device does to its samples, within what is known.
func (d Device) drawn(rnd *rand.Rand, phases Phases) channel.Impairments {
	late := d.Delay + d.DelayStd*modem.Samples(rnd.NormFloat64())
	phase := float64(d.Phase) + float64(d.PhaseStd)*rnd.NormFloat64()
	if turn := 2 * math.Pi * rnd.Float64(); phases == PhasesUnknown {
		phase = turn
	}
	return channel.Impairments{
		DelaySamples: math.Max(0, float64(late)), PhaseRad: phase, CarrierOffset: d.CarrierOffset, ConverterBits: d.ConverterBits,
	}
}

// law returns the law of a device's gain, within what is known of it.
func (d Device) law(rnd *rand.Rand) channel.Fading {
	mu := d.Gain.Mean()
	shift, stretch := d.MeanStd*rnd.NormFloat64(), rnd.NormFloat64()
	if std := math.Sqrt(max(0, d.Gain.SecondMoment()-mu*mu)); std > 0 {
		stretch = max(0, 1+d.StdStd/std*stretch)
	}
	if d.MeanStd == 0 && d.StdStd == 0 {
		return d.Gain
	}
	return changed{d.Gain, 1 + shift/mu, stretch}
}

// link returns what the receiver of a candidate knows, but for what devices make up for.
func (s *search) link(c *candidate) phy.WaveformConfig {
	link := phy.WaveformConfig{
		Modulus: c.modulus, Devices: len(s.bench.Devices), Group: c.group, Base: c.base, BlockSymbols: s.opt.BlockSymbols,
		Modem: s.modem(c), GroupScale: bench.GroupScale, Repeats: s.opt.Repeats, Amplitude: s.bench.Amplitude(),
		Alpha: c.alpha, Tolerance: c.tolerance, Lattice: lattice.Options{MaxAlpha: c.maxAlpha},
	}
	if c.regime == bench.Emulated {
		link.Phase = new(modem.Radians)
	}
	return link
}

// compensate has devices make up for what was measured of their delays, phases and gains.
// Flat-top pulses absorb fractions of a sample, which a filter would make overshoot.
func (b Bench) compensate(link *phy.WaveformConfig, r Regime) error {
	_, flat := link.Modem.Pulse.(modem.FlatTop)
	means := make([]complex128, len(b.Devices))
	for i, d := range b.Devices {
		means[i] = cmplx.Rect(d.Gain.Mean(), float64(d.Phase))
		switch {
		case !flat:
			link.Advance = append(link.Advance, d.Delay)
		case b.Compensated:
			link.Advance = append(link.Advance, modem.Samples(math.Round(float64(d.Delay))))
		}
	}
	if r == bench.Emulated || b.phases(r) != PhasesTrimmed {
		return nil
	}
	trims, level, err := phy.Align(means)
	if err != nil {
		return err
	}
	link.Trim = trims
	if r == bench.MeanAligned {
		link.Level = level
		return nil
	}
	for i, t := range trims {
		link.Trim[i] = phy.Trim(cmplx.Rect(1, cmplx.Phase(complex128(t))))
	}
	return nil
}

// fullScale returns the amplitude at which the receiver clips: as set, or what suits the
// gains.
func (b Bench) fullScale(c *candidate) float64 {
	if b.ReceiverFullScale > 0 {
		return b.ReceiverFullScale
	}
	return b.Links().FullScale(c.regime, c.group, math.Sqrt(float64(b.Noise)/2))
}
