package sweep

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
)

// Listed is a run of a folder, as runs --json prints it.
type Listed struct {
	Dir      string          `json:"dir"`
	Name     string          `json:"name"`
	System   string          `json:"system"`
	Seed     int64           `json:"seed"`
	State    string          `json:"state"` // running, stopped, finished, unusable or damaged
	Round    int             `json:"round"`
	Rounds   int             `json:"rounds"`   // asked for
	Accuracy runfolder.Float `json:"accuracy"` // a share; null before it was evaluated
	Started  *time.Time      `json:"started"`
	Problem  string          `json:"problem,omitempty"` // of a damaged one
}

// Damaged is the state of a run whose files cannot be read.
const Damaged = "damaged"

// List returns the runs of some folders, each once.
func List(l experiment.Lab, dirs []string) ([]Listed, error) {
	lines, seen := []Listed{}, map[string]bool{}
	for _, dir := range dirs {
		found, err := find(dir)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			if !seen[d] {
				seen[d] = true
				lines = append(lines, look(l, d))
			}
		}
	}
	return lines, nil
}

// find returns dir if it is a run's folder, and else those in it and in its folders.
func find(dir string) (found []string, err error) {
	if runfolder.Holds(dir) {
		return []string{filepath.Clean(dir)}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		sub := filepath.Join(dir, e.Name())
		if runfolder.Holds(sub) {
			found = append(found, sub)
			continue
		}
		below, err := os.ReadDir(sub)
		if err != nil {
			continue // a file, or somebody else's
		}
		for _, b := range below {
			if deep := filepath.Join(sub, b.Name()); runfolder.Holds(deep) {
				found = append(found, deep)
			}
		}
	}
	slices.SortFunc(found, bySeed)
	return found, nil
}

// look returns the line of a run, damaged or not.
func look(l experiment.Lab, dir string) Listed {
	line := Listed{Dir: dir, State: Damaged, Accuracy: runfolder.Float(math.NaN())}
	c, err := l.Load(filepath.Join(dir, runfolder.ConfigName))
	if err != nil {
		line.Problem = err.Error()
		return line
	}
	line.Name, line.System, line.Seed, line.Rounds = c.Experiment.Name, c.Experiment.Aggregator, c.Experiment.Seed, c.Optimizer.Rounds
	at, err := runfolder.Look(dir, line.Rounds)
	if err != nil {
		line.Problem = err.Error()
		return line
	}
	m, err := runfolder.ReadManifest(filepath.Join(dir, runfolder.ManifestName))
	if err != nil {
		line.Problem = err.Error()
		return line
	}
	line.State, line.Round, line.Accuracy, line.Started = string(at.State), at.Round, runfolder.Float(at.Accuracy), &m.Started
	return line
}
