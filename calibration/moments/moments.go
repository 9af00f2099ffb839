// Package moments turns series of measured gains into statistics of the links.
//
// It takes in, for each device, complex gains block by block, each with the
// variance of its estimation error, and gives mu, Omega, sigma, the K-factor and
// the SNR of every link with confidence intervals, the phase of the mean, how all
// these move over time (autocorrelation, Allan deviation, spectra, drift), and a verdict on
// each assumption that the protocol makes about its channel: a nonzero mean, a
// Gaussian or Rician fit, the same law in all blocks, independent blocks and
// devices, one gain for all transmissions of a block, no saturation, one clock.
// It knows nothing of radios, soundings, files or plots.
//
// The model: in block k device i has the gain g = h_k e^{j phi}, where h_k is real
// (Gaussian and perhaps negative, or a Rician envelope) and phi lasts a session.
// What is measured is z = g + e with e circular complex Gaussian of known variance.
// Looks are measurements within one block. They share the block's gain, so that
// only their mean counts as one independent draw of h.
//
// Nothing in it is random: intervals come from quantiles of pivots on a fixed grid,
// so that the same gains give the same figures everywhere.
package moments

import (
	"fmt"
	"math"
	"math/cmplx"
)

// Bench is what was measured: the same blocks of every device.
type Bench struct {
	// Looks is the number of measurements of a device in a block, 1 or more.
	Looks int
	// Session returns the session of each block: its length is the number of blocks.
	// The blocks of a session follow one another. Between sessions phases may turn
	// by an unknown angle.
	Session []int
	// BlockSeconds is the time from one block to the next, LookSeconds that from one
	// look of a device to its next in the same block (any positive value if Looks
	// is 1).
	BlockSeconds, LookSeconds float64
	// Devices holds a series a device.
	Devices []Series
}

// Series is what was measured of one device. Its slices have one entry a look, at
// block*Looks+look; a look that was missed is NaN in all of them.
type Series struct {
	// Gain is the received amplitude per sent amplitude; GainVar is E|error|^2 of
	// each.
	Gain    []complex128
	GainVar []float64
	// Noise is the estimated noise power of a complex sample, measured beside each
	// gain with NoiseDoF real degrees of freedom.
	Noise    []float64
	NoiseDoF float64
	// Clipped counts the samples at the converter's limit; nil if they are not
	// counted.
	Clipped []int64
	// Delay (in samples) and Offset (of the carrier, in hertz), with the variances
	// of their errors; nil where they are not measured.
	Delay, DelayVar   []float64
	Offset, OffsetVar []float64
}

// Model is a law of the real gain h.
type Model int

// Models. Undecided, in Options, leaves the choice to the data; in a result it says
// that the data fit both: the two then differ in their K-factor alone.
const (
	Undecided Model = iota
	Gaussian
	Rician
)

func (m Model) String() string {
	switch m {
	case Gaussian:
		return "gaussian"
	case Rician:
		return "rician"
	default:
		return "undecided"
	}
}

// Options are the bounds of the analysis. Zeros stand for the values given.
type Options struct {
	// Level is that of all intervals: 0.95.
	Level float64
	// FalseAlarm is the probability with which a bench that violates nothing has any
	// violation named, over all devices and assumptions together: 0.005.
	FalseAlarm float64
	// Model is the law of the gains where it is known from elsewhere. The data can
	// seldom tell a Rician envelope of a K-factor above 2 from a Gaussian gain.
	Model Model
	// RoundSeconds is how long one round of the protocol lasts, which the coherence
	// time is compared with: the span of a block's looks.
	RoundSeconds float64
	// OffsetHz is how far a carrier may be off. 0: not judged.
	OffsetHz float64
	// GainTolerance is the relative change of the gain between the looks of a block,
	// and PhaseTolerance (in radians) the change of phase between blocks, below which
	// a change does not count even where it can be measured: 0.001 each.
	GainTolerance, PhaseTolerance float64
	// DistortionTolerance is the power of residuals that grow with the gain, relative
	// to the signal, that does not count: 1e-5.
	DistortionTolerance float64
	// GainStep is the step of a grid on which gains are known to lie, as emulated ones
	// do; 0 for none. The law is that of what was rounded to it.
	GainStep float64
	// DelayTolerance is the jump of a delay, in samples, that does not count: 0.001.
	DelayTolerance float64
}

func (o Options) withDefaults() (Options, error) {
	for _, v := range []struct {
		field       *float64
		name        string
		fall, limit float64
	}{
		{&o.Level, "confidence level", 0.95, 1},
		{&o.FalseAlarm, "probability of a false alarm", 0.005, 1},
		{&o.GainTolerance, "tolerance of gains", 0.001, 1},
		{&o.PhaseTolerance, "tolerance of phases", 0.001, 1},
		{&o.DistortionTolerance, "tolerance of distortion", 1e-5, 1},
		{&o.DelayTolerance, "tolerance of delays", 0.001, 1},
		{&o.RoundSeconds, "duration of a round", 0, math.Inf(1)},
		{&o.GainStep, "step of gains", 0, math.Inf(1)},
		{&o.OffsetHz, "tolerance of the carrier's offset", 0, math.Inf(1)},
	} {
		if *v.field == 0 {
			*v.field = v.fall
		}
		if !(*v.field >= 0 && *v.field < v.limit) {
			return o, fmt.Errorf("the %s is %v: it must be from 0 to below %v", v.name, *v.field, v.limit)
		}
	}
	if o.Model < Undecided || o.Model > Rician {
		return o, fmt.Errorf("the law of the gains is %d: it must be undecided, gaussian or rician", o.Model)
	}
	return o, nil
}

// Value is an estimate with its confidence interval. Ends may be infinite. How says
// by which method the interval was found.
type Value struct {
	Value, Low, High float64
	How              string
}

// Device is what is known of one link.
type Device struct {
	// Blocks counts the blocks measured, Missed those of which no look was.
	Blocks, Missed int
	// Model is the law of the real effective gain that the data chose, or Options did.
	// Advantage is by how much the logarithm of the likelihood of the Rician law
	// exceeds the Gaussian one's; 0 where they were not compared.
	Model     Model
	Advantage float64
	// Mu is E[h], 0 or more by the choice of the phase, Omega E[h^2], Sigma the
	// deviation of h, all without the estimation noise. KFactor is Mu^2/(2 Sigma^2)
	// of a Gaussian gain, and direct over scattered power of a Rician envelope; its
	// upper end is infinite where the fading is not told from the noise.
	Mu, Omega, Sigma, KFactor Value
	// SNR is Omega over the noise power of a complex sample.
	SNR, SNRdB Value
	// Noise is that power.
	Noise float64
	// Phase is that of the mean in each session, in radians from -pi to pi (the
	// interval is not wrapped), PhaseStdErr its standard error; NaN in a session
	// with fewer than two blocks. SignCertain is false where a session's mean is so
	// near zero that its phase may be the opposite.
	Phase       []Value
	PhaseStdErr []float64
	SignCertain bool
	PhaseLasts  Lasting
	// BlocksNeeded is the number of blocks with which a mean like this one is told
	// from zero, and its phase from the opposite, in 995 of 1,000 calibrations.
	BlocksNeeded int
	// Gain holds the real effective gain of each block, Quadrature what stands
	// perpendicular to it; NaN where missed.
	Gain, Quadrature []float64
	// Autocorrelation of the gain over blocks, from lag 0; Band is its half width at
	// the level of the intervals where blocks are independent. WithinBlock is that
	// over the looks of a block. Both are of h, without noise; nil where the fading
	// is not told from the noise.
	Autocorrelation, WithinBlock []float64
	Band                         float64
	Coherence                    Coherence
	// PhaseAllan is the overlapping Allan deviation of the phase, taken as a clock's,
	// in rad/s; GainAllan that of the gain relative to its root mean square.
	PhaseAllan, GainAllan []AllanPoint
	// PhaseSpectrum and GainSpectrum are their power spectral densities; empty where
	// there are not two segments of blocks in a row.
	PhaseSpectrum, GainSpectrum Spectrum
	// PhaseDrift in rad/s and GainDrift (of Mu) in dB/s.
	PhaseDrift, GainDrift Value
	// Rotation is the turn between the looks of a block: the carrier's residual
	// offset in hertz (modulo 1/LookSeconds), NaN for a single look.
	Rotation Value
	// Offset is the mean of the offsets measured, in hertz; NaN if there are none.
	Offset Value
	// Clipped is the number of clipped samples.
	Clipped int64
	Tests   []Test
}

// Result is what is known of a bench: its devices in the order of the series, and
// one verdict an assumption.
type Result struct {
	Devices []Device
	Tests   []Test
}

// Violations returns the sentences of the assumptions that do not hold.
func (r Result) Violations() []string { return violations(r.Tests) }

// Violations returns the sentences of the assumptions that this device violates.
func (d Device) Violations() []string { return violations(d.Tests) }

func violations(tests []Test) []string {
	var out []string
	for _, t := range tests {
		if !t.Holds {
			out = append(out, t.Sentence)
		}
	}
	return out
}

// MinBlocks is the least number of blocks that a device must have been measured in.
const MinBlocks = 16

// Analyse returns the statistics of all links. Errors say which figure of the bench or
// of the options is impossible, in one sentence.
func Analyse(b Bench, o Options) (Result, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Result{}, err
	}
	if err := b.validate(); err != nil {
		return Result{}, err
	}
	spans := sessions(b.Session)
	links := make([]*link, len(b.Devices))
	var r Result
	for i := range b.Devices {
		l := newLink(&b, i, spans)
		if n := l.count(); n < MinBlocks {
			return Result{}, fmt.Errorf("device %d was measured in %d blocks: statistics need %d or more", i+1, n, MinBlocks)
		}
		if l.power() == 0 {
			return Result{}, fmt.Errorf("all gains of device %d are 0: nothing was received of it", i+1)
		}
		l.align()
		links[i] = l
		r.Devices = append(r.Devices, l.describe(o))
	}
	judge(&b, links, &r, o)
	return r, nil
}

func (b *Bench) validate() error {
	if b.Looks < 1 {
		return fmt.Errorf("a block has %d looks: it must have 1 or more", b.Looks)
	}
	if !(b.BlockSeconds > 0) || math.IsInf(b.BlockSeconds, 0) {
		return fmt.Errorf("a block lasts %v s: it must be a positive time", b.BlockSeconds)
	}
	if b.Looks > 1 && !(b.LookSeconds > 0 && b.LookSeconds*float64(b.Looks-1) <= b.BlockSeconds) {
		return fmt.Errorf("looks are %v s apart: %d of them must fit into a block of %v s", b.LookSeconds, b.Looks, b.BlockSeconds)
	}
	if len(b.Devices) == 0 {
		return fmt.Errorf("there is no device to analyse")
	}
	if err := contiguous(b.Session); err != nil {
		return err
	}
	for i := range b.Devices {
		if err := b.Devices[i].validate(len(b.Session) * b.Looks); err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
	}
	return nil
}

func contiguous(session []int) error {
	seen := map[int]bool{}
	for k, s := range session {
		if k > 0 && session[k-1] == s {
			continue
		}
		if seen[s] {
			return fmt.Errorf("block %d goes back to session %d: the blocks of a session must follow one another", k+1, s)
		}
		seen[s] = true
	}
	return nil
}

func (s *Series) validate(looks int) error {
	for _, v := range []struct {
		name     string
		length   int
		optional bool
	}{
		{"gains", len(s.Gain), false}, {"variances of gains", len(s.GainVar), false},
		{"noise powers", len(s.Noise), false}, {"counts of clipped samples", len(s.Clipped), true},
		{"delays", len(s.Delay), true}, {"variances of delays", len(s.DelayVar), s.Delay == nil},
		{"offsets", len(s.Offset), true}, {"variances of offsets", len(s.OffsetVar), s.Offset == nil},
	} {
		if v.length != looks && !(v.optional && v.length == 0) {
			return fmt.Errorf("%d %s: it must be %d, one a look", v.length, v.name, looks)
		}
	}
	if !(s.NoiseDoF > 2) {
		return fmt.Errorf("noise powers have %v degrees of freedom: they must be more than 2", s.NoiseDoF)
	}
	for k, g := range s.Gain {
		if cmplx.IsNaN(g) {
			continue
		}
		if cmplx.IsInf(g) {
			return fmt.Errorf("look %d has the gain %v: it must be finite, or NaN if missed", k+1, g)
		}
		if v := s.GainVar[k]; !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("look %d has the variance %v: it must be positive", k+1, v)
		}
		if v := s.Noise[k]; !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("look %d has the noise power %v: it must be positive", k+1, v)
		}
	}
	return nil
}

// span is the blocks of one session, from first to before end.
type span struct{ first, end int }

func sessions(session []int) []span {
	var out []span
	for k := range session {
		if k == 0 || session[k] != session[k-1] {
			out = append(out, span{k, k})
		}
		out[len(out)-1].end = k + 1
	}
	return out
}
