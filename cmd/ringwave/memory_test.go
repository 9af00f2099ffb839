package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// What does not fit into memory is refused in one sentence with the keys to lower, before
// any of it is taken, and nothing is written. What fits is not.
func TestMemoryIsRefused(t *testing.T) {
	noData(t)
	const gib = 1 << 30
	strokes := []string{"--set", "task.dataset=strokes"}
	wave := append([]string{"../../hw-configs/waveform-mnist.toml"}, strokes...)
	for name, c := range map[string]struct {
		limit int64
		args  []string
		want  []string
	}{
		"samples":    {4 * gib, append([]string{"run", loopbackConfig, "--set", "task.strokes_train=2000000"}, strokes...), []string{"about 18.9 GB", "task.strokes_train = 2000000", "GOMEMLIMIT has 4.3 GB", "lower task.strokes_train"}},
		"test set":   {4 * gib, append([]string{"run", loopbackConfig, "--set", "task.strokes_test=2000000"}, strokes...), []string{"task.strokes_test = 2000000"}},
		"plan":       {4 * gib, append([]string{"plan", loopbackConfig, "--set", "task.strokes_train=2000000"}, strokes...), []string{"task.strokes_train = 2000000"}},
		"fallback":   {4 * gib, []string{"plan", loopbackConfig, "--set", "task.strokes_train=2000000"}, []string{"task.strokes_train = 2000000"}},
		"devices":    {gib / 2, append([]string{"run", loopbackConfig, "--set", "devices.count=3000", "--set", "optimizer.rounds=4"}, strokes...), []string{"devices.count = 3000"}},
		"directions": {gib, append([]string{"run", loopbackConfig, "--set", "experiment.aggregator=none", "--set", "optimizer.packed_directions=65536", "--set", "devices.count=1000"}, strokes...), []string{"optimizer.packed_directions = 65536"}},
		"rounds":     {4 * gib, append([]string{"run", loopbackConfig, "--set", "experiment.aggregator=none", "--set", "optimizer.rounds=10000000"}, strokes...), []string{"optimizer.rounds = 10000000"}},
		"frames":     {gib, append(append([]string{"run"}, wave...), "--set", "devices.count=100"), []string{"devices.count = 100", "link.samples_per_symbol = 8"}},
		"soundings":  {gib, []string{"calibrate", loopbackConfig, "--set", "link.kind=waveform", "--set", "channel.gains=continuous", "--set", "calibration.blocks=1000000"}, []string{"calibration.blocks = 1000000"}},
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
	mustRun(t, append([]string{"plan", loopbackConfig}, append(small, strokes...)...)...)
}
