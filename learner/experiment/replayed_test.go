package experiment_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/replay"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy"
	"ringwave/phy/slot"
)

// A share that is sent again is a transmission of its own in the recording, which
// replay decodes as such; a round that a resume has skipped has no recording.
// Longer, or of more branches, than most because it is one history of a run, whose steps have branches of their own.
func TestReplaySharesSentAgain(t *testing.T) {
	experimenttest.NoData(t)
	c, err := experiment.Load(experimenttest.WaveformConfig, "task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300", "optimizer.rounds=6",
		"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", "link.record=cf32_le")
	if err != nil {
		t.Fatal(err)
	}
	s, err := experiment.New(c)
	if err != nil {
		t.Fatal(err)
	}
	spoiled, sent := 0, 0
	hear := func(at slot.Slot, rx *phy.Reception) {
		if at.Transmission != slot.TxShare {
			return
		}
		if at.Again < 2 && rx.CheckPassed {
			rx.CheckPassed = false
			spoiled++
		}
		if at.Again > 0 {
			sent++
		}
	}
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := s.Run(t.Context(), dir, experiment.Observer{Started: func(r *experiment.Experiment) { r.OnReception(hear) }}); err != nil {
		t.Fatal(err)
	}
	if spoiled < 4 || sent < spoiled {
		t.Fatalf("%d shares were spoiled, %d sent again", spoiled, sent)
	}
	addSkippedRound(t, dir)
	// What was spoiled is read by replay; the rest is as it was.
	result, err := replay.Replay(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if result.Rounds != 6 || result.Agree == result.Transmissions {
		t.Errorf("%d rounds were replayed, and of %d transmissions %d agree", result.Rounds, result.Transmissions, result.Agree)
	}
	for k, v := range result.Verdicts {
		if v.Again > 0 {
			sent--
			if before := result.Verdicts[k-1]; before.Again != v.Again-1 || before.Round != v.Round || before.Attempt != v.Attempt || v.Transmission != "D" {
				t.Errorf("%+v follows %+v", v, before)
			}
		}
		if !v.Agrees {
			spoiled--
			if v.Transmission != "D" || v.Again > 1 || v.Then.Void == "" && v.Now.Elements == "" {
				t.Errorf("%+v", v)
			}
		}
	}
	if sent != 0 || spoiled != 0 {
		t.Errorf("%d transmissions sent again and %d spoiled ones are missing", sent, spoiled)
	}
}

// addSkippedRound has a run of six rounds be one of seven, of which a resume has skipped
// the last.
func addSkippedRound(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, runfolder.MetricsName)
	text := experimenttest.ReadFile(t, name)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	columns, last := strings.Split(lines[0], ","), strings.Split(lines[len(lines)-1], ",")
	for column, value := range map[string]string{"round": "7", "attempts": "0", "skipped": "1"} {
		last[slices.Index(columns, column)] = value
	}
	if err := os.WriteFile(name, append(text, strings.Join(last, ",")+"\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(dir, runfolder.ConfigName)
	if err := os.WriteFile(name, bytes.Replace(experimenttest.ReadFile(t, name), []byte("rounds = 6\n"), []byte("rounds = 7\n"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}
