package curves

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes the points as a table, and what is to be said of all of them.
func (r Result) WriteText(to io.Writer) error {
	w := new(bytes.Buffer)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	unit := map[bool]string{false: "blocks", true: "rounds"}[r.Settings.WholeRounds]
	fmt.Fprintf(t, "N\tsigma\tSNR dB\t%s\tat once %%\t95 %% interval\tprototype\twithin %d %%\t95 %% interval\twrong\tmisfit %%\tH = 0\t\n", unit, r.Settings.Attempts)
	misread := 0
	for _, p := range r.Points {
		physics := ""
		if p.PhysicsRead != nil {
			physics = fmt.Sprintf("%.0f", 100**p.PhysicsRead)
		}
		misfit, zeros := "", ""
		if p.ReadWithin > 0 {
			misfit, zeros = fmt.Sprintf("%.2f", 100*float64(p.Misfit)), fmt.Sprintf("%.3f", float64(p.ZeroGains))
		}
		fmt.Fprintf(t, "%d\t%v\t%v\t%d\t%.1f\t%.1f to %.1f\t%s\t%.1f\t%.1f to %.1f\t%d\t%s\t%s\t\n", p.Devices, p.Sigma, p.SNRdB, p.Blocks,
			100*p.First, 100*p.FirstLow, 100*p.FirstHigh, physics, 100*p.Within, 100*p.WithinLow, 100*p.WithinHigh, p.Wrong, misfit, zeros)
		misread += p.Misread
	}
	_ = t.Flush() // into memory
	if r.Wrong() == nil {
		fmt.Fprintln(w, "Nothing was accepted that is not the superposition with H = round(alpha h).")
		if misread > 0 {
			fmt.Fprintf(w, "Beside %d of the accepted blocks a symbol of the pattern was misread, which no block's check covers: a round is void then.\n", misread)
		}
	}
	_, err := w.WriteTo(to)
	return err
}
