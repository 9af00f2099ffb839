package sweep_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ringwave/crypto/aggregate"
	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
)

// silence is a system whose server hears nothing.
type silence struct{}

func (silence) Aggregate(_ context.Context, _ int, values [][]float64) (aggregate.Outcome, error) {
	return aggregate.Outcome{M: make([]float64, len(values[0])), Attempts: 1}, nil
}

// lab knows a system of its own, and configs are of it with seeds from 1 on.
func lab() experiment.Lab {
	return experiment.Lab{Systems: []experiment.System{{
		System: config.System{Name: "silence", Text: "a server that hears nothing"},
		New:    func(experiment.Setting) (learner.Aggregator, []string, error) { return silence{}, nil, nil },
	}}}
}

func configs(t *testing.T, seeds int) (list []config.Config) {
	t.Helper()
	experimenttest.NoData(t)
	for seed := 1; seed <= seeds; seed++ {
		c, err := lab().Load("../"+experimenttest.LoopbackConfig, "task.dataset=strokes", "task.strokes_train=200", "task.strokes_test=100",
			"devices.count=2", "optimizer.rounds=6", "experiment.aggregator=silence")
		if err != nil {
			t.Fatal(err)
		}
		c.Experiment.Seed = int64(seed)
		list = append(list, c)
	}
	return list
}

// A sweep of a Lab's own system stops, goes on in the same value and in another one, and
// is listed.
func TestSweepGoesOn(t *testing.T) {
	list, dir := configs(t, 3), filepath.Join(t.TempDir(), "all")
	s, err := sweep.New(lab(), list, dir)
	if err != nil {
		t.Fatal(err)
	}
	stopAt := func(s *sweep.Sweep, seed int64) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		err := s.Run(ctx, sweep.Observer{Round: func(r sweep.Run, rec learner.Record, _ int) {
			if r.Seed == seed && rec.Round == 2 {
				stop()
			}
		}})
		if !errors.Is(err, experiment.ErrInterrupted) {
			t.Fatalf("stopped in seed %d: %v", seed, err)
		}
	}
	stopAt(s, 1)
	stopAt(s, 2)
	again, err := sweep.New(lab(), list, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Run(t.Context(), sweep.Observer{}); err != nil || again.Done() != 3 {
		t.Errorf("%d done, %v", again.Done(), err)
	}
	runs, err := sweep.List(lab(), []string{dir})
	if err != nil || len(runs) != 3 || runs[0].State != "finished" || runs[0].System != "silence" {
		t.Errorf("%+v, %v", runs, err)
	}
}

// What a killed run left before its first checkpoint begins anew; what is somebody's own
// is left alone.
func TestSweepAfterAKill(t *testing.T) {
	list, dir := configs(t, 1), filepath.Join(t.TempDir(), "all")
	seed := filepath.Join(dir, sweep.SeedPrefix+"1")
	text, err := list[0].Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(seed, 0o755), os.WriteFile(filepath.Join(seed, runfolder.ConfigName), text, 0o644),
		os.WriteFile(filepath.Join(seed, runfolder.MetricsName), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	run := func() error {
		s, err := sweep.New(lab(), list, dir)
		if err != nil {
			return err
		}
		return s.Run(t.Context(), sweep.Observer{})
	}
	own := filepath.Join(seed, "thesis.tex")
	if err := os.WriteFile(own, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(); err == nil {
		t.Error("a folder with a file of somebody's own was taken")
	}
	if err := os.Remove(own); err != nil {
		t.Fatalf("the file is gone: %v", err)
	}
	if err := run(); err != nil {
		t.Error(err)
	}
}

// A link that stands for the folder stays, whatever becomes of the sweep.
func TestSweepLeavesLinks(t *testing.T) {
	list := configs(t, 1)
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	s, err := sweep.New(lab(), list, link)
	if err != nil {
		t.Fatal(err)
	}
	s.RemoveEmpty()
	if _, err := os.Lstat(link); err != nil {
		t.Error(err)
	}
	if _, err := sweep.New(lab(), nil, ""); err == nil {
		t.Error("a sweep over no seed")
	}
}
