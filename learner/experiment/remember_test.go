package experiment

import (
	"testing"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
)

// What a resumed run sends again is what nobody can tell from what was sent before.
func TestSendsOnce(t *testing.T) {
	for _, x := range []struct {
		file, set string
		want      bool
	}{
		{experimenttest.LoopbackConfig, "encryption.randomness=seed", false},
		{experimenttest.LoopbackConfig, "encryption.randomness=system", true},
		{experimenttest.Fig4Config, "encryption.randomness=system", true},
		{experimenttest.Fig4Config, "experiment.aggregator=airhe", false},
		{experimenttest.VirtualBenchConfig, "encryption.randomness=system", true},
		{experimenttest.VirtualBenchConfig, "radio.secrets_from_seed=true", true},
	} {
		set := []string{x.set}
		if x.file == experimenttest.VirtualBenchConfig && x.set == "radio.secrets_from_seed=true" {
			set = append(set, "encryption.randomness=seed")
		}
		c, err := config.Load(x.file, set)
		if err != nil {
			t.Fatal(err)
		}
		if got := sendsOnce(c); got != x.want {
			t.Errorf("%s with %v: %v", x.file, set, got)
		}
	}
}
