package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// mostSeeds keeps a slip of the pen from asking for years.
const mostSeeds = 10000

// parseSeeds reads seeds and ranges of them, as in 1-20 and 1,3,5-7, and returns them
// ascending, each once.
func parseSeeds(text string) ([]int64, error) {
	var seeds []int64
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
		b, err2 := strconv.ParseInt(strings.TrimSpace(last), 10, 64)
		if err1 != nil || err2 != nil || a < 0 || a > b {
			return nil, fmt.Errorf("--seeds: %q is neither a seed nor a range first-last of them: allowed are whole numbers from 0 on, as in 1-20 or 1,3,5-7", intake.Sentence(part))
		}
		if b-a >= mostSeeds || len(seeds)+int(b-a) >= mostSeeds {
			return nil, fmt.Errorf("--seeds: %q asks for more than %d seeds", intake.Sentence(text), mostSeeds)
		}
		for s := a; ; s++ { // b may be the largest there is
			seeds = append(seeds, s)
			if s == b {
				break
			}
		}
	}
	slices.Sort(seeds)
	return slices.Compact(seeds), nil
}

// seedPrefix is what the folder of a seed's run is called, with the seed behind it.
const seedPrefix = "seed-"

// bySeed orders folders by name, and those of seeds by seed.
func bySeed(a, b string) int {
	if c := cmp.Compare(filepath.Dir(a), filepath.Dir(b)); c != 0 {
		return c
	}
	if x, y := seedOf(a), seedOf(b); x >= 0 && y >= 0 {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// seedOf returns the seed that a folder is named by, -1 for others.
func seedOf(dir string) int64 {
	digits, ok := strings.CutPrefix(filepath.Base(dir), seedPrefix)
	seed, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || seed < 0 {
		return -1
	}
	return seed
}

// seedRun is the run of one seed.
type seedRun struct {
	seed   int64
	dir    string
	config config.Config
	begun  bool // its folder is that of a run
	// summary is of a run that has ended, in this sitting or before.
	summary *runfolder.Summary
}

// sweep is a configuration's runs with several seeds, in one folder.
type sweep struct {
	lab    experiment.Lab
	parent string
	runs   []seedRun
	*listener
}

// startSeeds runs a configuration with each of some seeds.
func startSeeds(cmd *cobra.Command, path, out, seeds string, flags *configFlags) error {
	s, err := newSweep(cmd, path, out, seeds, flags)
	if err != nil {
		return err
	}
	err = s.run(cmd.Context())
	s.progress.stop()
	var spoilt *experiment.Unusable
	if err != nil && !errors.As(err, &spoilt) {
		_ = os.Remove(s.parent) // if it is empty
		again := seedsCommand(path, s.parent, seeds, flags)
		if !errors.Is(err, experiment.ErrInterrupted) {
			return fmt.Errorf("%w; %d of %d seeds are done, and this goes on with the others: %s", err, s.done(), len(s.runs), again)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "Stopped with %d of %d seeds done. Go on with:\n  %s\n", s.done(), len(s.runs), again)
		return err
	}
	if flags.json {
		return errors.Join(printJSON(cmd.OutOrStdout(), s.figures()), err)
	}
	s.print(cmd.OutOrStdout())
	return err
}

// newSweep checks all seeds, before any of them runs.
func newSweep(cmd *cobra.Command, path, out, seeds string, flags *configFlags) (*sweep, error) {
	list, err := parseSeeds(seeds)
	if err != nil {
		return nil, intake.UserError(err)
	}
	s := &sweep{lab: lab(flags.data), listener: newListener(newConsole(cmd))}
	for _, seed := range list {
		c, err := flags.with(seed).load(cmd, path)
		if err != nil {
			return nil, err
		}
		s.runs = append(s.runs, seedRun{seed: seed, config: c})
	}
	if out != "" {
		if err := onlySeeds(out); err != nil {
			return nil, err
		}
	}
	if s.parent, err = outFolder(out, "runs", s.runs[0].config.Experiment.Name); err != nil {
		return nil, err
	}
	for i := range s.runs {
		if err := s.runs[i].find(s.parent); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// onlySeeds refuses a folder with other things in it than seeds' folders.
func onlySeeds(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return intake.PathError(fmt.Errorf("looking into the folder of all seeds: %w", err))
	}
	for _, e := range entries {
		if seedOf(e.Name()) < 0 || !e.IsDir() {
			return intake.UserError(fmt.Errorf("--out %s holds %s: with --seeds allowed is a new or empty folder, or that of an earlier --seeds, which goes on", dir, e.Name()))
		}
	}
	return nil
}

// find looks whether the run has begun, and refuses one of another configuration.
func (r *seedRun) find(parent string) error {
	r.dir = filepath.Join(parent, seedPrefix+strconv.FormatInt(r.seed, 10))
	if r.begun = runfolder.Holds(r.dir); !r.begun {
		return nil
	}
	was, err := config.Load(filepath.Join(r.dir, runfolder.ConfigName), nil)
	if err != nil {
		return intake.UserError(err)
	}
	before, err := was.Digest()
	if err != nil {
		return err
	}
	now, err := r.config.Digest()
	if err != nil {
		return err
	}
	if before != now {
		return intake.UserError(fmt.Errorf("%s was begun with another configuration: go on with the same, or name a new folder with --out", r.dir))
	}
	summary, err := runfolder.ReadSummary(filepath.Join(r.dir, runfolder.SummaryName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r.summary = &summary
	return intake.UserError(err)
}

// run runs the seeds that are left. One without a usable result does not keep the others
// from theirs; it is the error in the end.
func (s *sweep) run(ctx context.Context) error {
	behind, before := 0, 0
	for _, r := range s.runs {
		s.rounds += r.config.Optimizer.Rounds
		if r.summary != nil {
			before += r.config.Optimizer.Rounds
		}
	}
	s.progress = s.console.progress("round", s.rounds, before, float64(before)/float64(s.rounds))
	for i := range s.runs {
		r := &s.runs[i]
		if r.summary == nil {
			if err := s.runSeed(ctx, r, behind+s.restAfter(i)); err != nil {
				return err
			}
		}
		behind += r.config.Optimizer.Rounds
	}
	return s.unusable()
}

// restAfter counts the rounds of runs behind the i-th that have ended before.
func (s *sweep) restAfter(i int) (rounds int) {
	for _, r := range s.runs[i+1:] {
		if r.summary != nil {
			rounds += r.config.Optimizer.Rounds
		}
	}
	return rounds
}

// runSeed runs one seed, where so many rounds of others are done.
func (s *sweep) runSeed(ctx context.Context, r *seedRun, others int) error {
	s.accuracy = noAccuracy()
	o := s.observer()
	o.Started = func(e *experiment.Experiment) {
		if s.started {
			return
		}
		s.started = true
		s.start(e)
		s.console.say("Seeds: %s, in %s", report.Counted(len(s.runs), "run"), s.parent)
	}
	o.Round = func(rec learner.Record) {
		done := others + rec.Round
		s.progress.report(done, float64(done)/float64(s.rounds), fmt.Sprintf("seed %d, %s", r.seed, s.figuresOf(rec)))
	}
	result, err := s.begin(ctx, r, o)
	var spoilt *experiment.Unusable
	if err != nil && !errors.As(err, &spoilt) {
		return fmt.Errorf("seed %d: %w", r.seed, err)
	}
	r.summary = &result.Summary
	return nil
}

func (s *sweep) begin(ctx context.Context, r *seedRun, o experiment.Observer) (experiment.Result, error) {
	if ctx.Err() != nil {
		return experiment.Result{}, experiment.ErrInterrupted
	}
	if r.begun {
		return s.lab.Resume(ctx, r.dir, o)
	}
	e, err := s.lab.New(r.config)
	if err != nil {
		return experiment.Result{}, err
	}
	return e.Run(ctx, r.dir, o)
}

// done counts the runs that have ended.
func (s *sweep) done() (n int) {
	for _, r := range s.runs {
		if r.summary != nil {
			n++
		}
	}
	return n
}

// unusable returns the error of runs without a usable result, nil where there is none.
func (s *sweep) unusable() error {
	var seeds []string
	for _, r := range s.runs {
		if r.summary.Unusable != "" {
			seeds = append(seeds, strconv.FormatInt(r.seed, 10))
		}
	}
	if len(seeds) == 0 {
		return nil
	}
	return &experiment.Unusable{Reason: fmt.Sprintf("%d of %d seeds have none: %s; summary.json of each says why", len(seeds), len(s.runs), strings.Join(seeds, ", "))}
}

// seedFigures is a run as run --seeds --json prints it: its folder, and its summary.json.
type seedFigures struct {
	Dir string `json:"dir"`
	runfolder.Summary
}

func (s *sweep) figures() []seedFigures {
	list := []seedFigures{}
	for _, r := range s.runs {
		list = append(list, seedFigures{r.dir, *r.summary})
	}
	return list
}

// print prints a line for each seed, and median and quartiles.
func (s *sweep) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nseed\taccuracy\ttraining loss\trepeated\tskipped\tseconds\t")
	var accuracies []float64
	for _, r := range s.runs {
		f := r.summary
		note := map[bool]string{true: "  *** not usable"}[f.Unusable != ""]
		fmt.Fprintf(t, "%d\t%s\t%.4g\t%d\t%d\t%.1f\t%s\n", r.seed, shareText(float64(f.TestAccuracy)), float64(f.TrainLoss), f.RoundsRepeated, f.RoundsSkipped, f.Seconds, note)
		if f.Unusable == "" {
			accuracies = append(accuracies, float64(f.TestAccuracy))
		}
	}
	_ = t.Flush() // standard output remembers
	if len(accuracies) > 0 {
		lower, median, upper := chart.Quartiles(accuracies)
		fmt.Fprintf(w, "Accuracy: median %s, quartiles %s to %s\n", shareText(median), shareText(lower), shareText(upper))
	}
	fmt.Fprintf(w, "Folder: %s, with one for each seed; side by side: ringwave compare %s\n", s.parent, filepath.Join(quoted(s.parent), seedPrefix+"*"))
}

// seedsCommand returns the command line that goes on with a sweep.
func seedsCommand(path, parent, seeds string, flags *configFlags) string {
	words := []string{"ringwave", "run", quoted(path), "--seeds", quoted(seeds), "--out", quoted(parent)}
	for _, set := range flags.set {
		words = append(words, "--set", quoted(set))
	}
	if flags.data != "" {
		words = append(words, "--data", quoted(flags.data))
	}
	return strings.Join(words, " ")
}

// quoted returns a word as a shell takes it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./,:=+@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
