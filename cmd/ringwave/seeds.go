package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/sweep"
	"ringwave/radio/intake"
)

// startSeeds runs a configuration with each of some seeds.
func startSeeds(cmd *cobra.Command, path, out, seeds string, flags *configFlags) error {
	s, err := newSweep(cmd, path, out, seeds, flags)
	if err != nil {
		return err
	}
	l, err := flags.listener(cmd)
	if err != nil {
		return err
	}
	defer l.page.Close()
	err = l.page.End(s.Run(cmd.Context(), l.ofSeeds(s)))
	l.progress.Stop()
	var spoilt *experiment.Unusable
	if err != nil && !errors.As(err, &spoilt) {
		s.RemoveEmpty()
		again := seedsCommand(path, s.Parent, seeds, flags)
		if !errors.Is(err, experiment.ErrInterrupted) {
			return fmt.Errorf("%w; %d of %d seeds are done, and this goes on with the others: %s", err, s.Done(), len(s.Runs), again)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "Stopped with %d of %d seeds done. Go on with:\n  %s\n", s.Done(), len(s.Runs), again)
		return err
	}
	if flags.json {
		return errors.Join(printJSON(cmd.OutOrStdout(), s.Figures()), err)
	}
	printSweep(cmd.OutOrStdout(), s)
	return err
}

// newSweep checks all seeds, before any of them runs.
func newSweep(cmd *cobra.Command, path, out, seeds string, flags *configFlags) (*sweep.Sweep, error) {
	list, err := sweep.ParseSeeds(seeds)
	if err != nil {
		return nil, intake.UserError(err)
	}
	var configs []config.Config
	for _, seed := range list {
		c, err := flags.with(seed).load(cmd, path)
		if err != nil {
			return nil, err
		}
		configs = append(configs, c)
	}
	return sweep.New(lab(flags.data), configs, out)
}

// ofSeeds returns what hears of a sweep: one progress over all its runs.
func (l *listener) ofSeeds(s *sweep.Sweep) sweep.Observer {
	o := sweep.Observer{Observer: l.ownObserver()}
	o.Begun = func(rounds, done int) {
		l.rounds = rounds
		l.progress = l.console.Progress("round", rounds, done, float64(done)/float64(rounds))
	}
	o.Started = func(e *experiment.Experiment) {
		l.accuracy = noAccuracy()
		if l.started {
			return
		}
		l.started = true
		l.start(e)
		l.console.Say("Seeds: %s, in %s", report.Counted(len(s.Runs), "run"), s.Parent)
	}
	o.Round = func(run sweep.Run, rec learner.Record, done int) {
		l.progress.Report(done, float64(done)/float64(l.rounds), fmt.Sprintf("seed %d, %s", run.Seed, l.figuresOf(rec)))
	}
	o.Observer = l.page.Observer(o.Observer)
	return o
}

// printSweep prints a line for each seed, and median and quartiles.
func printSweep(w io.Writer, s *sweep.Sweep) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nseed\taccuracy\ttraining loss\trepeated\tskipped\tseconds\t")
	var accuracies []float64
	for _, r := range s.Runs {
		f := r.Summary
		note := map[bool]string{true: "  *** not usable"}[f.Unusable != ""]
		fmt.Fprintf(t, "%d\t%s\t%.4g\t%d\t%d\t%.1f\t%s\n", r.Seed, shareText(float64(f.TestAccuracy)), float64(f.TrainLoss), f.RoundsRepeated, f.RoundsSkipped, f.Seconds, note)
		if f.Unusable == "" {
			accuracies = append(accuracies, float64(f.TestAccuracy))
		}
	}
	_ = t.Flush() // standard output remembers
	if len(accuracies) > 0 {
		lower, median, upper := chart.Quartiles(accuracies)
		fmt.Fprintf(w, "Accuracy: median %s, quartiles %s to %s\n", shareText(median), shareText(lower), shareText(upper))
	}
	fmt.Fprintf(w, "Folder: %s, with one for each seed; side by side: ringwave compare %s\n", s.Parent, filepath.Join(quoted(s.Parent), sweep.SeedPrefix+"*"))
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
