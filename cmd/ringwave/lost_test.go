package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// lostBench is a bench of which nothing is read: its gains are emulated, with the phase
// held, and the carrier is off.
var lostBench = slices.Concat(small, sets("channel.gains=lattice", "channel.gain_lattice_bits=1", "devices.carrier_offset_hz=20", "link.phase_spread_rad=0",
	"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", "encryption.attempts_per_round=1", "link.frame_repeats=0", "optimizer.end_after_lost_rounds=4"))

// A run that loses round after round ends with status 3 and the reason that the receiver
// saw, in its last word, in its summary and, with -v, for each round; resumed, it goes on.
func TestLostRoundsEndARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	const why = "the phase moves by 1.9 rad over a frame of 15 ms, a carrier offset of 1"
	check := func(rounds, lost int, args ...string) {
		t.Helper()
		status, stdout, stderr := run(t, args...)
		s := summaryOf(t, dir)
		if status != exitUnusable || s.RoundsCompleted != rounds || s.RoundsSkipped != rounds || !strings.Contains(s.Unusable, why) || !strings.Contains(s.Unusable, "optimizer.end_after_lost_rounds = 4") {
			t.Errorf("status %d after %d rounds, %d of them skipped: %q", status, s.RoundsCompleted, s.RoundsSkipped, s.Unusable)
		}
		if !strings.Contains(stderr, why) || !strings.Contains(stdout, why) || strings.Count(stderr, " was not read: ") != lost {
			t.Errorf("%d rounds have a reason, want %d\n%s%s", strings.Count(stderr, " was not read: "), lost, stdout, stderr)
		}
	}
	check(4, 4, slices.Concat([]string{"run", "-v", experimenttest.WaveformConfig, "--out", dir}, lostBench)...)
	check(8, 0, "run", "--resume", dir)
	for _, name := range []string{"spectrum", "eye", "scatter", "phase", "constellation", "density"} { // of a frame that was not read
		experimenttest.ReadFile(t, dir, name+".png")
	}
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 60)
	if err != nil || len(rows) != 8 {
		t.Errorf("%d rounds in metrics.csv: %v", len(rows), err)
	}
}

// Rounds whose frames are read, and which a check refuses, have that as their reason.
func TestRefusedRoundsHaveAReason(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run(t, slices.Concat([]string{"run", experimenttest.WaveformConfig, "--out", dir}, small, sets("channel.drift=after-key", "channel.drift_std=0.2", "channel.drift_probability=1", "encryption.attempts_per_round=1", "devices.count=2",
		"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", "optimizer.rounds=6"))...)
	const why = "gains change between the frames of an attempt"
	if s := summaryOf(t, dir); !strings.Contains(s.Unusable+strings.Join(s.Notes, "; "), why) {
		t.Errorf("unusable %q, notes %q, want %q", s.Unusable, s.Notes, why)
	}
}
