package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ringwave/crypto/keystream"
	"ringwave/radio/intake"
)

// Choose returns the attacks of some names in the order of the report, all of them
// without names. A name that there is not is the user's to mend.
func Choose(names ...string) ([]Attack, error) {
	all := All()
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, a := range all {
		known = append(known, a.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, intake.UserError(fmt.Errorf("attack: there is no attack %q; allowed are %s", name, strings.Join(known, ", ")))
		}
	}
	return slices.DeleteFunc(all, func(a Attack) bool { return !slices.Contains(names, a.Name) }), nil
}

// Progress is where several attacks stand as one of them begins.
type Progress struct {
	Attack Attack
	// Number is the attack's, from 1, Of how many there are.
	Number, Of int
	// Done is the share of the work that is behind, by the attacks' weights.
	Done float64
}

// Run carries attacks out one after another, each told of as it begins; beginning may be
// nil. It returns ctx's error if that ends first.
func Run(ctx context.Context, attacks []Attack, seed keystream.Seed, beginning func(Progress)) (results []Result, err error) {
	total, done := 0.0, 0.0
	for _, a := range attacks {
		total += a.Weight
	}
	for i, a := range attacks {
		if beginning != nil {
			beginning(Progress{a, i + 1, len(attacks), done / total})
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("attack %s: %w", a.Name, ctx.Err())
		}
		r, err := a.Run(ctx, seed)
		if err != nil {
			return nil, err
		}
		results = append(results, r...)
		done += a.Weight
	}
	return results, nil
}

// Judge returns an error that names the attacks that did not come out as stated, nil
// where all did.
func Judge(results []Result) error {
	var failed []string
	for _, r := range results {
		if !r.AsStated {
			failed = append(failed, r.Name+" on "+r.Target)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("attack: %d of %d results did not come out as stated: %s", len(failed), len(results), strings.Join(failed, "; "))
}
