package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
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
			points, err := benchRounds(cmd.Context(), newConsole(cmd), set, counts, rounds)
			if err != nil {
				return err
			}
			if out, err = outFolder(out, "benches", "bench"); err != nil {
				return err
			}
			plot, err := drawBench(out, set, points)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), newBenchResult(set, rounds, points, plot))
			}
			printBench(cmd.OutOrStdout(), points, plot)
			return nil
		},
	}
	cmd.Flags().IntSliceVar(&counts, "devices", []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, "numbers of devices")
	cmd.Flags().IntVar(&rounds, "rounds", 5, "rounds to time for each, of which the median counts")
	cmd.Flags().StringVar(&set, "parameter-set", "lean-2048", "parameter set, one of those that ringwave sets lists")
	cmd.Flags().StringVar(&out, "out", "", "folder for the plot (default benches/<utc>-bench)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the times as JSON")
	return cmd
}

// benchPoint is the median time of a round with some devices.
type benchPoint struct {
	devices int
	round   time.Duration
}

func benchRounds(ctx context.Context, c *console, set string, counts []int, rounds int) ([]benchPoint, error) {
	all, behind := 0, 0
	for _, n := range counts {
		all += n
	}
	p := c.progress("point", len(counts), 0, 0)
	p.every = true
	defer p.stop()
	var points []benchPoint
	for i, n := range counts {
		// Before, for the last takes most of the time.
		p.report(i+1, float64(behind)/float64(all), fmt.Sprintf("N = %d", n))
		point, err := benchRound(ctx, set, n, rounds)
		if err != nil {
			return nil, err
		}
		points, behind = append(points, point), behind+n
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

// benchResult is what bench --json prints.
type benchResult struct {
	ParameterSet string `json:"parameter_set"`
	Rounds       int    `json:"rounds"` // timed for each point
	Points       []struct {
		Devices int     `json:"devices"`
		Seconds float64 `json:"seconds"` // the median of a round
	} `json:"points"`
	Exponent runfolder.Float `json:"exponent"` // of N, from ten devices on; null where it cannot be told
	Plot     string          `json:"plot"`
}

func newBenchResult(set string, rounds int, points []benchPoint, plot string) benchResult {
	r := benchResult{ParameterSet: set, Rounds: rounds, Exponent: runfolder.Float(slope(points)), Plot: plot}
	for _, p := range points {
		r.Points = append(r.Points, struct {
			Devices int     `json:"devices"`
			Seconds float64 `json:"seconds"`
		}{p.devices, p.round.Seconds()})
	}
	return r
}

// drawBench draws the times into the folder out and returns the plot's path.
func drawBench(out, set string, points []benchPoint) (string, error) {
	measured := chart.Series{Name: "a whole round, " + set, Style: chart.LinePoints}
	linear := chart.Series{Name: "proportional to N", Dashed: true}
	last := points[len(points)-1]
	for _, p := range points {
		n := float64(p.devices)
		measured.X, measured.Y = append(measured.X, n), append(measured.Y, p.round.Seconds()*1e3)
		linear.X, linear.Y = append(linear.X, n), append(linear.Y, last.round.Seconds()*1e3*n/float64(last.devices))
	}
	folder, err := runfolder.Create(out)
	if err != nil {
		return "", intake.PathError(err)
	}
	defer folder.Close()
	base := filepath.Join(folder.Path(), "round-time")
	err = chart.Figure{
		Title:  "Whole encrypted rounds, " + set + ", ring link, no learning",
		XLabel: "devices N", YLabel: "time of a round, all devices in one process (ms)",
		LogX: true, LogY: true, Series: []chart.Series{linear, measured},
	}.Save(base)
	if err != nil {
		return "", fmt.Errorf("drawing the plot: %w", err)
	}
	return base + ".png", nil
}

func printBench(w io.Writer, points []benchPoint, plot string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "devices\tms a round\tus a device and round\t")
	for _, p := range points {
		ms := p.round.Seconds() * 1e3
		fmt.Fprintf(t, "%d\t%.3f\t%.1f\t\n", p.devices, ms, 1e3*ms/float64(p.devices))
	}
	_ = t.Flush() // standard output remembers
	if exponent := slope(points); !math.IsNaN(exponent) {
		fmt.Fprintf(w, "From ten devices on the time grows as N^%.3f.\n", exponent)
	}
	fmt.Fprintf(w, "Plot: %s (and .svg)\n", plot)
}
