package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
)

// The noise budget is labelled with the scale that its numbers are of: the finest that the
// design bears, whatever the lattice of the channel's gains would be.
func TestPlanLabelsTheBudget(t *testing.T) {
	experimenttest.NoData(t)
	for _, c := range []struct {
		config string
		more   []string
		want   string
	}{
		// Of the smallest ring, for all groups of devices are simulated.
		{experimenttest.WaveformConfig, sets("devices.count=2", "encryption.parameter_set=demo-1024", "encryption.delta_max=1"), "alpha = 40\n"},
		{experimenttest.LoopbackConfig, nil, "alpha = 256\n"},
	} {
		stdout, _ := mustRun(t, slices.Concat([]string{"plan", c.config}, small, c.more)...)
		if !strings.Contains(stdout, "in units of the ring, "+c.want) {
			t.Errorf("%s: the plan's budget is not that of %s%s", c.config, c.want, stdout)
		}
	}
}

func TestPlan(t *testing.T) {
	experimenttest.NoData(t)
	stdout, _ := mustRun(t, "plan", experimenttest.LoopbackConfig, "--json")
	var p experiment.Plan
	if err := json.Unmarshal([]byte(stdout), &p); err != nil {
		t.Fatal(err)
	}
	if p.UplinkBits == 0 || p.DecodedStd <= 0 || p.Rho <= 0 || p.FloodingBits < 40 || p.FloodDistance > 0x1p-22 || p.FloodDistance <= 0 || p.ParameterSet != xmkckks.Sets()[0].Name || p.MemoryBytes == 0 || p.DurationSeconds <= 0 {
		t.Errorf("plan %+v", p)
	}
	stdout, _ = mustRun(t, "plan", "../../hw-configs/paper-mnist-4096.toml", "--set", "task.dataset=strokes")
	for _, want := range []string{"1785856 bits", "1.786e-06 s", "111616 bytes", "0 bits: e* has deviation 3.20", "signs"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("plan does not say %q:\n%s", want, stdout)
		}
	}
}
