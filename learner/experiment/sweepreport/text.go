package sweepreport

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"ringwave/learner/experiment/compare"
	"ringwave/learner/experiment/report"
)

// mostLines bounds the table on a terminal: the report has all.
const mostLines = 60

// WriteText writes the table by value for a terminal.
func (r Report) WriteText(to io.Writer) error {
	w := new(bytes.Buffer)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{}
	for _, key := range r.Keys {
		_, short, _ := strings.Cut(key, ".")
		head = append(head, short)
	}
	head = append(head, "runs", "accuracy, median %", "quartiles %", "training loss", "repeated", "skipped")
	for _, a := range r.Accuracies {
		head = append(head, "rounds to "+compare.AccuracyName(a))
	}
	fmt.Fprintln(t, strings.Join(head, "\t")+"\t")
	for _, l := range r.Table[:min(mostLines, len(r.Table))] {
		fmt.Fprintln(t, strings.Join(l.cells(), "\t")+"\t")
	}
	_ = t.Flush() // into memory
	if more := len(r.Table) - mostLines; more > 0 {
		fmt.Fprintf(w, "and %s, which the report has\n", report.Counted(more, "more line"))
	}
	_, err := w.WriteTo(to)
	return err
}

// cells are those of a line of the table.
func (l Line) cells() []string {
	percent := func(x float64) string {
		if math.IsNaN(x) {
			return "–"
		}
		return fmt.Sprintf("%.2f", 100*x)
	}
	cells := append([]string{}, l.texts...)
	cells = append(cells, fmt.Sprint(l.Runs), percent(float64(l.Accuracy)), percent(float64(l.AccuracyLow))+" to "+percent(float64(l.AccuracyHigh)),
		report.Number(float64(l.Loss), 4), fmt.Sprint(l.Repeated), fmt.Sprint(l.Skipped))
	for _, reached := range l.Reached {
		cells = append(cells, l.RoundsText(reached))
	}
	return cells
}
