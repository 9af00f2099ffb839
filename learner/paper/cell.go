package paper

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// mostKept bounds a file of the cache, in bytes: a model, and what is kept of each round.
func mostKept(rounds int) int64 { return 4<<20 + 128*int64(rounds) }

// cellVersion is part of a result's key: raise it when what a run computes changes.
const cellVersion = 3

// cellResult is what is kept of one run.
type cellResult struct {
	Dataset  string            `json:"dataset"`
	Accuracy float64           `json:"accuracy"`
	Loss     []runfolder.Float `json:"loss"` // of each round's batches
	Final    runfolder.Float   `json:"final_loss"`
	// Evaluated are the rounds after which the model was tried on the test set,
	// Accuracies what it then got right.
	Evaluated  []int     `json:"evaluated"`
	Accuracies []float64 `json:"accuracies"`
	// Reached is the first round evaluated at which the accuracy asked for was there,
	// and the last one run; 0 if it was not, or none was asked for.
	Reached  int  `json:"reached"`
	Repeated int  `json:"repeated"`
	Skipped  int  `json:"skipped"`
	Clipped  int  `json:"clipped"`
	Diverged bool `json:"diverged"`
	// WorstEps is the largest |eps| in predicted deviations, EpsMean2 the mean of
	// (eps/deviation)^2.
	WorstEps runfolder.Float `json:"worst_eps"`
	// LargestEps is the largest |eps| itself, EpsVariance the mean of eps^2.
	LargestEps  runfolder.Float `json:"largest_eps"`
	EpsMean2    runfolder.Float `json:"eps_mean_square"`
	EpsVariance runfolder.Float `json:"eps_variance"`
	// Seconds is wall time, of the sittings that computed it.
	Seconds float64 `json:"seconds"`
}

// accuracyAfter returns the accuracy after a round that was evaluated; NaN for another.
func (c cellResult) accuracyAfter(round int) float64 {
	for k, at := range c.Evaluated {
		if at == round {
			return c.Accuracies[k]
		}
	}
	return math.NaN()
}

// rounds returns the number of rounds run.
func (c cellResult) rounds() int { return len(c.Loss) }

// Cell is a run that a report has a result of: what it takes to compute it, anywhere.
type Cell struct {
	Config config.Config
	// Goal is the test accuracy at which the run may end, a share; 0 for none.
	Goal float64
	// Validate says that accuracies are those on samples held out of the training set, and
	// that the test set is not used.
	Validate bool
	// Data are the name and checksums of what it learns from, which is refused if it differs.
	Data string
}

// OtherData is the error of a cell that is to be computed from other data than are here.
type OtherData struct{ Want, Found string }

func (e *OtherData) Error() string {
	return fmt.Sprintf("other data are here than the run wants: %.60s in place of %.60s", e.Found, e.Want)
}

// job is one run of a chapter.
type job struct {
	cfg      config.Config
	goal     float64 // Cell.Goal
	validate bool    // Cell.Validate
	what     string  // for errors
}

// cell runs a job, or gives what an earlier run of it gave.
func (r *reproduction) cell(ctx context.Context, j job) (out cellResult, err error) {
	j.cfg = r.shortened(j.cfg)
	data, err := r.dataOf(j.cfg)
	if err != nil {
		return out, err
	}
	key, err := j.key(data)
	if err != nil {
		return out, err
	}
	path := filepath.Join(r.dir, "cache", key+".json")
	kept, err := intake.ReadFile(path, mostKept(j.cfg.Optimizer.Rounds))
	if err == nil && json.Unmarshal(kept, &out) == nil && len(out.Evaluated) == len(out.Accuracies) {
		r.progress.finished(j, nil, true)
		return out, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, intake.PathError(fmt.Errorf("%s: %w", path, err))
	}
	out = cellResult{}
	run := &cellResult{} // which stands for it while it is on its way
	kept, err = r.opt.compute(ctx, Cell{j.cfg, j.goal, j.validate, data.String()}, key, func(round int) { r.progress.within(j, run, round) })
	if err != nil {
		return out, err
	}
	if out, err = parseCell(kept, j.cfg.Optimizer.Rounds); err != nil {
		return out, fmt.Errorf("what was computed of a run: %w", err)
	}
	r.progress.finished(j, run, false)
	return out, runfolder.WriteFile(path, kept)
}

// compute has a cell be computed: by what the options say, or in this process.
func (o Options) compute(ctx context.Context, c Cell, key string, progress func(round int)) ([]byte, error) {
	if o.Compute != nil {
		return o.Compute(ctx, c, key, progress)
	}
	part := filepath.Join(o.Out, "cache", key+".part")
	kept, err := ComputeCell(ctx, o.lab(), c, part, progress)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, intake.PathError(err)
	}
	return kept, nil
}

// ParseCell says why data are not the result of a cell.
func (c Cell) ParseCell(data []byte) error {
	_, err := parseCell(data, c.Config.Optimizer.Rounds)
	return err
}

// parseCell reads the result of a run of so many rounds at most.
func parseCell(data []byte, rounds int) (out cellResult, err error) {
	if int64(len(data)) > mostKept(rounds) {
		return out, fmt.Errorf("%d bytes; allowed are at most %d", len(data), mostKept(rounds))
	}
	if err := intake.CheckJSON("the result", data, intake.JSONLimits{Depth: 2, Members: 64, Elements: 2*rounds + 2}); err != nil {
		return out, err
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, err
	}
	last := 0
	for k, at := range out.Evaluated {
		if k >= len(out.Accuracies) || at <= last || at > len(out.Loss) || !(out.Accuracies[k] >= 0 && out.Accuracies[k] <= 1) {
			return out, errors.New("its evaluations are none: allowed are rising rounds that it ran, each with an accuracy from 0 to 1")
		}
		last = at
	}
	switch {
	case len(out.Accuracies) != len(out.Evaluated) || len(out.Loss) > rounds:
		return out, fmt.Errorf("%d accuracies of %d evaluations in %d rounds; allowed are as many of each, and %d rounds", len(out.Accuracies), len(out.Evaluated), len(out.Loss), rounds)
	case !(out.Accuracy >= 0 && out.Accuracy <= 1) || out.Reached < 0 || out.Reached > len(out.Loss):
		return out, fmt.Errorf("the accuracy %v, reached in round %d; allowed are shares, and rounds that it ran", out.Accuracy, out.Reached)
	case out.Repeated < 0 || out.Skipped < 0 || out.Clipped < 0 || !(out.Seconds >= 0):
		return out, errors.New("a count below 0; allowed are counts from 0 on")
	}
	return out, nil
}

// shortened is a configuration for a look at the whole, if that is all that is wanted.
func (r *reproduction) shortened(c config.Config) config.Config {
	if most := r.opt.Rounds; most > 0 {
		c.Optimizer.Rounds = min(c.Optimizer.Rounds, most)
		c.Task.StrokesTrain, c.Task.StrokesTest = 800, 200
	}
	return c
}

// dataInUse says what a configuration's data are on this machine: the set, which may be
// the fallback, and the checksums of its files.
type dataInUse struct {
	name     string
	fallback bool
	warning  string // the files are not the published ones
	tests    int    // images of the test set
	sums     string
}

// String is the set's name and checksums.
func (d dataInUse) String() string { return d.name + " " + d.sums }

// dataUsed says what a task was loaded from.
func dataUsed(t *experiment.Task) dataInUse {
	d := dataInUse{name: t.Name, fallback: t.FallbackUsed, warning: t.Unpublished(), tests: t.Test.Len()}
	for _, f := range t.Files {
		d.sums += f.SHA256
	}
	return d
}

// dataOf looks a configuration's data up, once a sitting.
func (r *reproduction) dataOf(c config.Config) (dataInUse, error) {
	r.dataLock.Lock()
	defer r.dataLock.Unlock()
	if d, ok := r.data[c.Task.Dataset]; ok {
		return d, nil
	}
	t, err := r.lab().LoadTask(c, seedOf("task"), nil)
	if err != nil {
		return dataInUse{}, err
	}
	d := dataUsed(t)
	if r.data == nil {
		r.data = map[string]dataInUse{}
	}
	r.data[c.Task.Dataset] = d
	return d, nil
}

// key names what a job is computed from.
func (j job) key(data dataInUse) (string, error) {
	j.cfg.Experiment.Name = "" // it changes nothing
	encoded, err := j.cfg.Encode()
	if err != nil {
		return "", err
	}
	encoded = fmt.Appendf(encoded, "\nversion %d\ndata %s %s", cellVersion, data.name, data.sums)
	if j.goal > 0 {
		encoded = fmt.Appendf(encoded, "\nuntil accuracy %v", j.goal)
	}
	if j.validate {
		encoded = fmt.Appendf(encoded, "\nvalidation, 1 of %d", experiment.ValidationFolds)
	}
	sum := sha256.Sum256(encoded)
	return fmt.Sprintf("%x", sum[:16]), nil
}

// tally is a run on its way: what it came to so far, and all that it needs to go on.
type tally struct {
	Result cellResult    `json:"result"`
	State  learner.State `json:"state"`
	// Rounds counts those of which eps has a predicted deviation; Squares is the sum
	// of (eps/deviation)^2 over them, EpsSquares that of eps^2.
	Rounds     int             `json:"rounds"`
	Squares    runfolder.Float `json:"squares"`
	EpsSquares runfolder.Float `json:"eps_squares"`
}

// tallyEvery is the time after which a run on its way is kept.
const tallyEvery = 20 * time.Second

// loadTally returns what an earlier sitting kept of a run, or a beginning.
func loadTally(path string, rounds int) tally {
	var t tally
	data, err := intake.ReadFile(path, mostKept(rounds))
	if err != nil || json.Unmarshal(data, &t) != nil || t.State.Round > rounds || t.State.Round != t.Result.rounds() {
		return tally{}
	}
	return t
}

// save keeps a run on its way.
func (t tally) save(path string, state learner.State) error {
	t.State = state
	data, err := json.Marshal(t)
	if err != nil {
		return nil // a model that is no longer finite is not worth going on with
	}
	return runfolder.WriteFile(path, data)
}

// add counts a round.
func (t *tally) add(record learner.Record) {
	out := &t.Result
	out.Loss = append(out.Loss, runfolder.Float(record.TrainLoss))
	if record.Evaluated {
		out.Evaluated, out.Accuracies = append(out.Evaluated, record.Round), append(out.Accuracies, record.TestAccuracy)
	}
	if !(record.EpsStdPredicted > 0) || record.Skipped {
		return
	}
	x := record.Eps / record.EpsStdPredicted
	square := record.EpsSquare
	if square == 0 { // of a trainer that has no directions
		square = x * x
	}
	t.Rounds++
	t.Squares += runfolder.Float(square)
	t.EpsSquares += runfolder.Float(record.Eps * record.Eps)
	out.WorstEps = runfolder.Float(math.Max(float64(out.WorstEps), math.Abs(x)))
	out.LargestEps = runfolder.Float(math.Max(float64(out.LargestEps), math.Abs(record.Eps)))
}

// ComputeCell trains without a folder, and returns what came of it. What it has when it is
// interrupted, and after every so many seconds, is kept in the file named part, from which it
// goes on. Progress hears of each round.
func ComputeCell(ctx context.Context, lab experiment.Lab, c Cell, part string, progress func(round int)) (kept []byte, err error) {
	began := time.Now()
	s, err := lab.New(c.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if found := dataUsed(s.Task).String(); c.Data != "" && found != c.Data {
		return nil, &OtherData{c.Data, found}
	}
	if c.Validate {
		if err := s.Task.Validated(seedOf("validation")); err != nil {
			return nil, err
		}
	}
	t := loadTally(part, c.Config.Optimizer.Rounds)
	if err := s.StartInMemory(t.State); err != nil {
		return nil, err
	}
	if err := t.train(ctx, s, c, part, progress, began); err != nil {
		return nil, err
	}
	return json.Marshal(t.result(s, began))
}

// train runs the rounds that are left.
func (t *tally) train(ctx context.Context, s *experiment.Experiment, c Cell, part string, progress func(round int), began time.Time) error {
	before, kept := t.Result.Seconds, began
	for !s.Trainer.Done() && t.Result.Reached == 0 {
		record, err := s.Step(ctx)
		if diverged(err) {
			t.Result.Diverged = true
			break
		}
		t.Result.Seconds = before + time.Since(began).Seconds()
		if err != nil {
			return errors.Join(err, t.save(part, s.Trainer.State()))
		}
		t.add(record)
		if c.Goal > 0 && record.Evaluated && record.TestAccuracy >= c.Goal {
			t.Result.Reached = record.Round
		}
		progress(record.Round)
		if time.Since(kept) < tallyEvery {
			continue
		}
		kept = time.Now()
		if err := t.save(part, s.Trainer.State()); err != nil {
			return err
		}
	}
	t.Result.Seconds = before // result adds this sitting's
	return nil
}

// result returns what came of a run that has ended.
func (t *tally) result(s *experiment.Experiment, began time.Time) cellResult {
	result, state, out := s.Trainer.Final(), s.Trainer.State(), t.Result
	out.Dataset = s.Task.Name
	out.Accuracy, out.Final = result.TestAccuracy, runfolder.Float(result.TrainLoss)
	out.Repeated, out.Skipped, out.Clipped = state.Repeated, state.Skipped, state.Clipped
	n := runfolder.Float(t.Rounds)
	out.EpsMean2, out.EpsVariance = t.Squares/n, t.EpsSquares/n
	out.Seconds += time.Since(began).Seconds()
	return out
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

// percent writes a share.
func percent(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

// accuracyText writes accuracies: one as it is, several as median and quartiles.
func accuracyText(results []cellResult) string {
	if len(results) == 1 {
		return percent(results[0].Accuracy)
	}
	return quartilesOf(accuracies(results)).percent()
}

// seedsText writes how many seeds.
func seedsText(n int) string {
	if n == 1 {
		return "one seed"
	}
	return fmt.Sprintf("%d seeds", n)
}

// fewSeeds is how many seeds serve where the paper states no accuracy.
func (r *reproduction) fewSeeds() int {
	if r.opt.Quick {
		return 1
	}
	return min(5, r.opt.Seeds)
}

// ofSeeds returns a configuration's jobs, with seeds 1 to n.
func ofSeeds(c config.Config, n int) []job {
	var jobs []job
	for seed := 1; seed <= n; seed++ {
		c.Experiment.Seed = int64(seed)
		jobs = append(jobs, job{cfg: c})
	}
	return jobs
}

// seeds runs a configuration with seeds 1 to n.
func (r *reproduction) seeds(ctx context.Context, what string, c config.Config, n int) ([]cellResult, error) {
	return r.cells(ctx, jobsOf([]series{{what, c, n}}))
}

// cells runs jobs side by side. No job may be there twice. The results are in the jobs'
// order.
func (r *reproduction) cells(ctx context.Context, jobs []job) ([]cellResult, error) {
	out := make([]cellResult, len(jobs))
	err := sideBySide(r.opt.atATime(), len(jobs), func(k int) (err error) {
		if out[k], err = r.cell(ctx, jobs[k]); err != nil {
			err = fmt.Errorf("%s, seed %d: %w", jobs[k].what, jobs[k].cfg.Experiment.Seed, err)
		}
		return err
	})
	return out, err
}

// atATime returns how many cells are asked for at a time: as many as there are cores, for a
// run by itself has parts that only one core can do; and of who computes them elsewhere all,
// so that no worker waits.
func (o Options) atATime() int {
	if o.Compute != nil {
		return math.MaxInt
	}
	return runtime.GOMAXPROCS(0)
}

// sideBySide does n things, so many at a time. It begins no more after an error, and gives
// that of the first thing that has one.
func sideBySide(atATime, n int, do func(k int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	var wait sync.WaitGroup
	for range min(n, atATime) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for !failed.Load() {
				k := int(next.Add(1)) - 1
				if k >= n {
					return
				}
				if errs[k] = do(k); errs[k] != nil {
					failed.Store(true)
				}
			}
		}()
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// series is a configuration with as many seeds as it is run with.
type series struct {
	what  string
	cfg   config.Config
	seeds int
}

// jobsOf returns the runs of several series.
func jobsOf(list []series) []job {
	var jobs []job
	for _, s := range list {
		for _, j := range ofSeeds(s.cfg, s.seeds) {
			j.what = s.what
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// all runs several series and gives the results of each.
func (r *reproduction) all(ctx context.Context, list []series) ([][]cellResult, error) {
	results, err := r.cells(ctx, jobsOf(list))
	if err != nil {
		return nil, err
	}
	var out [][]cellResult
	for _, s := range list {
		out, results = append(out, results[:s.seeds:s.seeds]), results[s.seeds:]
	}
	return out, nil
}

func accuracies(results []cellResult) []float64 {
	var out []float64
	for _, c := range results {
		out = append(out, c.Accuracy)
	}
	return out
}
