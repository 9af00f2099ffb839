package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

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
			attacks, err := chosenAttacks(names)
			if err != nil {
				return intake.UserError(err)
			}
			if seed < 0 {
				return intake.UserError(fmt.Errorf("--seed: %d is below 0; allowed is 0 or more", seed))
			}
			results, err := runAttacks(cmd.Context(), attacks, seed, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := printAttacks(cmd.OutOrStdout(), seed, results, asJSON); err != nil {
				return err
			}
			return judged(results)
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

// chosenAttacks gives the attacks of those names, in the order of the report, or
// all if none is named.
func chosenAttacks(names []string) ([]attack.Attack, error) {
	all := attack.All()
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, a := range all {
		known = append(known, a.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("attack: there is no attack %q; allowed are %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(a attack.Attack) bool { return !slices.Contains(names, a.Name) }), nil
}

// runAttacks runs them one after another, and says on w where it is.
func runAttacks(ctx context.Context, attacks []attack.Attack, seed int64, w io.Writer) (results []attack.Result, err error) {
	total, done, began := 0.0, 0.0, time.Now()
	for _, a := range attacks {
		total += a.Weight
	}
	for i, a := range attacks {
		fmt.Fprintf(w, "attack %d of %d, %s", i+1, len(attacks), a.Name)
		if done > 0 {
			left := time.Duration(float64(time.Since(began)) * (total - done) / done)
			fmt.Fprintf(w, ", about %v left", left.Round(100*time.Millisecond))
		}
		fmt.Fprintln(w)
		if ctx.Err() != nil {
			return nil, errInterrupted
		}
		r, err := a.Run(ctx, keystream.FromInteger(uint64(seed)))
		if errors.Is(err, context.Canceled) {
			return nil, errInterrupted
		}
		if err != nil {
			return nil, err
		}
		results = append(results, r...)
		done += a.Weight
	}
	return results, nil
}

// judged gives an error that names the attacks that did not come out as stated.
func judged(results []attack.Result) error {
	var failed []string
	for _, r := range results {
		if !r.AsStated {
			failed = append(failed, r.Name+" on "+r.Target)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("attack: %d of %d results did not come out as stated: %s", len(failed), len(results), strings.Join(failed, "; "))
}

func printAttacks(w io.Writer, seed int64, results []attack.Result, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(attackReport{Seed: seed, AsStated: judged(results) == nil, Results: results})
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
