package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// runLine is a run as runs --json prints it.
type runLine struct {
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

// damaged is the state of a run whose files cannot be read.
const damaged = "damaged"

func newRunsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "runs [DIR...]",
		Example: `  ringwave runs
  ringwave runs /data/experiments --json`,
		Short: "List runs: which are running, stopped or finished, and how well they learned",
		Long: `List the runs in the folders named, or in runs/: those of a folder that is a
run's, of the folders in it, and of those of run --seeds. Nothing is written.

A run is running while a process holds its folder; stopped where run --resume
goes on; finished; unusable where it ended without a usable result; and damaged
where its files cannot be read, which is said below the table.`,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if len(dirs) == 0 {
				dirs = []string{"runs"}
				if _, err := os.Stat(dirs[0]); os.IsNotExist(err) && !asJSON {
					fmt.Fprintln(cmd.OutOrStdout(), "There is no folder runs here yet: name one, or begin with ringwave run CONFIG.")
					return nil
				} else if err != nil {
					dirs = nil
				}
			}
			lines, err := listRuns(dirs)
			if err != nil {
				return intake.PathError(err)
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), lines)
			}
			printRuns(cmd.OutOrStdout(), lines, time.Now())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the runs as JSON")
	return cmd
}

// listRuns returns the runs of some folders, each once.
func listRuns(dirs []string) ([]runLine, error) {
	lines, seen := []runLine{}, map[string]bool{}
	for _, dir := range dirs {
		found, err := findRuns(dir)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			if !seen[d] {
				seen[d] = true
				lines = append(lines, lookAtRun(d))
			}
		}
	}
	return lines, nil
}

// findRuns returns dir if it is a run's folder, and else those in it and in its folders.
func findRuns(dir string) (found []string, err error) {
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

// lookAtRun returns the line of a run, damaged or not.
func lookAtRun(dir string) runLine {
	line := runLine{Dir: dir, State: damaged, Accuracy: runfolder.Float(math.NaN())}
	c, err := config.Load(filepath.Join(dir, runfolder.ConfigName), nil)
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

// printRuns prints a table for each folder that has some.
func printRuns(w io.Writer, lines []runLine, now time.Time) {
	if len(lines) == 0 {
		fmt.Fprintln(w, "There is no run here.")
		return
	}
	var t *tabwriter.Writer
	parent := ""
	for i, l := range lines {
		if p := filepath.Dir(l.Dir); i == 0 || p != parent {
			if t != nil {
				_ = t.Flush() // standard output remembers
				fmt.Fprintln(w)
			}
			parent = p
			fmt.Fprintf(w, "%s:\n", parent)
			t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "name\tsystem\tseed\tstate\trounds\taccuracy\tbegun")
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%d/%d\t%s\t%s\n", filepath.Base(l.Dir), l.System, l.Seed, l.State, l.Round, l.Rounds, shareText(float64(l.Accuracy)), ago(l.Started, now))
	}
	_ = t.Flush() // standard output remembers
	for _, l := range lines {
		if l.Problem != "" {
			fmt.Fprintf(w, "%s is damaged: %s\n", l.Dir, l.Problem)
		}
	}
}

// shareText returns a share in per cent, "-" for none.
func shareText(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*share)
}

// ago says in a word how long ago something was.
func ago(then *time.Time, now time.Time) string {
	if then == nil {
		return "-"
	}
	switch d := now.Sub(*then); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return then.Local().Format(time.DateOnly)
}
