package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
)

// A device far off its frequency is not heard, and one sentence says what may be the
// matter; nothing is left.
func TestNotHeard(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"devices.carrier_offset_per_device_hz=[0, 20e3, 0]", "no sounding of device 2 was found"},
		{"channel.mean_per_device=[1, 1, 1e-12]", "no sounding of device 3 was found"},
		{"calibration.delay_search_samples=2", "no sounding of device 1 was found"},
	} {
		dir := filepath.Join(t.TempDir(), "calibration")
		status, stdout, stderr := run(t, "calibrate", experimenttest.WaveformConfig, "--out", dir, "--no-advice", "--set", c.set, "--set", "channel.std=0")
		if status != exitBadInput || stdout != "" || strings.Count(stderr, "\n") != 1 || !experimenttest.ContainsAll(stderr, []string{c.want, "its carrier may be off by more than calibration.offset_search_hz, 2000", "calibration.delay_search_samples"}) {
			t.Errorf("%s: status %d\n%s%s", c.set, status, stdout, stderr)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a folder was left behind", c.set)
		}
	}
}
