package main

import (
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
)

// The noise budget is labelled with the scale that its numbers are of: the finest that the
// design bears, whatever the lattice of the channel's gains would be.
func TestPlanLabelsTheBudget(t *testing.T) {
	experimenttest.NoData(t)
	for _, c := range []struct {
		config string
		want   string
	}{
		{experimenttest.WaveformConfig, "alpha = 40\n"},
		{experimenttest.LoopbackConfig, "alpha = 256\n"},
	} {
		stdout, _ := mustRun(t, append([]string{"plan", c.config}, small...)...)
		if !strings.Contains(stdout, "in units of the ring, "+c.want) {
			t.Errorf("%s: the plan's budget is not that of %s%s", c.config, c.want, stdout)
		}
	}
}
