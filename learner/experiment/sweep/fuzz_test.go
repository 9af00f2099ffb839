package sweep

import (
	"strings"
	"testing"

	"ringwave/learner/experiment"
)

// Whatever the file of a sweep is, it is a plan that keeps its promises or one sentence.
func FuzzSpec(f *testing.F) {
	base, err := experiment.Lab{}.LoadBase("../../../hw-configs/loopback.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		"[sweep]\nbase = \"x\"\nseeds = \"1-3,7\"\nname = \"n\"\n[set]\noptimizer.rounds = 3\n[grid]\nchannel.std = [1, 2.5]\n\"devices.count\" = [2, 3]\n[[zip]]\nexperiment.aggregator = [\"none\", \"xmk-ckks\"]\nchannel.mean = [1, 2]\n",
		"[grid.channel]\nstd = [1]\n[sweep]\nbase = \"x\"\n[grid.devices]\ncount = [3]\n",
		"sweep = {base = \"x\"}\nzip = [{channel.std = [1]}]\ngrid.channel.std = [[1]]\n",
		"[grid]\nexperiment.seed = [1]\n", "[[grid]]\n", "[zip]\n", "[set]\na = {}\n[sweep]\nbase = \"\"",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse("some.toml", text)
		if err == nil && len(s.seeds) <= 100 {
			if n, tooMany := s.bound(); tooMany == nil && n <= 1000 {
				err = keepsPromises(t, s, func() (Plan, error) { return s.plan(base) })
			}
		}
		if err = sentence(err); err != nil && (err.Error() == "" || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q", err)
		}
	})
}

// keepsPromises holds a plan against what it was made of.
func keepsPromises(t *testing.T, s spec, plan func() (Plan, error)) error {
	p, err := plan()
	if err != nil {
		return err
	}
	n := max(1, len(s.seeds))
	for _, a := range p.Axes {
		n *= len(a.Values)
	}
	if len(p.Points) != n || len(p.Seeds) != max(1, len(s.seeds)) || p.Name == "" {
		t.Errorf("%d runs of %d seeds, %q", len(p.Points), len(p.Seeds), p.Name)
	}
	seen := map[string]bool{}
	for i, point := range p.Points {
		if err := point.Config.Check(); err != nil || len(point.Values) != len(p.Keys) || point.Config.Experiment.Seed != p.Seeds[i%len(p.Seeds)] {
			t.Errorf("run %d: %q of %q, seed %d, %v", i, point.Values, p.Keys, point.Config.Experiment.Seed, err)
		}
		encoded, err := point.Config.Encode()
		if err != nil || seen[string(encoded)] {
			t.Errorf("run %d is another once more, %v", i, err)
		}
		seen[string(encoded)] = true
	}
	return nil
}
