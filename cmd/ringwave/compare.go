package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/chart"
	"ringwave/cmd/internal/config"
	"ringwave/cmd/internal/runfolder"
)

func newCompareCommand() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare DIR...",
		Short: "Overlay runs and tabulate median and quartiles over seeds",
		Long: `Overlay runs (loss, accuracy, and M against its noiseless value) and print a table.
Runs whose configurations differ in nothing but the seed and the name are one
group, with median and quartiles.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return bad(fmt.Errorf("%s takes one or more run folders", cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			groups, err := readRuns(args)
			if err != nil {
				return err
			}
			if out == "" {
				out = runfolder.DefaultDir("runs", "comparison", time.Now())
			}
			plots, err := drawComparison(out, groups)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), tableOf(groups))
			}
			printComparison(cmd.OutOrStdout(), groups, plots)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for the plots (default runs/<utc>-comparison)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the table as JSON")
	return cmd
}

// group is the runs of one configuration with different seeds.
type group struct {
	label string
	cfg   config.Config
	runs  []comparedRun
}

type comparedRun struct {
	summary runfolder.Summary
	rows    []runfolder.Row
}

// readRuns reads run folders and groups them, in the order given.
func readRuns(dirs []string) ([]*group, error) {
	var groups []*group
	byDigest := map[[32]byte]*group{}
	for _, dir := range dirs {
		cfg, err := config.Load(filepath.Join(dir, runfolder.ConfigName), nil)
		if err != nil {
			return nil, bad(err)
		}
		summary, err := runfolder.ReadSummary(filepath.Join(dir, runfolder.SummaryName))
		if err != nil {
			return nil, bad(fmt.Errorf("%w (has the run ended?)", err))
		}
		rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName))
		if err != nil {
			return nil, bad(err)
		}
		same := cfg
		same.Experiment.Seed, same.Experiment.Name = 0, "any"
		digest, err := same.Digest()
		if err != nil {
			return nil, err
		}
		if byDigest[digest] == nil {
			byDigest[digest] = &group{label: cfg.Experiment.Name, cfg: cfg}
			groups = append(groups, byDigest[digest])
		}
		byDigest[digest].runs = append(byDigest[digest].runs, comparedRun{summary, rows})
	}
	tellApart(groups)
	return groups, nil
}

// tellApart adds to equal labels what their configurations differ in, or a
// number.
func tellApart(groups []*group) {
	count := map[string]int{}
	for _, g := range groups {
		count[g.label]++
	}
	taken := map[string]int{}
	for _, g := range groups {
		if count[g.label] > 1 {
			c := g.cfg
			g.label = fmt.Sprintf("%s, %s, sigma %v, %s", g.label, c.Experiment.Aggregator, c.Channel.Std, c.Encryption.ParameterSet)
		}
		if taken[g.label]++; taken[g.label] > 1 {
			g.label = fmt.Sprintf("%s (%d)", g.label, taken[g.label])
		}
	}
}

func drawComparison(out string, groups []*group) ([]string, error) {
	folder, err := runfolder.Create(out)
	if err != nil {
		return nil, place(err)
	}
	defer folder.Close()
	var named []chart.NamedRun
	for _, g := range groups {
		for _, r := range g.runs {
			named = append(named, chart.NamedRun{Label: g.label, Rows: r.rows})
		}
	}
	plots, err := chart.ComparePlots(out, named)
	if err != nil {
		return nil, fmt.Errorf("drawing the comparison: %w", err)
	}
	return plots, nil
}

// tableLine is a group's line of the table. Accuracies are shares, 0 to 1.
type tableLine struct {
	Label                          string
	Runs                           int
	AccuracyLow, Accuracy, AccHigh runfolder.Float // quartiles
	LossLow, Loss, LossHigh        runfolder.Float
	WorstDeviations                runfolder.Float // max |eps|/predicted std
	Skipped, Repeated              int
}

func tableOf(groups []*group) []tableLine {
	var table []tableLine
	for _, g := range groups {
		var accuracy, loss []float64
		line := tableLine{Label: g.label, Runs: len(g.runs)}
		worst := 0.0
		for _, r := range g.runs {
			accuracy = append(accuracy, float64(r.summary.TestAccuracy))
			loss = append(loss, float64(r.summary.TrainLoss))
			line.Skipped += r.summary.RoundsSkipped
			line.Repeated += r.summary.RoundsRepeated
			for _, row := range r.rows {
				if row.EpsStdPredicted > 0 {
					worst = math.Max(worst, math.Abs(row.Eps)/row.EpsStdPredicted)
				}
			}
		}
		low, median, high := chart.Quartiles(accuracy)
		line.AccuracyLow, line.Accuracy, line.AccHigh = runfolder.Float(low), runfolder.Float(median), runfolder.Float(high)
		low, median, high = chart.Quartiles(loss)
		line.LossLow, line.Loss, line.LossHigh = runfolder.Float(low), runfolder.Float(median), runfolder.Float(high)
		line.WorstDeviations = runfolder.Float(worst)
		table = append(table, line)
	}
	return table
}

func printComparison(w io.Writer, groups []*group, plots []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "runs\taccuracy, median %\tquartiles %\ttraining loss\tquartiles\tworst |eps|/std\trepeated\tskipped\t  experiment")
	for _, l := range tableOf(groups) {
		fmt.Fprintf(t, "%d\t%.2f\t%.2f to %.2f\t%.4f\t%.4f to %.4f\t%.2f\t%d\t%d\t  %s\n",
			l.Runs, 100*float64(l.Accuracy), 100*float64(l.AccuracyLow), 100*float64(l.AccHigh),
			float64(l.Loss), float64(l.LossLow), float64(l.LossHigh), float64(l.WorstDeviations), l.Repeated, l.Skipped, l.Label)
	}
	_ = t.Flush() // a terminal that is gone cannot be told so
	fmt.Fprintln(w, "Plots:")
	for _, p := range plots {
		if strings.HasSuffix(p, ".png") {
			fmt.Fprintf(w, "  %s (and .svg)\n", filepath.Clean(p))
		}
	}
}
