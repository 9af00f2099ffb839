package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
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
Runs that differ in nothing but the seed and the name, and used the same data, are
one group, with median and quartiles.`,
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
	// calibration is a digest of the file that the runs went by; empty without.
	calibration string
}

type comparedRun struct {
	summary runfolder.Summary
	rows    []runfolder.Row
}

// groupKey is what the runs of a group have in common: the configuration but for
// seed and name, the data in use, and the calibration itself in place of its file's
// name. Two runs of one seed are no two samples of
// anything: the second is another group.
type groupKey struct {
	digest      [32]byte
	dataset     string
	data        string
	calibration string
	repeat      int
}

// readRuns reads run folders and groups them, in the order given.
func readRuns(dirs []string) ([]*group, error) {
	var groups []*group
	byKey := map[groupKey]*group{}
	for _, dir := range dirs {
		cfg, run, key, err := readRun(dir)
		if err != nil {
			return nil, err
		}
		for byKey[key] != nil && byKey[key].hasSeed(run.summary.Seed) {
			key.repeat++
		}
		if byKey[key] == nil {
			byKey[key] = &group{label: cfg.Experiment.Name, cfg: cfg, calibration: key.calibration}
			groups = append(groups, byKey[key])
		}
		byKey[key].runs = append(byKey[key].runs, run)
	}
	return groups, tellApart(groups)
}

func readRun(dir string) (cfg config.Config, run comparedRun, key groupKey, err error) {
	if cfg, err = config.Load(filepath.Join(dir, runfolder.ConfigName), nil); err != nil {
		return cfg, run, key, bad(err)
	}
	if run.summary, err = runfolder.ReadSummary(filepath.Join(dir, runfolder.SummaryName)); err != nil {
		return cfg, run, key, bad(fmt.Errorf("%w (has the run ended?)", err))
	}
	if run.rows, err = runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName)); err != nil {
		return cfg, run, key, bad(err)
	}
	manifest, err := runfolder.ReadManifest(filepath.Join(dir, runfolder.ManifestName))
	if err != nil {
		return cfg, run, key, bad(err)
	}
	same := cfg
	same.Experiment.Seed, same.Experiment.Name, same.Calibration.File = 0, "any", ""
	if cfg.Calibration.File != "" {
		if key.calibration, err = digestOf(filepath.Join(dir, calibrationName)); err != nil {
			return cfg, run, key, bad(err)
		}
	}
	key.dataset = run.summary.Dataset
	for _, f := range manifest.Data {
		key.data += f.SHA256.String()
	}
	key.digest, err = same.Digest()
	return cfg, run, key, err
}

// digestOf gives the first digits of a file's SHA-256.
func digestOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6]), nil
}

func (g *group) hasSeed(seed uint64) bool {
	for _, r := range g.runs {
		if r.summary.Seed == seed {
			return true
		}
	}
	return false
}

// tellApart adds to equal labels the keys in which their configurations differ,
// the data set where it does, and a number where nothing else tells them apart.
func tellApart(groups []*group) error {
	byLabel := map[string][]*group{}
	for _, g := range groups {
		byLabel[g.label] = append(byLabel[g.label], g)
	}
	for _, same := range byLabel {
		if len(same) == 1 {
			continue
		}
		differing, err := differences(same)
		if err != nil {
			return err
		}
		taken := map[string]int{}
		for i, g := range same {
			g.label += differing[i]
			if taken[g.label]++; taken[g.label] > 1 {
				g.label = fmt.Sprintf("%s (%d)", g.label, taken[g.label])
			}
		}
	}
	return nil
}

// differences gives for each group ", key=value" for what not all groups share.
func differences(groups []*group) ([]string, error) {
	values := make([]map[string]string, len(groups))
	for i, g := range groups {
		flat, err := g.cfg.Flat()
		if err != nil {
			return nil, err
		}
		flat["data"] = g.runs[0].summary.Dataset
		flat["calibration"] = cmp.Or(g.calibration, "none")
		delete(flat, "experiment.seed")
		delete(flat, "calibration.file") // what it holds counts
		values[i] = flat
	}
	text := make([]string, len(groups))
	for _, key := range slices.Sorted(maps.Keys(values[0])) {
		shared := true
		for _, v := range values {
			shared = shared && v[key] == values[0][key]
		}
		for i := range groups {
			if !shared {
				_, short, _ := strings.Cut("."+key, ".")
				text[i] += fmt.Sprintf(", %s=%s", short, values[i][key])
			}
		}
	}
	return text, nil
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
	Label        string          `json:"label"`
	Runs         int             `json:"runs"`
	AccuracyLow  runfolder.Float `json:"test_accuracy_lower_quartile"`
	Accuracy     runfolder.Float `json:"test_accuracy_median"`
	AccuracyHigh runfolder.Float `json:"test_accuracy_upper_quartile"`
	LossLow      runfolder.Float `json:"train_loss_lower_quartile"`
	Loss         runfolder.Float `json:"train_loss_median"`
	LossHigh     runfolder.Float `json:"train_loss_upper_quartile"`
	// WorstDeviations is the largest |eps| in predicted deviations.
	WorstDeviations runfolder.Float `json:"worst_deviations"`
	Skipped         int             `json:"rounds_skipped"`
	Repeated        int             `json:"rounds_repeated"`
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
		line.AccuracyLow, line.Accuracy, line.AccuracyHigh = runfolder.Float(low), runfolder.Float(median), runfolder.Float(high)
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
			l.Runs, 100*float64(l.Accuracy), 100*float64(l.AccuracyLow), 100*float64(l.AccuracyHigh),
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
