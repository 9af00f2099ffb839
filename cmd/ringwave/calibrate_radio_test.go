package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/calibration"
	"ringwave/learner/experiment/experimenttest"
)

// The command's own way: a simulated bench, recorded in each format, gives its file
// again. In integer formats the recording's converter is the receiver's.
func TestCalibrationOfARecording(t *testing.T) {
	formats := []string{"cf32_le", "ci8"}
	if os.Getenv("RINGWAVE_LONG") != "" {
		formats = append(formats, "ci16_le")
	}
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			args := []string{"calibrate", experimenttest.WaveformConfig, "--no-advice", "--set", "calibration.blocks=40", "--set", "calibration.looks=2",
				"--set", "link.record=" + format}
			mustRun(t, append(args, "--out", in("a"))...)
			mustRun(t, append(args, "--out", in("b"), "--recording", in("a"))...)
			experimenttest.WantSameCalibration(t, "recording", experimenttest.CalibrationIn(t, in("a")), experimenttest.CalibrationIn(t, in("b")))
			if f := experimenttest.CalibrationIn(t, in("b")); f.Bench.Kind != calibration.Recording || f.Devices[0].Soundings != 80 {
				t.Errorf("%v, %d soundings", f.Bench.Kind, f.Devices[0].Soundings)
			}
		})
	}
}

// Without radio.transmit nothing is opened.
func TestCalibrationNeedsThePermit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	status, _, stderr := run(t, "calibrate", experimenttest.VirtualBenchConfig, "--out", dir, "--set", "radio.transmit=false")
	if status != exitBadInput || !strings.Contains(stderr, "radios send only with radio.transmit = true") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("status %d, %q", status, stderr)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("there is a folder: %v", err)
	}
}
