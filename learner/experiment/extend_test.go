package experiment_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// short is a run of 25 rounds, evaluated and saved every 10, whose keys can be extended.
func short(t *testing.T, more ...string) *experiment.Experiment {
	t.Helper()
	experimenttest.NoData(t)
	c, err := experiment.Load(experimenttest.LoopbackConfig, append([]string{
		"task.dataset=strokes", "task.strokes_train=200", "task.strokes_test=100", "devices.count=2",
		"optimizer.rounds=25", "optimizer.evaluate_every_rounds=10", "optimizer.checkpoint_every_rounds=10",
		"encryption.parameter_set=lean-2048", "encryption.randomness=system", "encryption.key_epoch_rounds=5",
	}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A run that was killed between its last round's line and its last checkpoint is extended
// as any other: the line has an accuracy that the longer run has not there.
func TestExtendAfterACrashInTheLastRound(t *testing.T) {
	e, dir := short(t), filepath.Join(t.TempDir(), "run")
	crashed := filepath.Join(t.TempDir(), "crashed")
	_, err := e.Run(t.Context(), dir, experiment.Observer{Round: func(r learner.Record) {
		if r.Round == 25 { // its line is on the disk, and its checkpoint is not
			if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := experiment.Lab{}.Extend(t.Context(), crashed, 40, experiment.Observer{})
	if err != nil || r.Round != 40 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// An extension that cannot begin leaves the run as it was, its result too.
func TestExtendThatCannotBegin(t *testing.T) {
	e, dir := short(t), filepath.Join(t.TempDir(), "run")
	if _, err := e.Run(t.Context(), dir, experiment.Observer{}); err != nil {
		t.Fatal(err)
	}
	names := []string{runfolder.ConfigName, runfolder.ManifestName, runfolder.SummaryName}
	before := map[string][]byte{}
	for _, name := range names {
		before[name] = experimenttest.ReadFile(t, dir, name)
	}
	journal := filepath.Join(dir, experiment.JournalName)
	if err := os.Rename(journal, journal+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := (experiment.Lab{}).Extend(t.Context(), dir, 40, experiment.Observer{}); !intake.IsUserError(err) {
		t.Fatal(err)
	}
	for _, name := range names {
		if !bytes.Equal(experimenttest.ReadFile(t, dir, name), before[name]) {
			t.Errorf("%s was changed", name)
		}
	}
	if err := os.Rename(journal+".away", journal); err != nil {
		t.Fatal(err)
	}
	if r, err := (experiment.Lab{}).Extend(t.Context(), dir, 40, experiment.Observer{}); err != nil || r.Round != 40 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A deadline stops a resume as Ctrl-C does.
func TestDeadlineWhileRecalling(t *testing.T) {
	e, dir := short(t), filepath.Join(t.TempDir(), "run")
	killed := filepath.Join(t.TempDir(), "killed")
	_, err := e.Run(t.Context(), dir, experiment.Observer{Round: func(r learner.Record) {
		if r.Round == 8 {
			if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := experiment.Resume(ctx, killed, experiment.Observer{}); !errors.Is(err, experiment.ErrInterrupted) {
		t.Errorf("a resume under a deadline ends with %v", err)
	}
}

// What a run or a calibration could not be made of is refused before anything is written.
func TestRefusedBeforeAnything(t *testing.T) {
	experimenttest.NoData(t)
	c := config.Default()
	c.Link.Pulse = "nonsense"
	if _, err := (experiment.Lab{}).NewCalibration(c, ""); !intake.IsUserError(err) || !strings.Contains(err.Error(), "link.pulse") {
		t.Errorf("a calibration: %v", err)
	}
	e := short(t)
	if _, err := e.Step(t.Context()); err == nil {
		t.Error("a step before the run has begun gives no error")
	}
}

// A second Close does nothing.
func TestCloseTwice(t *testing.T) {
	e := short(t)
	if _, err := e.Run(t.Context(), filepath.Join(t.TempDir(), "run"), experiment.Observer{}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
