package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

func newBenchCommand() *cobra.Command {
	var counts []int
	var rounds int
	var set, out string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time a round against the number of devices, and plot it",
		Long: `Run whole encrypted rounds on the ring link, without learning, for several numbers
of devices, all in this process, and print and plot the time of a round.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, n := range append(slices.Clone(counts), rounds) {
				if n < 1 || n > 10000 {
					return intake.UserError(fmt.Errorf("--devices and --rounds: %d is not from 1 to 10000", n))
				}
			}
			points, err := benchRounds(cmd.Context(), set, counts, rounds)
			if err != nil {
				return err
			}
			if out, err = outFolder(out, "benches", "bench"); err != nil {
				return err
			}
			return reportBench(cmd.OutOrStdout(), out, set, points)
		},
	}
	cmd.Flags().IntSliceVar(&counts, "devices", []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, "numbers of devices")
	cmd.Flags().IntVar(&rounds, "rounds", 5, "rounds to time for each, of which the median counts")
	cmd.Flags().StringVar(&set, "set", "lean-2048", "parameter set")
	cmd.Flags().StringVar(&out, "out", "", "folder for the plot (default benches/<utc>-bench)")
	return cmd
}

// benchPoint is the median time of a round with some devices.
type benchPoint struct {
	devices int
	round   time.Duration
}

func benchRounds(ctx context.Context, set string, counts []int, rounds int) ([]benchPoint, error) {
	var points []benchPoint
	for _, n := range counts {
		p, err := benchRound(ctx, set, n, rounds)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

func benchRound(ctx context.Context, set string, devices, rounds int) (benchPoint, error) {
	times, err := experiment.RoundTimes(ctx, set, devices, rounds)
	if err != nil {
		return benchPoint{}, err
	}
	var nanoseconds []float64
	for _, t := range times {
		nanoseconds = append(nanoseconds, float64(t))
	}
	_, median, _ := chart.Quartiles(nanoseconds)
	return benchPoint{devices, time.Duration(median)}, nil
}

// slope fits log time = a + slope log N by least squares over the points from
// ten devices on.
func slope(points []benchPoint) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		if p.devices < 10 {
			continue
		}
		x, y := math.Log(float64(p.devices)), math.Log(float64(p.round))
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

func reportBench(w io.Writer, out, set string, points []benchPoint) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "devices\tms a round\tus a device and round\t")
	var measured, linear chart.Series
	last := points[len(points)-1]
	for _, p := range points {
		ms := p.round.Seconds() * 1e3
		fmt.Fprintf(t, "%d\t%.3f\t%.1f\t\n", p.devices, ms, 1e3*ms/float64(p.devices))
		measured.X, measured.Y = append(measured.X, float64(p.devices)), append(measured.Y, ms)
		linear.X = append(linear.X, float64(p.devices))
		linear.Y = append(linear.Y, last.round.Seconds()*1e3*float64(p.devices)/float64(last.devices))
	}
	_ = t.Flush() // a terminal that is gone cannot be told so
	if exponent := slope(points); !math.IsNaN(exponent) {
		fmt.Fprintf(w, "From ten devices on the time grows as N^%.3f.\n", exponent)
	}
	folder, err := runfolder.Create(out)
	if err != nil {
		return intake.PathError(err)
	}
	defer folder.Close()
	measured.Name, measured.Style = "a whole round, "+set, chart.LinePoints
	linear.Name, linear.Dashed = "proportional to N", true
	base := folder.Path() + "/round-time"
	err = chart.Figure{
		Title:  "Whole encrypted rounds, " + set + ", ring link, no learning",
		XLabel: "devices N", YLabel: "time of a round, all devices in one process (ms)",
		LogX: true, LogY: true, Series: []chart.Series{linear, measured},
	}.Save(base)
	if err != nil {
		return fmt.Errorf("drawing the plot: %w", err)
	}
	fmt.Fprintf(w, "Plot: %s.png (and .svg)\n", strings.TrimPrefix(base, "./"))
	return nil
}
