package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
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
same --out go on, in the middle of a run, too, and what has not changed is not run again.

"--only cifar-search" chooses steps for CIFAR-10, half an hour on two free cores; no other
form of this command does.

CIFAR-10 is fetched by "ringwave data fetch cifar10"; without it its chapter says so, and
the others go on.

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
	make func(*reproduction, context.Context) (report.Section, error)
	// asked says that it is made only where --only names it.
	asked bool
}

// chapters gives all, in the report's order.
func chapters() []chapter {
	return []chapter{
		{name: "parameters", make: (*reproduction).parameters},
		{name: "mnist", make: (*reproduction).mnist},
		{name: "cifar", make: (*reproduction).cifar},
		{name: "cifar-search", make: (*reproduction).cifarSearch, asked: true},
		{name: "equalisation", make: (*reproduction).equalisation},
		{name: "systems", make: (*reproduction).systems},
		{name: "packed", make: (*reproduction).packed},
		{name: "attacks", make: (*reproduction).attacks},
		{name: "theory", make: (*reproduction).theory},
		{name: "disagreements", make: (*reproduction).disagreements},
	}
}

// reproduction is one sitting at a report.
type reproduction struct {
	flags  reproduceFlags
	dir    string
	stderr io.Writer
	began  time.Time
	// timing is what a clock says; it changes from run to run.
	timing   []report.Block
	progress *chapterProgress // of the chapter that is made

	dataLock sync.Mutex
	data     map[string]dataInUse // by task.dataset
}

func reproduce(cmd *cobra.Command, flags reproduceFlags) error {
	if flags.seeds < 0 || flags.cifarSeeds < 1 || flags.rounds < 0 || max(flags.seeds, flags.cifarSeeds) > 1000 {
		return intake.UserError(fmt.Errorf("--seeds %d, --cifar-seeds %d, --rounds %d: allowed are up to 1000 seeds, and no negative number", flags.seeds, flags.cifarSeeds, flags.rounds))
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
	r := &reproduction{flags: flags, dir: flags.out, stderr: cmd.ErrOrStderr(), began: time.Now()}
	for _, sub := range []string{"cache", "plots"} {
		if err := os.MkdirAll(filepath.Join(r.dir, sub), 0o755); err != nil {
			return intake.PathError(fmt.Errorf("making the report's folder: %w", err))
		}
	}
	rep, err := r.write(cmd.Context(), todo)
	if errors.Is(err, errInterrupted) {
		fmt.Fprintf(r.stderr, "Stopped. Go on with:\n  ringwave reproduce %s\n", flags.arguments())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\nReport: %s (and report.md, timing.md)\n", strings.Join(rep.Tally(), "\n"), filepath.Join(r.dir, "report.html"))
	return nil
}

// arguments writes the flags that make this report again.
func (f reproduceFlags) arguments() string {
	text := fmt.Sprintf("--out %s --seeds %d --cifar-seeds %d", f.out, f.seeds, f.cifarSeeds)
	if f.quick {
		text += " --quick"
	}
	if f.rounds > 0 {
		text += fmt.Sprintf(" --rounds %d", f.rounds)
	}
	if len(f.only) > 0 {
		text += " --only " + strings.Join(f.only, ",")
	}
	if f.data != "" {
		text += " --data " + f.data
	}
	return text
}

// chosen gives the chapters asked for; all where none is.
func chosen(only []string) ([]chapter, error) {
	all := chapters()
	if len(only) == 0 {
		return slices.DeleteFunc(all, func(c chapter) bool { return c.asked }), nil
	}
	var todo []chapter
	for _, name := range only {
		k := slices.IndexFunc(all, func(c chapter) bool { return c.name == name })
		if k < 0 {
			return nil, intake.UserError(fmt.Errorf("--only %s: there is no such chapter; reproduce --help names them", name))
		}
		todo = append(todo, all[k])
	}
	return todo, nil
}

// write makes all chapters and the files.
func (r *reproduction) write(ctx context.Context, todo []chapter) (report.Report, error) {
	rep := report.Report{
		Title: "Encrypted over-the-air zero-order learning: the paper, and what came of it here",
		Lead: []string{
			"Each table has the paper's value beside the one computed here, as median and quartiles over seeds where chance has a part. Every verdict says in its table what it rests on; of accuracies it is a p-value. The summary counts how many rest on a value of the paper, and how many on something else.",
			r.extent(),
			"How long it took, and on what machine, is in timing.md beside this file, where a clock's figures do not disturb the bytes of the rest.",
		},
	}
	for _, c := range todo {
		if ctx.Err() != nil {
			return rep, errInterrupted
		}
		began := time.Now()
		r.progress = nil
		s, err := c.make(r, ctx)
		if ctx.Err() != nil {
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
	if mnist := r.data[paperMNIST().Task.Dataset]; mnist.fallback {
		rep.Lead = append(rep.Lead, fmt.Sprintf("MNIST was not found: what is called MNIST here was run on the built-in set of %s, and its accuracies say nothing of the paper's. \"ringwave data fetch mnist\" gets it.", mnist.name))
	}
	for _, name := range slices.Sorted(maps.Keys(r.data)) {
		if why := r.data[name].warning; why != "" {
			rep.Lead = append(rep.Lead, "WARNING: "+why+".")
		}
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

// figure draws a figure into plots/ and gives its block.
func (r *reproduction) figure(name, caption string, f chart.Figure) (report.Figure, error) {
	base := filepath.Join("plots", name)
	return report.Figure{Base: base, Caption: caption}, f.Save(filepath.Join(r.dir, base))
}
