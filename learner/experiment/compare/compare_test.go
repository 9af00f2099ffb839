package compare

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// groupOf makes runs out of their evaluated accuracies, a round each.
func groupOf(accuracies ...[]float64) *group {
	g := &group{label: "g", cfg: config.Config{}}
	for seed, list := range accuracies {
		r := run{summary: runfolder.Summary{Seed: uint64(seed), TestAccuracy: runfolder.Float(list[len(list)-1]), RoundsCompleted: len(list), UplinkBitsPerRound: 10}}
		for k, a := range list {
			r.rows = append(r.rows, runfolder.Row{Round: k + 1, TestAccuracy: a, Attempts: 1 + k%2})
		}
		g.runs = append(g.runs, r)
	}
	g.cfg.Link.Kind, g.cfg.Link.BandwidthHz = "ring", 100
	return g
}

func TestReached(t *testing.T) {
	nan := math.NaN()
	g := groupOf([]float64{nan, 0.8, nan, 0.95}, []float64{0.5, 0.6, 0.9, 0.7}, []float64{0.1, 0.2, 0.3, 0.4})
	for _, c := range []struct {
		accuracy        float64
		runs            int
		rounds, seconds float64
		text            string
	}{
		{0.4, 3, 2, 0.3, "2 (1.5 to 3)"},               // attempts 1 + 2, a tenth of a second each
		{0.7, 2, 3, 0.4, "3 (2.5 to over 4) [2 of 3]"}, // 1 + 2 + 1
		{0.95, 1, math.Inf(1), math.Inf(1), "not within 4 [1 of 3]"},
		{0.99, 0, math.Inf(1), math.Inf(1), "not within 4"},
	} {
		got := g.tally().reached(c.accuracy)
		if got.Runs != c.runs || float64(got.Rounds) != c.rounds || math.Abs(float64(got.Airtime)-c.seconds) > 1e-12 {
			t.Errorf("%v: %+v, want %+v", c.accuracy, got, c)
		}
		if text := g.tally().Results(nil).RoundsText(got); text != c.text {
			t.Errorf("%v is written %q, want %q", c.accuracy, text, c.text)
		}
	}
	for _, c := range []struct {
		best float64
		want []float64
	}{{0.995, []float64{0.9, 0.95, 0.99}}, {0.96, []float64{0.9, 0.95}}, {0.85, []float64{0.85}}, {0.58, []float64{0.55}}, {0.01, nil}, {nan, nil}} {
		if got := Telling([]*Tally{groupOf([]float64{0.001, c.best}).tally()}); !slices.Equal(got, c.want) {
			t.Errorf("the accuracies told of %v are %v, want %v", c.best, got, c.want)
		}
	}
}

func TestCompareTexts(t *testing.T) {
	for seeds, want := range map[string][]uint64{"1 to 3, 7, 8, 10": {1, 2, 3, 7, 8, 10}, "5": {5}, "": nil} {
		if got := seedList(want); got != seeds {
			t.Errorf("seeds %v are written %q", want, got)
		}
	}
	for position, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 27: "AB", 26 * 27: "AAA"} {
		if got := Letter(position); got != want {
			t.Errorf("group %d is %s, want %s", position, got, want)
		}
	}
	c := Comparison{}
	for _, label := range []string{"x, channel.std=1, experiment.aggregator=none", "x, channel.std=2, experiment.aggregator=zf"} {
		c.groups = append(c.groups, &group{label: label})
	}
	if got, want := c.names(), []string{"A: none, std=1", "B: zf, std=2"}; !slices.Equal(got, want) {
		t.Errorf("names are %q, want %q", got, want)
	}
	// Of many groups only the first is told with the others.
	var many []*group
	for range 6 {
		many = append(many, groupOf([]float64{0.5}))
	}
	lines, others := compareGroups(many, nil).Pairs()
	if len(lines) != 5 || !others || slices.ContainsFunc(lines, func(p PairedLine) bool { return p.of != 0 }) || lines[4].Groups() != "F − A" {
		t.Errorf("of six groups %d pairs are told", len(lines))
	}
}

// A comparison of nothing is refused, and ends.
func TestNothingToCompare(t *testing.T) {
	if _, err := Read(nil, nil, nil); !intake.IsUserError(err) {
		t.Errorf("%v", err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := (Comparison{}).Write(out); err == nil {
		t.Error("a report of nothing is written")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a folder was left behind")
	}
}

// Numbers have no digits without a meaning.
func TestDecimals(t *testing.T) {
	for want, x := range map[string]float64{"0.6931": 0.69314, "69.3000": 69.3, "99999.0000": 99999, "2.96e19": 29589829172569174016, "-1e05": -1e5, "1e300": 1e300, "NaN": math.NaN(), "+Inf": math.Inf(1)} {
		if got := decimals(runfolder.Float(x), 4); got != want {
			t.Errorf("%v is written %s, want %s", x, got, want)
		}
	}
}
