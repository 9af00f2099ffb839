package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment/compare"
	"ringwave/learner/experiment/report"
	"ringwave/learner/hosts"
	"ringwave/radio/intake"
)

func newCompareCommand() *cobra.Command {
	var out string
	var asJSON bool
	var accuracies []float64
	var logs []string
	cmd := &cobra.Command{
		Use: "compare DIR...",
		Example: `  ringwave compare runs/first runs/second
  ringwave compare runs/all/seed-* --accuracy 0.95 --out comparison`,
		Short: "Overlay runs and tabulate median and quartiles over seeds",
		Long: `Put runs side by side: what they differ in, their results, differences on the
same seeds, rounds and airtime to chosen accuracies, and plots (loss, accuracy,
and M against its noiseless value). comparison.html opens from disk by itself;
comparison.md has the same for a repository, with the plots beside them.

Runs that differ in nothing but the seed and the name, and used the same data,
are one group, with median and quartiles. What is no run, as curves or a
calibration beside runs, is skipped with a word.

A server does not know the losses of devices on other hosts, nor the gains;
--logs puts them in from what devices, and the air, have written down.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return intake.UserError(fmt.Errorf("%s takes one or more run folders", cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkAccuracies(accuracies); err != nil {
				return err
			}
			c, err := compare.Read(args, accuracies, hosts.Merger(lab(""), logs))
			if err != nil {
				return err
			}
			console := console.New(cmd)
			for _, s := range c.Skipped {
				console.Say("Skipped: %v", s)
			}
			console.Say("Drawing %s", report.Counted(len(args)-len(c.Skipped), "run"))
			if out, err = outFolder(out, "comparisons", "comparison"); err != nil {
				return err
			}
			plots, err := c.Write(out)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), asJSON, c.Table, func(w io.Writer) error {
				if err := c.WriteText(w); err != nil {
					return err
				}
				fmt.Fprintf(w, "Report: %s (and %s)\n", filepath.Join(out, compare.HTMLName), compare.MarkdownName)
				var paths []string
				for _, p := range plots {
					paths = append(paths, filepath.Join(out, p.Name+".png"))
				}
				showPlots(w, paths)
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "folder for report and plots (default comparisons/<utc>-comparison)")
	f.BoolVar(&asJSON, "json", false, "print the tables as JSON")
	f.StringArrayVar(&logs, "logs", nil, "folder below which devices on other hosts have their logs (--state of ringwave device; may be given several times)")
	f.Float64SliceVar(&accuracies, "accuracy", nil, "test accuracies, shares such as 0.95, to count the rounds to (default 0.9, 0.95 and 0.99, those of them that were reached)")
	return cmd
}

// checkAccuracies wants shares that training can reach.
func checkAccuracies(accuracies []float64) error {
	for _, a := range accuracies {
		if !(a > 0 && a <= 1) {
			return intake.UserError(fmt.Errorf("--accuracy %v: allowed is a share above 0 and at most 1, as 0.95 for 95 %%", a))
		}
	}
	return nil
}
