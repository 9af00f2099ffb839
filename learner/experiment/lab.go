package experiment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/learner/model"
	"ringwave/radio/intake"
)

// Config is what an experiment is: every key of hw-configs, typed.
type Config = config.Config

// Lab makes experiments. Its zero value knows the systems, models, data sets and boards
// that this module brings; what is added here is named in a configuration as these are.
type Lab struct {
	// Data is the folder of data sets; "" stands for RINGWAVE_DATA and the user's cache.
	Data string
	// Systems, Models, DataSets and Links are known beside the module's, under names of
	// their own.
	Systems  []System
	Models   []Model
	DataSets []DataSet
	Links    []uplink.Kind
	// Radios are where the devices of [radio] come from.
	Radios Radios
	// NoPlots leaves out the plots of run folders, which cost more than a short run does.
	NoPlots bool
	// Fleet has the devices of runs, on other hosts; nil for devices in this process.
	Fleet Fleet
	// Sets keeps the module's own data sets loaded from one experiment to the next; nil
	// loads them anew for each.
	Sets *Sets
}

// Radios are where the devices of [radio] come from: the boards of this machine, drivers
// of one's own beside them, or a registry in place of all.
type Radios = setup.Radios

// System is a way to sum the devices' values of a round.
type System struct {
	config.System
	// New makes the aggregator of a run, and sentences that say what it is. It is nil for
	// the systems that encrypt with xMK-CKKS, whose aggregator a run makes of its design.
	New func(s Setting) (a learner.Aggregator, notes []string, err error)
}

// Setting is what a run's aggregator is made of.
type Setting struct {
	Config Config
	Seed   keystream.Seed  // the root of every random stream, which are derived by name
	Gains  aggregate.Gains // of the devices, round by round
	Mu     []float64       // the means of the gains, as the run knows them
	Dim    int             // of theta
}

// Model is what task.model names.
type Model struct {
	Name string
	// New makes the model for samples such as those of the set.
	New func(t config.Task, set *dataset.Set) (model.Model, error)
}

// DataSet is what task.dataset names.
type DataSet struct {
	Name string
	// Load returns training and test samples, of the classes 0 and 1.
	Load func(r Request) (dataset.Task, error)
}

// Request is what a data set is asked for.
type Request struct {
	Task config.Task
	Data string         // the folder that the user named, or ""
	Seed keystream.Seed // for samples that are made
	// Part is what is wanted of it. The rest need not be loaded.
	Part dataset.Part
	// Own says that the samples are those of one device, which may lack a class.
	Own bool
	// Fits refuses a run on a data set of that size, if it does not fit into memory.
	Fits func(e dataset.Extent) error

	sets *Sets // of the lab
}

// names returns what a configuration may name beside what every program has.
func (l Lab) names() (n config.Names) {
	for _, s := range l.Systems {
		n.Systems = append(n.Systems, s.System)
	}
	for _, m := range l.Models {
		n.Models = append(n.Models, m.Name)
	}
	for _, d := range l.DataSets {
		n.DataSets = append(n.DataSets, d.Name)
	}
	for _, k := range l.Links {
		n.Links = append(n.Links, k.Name)
	}
	return n
}

// check refuses what a configuration could not name, or what could not be made then.
func (l Lab) check() error {
	names := map[string]bool{"system ezofl": true} // which is read as none
	var errs []error
	add := func(kind, name string, made bool) {
		switch {
		case name == "":
			errs = append(errs, fmt.Errorf("a %s without a name; allowed is one with a name", kind))
		case names[kind+" "+name]:
			errs = append(errs, fmt.Errorf("a %s of the name %q, which another has; allowed is a name of its own", kind, name))
		case !made:
			errs = append(errs, fmt.Errorf("a %s of the name %q that nothing makes; allowed is one with a function that does", kind, name))
		}
		names[kind+" "+name] = true
	}
	for _, s := range slices.Concat(systems(), l.Systems) {
		add("system", s.Name, s.New != nil || s.Encrypts)
		if s.New != nil && s.Encrypts {
			errs = append(errs, fmt.Errorf("a system of the name %q with New and Encrypts; allowed is one of them", s.Name))
		}
	}
	for _, m := range slices.Concat(models(), l.Models) {
		add("model", m.Name, m.New != nil)
	}
	for _, d := range slices.Concat(dataSets(), l.DataSets) {
		add("data set", d.Name, d.Load != nil)
	}
	for _, k := range slices.Concat(uplink.Kinds(), l.Links) {
		add("link", k.Name, k.New != nil)
	}
	if len(errs) > 0 {
		return fmt.Errorf("the lab has %w", errs[0])
	}
	return nil
}

// Load reads the configuration of a file, with overrides of the form section.key=value.
func (l Lab) Load(path string, overrides ...string) (Config, error) {
	if err := l.check(); err != nil {
		return Config{}, err
	}
	c, err := l.names().Load(path, overrides)
	return c, intake.UserError(err)
}

// LoadBase reads a configuration's file, of which configurations are made by changing keys.
func (l Lab) LoadBase(path string) (config.Base, error) {
	if err := l.check(); err != nil {
		return config.Base{}, err
	}
	b, err := l.names().LoadBase(path)
	return b, intake.UserError(err)
}

// Parse reads a configuration from text, which name names in errors.
func (l Lab) Parse(name string, text []byte, overrides []string) (Config, error) {
	if err := l.check(); err != nil {
		return Config{}, err
	}
	c, err := l.names().Parse(name, text, overrides)
	return c, intake.UserError(err)
}

// Load reads the configuration of a file, with overrides of the form section.key=value.
func Load(path string, overrides ...string) (Config, error) { return Lab{}.Load(path, overrides...) }

// system returns the one of a name.
func (l Lab) system(name string) (System, error) {
	for _, s := range slices.Concat(systems(), l.Systems) {
		if s.Name == name {
			return s, nil
		}
	}
	return System{}, intake.UserError(fmt.Errorf("experiment.aggregator = %q: no such system is known here", name))
}

// model returns the one of a name.
func (l Lab) model(name string) (Model, error) {
	for _, m := range slices.Concat(models(), l.Models) {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("task.model = %q: no such model is known here", name)
}

// dataSet returns the one of a name.
func (l Lab) dataSet(name string) (DataSet, error) {
	for _, d := range slices.Concat(dataSets(), l.DataSets) {
		if d.Name == name {
			return d, nil
		}
	}
	return DataSet{}, fmt.Errorf("task.dataset = %q: no such data set is known here", name)
}

// New checks and loads all that an experiment needs, and writes nothing.
func (l Lab) New(c Config) (*Experiment, error) { return newSessionIn(l, "", c) }

// New checks and loads all that an experiment needs, and writes nothing.
func New(c Config) (*Experiment, error) { return Lab{}.New(c) }

// Resume goes on with the run of a folder behind its last round.
func (l Lab) Resume(ctx context.Context, dir string, o Observer) (Result, error) {
	s, err := resumeSession(ctx, l, dir, 0, o)
	if err != nil {
		return Result{Dir: dir}, err
	}
	return s.run(ctx)
}

// Resume goes on with the run of a folder behind its last round.
func Resume(ctx context.Context, dir string, o Observer) (Result, error) {
	return Lab{}.Resume(ctx, dir, o)
}

// Observer hears of a run, from one goroutine and in order. A field that is nil is left
// out.
type Observer struct {
	// Opening hears of the run once its folder is open, and before radios are. What it
	// returns is shown what the link receives from then on; nil for nothing.
	Opening func(r *Experiment) uplink.Viewer
	// Started hears of the run before its next round, when all is open.
	Started func(r *Experiment)
	Round   func(r learner.Record)
	// Row hears of the round's line of metrics.csv, once that has it.
	Row func(line runfolder.Row)
	// Void hears of an attempt that a check declared void.
	Void func(round int, f round.Failure)
	// Log hears of what log.jsonl does, from any goroutine.
	Log slog.Handler
	// Lost hears of a round that was not read, before Round, and why.
	Lost func(round int, why string)
	// Warned hears what cannot wait for the end.
	Warned func(text string)
}

// Result is what came of a sitting at a run.
type Result struct {
	Dir     string
	Round   int               // the last that is saved
	Summary runfolder.Summary // of a run that has come to its end
	Plots   []string          // their files, in the folder
}

// Run runs the experiment into a new or empty folder; "" stands for one under runs/ with
// the time and the experiment's name. It ends with ErrInterrupted where ctx did, and the
// run can be resumed then; with an *Unusable where the run has a result that is of no
// use.
func (s *Experiment) Run(ctx context.Context, dir string, o Observer) (out Result, err error) {
	s.observer = o
	remove := func() {}
	if dir == "" {
		remove = runfolder.IfMade("runs")
		if dir, err = runfolder.MakeDir("runs", s.Config.Experiment.Name, time.Now()); err != nil {
			return out, intake.PathError(err)
		}
	}
	if err := s.create(ctx, dir); err != nil {
		s.abandon()
		remove()
		return Result{Dir: dir}, err
	}
	return s.run(ctx)
}

// run trains to the end, or to that of ctx, and closes the run.
func (s *Experiment) run(ctx context.Context) (out Result, err error) {
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	o := s.observer
	if o.Started != nil {
		o.Started(s)
	}
	warnings := s.newWarnings()
	err = s.train(ctx, func(r learner.Record) {
		if o.Lost != nil && r.Skipped && r.Attempts > 0 {
			o.Lost(r.Round, s.whyLost())
		}
		if o.Round != nil {
			o.Round(r)
		}
		for _, text := range []string{s.Task.newlyRestarted(), warnings.after(r)} {
			if text == "" {
				continue
			}
			if o.Warned != nil {
				o.Warned(text)
			}
			s.log.Warn(text)
		}
	})
	out.Dir, out.Round = s.folder.Path(), s.Trainer.State().Round
	spoilt, isSpoilt := asUnusable(err)
	if err != nil && !isSpoilt {
		return out, err
	}
	if err := s.endFleet(ctx); err != nil {
		return out, err
	}
	if out.Summary, out.Plots, err = s.finish(spoilt.Reason); err != nil {
		return out, err
	}
	if reason := out.Summary.Unusable; reason != "" {
		return out, &Unusable{reason}
	}
	return out, nil
}

// DataRoots returns where data sets are looked for, in order, and the user's cache among
// them ("" where the system names none).
func DataRoots(named string) (roots []string, cache string) {
	if named != "" {
		roots = append(roots, named)
	}
	if dir := os.Getenv("RINGWAVE_DATA"); dir != "" {
		roots = append(roots, dir)
	}
	if cache = DataCache(); cache != "" {
		roots = append(roots, cache)
	}
	return roots, cache
}

// DataCache returns the folder that "data fetch" fills.
func DataCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "ringwave", "data")
}

// ErrInterrupted says that a run was stopped cleanly.
var ErrInterrupted = errors.New("interrupted")
