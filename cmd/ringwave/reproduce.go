package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/chart"
	"ringwave/cmd/internal/config"
	"ringwave/cmd/internal/report"
	"ringwave/cmd/internal/runfolder"
	"ringwave/crypto/xmkckks"
)

// reproduceFlags are those of reproduce.
type reproduceFlags struct {
	out, data         string
	quick             bool
	seeds, cifarSeeds int
	rounds            int
	only              []string
}

func newReproduceCommand() *cobra.Command {
	var flags reproduceFlags
	var names []string
	for _, c := range chapters() {
		names = append(names, c.name)
	}
	cmd := &cobra.Command{
		Use:   "reproduce",
		Short: "Run the paper's experiments and what it compares with, and write one report",
		Long: `Run every experiment, table and figure of the paper, the systems that it cites and the
attacks that it argues about, and write a report that puts its numbers beside these:
report.html opens from disk by itself, report.md has the same for a repository, with
plots/ beside them. What is timed by a clock is in timing.md: the report's bytes are
the same for the same seeds.

Results are kept in the folder's cache/ by what they were computed from: Ctrl-C and the
same --out go on, and what has not changed is not run again.

Chapters: ` + strings.Join(names, ", ") + `.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return reproduce(cmd, flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.out, "out", "", "the report's folder; one of an earlier reproduce goes on (default reports/<utc>-paper)")
	f.StringVar(&flags.data, "data", "", "folder of data sets; then RINGWAVE_DATA and the user's cache are searched")
	f.BoolVar(&flags.quick, "quick", false, "minutes in place of an hour: fewer seeds and rounds")
	f.IntVar(&flags.seeds, "seeds", 0, "seeds of the MNIST experiments (default 20, or 3 with --quick)")
	f.IntVar(&flags.cifarSeeds, "cifar-seeds", 1, "seeds of the CIFAR-10 experiments")
	f.IntVar(&flags.rounds, "rounds", 0, "most rounds of any experiment, for a look at the whole (default: all)")
	f.StringSliceVar(&flags.only, "only", nil, "these chapters alone")
	return cmd
}

// chapter is one part of the report.
type chapter struct {
	name string
	make func(*reproduction) (report.Section, error)
}

// chapters gives all, in the report's order.
func chapters() []chapter {
	return []chapter{
		{"parameters", (*reproduction).parameters},
		{"mnist", (*reproduction).mnist},
		{"equalisation", (*reproduction).equalisation},
		{"systems", (*reproduction).systems},
		{"attacks", (*reproduction).attacks},
		{"theory", (*reproduction).theory},
		{"disagreements", (*reproduction).disagreements},
	}
}

// reproduction is one sitting at a report.
type reproduction struct {
	ctx    context.Context
	flags  reproduceFlags
	dir    string
	stderr io.Writer
	began  time.Time
	// timing is what a clock says; it changes from run to run.
	timing []report.Block
}

func reproduce(cmd *cobra.Command, flags reproduceFlags) error {
	if flags.seeds < 0 || flags.cifarSeeds < 1 || flags.rounds < 0 || max(flags.seeds, flags.cifarSeeds) > 1000 {
		return bad(fmt.Errorf("--seeds %d, --cifar-seeds %d, --rounds %d: allowed are up to 1000 seeds, and no negative number", flags.seeds, flags.cifarSeeds, flags.rounds))
	}
	todo, err := chosen(flags.only)
	if err != nil {
		return err
	}
	if flags.seeds == 0 {
		flags.seeds = 20
		if flags.quick {
			flags.seeds = 3
		}
	}
	if flags.out == "" {
		flags.out = runfolder.DefaultDir("reports", "paper", time.Now())
	}
	r := &reproduction{ctx: cmd.Context(), flags: flags, dir: flags.out, stderr: cmd.ErrOrStderr(), began: time.Now()}
	for _, sub := range []string{"cache", "plots"} {
		if err := os.MkdirAll(filepath.Join(r.dir, sub), 0o755); err != nil {
			return place(fmt.Errorf("making the report's folder: %w", err))
		}
	}
	rep, err := r.write(todo)
	if errors.Is(err, errInterrupted) {
		fmt.Fprintf(r.stderr, "Stopped. Go on with:\n  ringwave reproduce --out %s\n", r.dir)
	}
	if err != nil {
		return err
	}
	counts := rep.Counts()
	fmt.Fprintf(cmd.OutOrStdout(), "%d figures are the paper's, %d differ, %d were not run.\nReport: %s (and report.md, timing.md)\n",
		counts[report.Same], counts[report.Differs], counts[report.Missing], filepath.Join(r.dir, "report.html"))
	return nil
}

// chosen gives the chapters asked for; all where none is.
func chosen(only []string) ([]chapter, error) {
	all := chapters()
	if len(only) == 0 {
		return all, nil
	}
	var todo []chapter
	for _, name := range only {
		k := slices.IndexFunc(all, func(c chapter) bool { return c.name == name })
		if k < 0 {
			return nil, bad(fmt.Errorf("--only %s: there is no such chapter; reproduce --help names them", name))
		}
		todo = append(todo, all[k])
	}
	return todo, nil
}

// write makes all chapters and the files.
func (r *reproduction) write(todo []chapter) (report.Report, error) {
	rep := report.Report{
		Title: "Encrypted over-the-air zero-order learning: the paper, and what came of it here",
		Lead: []string{
			"Each table has the paper's value beside the one computed here, as median and quartiles over seeds where chance has a part. The same means within what the paper's digits, or the spread over seeds, allow.",
			r.extent(),
		},
	}
	for _, c := range todo {
		if r.ctx.Err() != nil {
			return rep, errInterrupted
		}
		began := time.Now()
		s, err := c.make(r)
		if r.ctx.Err() != nil {
			return rep, errInterrupted
		}
		if err != nil {
			return rep, fmt.Errorf("%s: %w", c.name, err)
		}
		rep.Sections = append(rep.Sections, s)
		took := time.Since(began).Round(time.Second)
		fmt.Fprintf(r.stderr, "%s: done in %v\n", c.name, took)
		r.timing = append(r.timing, report.Paragraph(fmt.Sprintf("Chapter %s: %v in this sitting.", c.name, took)))
	}
	return rep, r.save(rep)
}

// extent says how much was run.
func (r *reproduction) extent() string {
	text := fmt.Sprintf("MNIST experiments have %d seeds and CIFAR-10 ones %d.", r.flags.seeds, r.flags.cifarSeeds)
	if r.flags.quick {
		text += " This is the quick form: fewer seeds, and CIFAR-10 with fewer rounds."
	}
	if r.flags.rounds > 0 {
		text += fmt.Sprintf(" No experiment has more than %d rounds: its figures are those of the beginning.", r.flags.rounds)
	}
	return text
}

// save writes the files.
func (r *reproduction) save(rep report.Report) error {
	page, err := rep.HTML(r.dir)
	if err != nil {
		return err
	}
	text, err := rep.Markdown()
	if err != nil {
		return err
	}
	timing, err := report.Report{
		Title: "What it took", Lead: []string{machine()},
		Sections: []report.Section{{Title: "Times", Blocks: r.timing}},
	}.Markdown()
	if err != nil {
		return err
	}
	return errors.Join(
		runfolder.WriteFile(filepath.Join(r.dir, "report.html"), page),
		runfolder.WriteFile(filepath.Join(r.dir, "report.md"), text),
		runfolder.WriteFile(filepath.Join(r.dir, "timing.md"), timing),
	)
}

// machine says what this runs on.
func machine() string {
	m := runfolder.NewManifest(time.Now())
	return fmt.Sprintf("%s/%s, %d processors, %s.", m.OS, m.Arch, m.CPUs, m.Go)
}

// cellVersion is part of a result's key: raise it when what a run computes changes.
const cellVersion = 2

// cellResult is what is kept of one run.
type cellResult struct {
	Dataset  string            `json:"dataset"`
	Accuracy float64           `json:"accuracy"`
	Loss     []runfolder.Float `json:"loss"` // of each round's batches
	Final    runfolder.Float   `json:"final_loss"`
	Repeated int               `json:"repeated"`
	Skipped  int               `json:"skipped"`
	Clipped  int               `json:"clipped"`
	Diverged bool              `json:"diverged"`
	// WorstEps is the largest |eps| in predicted deviations, EpsMean2 the mean of
	// (eps/deviation)^2.
	WorstEps runfolder.Float `json:"worst_eps"`
	// LargestEps is the largest |eps| itself.
	LargestEps runfolder.Float `json:"largest_eps"`
	EpsMean2   runfolder.Float `json:"eps_mean_square"`
	// Seconds is wall time, of the sitting that computed it.
	Seconds float64 `json:"seconds"`
}

// cell runs a configuration, or gives what an earlier run of it gave.
func (r *reproduction) cell(c config.Config) (out cellResult, err error) {
	c = r.shortened(c)
	key, err := cellKey(c)
	if err != nil {
		return out, err
	}
	path := filepath.Join(r.dir, "cache", key+".json")
	data, err := os.ReadFile(path)
	if err == nil && json.Unmarshal(data, &out) == nil {
		return out, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, place(err)
	}
	if out, err = r.runCell(c); err != nil {
		return out, err
	}
	if data, err = json.Marshal(out); err != nil {
		return out, err
	}
	return out, runfolder.WriteFile(path, data)
}

// shortened is a configuration for a look at the whole, if that is all that is wanted.
func (r *reproduction) shortened(c config.Config) config.Config {
	if most := r.flags.rounds; most > 0 {
		c.Optimizer.Rounds = min(c.Optimizer.Rounds, most)
		c.Task.StrokesTrain, c.Task.StrokesTest = 800, 200
	}
	return c
}

func cellKey(c config.Config) (string, error) {
	c.Experiment.Name = "" // it changes nothing
	encoded, err := c.Encode()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(encoded, "\nversion %d", cellVersion))
	return fmt.Sprintf("%x", sum[:16]), nil
}

// runCell trains without a folder.
func (r *reproduction) runCell(c config.Config) (out cellResult, err error) {
	began := time.Now()
	s, err := newSession(c, r.flags.data)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.assemble(xmkckks.NewLedger(attemptsPerKey(c)), 0, 1); err != nil {
		return out, err
	}
	out.Dataset = s.task.name
	var sum, n, worst, largest float64
	for !s.trainer.Done() {
		record, err := s.trainer.Step(r.ctx)
		if diverged(err) {
			out.Diverged = true
			break
		}
		if err != nil {
			return out, err
		}
		out.Loss = append(out.Loss, runfolder.Float(record.TrainLoss))
		if record.EpsStdPredicted > 0 && !record.Skipped {
			x := record.Eps / record.EpsStdPredicted
			sum, n, worst, largest = sum+x*x, n+1, math.Max(worst, math.Abs(x)), math.Max(largest, math.Abs(record.Eps))
		}
	}
	result, state := s.trainer.Final(), s.trainer.State()
	out.Accuracy, out.Final = result.TestAccuracy, runfolder.Float(result.TrainLoss)
	out.Repeated, out.Skipped, out.Clipped = state.Repeated, state.Skipped, state.Clipped
	out.LargestEps = runfolder.Float(largest)
	out.WorstEps, out.EpsMean2 = runfolder.Float(worst), runfolder.Float(sum/n)
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

// seedSpread is a median with quartiles.
type seedSpread struct{ low, median, high float64 }

func quartilesOf(values []float64) seedSpread {
	low, median, high := chart.Quartiles(values)
	return seedSpread{low, median, high}
}

// percent writes shares.
func (s seedSpread) percent() string {
	return fmt.Sprintf("%.2f %% (%.2f to %.2f)", 100*s.median, 100*s.low, 100*s.high)
}

// seeds runs a configuration with seeds 1 to n.
func (r *reproduction) seeds(what string, c config.Config, n int) ([]cellResult, error) {
	var out []cellResult
	for seed := 1; seed <= n; seed++ {
		c.Experiment.Seed = int64(seed)
		res, err := r.cell(c)
		if err != nil {
			return out, fmt.Errorf("%s, seed %d: %w", what, seed, err)
		}
		out = append(out, res)
	}
	fmt.Fprintf(r.stderr, "%s: %d seeds, %s so far\n", what, n, time.Since(r.began).Round(time.Second))
	return out, nil
}

func accuracies(results []cellResult) []float64 {
	var out []float64
	for _, c := range results {
		out = append(out, c.Accuracy)
	}
	return out
}

// figure draws a figure into plots/ and gives its block.
func (r *reproduction) figure(name, caption string, f chart.Figure) (report.Figure, error) {
	base := filepath.Join("plots", name)
	return report.Figure{Base: base, Caption: caption}, f.Save(filepath.Join(r.dir, base))
}
