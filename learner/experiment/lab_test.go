package experiment_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/uplink"
	"ringwave/radio/intake"
)

// bar makes samples of one feature: 0 and 1, as their classes are.
func bar(n int) *dataset.Set {
	s := &dataset.Set{Dim: 1, Shape: []int{1}, Classes: []string{"low", "high"}}
	for k := range n {
		s.X, s.Y = append(s.X, float64(k%2)), append(s.Y, uint8(k%2))
	}
	return s
}

// A Lab's own link and data set are named in a configuration as the module's are, go
// through a run and its resume, and are unknown to another Lab.
func TestOwnLinkAndDataSet(t *testing.T) {
	made := 0
	lab := experiment.Lab{
		Links: []uplink.Kind{{Name: "cable", New: func(s uplink.Setting) (uplink.Link, error) {
			made++
			return uplink.NewRing(s.Seed, s.Secret, s.Channel, s.Context, s.Design)
		}}},
		DataSets: []experiment.DataSet{{Name: "bar", Load: func(r experiment.Request) (dataset.Task, error) {
			return dataset.Task{Train: bar(400), Test: bar(100)}, r.Fits(dataset.Extent{Samples: 500, Features: 1})
		}}},
	}
	set := []string{"task.dataset=bar", "link.kind=cable", "optimizer.rounds=6", "optimizer.batch_size=16", "optimizer.checkpoint_every_rounds=2"}
	c, err := lab.Load("../../hw-configs/loopback.toml", set...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := lab.New(c)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	ctx, stop := context.WithCancel(t.Context())
	_, err = e.Run(ctx, dir, experiment.Observer{Round: func(r learner.Record) {
		if r.Round == 3 {
			stop()
		}
	}})
	if !errors.Is(err, experiment.ErrInterrupted) {
		t.Fatal(err)
	}
	if _, err := experiment.Resume(t.Context(), dir, experiment.Observer{}); !intake.IsUserError(err) || !strings.Contains(err.Error(), "task.dataset = \"bar\"") && !strings.Contains(err.Error(), "link.kind = \"cable\"") {
		t.Errorf("another Lab resumes it with %v", err)
	}
	r, err := lab.Resume(t.Context(), dir, experiment.Observer{})
	if err != nil || r.Round != 6 || r.Summary.Dataset != "bar" || made != 2 {
		t.Errorf("%+v, %d links, %v", r, made, err)
	}
}

// What is not known by name is refused, whichever way the configuration came.
func TestUnknownNames(t *testing.T) {
	for key, c := range map[string]func(c *experiment.Config){
		"experiment.aggregator": func(c *experiment.Config) { c.Experiment.Aggregator = "x" },
		"task.model":            func(c *experiment.Config) { c.Task.Model = "x" },
		"task.dataset":          func(c *experiment.Config) { c.Task.Dataset = "x" },
	} {
		cfg := config.Default()
		cfg.Task.Dataset, cfg.Task.StrokesTrain, cfg.Task.StrokesTest = "strokes", 80, 40
		c(&cfg)
		e, err := experiment.New(cfg)
		if err == nil {
			_, err = e.Run(t.Context(), filepath.Join(t.TempDir(), "run"), experiment.Observer{})
		}
		if !intake.IsUserError(err) || !strings.Contains(err.Error(), key+` = "x"`) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// Every system has its sentence, and those without encryption what makes them.
func TestSystemsAreWhole(t *testing.T) {
	var names []string
	for _, s := range config.Systems() {
		if s.Text == "" || slices.Contains(names, s.Name) {
			t.Errorf("%+v", s)
		}
		names = append(names, s.Name)
	}
}
