package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// mostSeeds keeps a slip of the pen from asking for years.
const mostSeeds = 10000

// ParseSeeds reads seeds and ranges of them, as in 1-20 and 1,3,5-7, and returns them
// ascending, each once. Errors begin with --seeds.
func ParseSeeds(text string) ([]int64, error) { return parseSeeds("--seeds", text) }

// parseSeeds is ParseSeeds for text that is from elsewhere.
func parseSeeds(from, text string) ([]int64, error) {
	var seeds []int64
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
		b, err2 := strconv.ParseInt(strings.TrimSpace(last), 10, 64)
		if err1 != nil || err2 != nil || a < 0 || a > b {
			return nil, fmt.Errorf("%s: %q is neither a seed nor a range first-last of them: allowed are whole numbers from 0 on, as in 1-20 or 1,3,5-7", from, intake.Sentence(part))
		}
		if b-a >= mostSeeds || len(seeds)+int(b-a) >= mostSeeds {
			return nil, fmt.Errorf("%s: %q asks for more than %d seeds", from, intake.Sentence(text), mostSeeds)
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

// SeedPrefix is what the folder of a seed's run is called, with the seed behind it.
const SeedPrefix = "seed-"

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
	digits, ok := strings.CutPrefix(filepath.Base(dir), SeedPrefix)
	seed, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || seed < 0 {
		return -1
	}
	return seed
}

// Run is the run of one seed.
type Run struct {
	Seed   int64
	Dir    string
	Config config.Config
	// Summary is of a run that has ended, in this sitting or before; nil for others.
	Summary *runfolder.Summary
}

// Sweep is a configuration's runs with several seeds, in one folder.
type Sweep struct {
	Lab    experiment.Lab
	Parent string // folder of the runs' folders
	Runs   []Run

	remove []func() // of folders that were made for it, if they are empty
}

// RemoveEmpty removes the folders that New made, where nothing came into them.
func (s *Sweep) RemoveEmpty() {
	for _, f := range s.remove {
		f()
	}
}

// Observer hears of a sweep. What is nil is left out; of the embedded one all is heard
// but its Round, in whose place is the sweep's.
type Observer struct {
	experiment.Observer
	// Begun hears of the rounds of all runs, and of those that earlier sittings made.
	// Round hears of each round with how many of them are done.
	Begun func(rounds, done int)
	Round func(run Run, r learner.Record, done int)
}

// New returns the sweep of configurations, one a seed, over a folder: "" for a new one
// under runs/. It checks the folder before anything runs: a new or empty one, or that of
// an earlier sweep of the same configurations, which goes on.
func New(l experiment.Lab, configs []config.Config, parent string) (*Sweep, error) {
	if len(configs) == 0 {
		return nil, intake.UserError(errors.New("a sweep over no seed: allowed is one or more"))
	}
	s := &Sweep{Lab: l, Parent: parent}
	for _, c := range configs {
		s.Runs = append(s.Runs, Run{Seed: c.Experiment.Seed, Config: c})
	}
	if parent != "" {
		if err := onlySeeds(parent); err != nil {
			return nil, err
		}
		s.remove = append(s.remove, runfolder.IfMade(parent))
	} else {
		var err error
		runs := runfolder.IfMade("runs")
		if s.Parent, err = runfolder.MakeDir("runs", configs[0].Experiment.Name, time.Now()); err != nil {
			return nil, intake.PathError(err)
		}
		s.remove = append(s.remove, func() { _ = os.Remove(s.Parent) }, runs)
	}
	for i := range s.Runs {
		if err := s.Runs[i].find(l, s.Parent); err != nil {
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
func (r *Run) find(l experiment.Lab, parent string) error {
	r.Dir = filepath.Join(parent, SeedPrefix+strconv.FormatInt(r.Seed, 10))
	if _, err := os.Stat(filepath.Join(r.Dir, runfolder.ConfigName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	was, err := l.Load(filepath.Join(r.Dir, runfolder.ConfigName))
	if err != nil {
		return err
	}
	before, err := was.Digest()
	if err != nil {
		return err
	}
	now, err := r.Config.Digest()
	if err != nil {
		return err
	}
	if before != now {
		return intake.UserError(fmt.Errorf("%s was begun with another configuration: go on with the same, or name a new folder with --out", r.Dir))
	}
	summary, err := runfolder.ReadSummary(filepath.Join(r.Dir, runfolder.SummaryName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r.Summary = &summary
	return intake.UserError(err)
}

// Rounds returns the rounds of all runs.
func (s *Sweep) Rounds() (n int) {
	for _, r := range s.Runs {
		n += r.Config.Optimizer.Rounds
	}
	return n
}

// roundsDone counts the rounds of runs that have ended, from the i-th on.
func (s *Sweep) roundsDone(i int) (n int) {
	for _, r := range s.Runs[i:] {
		if r.Summary != nil {
			n += r.Config.Optimizer.Rounds
		}
	}
	return n
}

// Run runs the seeds that are left. One without a usable result does not keep the others
// from theirs; it is the error in the end, an *experiment.Unusable.
func (s *Sweep) Run(ctx context.Context, o Observer) error {
	if o.Begun != nil {
		o.Begun(s.Rounds(), s.roundsDone(0))
	}
	behind := 0
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.Summary == nil {
			if err := s.runSeed(ctx, r, behind+s.roundsDone(i+1), o); err != nil {
				return err
			}
		}
		behind += r.Config.Optimizer.Rounds
	}
	return s.unusable()
}

// runSeed runs one seed, where so many rounds of others are done.
func (s *Sweep) runSeed(ctx context.Context, r *Run, others int, o Observer) error {
	own := o.Observer
	own.Round = func(rec learner.Record) {
		if o.Round != nil {
			o.Round(*r, rec, others+rec.Round)
		}
	}
	result, err := s.begin(ctx, r, own)
	var spoilt *experiment.Unusable
	if err != nil && !errors.As(err, &spoilt) {
		return fmt.Errorf("seed %d: %w", r.Seed, err)
	}
	r.Summary = &result.Summary
	return nil
}

func (s *Sweep) begin(ctx context.Context, r *Run, o experiment.Observer) (experiment.Result, error) {
	if ctx.Err() != nil {
		return experiment.Result{}, experiment.ErrInterrupted
	}
	if runfolder.HasCheckpoint(r.Dir) {
		return s.Lab.Resume(ctx, r.Dir, o)
	}
	// What a killed run left before its first checkpoint has no round in it.
	if err := runfolder.RemoveUnbegun(r.Dir); err != nil {
		return experiment.Result{}, intake.PathError(err)
	}
	e, err := s.Lab.New(r.Config)
	if err != nil {
		return experiment.Result{}, err
	}
	return e.Run(ctx, r.Dir, o)
}

// Done counts the runs that have ended.
func (s *Sweep) Done() (n int) {
	for _, r := range s.Runs {
		if r.Summary != nil {
			n++
		}
	}
	return n
}

// unusable returns the error of runs without a usable result, nil where there is none.
func (s *Sweep) unusable() error {
	var seeds []string
	for _, r := range s.Runs {
		if r.Summary.Unusable != "" {
			seeds = append(seeds, strconv.FormatInt(r.Seed, 10))
		}
	}
	if len(seeds) == 0 {
		return nil
	}
	return &experiment.Unusable{Reason: fmt.Sprintf("%d of %d seeds have none: %s; summary.json of each says why", len(seeds), len(s.Runs), strings.Join(seeds, ", "))}
}

// Figures is a run as run --seeds --json prints it: its folder, and its summary.json.
type Figures struct {
	Dir string `json:"dir"`
	runfolder.Summary
}

// Figures returns those of all runs, which have ended.
func (s *Sweep) Figures() []Figures {
	list := []Figures{}
	for _, r := range s.Runs {
		list = append(list, Figures{r.Dir, *r.Summary})
	}
	return list
}
