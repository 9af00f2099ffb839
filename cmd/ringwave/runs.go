package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ringwave/learner/experiment/sweep"
	"ringwave/radio/intake"
)

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
				} else if os.IsNotExist(err) {
					dirs = nil
				}
			}
			lines, err := sweep.List(lab(""), dirs)
			if err != nil {
				return intake.PathError(err)
			}
			return show(cmd.OutOrStdout(), asJSON, lines, func(w io.Writer) error {
				printRuns(w, lines, time.Now())
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the runs as JSON")
	return cmd
}

// printRuns prints a table for each folder that has some.
func printRuns(w io.Writer, lines []sweep.Listed, now time.Time) {
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
