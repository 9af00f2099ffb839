package paper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// job is one run of a chapter.
type job struct {
	Cell
	what string // for errors
}

// cell has a job computed, or gives what an earlier sitting got of it.
func (r *reproduction) cell(ctx context.Context, j job) (out cellResult, err error) {
	j.Config = r.shortened(j.Config)
	data, err := r.dataOf(j.Config)
	if err != nil {
		return out, err
	}
	key, err := j.key(data)
	if err != nil {
		return out, err
	}
	path := filepath.Join(r.dir, "cache", key+".json")
	kept, err := intake.ReadFile(path, j.MostBytes())
	var excess *intake.Excess
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &excess) {
		return out, intake.PathError(fmt.Errorf("%s: %w", path, err))
	}
	if err == nil {
		if out, err = j.decode(kept, data.name); err == nil {
			r.progress.finished(&j, true)
			return out, nil
		}
	}
	if kept, err = r.computed(ctx, &j, key); err != nil {
		return out, err
	}
	if out, err = j.decode(kept, data.name); err != nil {
		return out, fmt.Errorf("the result %s: %w", key, err)
	}
	if err := runfolder.WriteFile(path, kept); err != nil {
		return out, err
	}
	if err := os.Remove(r.part(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, intake.PathError(err)
	}
	r.progress.finished(&j, false)
	return out, nil
}

// part names the file of a run on its way in this process.
func (r *reproduction) part(key string) string { return filepath.Join(r.dir, "cache", key+".part") }

// computed has a run computed once it is its turn.
func (r *reproduction) computed(ctx context.Context, j *job, key string) ([]byte, error) {
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	within := func(round int) { r.progress.within(j, round) }
	if r.opt.Compute != nil {
		return r.opt.Compute(ctx, j.Cell, key, within)
	}
	return ComputeCell(ctx, r.lab(), j.Cell, r.part(key), within)
}

// shortened is a configuration for a look at the whole, if that is all that is wanted.
func (r *reproduction) shortened(c config.Config) config.Config {
	if most := r.opt.Rounds; most > 0 {
		c.Optimizer.Rounds = min(c.Optimizer.Rounds, most)
		c.Task.StrokesTrain, c.Task.StrokesTest = 800, 200
	}
	return c
}

// dataKey names the samples of a configuration.
func dataKey(c config.Config) string { return fmt.Sprint(c.Task.Dataset, " ", c.Task.Classes) }

// dataOf looks a configuration's data up, once a sitting.
func (r *reproduction) dataOf(c config.Config) (dataInUse, error) {
	r.dataLock.Lock()
	defer r.dataLock.Unlock()
	key := dataKey(c)
	if d, ok := r.data[key]; ok {
		return d, nil
	}
	d, err := dataIn(r.lab(), c)
	if err != nil {
		return d, err
	}
	if r.data == nil {
		r.data = map[string]dataInUse{}
	}
	r.data[key] = d
	return d, nil
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
		jobs = append(jobs, job{Cell: Cell{Config: c}})
	}
	return jobs
}

// cells runs jobs side by side. No job may be there twice. The results are in the jobs'
// order.
func (r *reproduction) cells(ctx context.Context, jobs []job) ([]cellResult, error) {
	out := make([]cellResult, len(jobs))
	err := sideBySide(len(jobs), r.opt.atOnce(), func(k int) (err error) {
		if out[k], err = r.cell(ctx, jobs[k]); err != nil {
			err = fmt.Errorf("%s, seed %d: %w", jobs[k].what, jobs[k].Config.Experiment.Seed, err)
		}
		return err
	})
	return out, err
}

// atOnce returns how many runs are asked for at a time: as many as there are cores where
// they are made here, for a run by itself has parts that only one core can do.
func (o Options) atOnce() int {
	if o.AtOnce > 0 {
		return o.AtOnce
	}
	return runtime.GOMAXPROCS(0)
}

// sideBySide does n things, so many at a time. It begins no more after an error, and
// gives that of the first thing that has one.
func sideBySide(n, atOnce int, do func(k int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	var wait sync.WaitGroup
	for range min(n, atOnce) {
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
	return ofSeries(list, results), nil
}

// ofSeries returns the results of each of several series.
func ofSeries(list []series, results []cellResult) (out [][]cellResult) {
	for _, s := range list {
		out, results = append(out, results[:s.seeds:s.seeds]), results[s.seeds:]
	}
	return out
}

func accuracies(results []cellResult) []float64 {
	var out []float64
	for _, c := range results {
		out = append(out, c.Accuracy)
	}
	return out
}
