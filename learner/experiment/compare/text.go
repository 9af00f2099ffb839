package compare

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
)

// WriteText writes the tables for a terminal.
func (c Comparison) WriteText(to io.Writer) error {
	w := new(bytes.Buffer)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "runs\taccuracy, median %\tquartiles %\ttraining loss\tquartiles\tworst |eps|/std\trepeated\tskipped\t  experiment")
	for i, l := range c.Table {
		fmt.Fprintf(t, "%d\t%.2f\t%.2f to %.2f\t%s\t%s to %s\t%s\t%d\t%d\t  %s: %s\n",
			l.Runs, 100*float64(l.Accuracy), 100*float64(l.AccuracyLow), 100*float64(l.AccuracyHigh),
			decimals(l.Loss, 4), decimals(l.LossLow, 4), decimals(l.LossHigh, 4), decimals(l.WorstDeviations, 2), l.Repeated, l.Skipped, Letter(i), l.Label)
	}
	_ = t.Flush() // into memory
	for _, warning := range c.Unusable() {
		fmt.Fprintln(w, warning)
	}
	if lines, _ := c.Pairs(); len(lines) > 0 {
		fmt.Fprintln(w, "Accuracy on the same seeds, in points:")
		for _, p := range lines {
			fmt.Fprintf(w, "  %s: median %s, largest %s (%s)\n", p.Groups(), Points(p.Median), Points(p.Largest), report.Counted(p.Seeds, "seed"))
		}
	}
	if len(c.Accuracies) > 0 {
		fmt.Fprintln(w, "Rounds to a test accuracy:")
		for i, l := range c.Table {
			var cells []string
			for _, r := range l.Reached {
				cells = append(cells, AccuracyName(r.Accuracy)+": "+l.RoundsText(r))
			}
			fmt.Fprintf(w, "  %s  %s\n", Letter(i), strings.Join(cells, ", "))
		}
	}
	_, err := w.WriteTo(to)
	return err
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
