package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ringwave/crypto/attack"
	"ringwave/crypto/keystream"
	"ringwave/radio/intake"
)

// attackReport is what attack --json prints.
type attackReport struct {
	Seed     int64           `json:"seed"`
	AsStated bool            `json:"as_stated"`
	Results  []attack.Result `json:"results"`
}

func newAttackCommand() *cobra.Command {
	var asJSON bool
	var seed int64
	cmd := &cobra.Command{
		Use:   "attack [NAME...]",
		Short: "Attack the schemes, each attack with its control, and see what the guards say",
		Long: `Run the attacks that the paper argues about, all or those named, in this process and
against devices made for it: single-key systems by a client, xMK-CKKS by clients,
by its decryption shares, its keys and its server. Each is measured beside an honest
control: the correlation of what was recovered with the truth, the share recovered
exactly, and the advantage over guessing (signs).

The attacks:
` + attackList() + `
Exit status 1 if one did not come out as stated.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			attacks, err := attack.Choose(names...)
			if err != nil {
				return err
			}
			if seed < 0 {
				return intake.UserError(fmt.Errorf("--seed: %d is below 0; allowed is 0 or more", seed))
			}
			results, err := attack.Run(cmd.Context(), attacks, keystream.FromInteger(uint64(seed)), attack.ProgressTo(cmd.ErrOrStderr()))
			if err != nil {
				return asInterrupted(cmd.Context(), err)
			}
			if err := printAttacks(cmd.OutOrStdout(), seed, results, asJSON); err != nil {
				return err
			}
			return attack.Judge(results)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().Int64Var(&seed, "seed", 1, "seed of all keys, randomness and channels")
	return cmd
}

func attackList() string {
	var b strings.Builder
	for _, a := range attack.All() {
		fmt.Fprintf(&b, "  %-18s %s\n", a.Name, a.Short)
	}
	return b.String()
}

func printAttacks(w io.Writer, seed int64, results []attack.Result, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(attackReport{Seed: seed, AsStated: attack.Judge(results) == nil, Results: results})
	}
	for _, r := range results {
		fmt.Fprintf(w, "%s: %s\n", r.Name, r.Target)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  \tcorrelation\texact\tadvantage\tvalues\t")
		printMeasure(t, "attack", r.Attack)
		printMeasure(t, "control", r.Control)
		_ = t.Flush() // a terminal that is gone cannot be told so
		if r.Guard != "" {
			fmt.Fprintf(w, "  guard: %s\n", r.Guard)
		}
		fmt.Fprintf(w, "  %s\n\n", r.Verdict)
	}
	return nil
}

func printMeasure(w io.Writer, role string, m attack.Measure) {
	fmt.Fprintf(w, "  %s: %s\t%.3f\t%.2f %%\t%.3f\t%d\t\n", role, m.What, m.Correlation, 100*m.Exact, m.Advantage, m.Samples)
}
