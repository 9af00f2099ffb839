package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/compare"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
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
			if asJSON {
				return printJSON(cmd.OutOrStdout(), c.Table)
			}
			printComparison(cmd.OutOrStdout(), out, c, plots)
			return nil
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

// decimals writes a number with so many, or, where that were digits without a meaning, as
// 2.96e19.
func decimals(x runfolder.Float, n int) string {
	const plain = 1e5 // below it
	if v := math.Abs(float64(x)); v >= plain && !math.IsInf(v, 0) {
		return strings.Replace(fmt.Sprintf("%.3g", float64(x)), "e+", "e", 1)
	}
	return fmt.Sprintf("%.*f", n, float64(x))
}

// printComparison writes the tables for a terminal.
func printComparison(w io.Writer, out string, c compare.Comparison, plots []chart.Plot) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "runs\taccuracy, median %\tquartiles %\ttraining loss\tquartiles\tworst |eps|/std\trepeated\tskipped\t  experiment")
	for i, l := range c.Table {
		fmt.Fprintf(t, "%d\t%.2f\t%.2f to %.2f\t%s\t%s to %s\t%s\t%d\t%d\t  %s: %s\n",
			l.Runs, 100*float64(l.Accuracy), 100*float64(l.AccuracyLow), 100*float64(l.AccuracyHigh),
			decimals(l.Loss, 4), decimals(l.LossLow, 4), decimals(l.LossHigh, 4), decimals(l.WorstDeviations, 2), l.Repeated, l.Skipped, compare.Letter(i), l.Label)
	}
	_ = t.Flush() // standard output remembers
	for _, warning := range c.Unusable() {
		fmt.Fprintln(w, warning)
	}
	if lines, _ := c.Pairs(); len(lines) > 0 {
		fmt.Fprintln(w, "Accuracy on the same seeds, in points:")
		for _, p := range lines {
			fmt.Fprintf(w, "  %s: median %s, largest %s (%s)\n", p.Groups(), compare.Points(p.Median), compare.Points(p.Largest), report.Counted(p.Seeds, "seed"))
		}
	}
	if len(c.Accuracies) > 0 {
		fmt.Fprintln(w, "Rounds to a test accuracy:")
		for i, l := range c.Table {
			var cells []string
			for _, r := range l.Reached {
				cells = append(cells, compare.AccuracyName(r.Accuracy)+": "+l.RoundsText(r))
			}
			fmt.Fprintf(w, "  %s  %s\n", compare.Letter(i), strings.Join(cells, ", "))
		}
	}
	fmt.Fprintf(w, "Report: %s (and %s)\nPlots:\n", filepath.Join(out, compare.HTMLName), compare.MarkdownName)
	for _, p := range plots {
		fmt.Fprintf(w, "  %s (and .svg)\n", filepath.Join(out, p.Name+".png"))
	}
}
