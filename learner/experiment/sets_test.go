package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
)

// fewSource is a data set of some files, of so many samples.
type fewSource struct {
	files []string
	n     int
	loads *int
}

func (f fewSource) Extent([]int) (dataset.Extent, error) {
	return dataset.Extent{Samples: f.n, Features: 1}, nil
}
func (f fewSource) Reads() []string { return f.files }
func (f fewSource) Load([]int) (*dataset.Task, error) {
	*f.loads++
	return &dataset.Task{Train: &dataset.Set{X: make([]float64, f.n), Dim: 1}}, nil
}

// anything fits.
func anything(dataset.Extent) error { return nil }

// A set is loaded once while its files, and those that may lie beside them, are as they
// were; of another key, of other classes, or of a file changed a moment ago it is another.
func TestSetsFollowFiles(t *testing.T) {
	dir, loads := t.TempDir(), 0
	file, beside := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write := func(path, text string, ago time.Duration) {
		t.Helper()
		then := time.Now().Add(-ago)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o644), os.Chtimes(path, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "one", time.Hour)
	var sets Sets
	from := fewSource{[]string{file, beside}, 3, &loads}
	want := func(what, key string, classes []int, n int) {
		t.Helper()
		r := Request{Task: config.Task{Classes: classes}, Fits: anything}
		if _, err := sets.load(r, key, from); err != nil || loads != n {
			t.Errorf("%s: %d loads, want %d: %v", what, loads, n, err)
		}
	}
	of := []int{0, 1}
	want("first", "k", of, 1)
	want("again", "k", of, 1)
	want("other classes", "k", []int{0, 2}, 2)
	want("other key", "l", of, 3)
	want("still there", "k", of, 3)
	write(file, "two", 2*time.Hour)
	want("changed, of the same size", "k", of, 4)
	write(beside, "", time.Hour)
	want("one more file", "k", of, 5)
	want("that again", "k", of, 5)
	if err := os.Remove(beside); err != nil {
		t.Fatal(err)
	}
	want("one less", "k", of, 6)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, beside); err != nil {
		t.Fatal(err)
	}
	write(file, "six", 0)
	if err := errors.Join(os.Remove(beside), os.Chtimes(file, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	want("another file of the same size and time", "k", of, 7)
	write(file, "ten", 0)
	want("changed a moment ago", "k", of, 8)
	want("which may be again", "k", of, 9)
}

// As many sets are kept as the bound says, those used last, and none that is in the way of
// what a run needs.
func TestSetsAreBounded(t *testing.T) {
	var sets Sets
	loads, room := 0, int64(1<<40)
	r := Request{Fits: func(e dataset.Extent) error {
		if int64(8*e.Samples)+e.Read > room {
			return errors.New("too much")
		}
		return nil
	}}
	load := func(key string) error {
		_, err := sets.load(r, key, fewSource{nil, 100, &loads})
		return err
	}
	for k := range mostSets + 1 {
		if err := errors.Join(load(fmt.Sprint(k)), load("0")); err != nil {
			t.Fatal(err)
		}
	}
	if len(sets.kept) != mostSets || loads != mostSets+1 {
		t.Errorf("%d sets are kept after %d loads", len(sets.kept), loads)
	}
	room = 1000
	if err := load("0"); err != nil || len(sets.kept) != 1 || loads != mostSets+1 {
		t.Errorf("with room for one, %d are kept after %d loads: %v", len(sets.kept), loads, err)
	}
	if err := load("new"); err != nil || len(sets.kept) != 1 || loads != mostSets+2 {
		t.Errorf("another: %d are kept after %d loads: %v", len(sets.kept), loads, err)
	}
	room = 10
	if err := load("new"); err == nil || len(sets.kept) != 0 {
		t.Errorf("with room for none, %d are kept: %v", len(sets.kept), err)
	}
}

// Runs of one lab that keeps its sets, side by side, write the bytes of runs that load
// their own; without plots there is all but these.
func TestRunsOnKeptSets(t *testing.T) {
	experimenttest.NoData(t)
	var configs []config.Config
	for k := range 4 {
		c := config.Default()
		c.Experiment.Aggregator, c.Experiment.Seed = config.Plain, int64(1+k%2)
		c.Task.Dataset, c.Task.StrokesTrain, c.Task.StrokesTest = "strokes", 800, 200
		c.Optimizer.Rounds, c.Task.Classes = 5, []int{0, 1 + k/2}
		configs = append(configs, c)
	}
	run := func(lab Lab, c config.Config, dir string) {
		s, err := lab.New(c)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := s.Run(t.Context(), dir, Observer{}); err != nil {
			t.Error(err)
		}
	}
	alone, kept := t.TempDir(), t.TempDir()
	lab := Lab{Sets: new(Sets), NoPlots: true}
	for round := range 2 { // the second finds the sets of the first
		var all sync.WaitGroup
		for k, c := range configs {
			if round == 0 {
				run(Lab{}, c, filepath.Join(alone, fmt.Sprint(k)))
			}
			all.Go(func() { run(lab, c, filepath.Join(kept, fmt.Sprint(round, k))) })
		}
		all.Wait()
		for k := range configs {
			for _, name := range []string{"metrics.csv", ModelNPYName, ModelName} {
				a, b := experimenttest.ReadFile(t, filepath.Join(alone, fmt.Sprint(k)), name), experimenttest.ReadFile(t, filepath.Join(kept, fmt.Sprint(round, k)), name)
				if !bytes.Equal(a, b) {
					t.Errorf("configuration %d: %s is another", k, name)
				}
			}
			if plots, _ := filepath.Glob(filepath.Join(kept, fmt.Sprint(round, k), "*.png")); len(plots) > 0 {
				t.Errorf("plots: %v", plots)
			}
			experimenttest.ReadFile(t, filepath.Join(kept, fmt.Sprint(round, k)), "summary.json")
		}
	}
	if n := len(lab.Sets.kept); n != len(configs) {
		t.Errorf("%d sets are kept", n)
	}
}
