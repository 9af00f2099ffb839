package paper

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

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// Options say which report is wanted.
type Options struct {
	Out  string // the report's folder, which goes on if it has begun
	Data string // the folder of data sets, or ""
	// Quick says that minutes will do: fewer seeds and rounds.
	Quick             bool
	Seeds, CIFARSeeds int
	Rounds            int      // the most of any experiment; 0 for all
	Verbose           bool     // each run is told of as it ends
	Only              []string // these chapters alone; empty for those that nobody need ask for
	// Compute has a run made elsewhere and returns what ComputeCell gives there, until ctx
	// ends; nil makes it in this process. The key stands for the run: of one key there is
	// one result. Progress may hear of the rounds as in ComputeCell.
	Compute func(ctx context.Context, c Cell, key string, progress func(round int)) ([]byte, error)
	// AtOnce is how many runs are asked for at a time; 0 for as many as there are cores
	// here. With as many as a chapter has, all are asked for that wait for no other.
	AtOnce int
	// Observer hears how far the report is.
	Observer Observer
}

// Complete returns the options with what they leave open filled in, if they are allowed:
// Out is a new folder where none is named.
func (o Options) Complete() (Options, error) {
	if o.Seeds < 0 || o.CIFARSeeds < 1 || o.Rounds < 0 || max(o.Seeds, o.CIFARSeeds) > 1000 {
		return o, intake.UserError(fmt.Errorf("--seeds %d, --cifar-seeds %d, --rounds %d: allowed are up to 1000 seeds, and no negative number", o.Seeds, o.CIFARSeeds, o.Rounds))
	}
	if _, err := chosen(o.Only); err != nil {
		return o, err
	}
	if o.Seeds == 0 {
		o.Seeds = 20
		if o.Quick {
			o.Seeds = 3
		}
	}
	if o.Out != "" {
		return o, nil
	}
	var err error
	o.Out, err = runfolder.MakeDir("reports", "paper", time.Now())
	return o, intake.PathError(err)
}

// Chapters returns the names of all chapters, in the report's order.
func Chapters() []string {
	var names []string
	for _, c := range chapters() {
		names = append(names, c.name)
	}
	return names
}

// chapter is one part of the report.
type chapter struct {
	name string
	make func(*reproduction, context.Context) (report.Section, error)
	// asked says that it is made only where --only names it.
	asked bool
}

// chapters returns all, in the report's order.
func chapters() []chapter {
	return []chapter{
		{name: "parameters", make: (*reproduction).parameters},
		{name: "mnist", make: (*reproduction).mnist},
		{name: "cifar", make: (*reproduction).cifar},
		{name: "cifar-search", make: (*reproduction).cifarSearch, asked: true},
		{name: "equalisation", make: (*reproduction).equalisation},
		{name: "systems", make: (*reproduction).systems},
		{name: "packed", make: (*reproduction).packed},
		{name: "classes", make: (*reproduction).classes, asked: true},
		{name: "steps", make: (*reproduction).steps, asked: true},
		{name: "attacks", make: (*reproduction).attacks},
		{name: "theory", make: (*reproduction).theory},
		{name: "disagreements", make: (*reproduction).disagreements},
	}
}

// reproduction is one sitting at a report.
type reproduction struct {
	opt    Options
	dir    string
	stderr io.Writer
	began  time.Time
	// timing is what a clock says; it changes from run to run.
	timing   []report.Block
	progress *chapterProgress // of the chapter that is made
	turns    chan struct{}    // as many as runs are computed at a time

	sets     experiment.Sets
	dataLock sync.Mutex
	data     map[string]dataInUse // by task.dataset
}

// lab returns what the report's experiments are made with.
func (r *reproduction) lab() experiment.Lab { return experiment.Lab{Data: r.opt.Data, Sets: &r.sets} }

// Reproduce makes the report that opt.Complete gave, says on progress how far it is, and
// returns the tally of its verdicts. It ends with ErrInterrupted where ctx did, and goes
// on from there with the same options.
func Reproduce(ctx context.Context, opt Options, progress io.Writer) (tally []string, err error) {
	todo, err := chosen(opt.Only)
	if err != nil {
		return nil, err
	}
	r := &reproduction{opt: opt, dir: opt.Out, stderr: progress, began: time.Now(), turns: make(chan struct{}, opt.atOnce())}
	for _, sub := range []string{"cache", "plots"} {
		if err := os.MkdirAll(filepath.Join(r.dir, sub), 0o755); err != nil {
			return nil, intake.PathError(fmt.Errorf("making the report's folder: %w", err))
		}
	}
	rep, err := r.write(ctx, todo)
	return rep.Tally(), err
}

// chosen returns the chapters asked for; all where none is.
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
	for k, c := range todo {
		if ctx.Err() != nil {
			return rep, experiment.ErrInterrupted
		}
		if f := r.opt.Observer.Chapter; f != nil {
			f(c.name, k+1, len(todo))
		}
		began := time.Now()
		r.progress = nil
		s, err := c.make(r, ctx)
		if ctx.Err() != nil {
			return rep, experiment.ErrInterrupted
		}
		if err != nil {
			return rep, fmt.Errorf("%s: %w", c.name, err)
		}
		rep.Sections = append(rep.Sections, s)
		took := time.Since(began).Round(time.Second)
		fmt.Fprintf(r.stderr, "%s: done in %v\n", c.name, took)
		r.timing = append(r.timing, report.Paragraph(fmt.Sprintf("Chapter %s: %v in this sitting.", c.name, took)))
	}
	if mnist := r.data[dataKey(paperMNIST())]; mnist.fallback {
		rep.Lead = append(rep.Lead, fmt.Sprintf("MNIST was not found: what is called MNIST here was run on the built-in set of %s, and its accuracies say nothing of the paper's. \"ringwave data fetch mnist\" gets it.", mnist.name))
	}
	for _, name := range slices.Sorted(maps.Keys(r.data)) {
		warning := "WARNING: " + r.data[name].warning + "."
		if r.data[name].warning != "" && !slices.Contains(rep.Lead, warning) {
			rep.Lead = append(rep.Lead, warning)
		}
	}
	return rep, r.save(rep)
}

// extent says how much was run.
func (r *reproduction) extent() string {
	text := fmt.Sprintf("MNIST experiments have %d seeds and CIFAR-10 ones %d.", r.opt.Seeds, r.opt.CIFARSeeds)
	if r.opt.Quick {
		text += " This is the quick form: fewer seeds, and CIFAR-10 with fewer rounds."
	}
	if r.opt.Rounds > 0 {
		text += fmt.Sprintf(" No experiment has more than %d rounds: its figures are those of the beginning.", r.opt.Rounds)
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
	f.Title, _, _ = strings.Cut(caption, ": ") // a plot is looked at outside of the report, too
	return report.Figure{Base: base, Caption: caption}, f.Save(filepath.Join(r.dir, base))
}
