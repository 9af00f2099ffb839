package wire

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"ringwave/radio/intake"
)

// WriteText writes a line a host.
func (a Attendance) WriteText(to io.Writer) error {
	fmt.Fprintf(to, "%s: round %d of %d, run %s\n", a.Name, a.Round, a.Rounds, a.Run)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DEVICE\tSTATE\tHOST\tLAST SEEN\tCLOCK\tDATA\tSAMPLES\tRADIO\tVERSION")
	for _, h := range a.Hosts {
		seen, state := "never", h.State
		if !h.Seen.IsZero() {
			seen = fmt.Sprintf("%.1f s ago", math.Max(0, a.Clock.Sub(h.Seen).Seconds()))
		}
		if h.Why != "" {
			state += ": " + intake.Sentence(h.Why)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%+.1f ms\t%s\t%d\t%s\t%s\n", h.Index, state, h.Host, seen, h.Offset.Seconds()*1e3, h.Data, h.Samples, h.Radio, h.Version)
	}
	return w.Flush()
}
