package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/radio/intake"
)

func newBenchCommand() *cobra.Command {
	var counts []int
	var rounds int
	var set, out string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "bench",
		Example: `  ringwave bench
  ringwave bench --parameter-set paper-4096 --devices 10,100,1000 --rounds 9`,
		Short: "Time a round against the number of devices, and plot it",
		Long: `Run whole encrypted rounds on the ring link, without learning, for several
numbers of devices, all in this process, and print and plot the time of a
round.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, n := range append(slices.Clone(counts), rounds) {
				if n < 1 || n > 10000 {
					return intake.UserError(fmt.Errorf("--devices and --rounds: %d is not from 1 to 10000", n))
				}
			}
			if _, _, err := setup.ParameterSet(config.Encryption{ParameterSet: set}); err != nil {
				return err
			}
			times, err := benchRounds(cmd.Context(), console.New(cmd), set, counts, rounds)
			if err != nil {
				return err
			}
			if out, err = outFolder(out, "benches", "bench"); err != nil {
				return err
			}
			if err := times.Draw(out); err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), asJSON, times, func(w io.Writer) error {
				if err := times.WriteText(w); err != nil {
					return err
				}
				_, err := fmt.Fprintf(w, "Plot: %s (and .svg)\n", times.Plot)
				return err
			})
		},
	}
	cmd.Flags().IntSliceVar(&counts, "devices", []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, "numbers of devices")
	cmd.Flags().IntVar(&rounds, "rounds", 5, "rounds to time for each, of which the median counts")
	cmd.Flags().StringVar(&set, "parameter-set", "lean-2048", "parameter set, one of those that ringwave sets lists")
	cmd.Flags().StringVar(&out, "out", "", "folder for the plot (default benches/<utc>-bench)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the times as JSON")
	return cmd
}

// benchRounds times rounds for each number of devices.
func benchRounds(ctx context.Context, c *console.Console, set string, counts []int, rounds int) (experiment.RoundTimes, error) {
	out := experiment.RoundTimes{ParameterSet: set, Rounds: rounds}
	all, behind := 0, 0
	for _, n := range counts {
		all += n
	}
	p := c.Progress("point", len(counts), 0, 0)
	p.Every = true
	defer p.Stop()
	for i, n := range counts {
		// Before, for the last takes most of the time.
		p.Report(i+1, float64(behind)/float64(all), fmt.Sprintf("N = %d", n))
		if err := out.Measure(ctx, n); err != nil {
			return out, err
		}
		behind += n
	}
	return out, nil
}
