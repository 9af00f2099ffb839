package runfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"ringwave/crypto/lockfile"
	"ringwave/radio/intake"
)

// State is what a run is doing, by what its folder has.
type State string

// The states of a run.
const (
	Running  State = "running"  // a process holds its folder
	Stopped  State = "stopped"  // it can be resumed
	Finished State = "finished" // it has a result
	Unusable State = "unusable" // it has ended without a usable result
)

// Standing is how far a run is.
type Standing struct {
	State    State
	Round    int     // the last of metrics.csv
	Accuracy float64 // the last that was evaluated, a share; NaN before there is one
}

// Holds reports whether dir is the folder of a run, whatever its state.
func Holds(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, MetricsName))
	return err == nil
}

// Held reports whether a process has the folder dir, as a run that is going on has.
func Held(dir string) bool { return lockfile.Held(filepath.Join(dir, lockName)) }

// Look returns how far the run of so many rounds in dir is, and writes nothing. A run that
// another process begins to hold in the same moment may find the folder in use.
func Look(dir string, rounds int) (Standing, error) {
	at := Standing{State: Stopped, Accuracy: math.NaN()}
	rows, err := ReadMetrics(filepath.Join(dir, MetricsName), rounds)
	if Held(dir) {
		at.State = Running // its last line may be one that is being written
	} else if err != nil {
		return at, err
	}
	for _, r := range rows {
		at.Round = r.Round
		if !math.IsNaN(r.TestAccuracy) {
			at.Accuracy = r.TestAccuracy
		}
	}
	if at.State == Running {
		return at, nil
	}
	s, err := ReadSummary(filepath.Join(dir, SummaryName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return at, nil
	case err != nil:
		return at, err
	case s.Unusable != "":
		at.State = Unusable
	default:
		at.State = Finished
	}
	at.Accuracy = float64(s.TestAccuracy)
	return at, nil
}

// DropSummary removes the result of a run that goes on beyond it.
func (f *Folder) DropSummary() error {
	if err := os.Remove(f.file(SummaryName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", f.file(SummaryName), intake.Cause(err))
	}
	return nil
}
