package attack

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is what came of several attacks, of one seed.
type Report struct {
	Seed     int64    `json:"seed"`
	AsStated bool     `json:"as_stated"` // all of them
	Results  []Result `json:"results"`
}

// NewReport returns the report of results.
func NewReport(seed int64, results []Result) Report {
	return Report{Seed: seed, AsStated: Judge(results) == nil, Results: results}
}

// WriteText writes a table for each attack and its control, and what it shows.
func (r Report) WriteText(to io.Writer) error {
	w := new(bytes.Buffer)
	for _, r := range r.Results {
		fmt.Fprintf(w, "%s: %s\n", r.Name, r.Target)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  \tcorrelation\texact\tadvantage\tvalues\t")
		r.Attack.write(t, "attack")
		r.Control.write(t, "control")
		_ = t.Flush() // into memory
		if r.Guard != "" {
			fmt.Fprintf(w, "  guard: %s\n", r.Guard)
		}
		fmt.Fprintf(w, "  %s\n\n", r.Verdict)
	}
	_, err := w.WriteTo(to)
	return err
}

// write writes a line of a table.
func (m Measure) write(w io.Writer, role string) {
	fmt.Fprintf(w, "  %s: %s\t%.3f\t%.2f %%\t%.3f\t%d\t\n", role, m.What, m.Correlation, 100*m.Exact, m.Advantage, m.Samples)
}
