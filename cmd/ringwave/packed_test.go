package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
)

// withPacked returns the arguments of P directions.
func withPacked(p int, args ...string) []string {
	return append(slices.Clone(args), "--set", fmt.Sprintf("optimizer.packed_directions=%d", p))
}

// A run of P = 4 with key epochs, retries and skipped rounds gives the same metrics.csv
// on any number of cores and when it is killed and resumed.
func TestPackedRunIsTheSameResumedAndOnMoreCores(t *testing.T) {
	experimenttest.NoData(t)
	for _, system := range [][]string{
		{"--set", "encryption.parameter_set=lean-2048", "--set", "encryption.key_epoch_rounds=11",
			"--set", "channel.drift=after-ciphertext", "--set", "channel.drift_std=0.1", "--set", "channel.drift_probability=0.6"},
		{"--set", "experiment.aggregator=none"},
		{"--set", "experiment.aggregator=stale-key"},
	} {
		args := withPacked(4, slices.Concat(small, system)...)
		whole := filepath.Join(t.TempDir(), "whole")
		before := runtime.GOMAXPROCS(1)
		stale := system[1] == "experiment.aggregator=stale-key"
		ended := map[bool]int{true: exitUnusable}[stale] // its loss grows without bound
		if status, _, stderr := run(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", whole}, args...)...); status != ended {
			t.Fatalf("%v: status %d: %s", system, status, stderr)
		}
		runtime.GOMAXPROCS(before)
		want := experimenttest.ReadFile(t, whole, runfolder.MetricsName)
		if !stale {
			checkReadNoise(t, whole)
		}

		dir := filepath.Join(t.TempDir(), "run")
		killed(t, dir, int64(len(want)/2), append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, args...)...)
		if status, _, stderr := run(t, "run", "--resume", dir); status != ended {
			t.Fatalf("%v: resumed, status %d: %s", system, status, stderr)
		}
		if got := experimenttest.ReadFile(t, dir, runfolder.MetricsName); !bytes.Equal(got, want) {
			t.Errorf("%v: resumed, metrics.csv is another", system)
		}
	}
}

// One packed direction, said or not, is the same run.
func TestOnePackedDirectionIsTheDefault(t *testing.T) {
	experimenttest.NoData(t)
	said, unsaid := filepath.Join(t.TempDir(), "said"), filepath.Join(t.TempDir(), "unsaid")
	mustRun(t, withPacked(1, append([]string{"run", experimenttest.LoopbackConfig, "--out", said}, small...)...)...)
	mustRun(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", unsaid}, small...)...)
	if !bytes.Equal(experimenttest.ReadFile(t, said, runfolder.MetricsName), experimenttest.ReadFile(t, unsaid, runfolder.MetricsName)) {
		t.Error("metrics.csv differs")
	}
	if a, b := summaryOf(t, said), summaryOf(t, unsaid); a.UplinkBitsPerRound != b.UplinkBitsPerRound || a.UplinkBitsPerRound != 819800 {
		t.Errorf("uplink %d and %d bits", a.UplinkBitsPerRound, b.UplinkBitsPerRound)
	}
}

// Over the waveform P = 4 is carried in both forms, and the recordings give the same
// ring elements again.
func TestPackedOverTheWaveform(t *testing.T) {
	for _, form := range []string{"whole", "short"} {
		dir := filepath.Join(t.TempDir(), form)
		mustRun(t, withPacked(4, recorded("cf32_le", dir, "--set", "encryption.form="+form, "--set", "optimizer.rounds=3")...)...)
		checkReadNoise(t, dir)
		stdout, _ := mustRun(t, "replay", dir)
		if !strings.Contains(stdout, "agree") || strings.Contains(stdout, "(0 were read") {
			t.Errorf("%s form: replay says\n%s", form, stdout)
		}
	}
}

// checkReadNoise is checkNoise for runs some of whose rounds may be skipped.
func checkReadNoise(t *testing.T, dir string) {
	t.Helper()
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, r := range rows {
		if r.Skipped {
			continue
		}
		read++
		if !(math.Abs(r.Eps) < 6*r.EpsStdPredicted) {
			t.Errorf("round %d: eps = %v, six deviations are %v", r.Round, r.Eps, 6*r.EpsStdPredicted)
		}
	}
	if read == 0 {
		t.Error("no round was read")
	}
}

// plan says what P directions take, and nothing of them where there is one.
func TestPlanOfPackedDirections(t *testing.T) {
	experimenttest.NoData(t)
	bits := func(p int, more ...string) (experiment.Plan, string) {
		args := withPacked(p, slices.Concat([]string{"plan", experimenttest.LoopbackConfig}, small, more)...)
		text, _ := mustRun(t, args...)
		out, _ := mustRun(t, append(args, "--json")...)
		var got experiment.Plan
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		return got, text
	}
	one, text := bits(1)
	if one.Packed != 0 || one.UplinkSymbols != 0 || strings.Contains(text, "packed") {
		t.Errorf("the plan of one direction speaks of packed ones:\n%s", text)
	}
	for _, p := range []int{4, 64} {
		got, text := bits(p)
		if want := 100 * 2 * (4096 + p + got.Witnesses); got.Packed != p || got.UplinkBits != want || got.AirtimeSeconds != setup.Airtime(want, got.BandwidthHz) {
			t.Errorf("P = %d: %+v, want %d bits", p, got, want)
		}
		if got.DecodedStd != one.DecodedStd || math.Abs(got.Rho*float64(p)/one.Rho-1) > 1e-9 {
			t.Errorf("P = %d: eps %v and rho %v, of one direction %v and %v", p, got.DecodedStd, got.Rho, one.DecodedStd, one.Rho)
		}
		experimenttest.WantAll(t, text, fmt.Sprintf("packed directions  %d in one ciphertext, 1.0", p))
	}
	if got, text := bits(16, "--set", "experiment.aggregator=none"); got.UplinkSymbols != 16 || !strings.Contains(text, "16: 16 symbols a round") {
		t.Errorf("%+v\n%s", got, text)
	}
	whole, _ := bits(64, "--set", "encryption.form=whole")
	if whole.UplinkBits != 1638400 {
		t.Errorf("the whole form of 64 directions takes %d bits", whole.UplinkBits)
	}
}

// Every wrong number of directions is one sentence with status 2, and no run folder is
// left.
func TestPackedRefusals(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"optimizer.packed_directions=0"}, "optimizer.packed_directions = 0: must be a whole number from 1 to 65536"},
		{[]string{"optimizer.packed_directions=-4"}, "optimizer.packed_directions = -4: must be"},
		{[]string{"optimizer.packed_directions=100000"}, "optimizer.packed_directions = 100000: must be"},
		{[]string{"optimizer.packed_directions=1.5"}, "packed_directions"},
		{[]string{"optimizer.packed_directions=4096"}, "optimizer.packed_directions is 4096: no room in the ciphertext: parameter set ringwave-4096-100 has n = 4096 coefficients, too few for P = 4096 messages and W = 2: allowed are at most 4094"},
		{[]string{"optimizer.packed_directions=2048", "encryption.parameter_set=lean-2048"}, "optimizer.packed_directions is 2048: no room"},
		{[]string{"optimizer.packed_directions=60000", "experiment.aggregator=digital"}, "optimizer.packed_directions is 60000: no room"},
		{[]string{"optimizer.packed_directions=2", "experiment.aggregator=heairfed"}, "optimizer.packed_directions = 2: must be 1"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		args := append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, small...)
		for _, s := range c.sets {
			args = append(args, "--set", s)
		}
		status, _, stderr := run(t, args...)
		if status != exitBadInput || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: status %d, %q; expected is %q", c.sets, status, stderr, c.want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%v: there is a run folder: %v", c.sets, err)
		}
	}
}
