package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
)

// What does not fit into memory is refused in one sentence with the keys to lower, before
// any of it is taken, and nothing is written. What fits is not.
func TestMemoryIsRefused(t *testing.T) {
	experimenttest.NoData(t)
	const gib = 1 << 30
	strokes := []string{"--set", "task.dataset=strokes"}
	wave := append([]string{experimenttest.WaveformConfig}, strokes...)
	for name, c := range map[string]struct {
		limit int64
		args  []string
		want  []string
	}{
		"samples":    {4 * gib, append([]string{"run", experimenttest.LoopbackConfig, "--set", "task.strokes_train=2000000"}, strokes...), []string{"about 18.9 GB", "task.strokes_train = 2000000", "GOMEMLIMIT has 4.3 GB", "lower task.strokes_train", "or set GOMEMLIMIT to what may be taken"}},
		"test set":   {4 * gib, append([]string{"run", experimenttest.LoopbackConfig, "--set", "task.strokes_test=2000000"}, strokes...), []string{"task.strokes_test = 2000000"}},
		"plan":       {4 * gib, append([]string{"plan", experimenttest.LoopbackConfig, "--set", "task.strokes_train=2000000"}, strokes...), []string{"task.strokes_train = 2000000"}},
		"fallback":   {4 * gib, []string{"plan", experimenttest.LoopbackConfig, "--set", "task.strokes_train=2000000"}, []string{"task.strokes_train = 2000000"}},
		"devices":    {gib / 2, append([]string{"run", experimenttest.LoopbackConfig, "--set", "devices.count=3000", "--set", "optimizer.rounds=4"}, strokes...), []string{"devices.count = 3000"}},
		"directions": {gib, append([]string{"run", experimenttest.LoopbackConfig, "--set", "experiment.aggregator=none", "--set", "optimizer.packed_directions=65536", "--set", "devices.count=1000"}, strokes...), []string{"optimizer.packed_directions = 65536"}},
		"rounds":     {4 * gib, append([]string{"run", experimenttest.LoopbackConfig, "--set", "experiment.aggregator=none", "--set", "optimizer.rounds=10000000"}, strokes...), []string{"optimizer.rounds = 10000000"}},
		"frames":     {gib, append(append([]string{"run"}, wave...), "--set", "devices.count=100"), []string{"devices.count = 100", "link.samples_per_symbol = 8"}},
		"soundings":  {gib, []string{"calibrate", experimenttest.LoopbackConfig, "--set", "link.kind=waveform", "--set", "channel.gains=continuous", "--set", "calibration.blocks=1000000"}, []string{"calibration.blocks = 1000000"}},
		"curves":     {gib, []string{"curves", "--set", "link.block_symbols=1048576", "--set", "link.samples_per_symbol=64"}, []string{"link.block_symbols = 1048576"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(c.limit))
			out := filepath.Join(t.TempDir(), "run")
			args := c.args
			if args[0] != "plan" {
				args = append(args, "--out", out)
			}
			status, stdout, stderr := run(t, args...)
			if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 {
				t.Errorf("status %d\n%s%s", status, stdout, stderr)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("%q is not in %s", w, stderr)
				}
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("something was written")
			}
		})
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(gib))
	mustRun(t, append([]string{"plan", experimenttest.LoopbackConfig}, append(small, strokes...)...)...)
}

// The estimates lie within 0.7 to 1.4 of the peaks (the resident set of the process, on
// two cores) that were measured of these.
func TestEstimatesAreNearPeaks(t *testing.T) {
	experimenttest.NoData(t)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 20))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	loopback := append([]string{"run", experimenttest.LoopbackConfig}, sets("task.dataset=strokes", "task.strokes_train=2000", "task.strokes_test=500")...)
	wave := append([]string{"run", experimenttest.WaveformConfig}, sets("task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300", "optimizer.rounds=2")...)
	curves := []string{"curves", "--sigma", "0.3", "--snr", "40", "--attempts", "1"}
	long := []string{"calibration.blocks=16", "calibration.length_chips=2047", "calibration.samples_per_chip=16"}
	for _, c := range []struct {
		megabytes float64
		command   []string
		set       []string
	}{
		{55, loopback, []string{"experiment.aggregator=none"}},
		{116, loopback, []string{"experiment.aggregator=none", "optimizer.rounds=40000"}},
		{65, loopback, []string{"optimizer.rounds=3000"}},
		{61, loopback, []string{"experiment.aggregator=heairfed", "devices.count=100", "optimizer.rounds=3"}},
		{67, loopback, []string{"experiment.aggregator=heairfed", "devices.count=200", "channel.antennas=64", "optimizer.rounds=2"}},
		{102, loopback, []string{"experiment.aggregator=heairfed", "devices.count=1000", "optimizer.rounds=5"}},
		{51, []string{"calibrate", experimenttest.WaveformConfig}, []string{"calibration.blocks=500", "calibration.looks=2"}},
		{80, []string{"calibrate", experimenttest.WaveformConfig}, []string{"calibration.blocks=2000", "calibration.looks=4"}},
		{187, []string{"calibrate", experimenttest.WaveformConfig}, []string{"calibration.blocks=10000", "calibration.looks=4"}},
		{125, []string{"calibrate", experimenttest.WaveformConfig}, []string{"calibration.blocks=1500", "calibration.looks=4", "devices.count=9", "link.group_size=3"}},
		{118, []string{"calibrate", experimenttest.WaveformConfig}, append([]string{"calibration.repetitions=10", "calibration.looks=1"}, long...)},
		{690, []string{"calibrate", experimenttest.WaveformConfig}, append([]string{"calibration.repetitions=10", "calibration.looks=3", "devices.count=9", "link.group_size=3"}, long...)},
		{931, []string{"calibrate", experimenttest.WaveformConfig}, append([]string{"calibration.repetitions=30"}, long...)},
		{172, loopback, []string{"experiment.aggregator=none", "optimizer.packed_directions=16384", "optimizer.rounds=1"}},
		{190, loopback, []string{"devices.count=500", "optimizer.rounds=2"}},
		{624, loopback, []string{"experiment.aggregator=none", "task.strokes_train=60000", "optimizer.rounds=1"}},
		{154, append(curves, "--devices", "4"), []string{"link.block_symbols=65536"}},
		{501, append(curves, "--devices", "4"), []string{"link.block_symbols=262144"}},
		{1209, append(curves, "--devices", "8"), []string{"link.block_symbols=262144", "link.samples_per_symbol=16"}},
		{136, wave, nil},
		{440, wave, []string{"devices.count=12", "link.group_size=3", "link.samples_per_symbol=16"}},
		{482, wave, []string{"link.samples_per_symbol=64"}},
	} {
		_, _, stderr := run(t, slices.Concat(c.command, sets(c.set...), []string{"--out", filepath.Join(t.TempDir(), "out")})...)
		var estimate float64
		var unit string
		_, after, _ := strings.Cut(stderr, "about ")
		if _, err := fmt.Sscan(after, &estimate, &unit); err != nil {
			t.Fatalf("%v %v: %v in %s", c.command, c.set, err, stderr)
		}
		if unit == "GB" {
			estimate *= 1000
		}
		if r := estimate / c.megabytes; r < 0.7 || r > 1.4 {
			t.Errorf("%v %v: %v MB, measured are %v", c.command, c.set, estimate, c.megabytes)
		} else {
			t.Logf("%v: %.2f", c.set, r)
		}
	}
}
