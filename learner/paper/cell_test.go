package paper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// A report of which every run is computed elsewhere is the one made in this process, to
// the byte; runs that wait for no other are asked for together, and none twice at a time.
func TestReproduceElsewhere(t *testing.T) {
	experimenttest.NoData(t)
	var mu sync.Mutex
	running, asked := map[string]bool{}, 0
	const first = 8 // runs of the first chapter
	together := make(chan struct{})
	elsewhere := t.TempDir()
	compute := func(ctx context.Context, c Cell, key string, progress func(int)) ([]byte, error) {
		if own, err := CellKey(experiment.Lab{}, c); err != nil || own != key {
			t.Errorf("the key is %s here, %s of the report: %v", own, key, err)
		}
		mu.Lock()
		if running[key] {
			t.Errorf("%s is asked for twice at a time", key)
		}
		running[key] = true
		if asked++; asked == first {
			close(together)
		}
		mu.Unlock()
		select {
		case <-together:
		case <-time.After(time.Minute): // or the test would hang
			return nil, errors.New("the runs of the first chapter are not asked for together")
		}
		defer func() { mu.Lock(); delete(running, key); mu.Unlock() }()
		return ComputeCell(ctx, experiment.Lab{}, c, filepath.Join(elsewhere, key), progress)
	}
	pages := map[bool]string{}
	for _, here := range []bool{true, false} {
		dir := t.TempDir()
		opt := Options{Out: dir, Seeds: 1, CIFARSeeds: 1, Rounds: 3, Only: []string{"mnist", "packed", "disagreements"}}
		if !here {
			opt.Compute, opt.AtOnce = compute, 100
		}
		if _, err := Reproduce(t.Context(), opt, io.Discard); err != nil {
			t.Fatal(err)
		}
		pages[here] = string(experimenttest.ReadFile(t, dir, "report.html"))
	}
	if pages[true] != pages[false] {
		t.Error("computed elsewhere, the report is another")
	}
}

// smallResult is the result of a run of three rounds, with its cell.
func smallResult(t testing.TB) (Cell, []byte) {
	experimenttest.NoData(t.(*testing.T))
	c := Cell{Config: paperMNIST(), Goal: 1}
	c.Config.Optimizer.Rounds, c.Config.Optimizer.EvaluateEvery = 3, 1
	c.Config.Task.StrokesTrain, c.Config.Task.StrokesTest = 800, 200
	c.Config = plain(c.Config, 0)
	data, err := ComputeCell(t.Context(), experiment.Lab{}, c, filepath.Join(t.TempDir(), "x.part"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, data
}

// A result that this run cannot have given is refused with a sentence that says what is
// wrong with it.
func TestResultsAreChecked(t *testing.T) {
	c, data := smallResult(t)
	if _, err := c.decode(data, "strokes"); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(m map[string]any){
		`dataset is "mnist"`:      func(m map[string]any) { m["dataset"] = "mnist" },
		"loss has 2 rounds":       func(m map[string]any) { m["loss"] = []any{1, 2} },
		"loss has 4 rounds":       func(m map[string]any) { m["loss"] = []any{1, 2, 3, 4} },
		"the loss of round 2":     func(m map[string]any) { m["loss"] = []any{1, nil, 3} },
		"with 2 accuracies":       func(m map[string]any) { m["accuracies"] = []any{0.5, 0.5} },
		"round 2 was evaluated":   func(m map[string]any) { m["evaluated"] = []any{1, 2, 2} },
		"round 4 was evaluated":   func(m map[string]any) { m["evaluated"] = []any{1, 2, 4} },
		"accuracy of round 3":     func(m map[string]any) { m["accuracies"] = []any{0.5, 0.5, 1.5} },
		"was reached in round 3":  func(m map[string]any) { m["reached"] = 3 },
		"in round 0 of 3":         func(m map[string]any) { m["accuracies"] = []any{0.5, 1, 0.5} },
		"accuracy is -1":          func(m map[string]any) { m["accuracy"] = -1 },
		"worst_eps is -1":         func(m map[string]any) { m["worst_eps"] = -1 },
		"seconds is -1":           func(m map[string]any) { m["seconds"] = -1 },
		"clipped are 0, -1":       func(m map[string]any) { m["skipped"] = -1 },
		"unknown field":           func(m map[string]any) { m["more"] = 1 },
		"not the JSON":            func(m map[string]any) { m["repeated"] = "x" },
		"skipped and clipped are": func(m map[string]any) { m["skipped"] = 4 },
	} {
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		bad, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if want == "clipped are 0, -1" {
			want = "skipped and clipped are"
		}
		if _, err := c.decode(bad, "strokes"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	c.Goal, c.GoalLoss = 0, 1 // above all losses
	if _, err := c.decode(data, "strokes"); err == nil || !strings.Contains(err.Error(), "or loss 1 was reached in round 0 of 3; allowed is 3, by") {
		t.Errorf("a loss that was reached: got %v", err)
	}
	for want, losses := range map[int][]runfolder.Float{0: {1, 1, 2, 1, 1}, 6: {1, 1, 2, 1, 0.5, 1, 1}, 3: {1, 1, 1, 1}} {
		if got := c.lossReached(losses); got != want {
			t.Errorf("losses %v reach 1 in round %d, want %d", losses, got, want)
		}
	}
	c.Goal, c.GoalLoss = 1, 0
	for want, bad := range map[string][]byte{
		"more follows": append(bytes.Clone(data), '1'), "bytes; allowed": bytes.Repeat([]byte(" "), 5<<20), "not the JSON of": data[:9],
	} {
		if _, err := c.decode(bad, "strokes"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for _, c := range []Cell{{Config: c.Config, GoalLoss: -1}, {Config: c.Config, GoalLoss: 0.1, Goal: 0.5}} {
		if _, err := ComputeCell(t.Context(), experiment.Lab{}, c, "", nil); err == nil || !strings.Contains(err.Error(), "the loss at which a run may end is") {
			t.Errorf("%v and %v: %v", c.Goal, c.GoalLoss, err)
		}
	}
	if _, err := ComputeCell(t.Context(), experiment.Lab{}, Cell{Config: c.Config, Goal: 2}, "", nil); err == nil {
		t.Error("a goal of 2 is taken")
	}
}

// A report refuses what is no result, and keeps nothing of it.
func TestReproduceRefusesResults(t *testing.T) {
	experimenttest.NoData(t)
	dir := t.TempDir()
	_, err := Reproduce(t.Context(), Options{Out: dir, Seeds: 1, CIFARSeeds: 1, Rounds: 3, Only: []string{"mnist"}, AtOnce: 8,
		Compute: func(context.Context, Cell, string, func(int)) ([]byte, error) {
			return []byte(`{"dataset":"strokes"}`), nil
		},
	}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "loss has 0 rounds") {
		t.Errorf("got %v", err)
	}
	if files := experimenttest.CacheFiles(t, dir, "*"); len(files) != 0 {
		t.Errorf("kept: %v", files)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Reproduce(ended, Options{Out: dir, Seeds: 1, CIFARSeeds: 1, Only: []string{"mnist"}}, io.Discard); !errors.Is(err, experiment.ErrInterrupted) {
		t.Errorf("got %v", err)
	}
}

// Whatever decodes was given by a run that there can be.
func FuzzResult(f *testing.F) {
	c := Cell{Config: paperMNIST(), Goal: 0.9}
	c.Config.Optimizer.Rounds = 3
	f.Add([]byte(`{"dataset":"x","loss":[1,2,3],"evaluated":[3],"accuracies":[0.5],"eps_variance":null}`))
	f.Add([]byte(`{"dataset":"x","loss":[1,2],"evaluated":[2],"accuracies":[0.95],"reached":2}`))
	f.Add([]byte(`{"dataset":"x","diverged":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := c.decode(data, "x")
		if err != nil {
			return
		}
		if out.rounds() > 3 || len(out.Evaluated) > 3 || len(out.Evaluated) != len(out.Accuracies) || out.Reached > 3 {
			t.Errorf("%+v", out)
		}
		if _, err := json.Marshal(out); err != nil {
			t.Error(err)
		}
	})
}

// What is left is estimated by what all workers did in this sitting, and not by what
// earlier ones did of a run.
func TestProgressOfManyWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w bytes.Buffer
		r := &reproduction{stderr: &w}
		jobs := make([]job, 10)
		for k := range jobs {
			jobs[k].Config = paperMNIST()
		}
		r.begin("x", jobs, false)
		rounds := jobs[0].Config.Optimizer.Rounds
		for k := range 4 { // four workers; one goes on from the middle
			r.progress.within(&jobs[k], map[int]int{3: rounds / 2}[k])
		}
		time.Sleep(time.Minute) // of the bubble's clock
		for k := range 3 {
			r.progress.finished(&jobs[k], false)
		}
		r.progress.within(&jobs[3], rounds)
		// 3.5 of 10 runs took a minute and a run of the rest is done: 6 are left.
		want := "about " + inWords(60*6/3.5).String() + " left"
		if lines := strings.Split(strings.TrimSpace(w.String()), "\n"); !strings.Contains(lines[len(lines)-1], "left") {
			t.Fatal(w.String())
		}
		time.Sleep(0)
		w.Reset()
		r.progress.said = time.Time{}
		r.progress.within(&jobs[3], rounds)
		if !strings.Contains(w.String(), want) {
			t.Errorf("got %q, want %q", w.String(), want)
		}
		r.progress.within(&jobs[3], 0) // taken up anew
		r.progress.finished(&jobs[3], false)
		if got, want := r.progress.here, 4*jobs[0].expectedSeconds(); got != want {
			t.Errorf("%v is counted, want %v", got, want)
		}
	})
}
