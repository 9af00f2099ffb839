// Package advice says what a bench can carry.
//
// It takes in what a calibration measured of the links (the distribution of each
// device's gain, its phase, its delay, with their uncertainty), the receiver's noise
// and the converters, and gives for each regime, group size, digit base, number of
// samples a symbol, number of frame repeats and parameter set the probability that a
// whole round of the protocol is read, and its airtime; and what a change of the
// bench would give. All figures come from simulated rounds: the symbols of a round
// with their noise, converters and the interference that the modem's own pulses leave
// at the devices' delays, read by the receiver of phy/lattice. To look for the
// best, and of the largest sets, only the first blocks of a frame are simulated, and the
// others' errors drawn with the probability that the distances of these to the boundaries
// between integers give. The package knows
// nothing of files, of radios, or of how a calibration was made.
package advice

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
)

// Regime is how gains come to lie on a lattice.
type Regime = bench.Regime

// Phases says what the blind regime does with the devices' phases.
type Phases int

const (
	// PhasesKept leaves them as measured: static, untrimmed.
	PhasesKept Phases = iota
	// PhasesTrimmed has the devices turn them to 0, within the calibration's error.
	PhasesTrimmed
	// PhasesUnknown draws them for each round, over the whole circle.
	PhasesUnknown
)

// Device is what a calibration knows of one link.
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
	// ConverterBits is the transmitter's resolution of each branch; 0 for none.
	ConverterBits int
}

// Bench is what was measured.
type Bench struct {
	Devices []Device
	// Noise is the variance of a complex sample, in units of the squared received
	// amplitude of a device of gain 1 that sends amplitude 1.
	Noise        modem.Power
	SampleRateHz float64
	// ReceiverBits is the resolution of each branch of the receiver, 0 for none, and
	// ReceiverFullScale the amplitude at which it clips; 0 for four deviations of
	// what a group sends.
	ReceiverBits      int
	ReceiverFullScale float64
	// CoherenceSeconds is how long gains last; 0 for longer than any round.
	CoherenceSeconds float64
	// OnLattice says that the bench is a simulated one whose gains are rounded to
	// multiples of 2^-LatticeBits.
	OnLattice   bool
	LatticeBits int
	// Phases is what becomes of phases in the blind regime.
	Phases Phases
	// Compensated has every device send earlier by its delay: by whole samples with
	// flat-top pulses, which absorb fractions that a filter would make overshoot, else
	// exactly. Root-raised-cosine pulses always have it.
	Compensated bool
	// FreshOnRetry draws new gains for each attempt.
	FreshOnRetry bool
}

// Options are what the advice is asked for. The zero value of a list stands for the
// usual ones.
type Options struct {
	// Modem is the modem to begin with; BlockSymbols the length of a block (0: 8192),
	// MaxAlpha the finest scale of the blind search (0: 40).
	Modem        modem.Config
	BlockSymbols int
	MaxAlpha     float64

	// Attempts a round is tried, KeyShares tau, the decryption shares that one key
	// gives, one a round (0: 400), DeltaMax the bound on |Delta f/mu|.
	Attempts, KeyShares int
	DeltaMax            float64
	// Messages is P, the scalars that a device sends in a round; 0: 1.
	Messages int

	// Minimum is how many devices must not have H_i = 0 in the blind regime; 0: all.
	Minimum int

	// Wanted is the probability of success within the attempts; 0: 0.99.
	Wanted float64
	// What is looked at. Repeats is the most frame repeats; those below are looked
	// at, too. 0 stands for 2, and -1 for none.
	Regimes          []Regime
	Groups           []int
	Bases            []int
	SamplesPerSymbol []int
	Repeats          int
	Sets             []xmkckks.Params

	// Own is the way that the user has chosen, whose outlook is given in any case; nil
	// for none.
	Own *Own

	// Coarse and Fine are the rounds simulated of every candidate, and of the best
	// (0: 8 and 100). Fresh are those, other ones, that the first Shown of these and Own
	// are judged by (0: 600 and 8).
	Coarse, Fine, Fresh, Shown int
	// WholeFrames simulates every block of a round at every stage.
	WholeFrames bool
	// NoSuggestions leaves them out.
	NoSuggestions bool
	Seed          keystream.Seed
	// Workers is the number of goroutines; 0: as many as there are cores.
	Workers int
	// Progress, if not nil, hears of done parts of so many, from one goroutine at a
	// time. The total grows with what is found.
	Progress func(done, total int)
}

// Own is a way to run the protocol that the user has chosen. Options.Modem,
// BlockSymbols and MaxAlpha belong to it.
type Own struct {
	Regime               Regime
	Group, Base, Repeats int
	SamplesPerSymbol     int
	Params               xmkckks.Params
	Form                 xmkckks.Form
}

// Outlook is what one way to run the protocol will give.
type Outlook struct {
	Regime           Regime
	Group, Slots     int
	Base             int
	SamplesPerSymbol int
	Repeats          int
	Set              string
	Form             xmkckks.Form
	// MaxAlpha is the finest scale that the receiver may find, as far as the set's
	// noise budget allows; Alpha the median of those found.
	MaxAlpha, Alpha float64

	// AtOnce is the probability that an attempt is read, Low and High its interval
	// (Wilson, 95 %) from so many simulated Rounds; Within that of all attempts.
	AtOnce, Low, High     float64
	Within                float64
	WithinLow, WithinHigh float64
	Rounds                int
	// Misfit is the median of the largest |H_i/alpha - h_i|/|h_i| of a round read;
	// NaN if none was.
	Misfit float64
	// AirtimeSeconds is that of an attempt without repeats, RoundSeconds the airtime
	// spent, over all attempts and repeats, for each round that succeeds; +Inf if none did.
	AirtimeSeconds, RoundSeconds float64
	// EpsStd is the expected deviation of eps_k at Alpha. Where groups are brought to
	// one scale in the blind regime, it is that at the finest scale allowed.
	EpsStd float64
}

// Suggestion is a change of the bench and what it would give.
type Suggestion struct {
	// Change says what to change, in a few words; Sentence what that gives.
	Change, Sentence string
	// Before is the best outlook as it is, After the best with the change, of the same
	// rounds.
	Before, After Outlook
}

// Advice is what a bench can carry.
type Advice struct {
	// Own is the outlook of Options.Own; nil without, or where OwnRefusal says why that
	// does not do.
	Own        *Outlook
	OwnRefusal string
	// Outlooks are sorted by RoundSeconds if Reached: those whose WithinLow reaches the
	// wanted probability. Otherwise they are sorted by probability. None of them was
	// picked for the rounds that it is judged by.
	Outlooks []Outlook
	Reached  bool
	// Suggestions are the changes that give something, the best first; Idle are those
	// that were tried and do not.
	Suggestions []Suggestion
	Idle        []string
	// Refusals say, a sentence each, which regimes and sets do not do, and why.
	Refusals []string
}

// maxDevices bounds N: what is simulated grows with it.
const maxDevices = 256

func (b Bench) validate() error {
	if len(b.Devices) == 0 || len(b.Devices) > maxDevices {
		return fmt.Errorf("advice on a bench of %d devices: allowed are 1 to %d", len(b.Devices), maxDevices)
	}
	for i, d := range b.Devices {
		if d.Gain == nil {
			return fmt.Errorf("device %d has no distribution of gains", i+1)
		}
		mu, omega := d.Gain.Mean(), d.Gain.SecondMoment()
		if mu == 0 || math.IsNaN(mu) || math.IsInf(mu, 0) || !(omega >= mu*mu*(1-1e-9)) || math.IsInf(omega, 0) {
			return fmt.Errorf("device %d: the gain's mean is %v and its second moment %v: the mean must not be 0, nor the second moment below its square", i+1, mu, omega)
		}
		for _, v := range []float64{d.MeanStd, d.StdStd, float64(d.PhaseStd), float64(d.DelayStd)} {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("device %d has a standard error of %v: it must be 0 or more, and finite", i+1, v)
			}
		}
		if !(d.Delay >= 0 && d.Delay <= channel.MaxDelaySamples) || math.IsNaN(float64(d.Phase)) || math.IsInf(float64(d.Phase), 0) {
			return fmt.Errorf("device %d has the delay %v and the phase %v: the delay must be from 0 to %d samples, the phase finite", i+1, d.Delay, d.Phase, channel.MaxDelaySamples)
		}
		if d.ConverterBits < 0 || d.ConverterBits > 24 {
			return fmt.Errorf("device %d has a converter of %d bits: allowed are 1 to 24, and 0 for none", i+1, d.ConverterBits)
		}
	}
	switch {
	case !(b.Noise > 0) || math.IsInf(float64(b.Noise), 0):
		return fmt.Errorf("the noise of a sample has the variance %v: it must be positive", b.Noise)
	case !(b.SampleRateHz > 0) || math.IsInf(b.SampleRateHz, 0):
		return fmt.Errorf("the sample rate is %v Hz: it must be positive", b.SampleRateHz)
	case b.ReceiverBits < 0 || b.ReceiverBits > 24 || !(b.ReceiverFullScale >= 0) || math.IsInf(b.ReceiverFullScale, 0):
		return fmt.Errorf("a receiver of %d bits with a full scale of %v: allowed are 1 to 24 bits, or 0 for none, and a full scale of 0 or more", b.ReceiverBits, b.ReceiverFullScale)
	case !(b.CoherenceSeconds >= 0):
		return fmt.Errorf("the coherence time is %v s: it must be 0 or more", b.CoherenceSeconds)
	case b.OnLattice && (b.LatticeBits < 0 || b.LatticeBits > channel.MaxLatticeBits):
		return fmt.Errorf("gains on a lattice of 2^-%d: allowed are 0 to %d bits", b.LatticeBits, channel.MaxLatticeBits)
	}
	return nil
}

// complete gives the options with all that is usual in them.
func (o Options) complete(devices int) (Options, error) {
	if o.Attempts < 1 || !(o.DeltaMax > 0) || math.IsInf(o.DeltaMax, 0) {
		return o, fmt.Errorf("advice for %d attempts and |Delta f/mu| up to %v: both must be positive", o.Attempts, o.DeltaMax)
	}
	if _, err := modem.NewDetector(o.Modem, modem.Search{}); err != nil {
		return o, err
	}
	set(&o.BlockSymbols, 8192)
	set(&o.MaxAlpha, 40)
	set(&o.KeyShares, 400)
	set(&o.Wanted, 0.99)
	set(&o.Coarse, 8)
	set(&o.Fine, 100)
	set(&o.Fresh, 600)
	set(&o.Shown, 8)
	set(&o.Repeats, 2)
	o.Repeats = min(max(0, o.Repeats), maxRepeats)
	if o.Regimes == nil {
		o.Regimes = []Regime{bench.Emulated, bench.MeanAligned, bench.Blind}
	}
	if o.Bases == nil {
		o.Bases = []int{3, 5, 7}
	}
	if o.SamplesPerSymbol == nil {
		o.SamplesPerSymbol = []int{o.Modem.SamplesPerSymbol, 2 * o.Modem.SamplesPerSymbol}
	}
	if o.Sets == nil {
		o.Sets = xmkckks.Sets()
	}
	if o.Groups == nil {
		o.Groups = usualGroups(devices)
	}
	for _, g := range o.Groups {
		if g < 1 || g > devices {
			return o, fmt.Errorf("groups of %d of %d devices: allowed are 1 to %d", g, devices, devices)
		}
	}
	for _, b := range o.Bases {
		if b < 3 || b > 15 || b%2 == 0 {
			return o, fmt.Errorf("the digits' base is %d: it must be odd, from 3 to 15", b)
		}
	}
	if o.Own != nil {
		if err := o.Own.validate(devices); err != nil {
			return o, err
		}
	}
	if o.Coarse < 1 || o.Fine < 1 || o.Fresh < 1 || o.Shown < 1 || o.BlockSymbols < 1 || !(o.MaxAlpha > 0) || math.IsInf(o.MaxAlpha, 0) || o.KeyShares < 1 || !(o.Wanted > 0 && o.Wanted < 1) {
		return o, errors.New("advice needs positive numbers of rounds, block symbols and shares of a key, a positive finest scale, and a wanted probability between 0 and 1")
	}
	return o, nil
}

func (w Own) validate(devices int) error {
	switch {
	case w.Regime < bench.Emulated || w.Regime > bench.Blind:
		return fmt.Errorf("the own regime is %d: allowed are 0 to %d", w.Regime, bench.Blind)
	case w.Group < 1 || w.Group > devices:
		return fmt.Errorf("the own groups are of %d of %d devices: allowed are 1 to %d", w.Group, devices, devices)
	case w.Base < 3 || w.Base > 15 || w.Base%2 == 0:
		return fmt.Errorf("the own digits' base is %d: it must be odd, from 3 to 15", w.Base)
	case w.Repeats < 0 || w.Repeats > math.MaxUint8:
		return fmt.Errorf("the own frames are repeated %d times: allowed are 0 to %d", w.Repeats, math.MaxUint8)
	}
	return nil
}

// set gives a number that is 0 its usual value.
func set[T int | float64](v *T, usual T) {
	if *v == 0 {
		*v = usual
	}
}

// usualGroups gives the group sizes to look at: up to 5, half of all, and all.
func usualGroups(devices int) []int {
	var sizes []int
	for size := 1; size <= min(devices, 5); size++ {
		sizes = append(sizes, size)
	}
	for _, size := range []int{(devices + 1) / 2, devices} {
		if size > sizes[len(sizes)-1] {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// Give computes the advice. It is the same for the same bench, options and seed,
// whatever the number of cores. Errors are those of the arguments, and ctx's.
func Give(ctx context.Context, b Bench, o Options) (Advice, error) {
	if err := b.validate(); err != nil {
		return Advice{}, err
	}
	o, err := o.complete(len(b.Devices))
	if err != nil {
		return Advice{}, err
	}
	s := newSearch(b, o)
	own, refusal, err := s.own(ctx)
	if err != nil {
		return Advice{}, err
	}
	advice, err := s.run(ctx)
	if err != nil {
		return Advice{}, err
	}
	advice.Own, advice.OwnRefusal = own, refusal
	if o.NoSuggestions {
		return advice, nil
	}
	if err := s.suggest(ctx, &advice); err != nil {
		return Advice{}, err
	}
	return advice, nil
}

// links returns the moments of all devices' gains.
func (b Bench) links() bench.Links {
	var l bench.Links
	for _, d := range b.Devices {
		l.Mu, l.Omega = append(l.Mu, d.Gain.Mean()), append(l.Omega, d.Gain.SecondMoment())
	}
	return l
}

// transmissions is the number of frames of a group in an attempt.
const transmissions = phy.Transmissions
