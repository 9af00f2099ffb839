package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/crypto/attack"
	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

func newAttackCommand() *cobra.Command {
	var asJSON bool
	var seed int64
	var out string
	cmd := &cobra.Command{
		Use: "attack [NAME...]",
		Example: `  ringwave attack
  ringwave attack ghost chosen-b --seed 2 --json`,
		Short: "Attack the schemes, each attack with its control, and see what the guards say",
		Long: `Run the attacks that the paper argues about, all or those named, in this
process and against devices made for it: single-key systems by a client,
xMK-CKKS by clients, by its decryption shares, its keys and its server. Each is
measured beside an honest control: the correlation of what was recovered with
the truth, the share recovered exactly, and the advantage over guessing
(signs).

The attacks:
` + attackList() + `
With --out a figure of all and attacks.json, as --json prints it, are written
into a new folder. Exit status 1 if one did not come out as stated.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			attacks, err := attack.Choose(names...)
			if err != nil {
				return err
			}
			if seed < 0 {
				return intake.UserError(fmt.Errorf("--seed: %d is below 0; allowed is 0 or more", seed))
			}
			p := console.New(cmd).Progress("attack", len(attacks), 0, 0)
			p.Every = true
			run := func() ([]attack.Result, error) {
				results, err := attack.Run(cmd.Context(), attacks, keystream.FromInteger(uint64(seed)), func(at attack.Progress) {
					p.Report(at.Number, at.Done, at.Attack.Name)
				})
				p.Stop()
				return results, interrupted(err)
			}
			var results []attack.Result
			if out == "" {
				results, err = run()
			} else {
				results, err = attackInto(out, seed, run)
			}
			if err != nil {
				return err
			}
			report := attack.NewReport(seed, results)
			if err := show(cmd.OutOrStdout(), asJSON, report, report.WriteText); err != nil {
				return err
			}
			if out != "" && !asJSON {
				fmt.Fprintf(cmd.OutOrStdout(), "Folder: %s\nPlot: %s (and .svg)\n", out, filepath.Join(out, "attacks.png"))
			}
			return attack.Judge(results)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().Int64Var(&seed, "seed", 1, "seed of all keys, randomness and channels")
	cmd.Flags().StringVar(&out, "out", "", "new folder for the figure and attacks.json (default none)")
	return cmd
}

// attackInto runs attacks and writes what came of them into a new folder, which is
// refused before they run, and not there afterwards if they or the writing fail.
func attackInto(out string, seed int64, run func() ([]attack.Result, error)) (results []attack.Result, err error) {
	folder, err := runfolder.Create(out)
	if err != nil {
		return nil, intake.PathError(err)
	}
	defer func() {
		folder.Close()
		if err != nil {
			_ = os.RemoveAll(out)
		}
	}()
	if results, err = run(); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(attack.NewReport(seed, results), "", "  ")
	if err != nil {
		return nil, err
	}
	if err := folder.WriteAtomic("attacks.json", append(data, '\n')); err != nil {
		return nil, err
	}
	var drawn []chart.Attack
	for _, r := range results {
		drawn = append(drawn, chart.Attack{
			Name: r.Name, Target: r.Target, Exact: r.Attack.Exact, Correlation: r.Attack.Correlation,
			ControlExact: r.Control.Exact, ControlCorrelation: r.Control.Correlation,
		})
	}
	if _, err := chart.AttackPlot(out, fmt.Sprintf("What attacks recover, and honest controls; seed %d", seed), drawn); err != nil {
		return nil, fmt.Errorf("drawing the attacks: %w", err)
	}
	return results, nil
}

func attackList() string {
	var b strings.Builder
	for _, a := range attack.All() {
		short := strings.ReplaceAll(console.Fold(a.Short, 58), "\n", "\n"+strings.Repeat(" ", 19))
		fmt.Fprintf(&b, "  %-18s %s\n", a.Name, short)
	}
	return b.String()
}
