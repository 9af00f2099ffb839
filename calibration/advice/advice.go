// Package advice says what a bench can carry.
//
// It takes in what a calibration measured of the links, of the receiver's noise and of
// the converters, and gives for each regime, group size, digit base, number of samples a
// symbol, number of frame repeats and parameter set the probability that a whole round of
// the protocol is read, and its airtime; and what a change of the bench would give. All
// figures come from simulated rounds of the link itself (phy/trial), as those of a plan do:
// few to look for the best, and more to judge it. The package knows nothing of files, of
// radios, or of how a calibration was made.
package advice

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/bench"
	"ringwave/phy/modem"
)

// Regime is how gains come to lie on a lattice.
type Regime = bench.Regime

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

	// Coarse and Fine are the most rounds simulated of every candidate, and of the best
	// (0: 4 and 20). Fresh are the most, other ones, that the first Shown of these and Own
	// are judged by (0: 400 and 4): those of the first until it is settled whether it
	// reaches what is wanted, those of others until they are known well enough.
	Coarse, Fine, Fresh, Shown int
	// NoSuggestions leaves them out.
	NoSuggestions bool
	Seed          keystream.Seed
	// Workers is the number of goroutines; 0: as many as there are cores.
	Workers int
	// Progress, if not nil, hears of done rounds of so many at the most, from one goroutine
	// at a time. The total grows with what is found.
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

// maxRepeats bounds the frame repeats that are looked at.
const maxRepeats = 7

// complete returns the options with defaults where they say nothing, or says what is
// wrong with them.
func (o Options) complete(devices int) (Options, error) {
	o.setDefaults(devices)
	return o, o.validate(devices)
}

// setDefaults sets what is 0 or nil.
func (o *Options) setDefaults(devices int) {
	set(&o.BlockSymbols, 8192)
	set(&o.MaxAlpha, 40)
	set(&o.KeyShares, 400)
	set(&o.Wanted, 0.99)
	set(&o.Coarse, 4)
	set(&o.Fine, 20)
	set(&o.Fresh, 400)
	set(&o.Shown, 4)
	set(&o.Repeats, 2)
	set(&o.Minimum, devices)
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
}

func (o Options) validate(devices int) error {
	if o.Attempts < 1 || !(o.DeltaMax > 0) || math.IsInf(o.DeltaMax, 0) {
		return fmt.Errorf("advice for %d attempts and |Delta f/mu| up to %v: both must be positive", o.Attempts, o.DeltaMax)
	}
	if _, err := modem.NewDetector(o.Modem, modem.Search{}); err != nil {
		return err
	}
	for _, g := range o.Groups {
		if g < 1 || g > devices {
			return fmt.Errorf("groups of %d of %d devices: allowed are 1 to %d", g, devices, devices)
		}
	}
	for _, b := range o.Bases {
		if !isBase(b) {
			return fmt.Errorf("the digits' base is %d: it must be odd, from 3 to 15", b)
		}
	}
	if o.Own != nil {
		if err := o.Own.validate(devices); err != nil {
			return err
		}
	}
	if min(o.Coarse, o.Fine, o.Fresh, o.Shown, o.BlockSymbols, o.KeyShares) < 1 || !(o.MaxAlpha > 0) || math.IsInf(o.MaxAlpha, 0) || !(o.Wanted > 0 && o.Wanted < 1) {
		return errors.New("advice needs positive numbers of rounds, block symbols and shares of a key, a positive finest scale, and a wanted probability between 0 and 1")
	}
	return nil
}

// isBase reports whether digits of a base can be sent.
func isBase(b int) bool { return b >= 3 && b <= 15 && b%2 == 1 }

func (w Own) validate(devices int) error {
	switch {
	case w.Regime < bench.Emulated || w.Regime > bench.Blind:
		return fmt.Errorf("the own regime is %d: allowed are 0 to %d", w.Regime, bench.Blind)
	case w.Group < 1 || w.Group > devices:
		return fmt.Errorf("the own groups are of %d of %d devices: allowed are 1 to %d", w.Group, devices, devices)
	case !isBase(w.Base):
		return fmt.Errorf("the own digits' base is %d: it must be odd, from 3 to 15", w.Base)
	case w.Repeats < 0 || w.Repeats > math.MaxUint8:
		return fmt.Errorf("the own frames are repeated %d times: allowed are 0 to %d", w.Repeats, math.MaxUint8)
	}
	return nil
}

// set sets a number that is 0 to its usual value.
func set[T int | float64](v *T, usual T) {
	if *v == 0 {
		*v = usual
	}
}

// usualGroups returns the group sizes to look at: up to 5, half of all, and all.
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
