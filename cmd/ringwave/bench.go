package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/radio/intake"
)

func newBenchCommand() *cobra.Command {
	var counts, dimensions []int
	var rounds int
	var set, out string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "bench",
		Example: `  ringwave bench
  ringwave bench --parameter-set paper-4096 --devices 10,100,1000 --rounds 9
  ringwave bench --parameter-set demo-1024 --devices 10 --dimensions 1024,4096`,
		Short: "Time a round against the number of devices or n, and plot it",
		Long: `Run whole encrypted rounds on the ring link, without learning, for several
numbers of devices or several dimensions n, all in this process. Print and
plot the time of a round, and print the memory of a device.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, n := range append(slices.Clone(counts), rounds) {
				if n < 1 || n > 10000 {
					return intake.UserError(fmt.Errorf("--devices and --rounds: %d is not from 1 to 10000", n))
				}
			}
			points, err := experiment.RoundsToTime(set, counts, dimensions)
			if err != nil {
				return err
			}
			times, err := benchRounds(cmd.Context(), console.New(cmd), set, points, rounds)
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
	cmd.Flags().IntSliceVar(&dimensions, "dimensions", nil, "dimensions n of the ring, in place of the set's own")
	cmd.Flags().IntVar(&rounds, "rounds", 5, "rounds to time for each, of which the median counts")
	cmd.Flags().StringVar(&set, "parameter-set", "lean-2048", "parameter set, one of those that ringwave sets lists")
	cmd.Flags().StringVar(&out, "out", "", "folder for the plot (default benches/<utc>-bench)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the times as JSON")
	return cmd
}

// benchRounds times rounds at each point.
func benchRounds(ctx context.Context, c *console.Console, set string, points []experiment.RoundTime, rounds int) (experiment.RoundTimes, error) {
	out := experiment.RoundTimes{ParameterSet: set, Rounds: rounds}
	all, behind := 0, 0
	for _, point := range points {
		all += point.Devices
	}
	p := c.Progress("point", len(points), 0, 0)
	p.Every = true
	defer p.Stop()
	for i, point := range points {
		p.Report(i+1, float64(behind)/float64(all), fmt.Sprintf("N = %d", point.Devices)) // before: the last takes longest
		if err := out.Measure(ctx, point); err != nil {
			return out, err
		}
		behind += point.Devices
	}
	return out, nil
}
