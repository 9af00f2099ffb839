package attack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/radio/intake"
)

// names returns those of attacks.
func names(attacks []Attack) (list []string) {
	for _, a := range attacks {
		list = append(list, a.Name)
	}
	return list
}

func TestChoose(t *testing.T) {
	all := names(All())
	if got, err := Choose(); err != nil || !slices.Equal(names(got), all) {
		t.Errorf("without names: %v, %v", names(got), err)
	}
	// In the report's order, each once, whatever that of the names.
	if got, err := Choose(all[3], all[0], all[3]); err != nil || !slices.Equal(names(got), []string{all[0], all[3]}) {
		t.Errorf("%v, %v", names(got), err)
	}
	if _, err := Choose(all[0], "nonesuch"); !intake.IsUserError(err) || !strings.Contains(err.Error(), `there is no attack "nonesuch"; allowed are heairfed-client, `) {
		t.Errorf("%v", err)
	}
}

// recorded returns an attack of a weight that notes that it was run.
func recorded(name string, weight float64, ran *[]string, err error) Attack {
	return Attack{Name: name, Weight: weight, run: func(context.Context, keystream.Seed) ([]Result, error) {
		*ran = append(*ran, name)
		return []Result{{Target: "x"}}, err
	}}
}

// Several attacks run in order, tell how far they are by their weights, and end with the
// context or with the first that fails.
func TestRunSeveral(t *testing.T) {
	var ran []string
	var told []Progress
	attacks := []Attack{recorded("a", 1, &ran, nil), recorded("b", 3, &ran, nil), recorded("c", 4, &ran, nil)}
	results, err := Run(t.Context(), attacks, keystream.FromInteger(1), func(p Progress) { told = append(told, p) })
	if err != nil || len(results) != 3 || results[2].Name != "c" || !slices.Equal(ran, []string{"a", "b", "c"}) {
		t.Errorf("ran %v, %+v, %v", ran, results, err)
	}
	for i, share := range []float64{0, 1. / 8, 4. / 8} {
		if p := told[i]; p.Done != share || p.Number != i+1 || p.Of != 3 || p.Attack.Name != attacks[i].Name {
			t.Errorf("told %+v, want the share %v", p, share)
		}
	}

	ran = nil
	broken := errors.New("broken")
	if _, err := Run(t.Context(), []Attack{recorded("a", 1, &ran, broken), attacks[1]}, keystream.FromInteger(1), nil); !errors.Is(err, broken) || len(ran) != 1 {
		t.Errorf("ran %v, %v", ran, err)
	}

	ran = nil
	ctx, cancel := context.WithCancel(t.Context())
	results, err = Run(ctx, attacks, keystream.FromInteger(1), func(p Progress) {
		if p.Number == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || results != nil || !slices.Equal(ran, []string{"a"}) {
		t.Errorf("ran %v, %v, %v", ran, results, err)
	}
}

// One result that is not as stated is named, as the machine's fault and not the user's.
func TestJudge(t *testing.T) {
	results := []Result{{Name: "a", Target: "x", AsStated: true}, {Name: "b", Target: "y"}}
	err := Judge(results)
	if err == nil || intake.IsUserError(err) || !strings.Contains(err.Error(), "1 of 2 results did not come out as stated: b on y") {
		t.Errorf("error %v", err)
	}
	if err := Judge(results[:1]); err != nil {
		t.Error(err)
	}
}
