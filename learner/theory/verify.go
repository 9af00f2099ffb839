package theory

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"ringwave/crypto/keystream"
	"ringwave/learner"
)

// Options says how much Verify measures.
type Options struct {
	// Seed is the root of all that is drawn.
	Seed keystream.Seed
	// Rounds are the horizons K, ascending, each at least 2.
	Rounds []int
	// Seeds is the number of runs at each K, at least 4.
	Seeds int
	// RingRounds are the horizons that are also run over the protocol's own rounds,
	// with RingSeeds seeds each, at most Seeds.
	RingRounds []int
	RingSeeds  int
	// LemmaDraws is the number of rounds from one theta for Lemma 1, at least 2.
	LemmaDraws int
	// Workers is the number of goroutines; 0 for GOMAXPROCS. It changes no result.
	Workers int
}

// horizons are three decades in half decades.
var horizons = []int{100, 316, 1_000, 3_162, 10_000, 31_623, 100_000}

// Quick returns options for half a minute on two free cores.
func Quick(seed keystream.Seed) Options {
	return Options{Seed: seed, Rounds: slices.Clone(horizons), Seeds: 8, RingRounds: []int{100}, RingSeeds: 2, LemmaDraws: 20_000}
}

// Whole returns options for about five minutes on two free cores.
func Whole(seed keystream.Seed) Options {
	return Options{Seed: seed, Rounds: slices.Clone(horizons), Seeds: 60, RingRounds: []int{100, 1_000}, RingSeeds: 4, LemmaDraws: 400_000}
}

func (o Options) check() error {
	if len(o.Rounds) == 0 || !slices.IsSorted(o.Rounds) || o.Rounds[0] < 2 {
		return fmt.Errorf("the numbers of rounds are %v; allowed is an ascending list of 2 or more", o.Rounds)
	}
	if o.Seeds < 4 {
		return fmt.Errorf("the number of seeds is %d; allowed is 4 or more", o.Seeds)
	}
	for _, k := range o.RingRounds {
		if !slices.Contains(o.Rounds, k) {
			return fmt.Errorf("%d rounds over the ring are not among the numbers of rounds %v", k, o.Rounds)
		}
	}
	if o.RingSeeds < 0 || o.RingSeeds > o.Seeds {
		return fmt.Errorf("the number of seeds over the ring is %d; allowed is 0 to %d", o.RingSeeds, o.Seeds)
	}
	if o.LemmaDraws < 2 {
		return fmt.Errorf("the number of draws for Lemma 1 is %d; allowed is 2 or more", o.LemmaDraws)
	}
	if o.Workers < 0 {
		return fmt.Errorf("the number of workers is %d; allowed is 0 or more", o.Workers)
	}
	return nil
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Report is what Verify found: one entry a setting, in a fixed order.
type Report struct{ Settings []SettingReport }

// SettingReport is Theorem 2 on one problem over one uplink.
type SettingReport struct {
	Name         string
	Problem      *Problem
	Uplink       Uplink
	Eta0, Gamma0 float64
	Assumptions  Assumptions
	Constants    Constants
	// Rate is Theorem 2's, with each L in its own place; OneL with the larger one in
	// both places, as the paper has it.
	Rate, OneL Rate
	Points     []Point
	Fits       []Fit
	Floor      Floor
	Ring       []RingPoint
	// AtStart and AtMinimum are Lemma 1 at theta_0 and at the minimiser.
	AtStart, AtMinimum LemmaCheck
}

// Point is what the runs at one K gave, in squared norms of grad F(theta_k), and
// what Theorem 2 allows.
type Point struct {
	Rounds, Seeds int
	// At is the round k at which the mean over the seeds is least, Minimum that
	// mean, StdErr its standard error, and Quantiles the least value, the quartiles
	// and the largest over the seeds at that round.
	At              int
	Minimum, StdErr float64
	Quantiles       [5]float64
	// HeldOut takes k from one half of the seeds and the mean at that k from the
	// other, both ways, and so is not biased downwards by having looked for the
	// least of K means; HeldOutErr is its standard error.
	HeldOut, HeldOutErr float64
	// Average is the mean over all rounds and seeds: the telescoped sum of Appendix D
	// bounds it by R/sqrt(K) + rho, and the minimum only because it is less. Tail is
	// the mean over the last quarter of the rounds, AverageErr and TailErr their
	// standard errors over the seeds.
	Average, AverageErr, Tail, TailErr float64
	// Exact is min_k E||grad F||^2 in closed form and ExactTail the mean over the
	// last quarter of the rounds, where HasExact says so.
	Exact, ExactTail float64
	HasExact         bool
	// Bound is R/sqrt(K) + rho, OneLBound the same with one L.
	Bound, OneLBound float64
	// Below says that Minimum, HeldOut and Average are at most Bound.
	Below bool
	// First is ||grad F(theta_1)||^2. Where Bound is no less, Theorem 2 says nothing
	// that was not known before the first round: Informative is false.
	First       float64
	Informative bool
	// Reached is the largest ||theta_k - theta*|| + gamma b_2 of all runs, which must
	// be at most the problem's Radius for Assumption 3.2 to hold.
	Reached float64
}

// Fit is the slope of log(value - rho) against log K, by least squares.
type Fit struct {
	// Of is what is fitted: minimum, held out, tail, exact or exact tail. From is the
	// least K.
	Of   string
	From int
	// Slope and StdErr are given where Known, that is from three points on; Dropped
	// counts points that are not above rho and have no logarithm.
	Slope, StdErr   float64
	Points, Dropped int
	Known           bool
}

// Floor is a fit of the tail's means by B + A/sqrt(K), and what B should be.
type Floor struct {
	// Value is B and StdErr its standard error, where Known says so.
	Value, StdErr float64
	Known         bool
	// Limit is the value in closed form, where HasLimit says so; Rho the paper's.
	Limit    float64
	HasLimit bool
	Rho      float64
}

// RingPoint sets runs over the protocol's own rounds beside those without the
// ring, on the same seeds, gains, directions and batches.
type RingPoint struct {
	Rounds, Seeds int
	// Ring and Statistics are the least means over these seeds.
	Ring, Statistics float64
	// Difference is the largest difference of ||grad F(theta_k)||^2 between the two,
	// against ||grad F(theta_1)||^2.
	Difference float64
	// EpsRatio is the root mean square of epsilon_k over its predicted deviation,
	// over EpsRounds rounds, and EpsRatioErr its standard error were they Gaussian.
	EpsRatio, EpsRatioErr float64
	EpsRounds             int
	// Bound is Theorem 2's.
	Bound float64
}

// setting is what Verify runs.
type setting struct {
	name         string
	problem      func(keystream.Seed) (*Problem, error)
	uplink       Uplink
	eta0, gamma0 float64
}

// settings are both problems at the paper's parameter set, where the encryption's
// noise is far below all else, and the quadratic at the smallest set, where it is
// not: there the floor shows. Step sizes are such that the start is forgotten after
// the first few hundred rounds.
var settings = []setting{
	{"quadratic, paper-4096", NewQuadratic, Uplink{"paper-4096", 1, 1, 8}, 0.5, 0.1},
	{"logistic, paper-4096", NewLogistic, Uplink{"paper-4096", 1, 1, 8}, 1, 0.2},
	{"quadratic, demo-1024", NewQuadratic, Uplink{"demo-1024", 1, 1, 2}, 0.5, 0.1},
}

// Verify runs every setting: Lemma 1 at two points, and Theorem 2 over the
// horizons, over links that open opens. Progress, which may be nil, hears of the rounds run and of all there
// are, from one goroutine at a time. Verify ends early, with ctx's error, where ctx
// ends. What it returns depends on the options but Workers, and on the links, alone.
func Verify(ctx context.Context, o Options, open OpenLink, progress func(done, total int)) (Report, error) {
	if err := o.check(); err != nil {
		return Report{}, fmt.Errorf("verifying the theory: %w", err)
	}
	v := &verifier{options: o, open: open, progress: progress, total: o.rounds()}
	var r Report
	for _, s := range settings {
		one, err := v.setting(ctx, s)
		if err != nil {
			return Report{}, fmt.Errorf("verifying the theory: %s: %w", s.name, err)
		}
		r.Settings = append(r.Settings, one)
	}
	return r, nil
}

// rounds counts all rounds.
func (o Options) rounds() int {
	n := 2 * o.LemmaDraws
	for _, k := range o.Rounds {
		n += k * o.Seeds
	}
	for _, k := range o.RingRounds {
		n += k * o.RingSeeds
	}
	return n * len(settings)
}

type verifier struct {
	options  Options
	open     OpenLink
	total    int
	progress func(done, total int)

	mu   sync.Mutex
	done int
}

func (v *verifier) advance(rounds int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done += rounds
	if v.progress != nil {
		v.progress(v.done, v.total)
	}
}

func (v *verifier) setting(ctx context.Context, s setting) (SettingReport, error) {
	p, err := s.problem(v.options.Seed.Derive("problem"))
	if err != nil {
		return SettingReport{}, err
	}
	r := SettingReport{Name: s.name, Problem: p, Uplink: s.uplink, Eta0: s.eta0, Gamma0: s.gamma0}
	b := &bench{verifier: v, setting: s, problem: p, root: v.options.Seed.Derive(s.name)}
	l, err := b.link(1, b.root, false)
	if err != nil {
		return SettingReport{}, err
	}
	r.Assumptions = p.Assumptions(l.Moments())
	l.Close()
	if err := r.rates(); err != nil {
		return SettingReport{}, err
	}
	for i, k := range v.options.Rounds {
		runs, err := b.runs(ctx, k, v.options.Seeds, false)
		if err != nil {
			return SettingReport{}, err
		}
		point, err := r.point(k, runs)
		if err != nil {
			return SettingReport{}, err
		}
		r.Points = append(r.Points, point)
		if slices.Contains(v.options.RingRounds, v.options.Rounds[i]) && v.options.RingSeeds > 0 {
			over, err := b.runs(ctx, k, v.options.RingSeeds, true)
			if err != nil {
				return SettingReport{}, err
			}
			r.Ring = append(r.Ring, ringPoint(k, over, runs[:len(over)], r.Rate))
		}
	}
	r.fit()
	return r, b.lemma(ctx, &r)
}

// rates computes Lemma 1's constants and Theorem 2's, both ways.
func (r *SettingReport) rates() error {
	var err error
	if r.Constants, err = r.Assumptions.Constants(); err != nil {
		return err
	}
	if r.Rate, err = r.Constants.Rate(r.Problem.Gap, r.Eta0, r.Gamma0); err != nil {
		return err
	}
	one, err := r.Assumptions.OneL().Constants()
	if err != nil {
		return err
	}
	r.OneL, err = one.Rate(r.Problem.Gap, r.Eta0, r.Gamma0)
	return err
}

// bench runs one setting.
type bench struct {
	*verifier
	setting setting
	problem *Problem
	root    keystream.Seed
}

// link opens the link of one run of the given rounds. Messages are never
// clipped: within the ball |Delta f| <= 2 L b_2 gamma.
func (b *bench) link(rounds int, seed keystream.Seed, overRing bool) (Link, error) {
	deltaMax := 2 * b.problem.Lipschitz * math.Sqrt(float64(b.problem.Dim)) * b.setting.gamma0 / math.Abs(b.setting.uplink.Mu)
	return b.open(Run{Uplink: b.setting.uplink, Devices: b.problem.Devices, DeltaMax: deltaMax, Rounds: rounds, Ring: overRing, Seed: seed})
}

// run is one course of training.
type run struct {
	// squared is ||grad F(theta_k)||^2 for k = 1..K, theta_1 the start.
	squared []float64
	// reached is the largest ||theta_k - theta*|| + gamma b_2.
	reached float64
	// ratios is the sum of (eps/predicted deviation)^2.
	ratios float64
	err    error
}

// runs returns the runs of the first seeds at one horizon, over the ring or without.
func (b *bench) runs(ctx context.Context, rounds, seeds int, overRing bool) ([]run, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := make([]run, seeds)
	next := make(chan int)
	var wait sync.WaitGroup
	for range min(b.options.workers(), seeds) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for s := range next {
				out[s] = b.train(ctx, rounds, b.root.Derive("run", uint64(rounds), uint64(s)), overRing)
				if out[s].err != nil {
					cancel()
				}
			}
		}()
	}
	for s := range seeds {
		next <- s
	}
	close(next)
	wait.Wait()
	return out, firstError(out)
}

// firstError returns the first error in the order of the seeds, one that is not the
// end of the others' work where there is one.
func firstError(runs []run) error {
	var first error
	for _, r := range runs {
		if r.err != nil && (first == nil || isEnd(first) && !isEnd(r.err)) {
			first = r.err
		}
	}
	return first
}

// reportEvery is the number of rounds between two calls of progress.
const reportEvery = 5_000

func (b *bench) train(ctx context.Context, rounds int, seed keystream.Seed, overRing bool) run {
	l, err := b.link(rounds, seed, overRing)
	if err != nil {
		return run{err: err}
	}
	defer l.Close()
	p := b.problem
	gamma := learner.HorizonLaw{X0: b.setting.gamma0, K: rounds}
	trainer, err := learner.New(learner.Config{
		Rounds: rounds, BatchSize: p.Batch, Eta: learner.HorizonLaw{X0: b.setting.eta0, K: rounds}, Gamma: gamma, Workers: 1,
	}, p.task(l, seed))
	if err != nil {
		return run{err: err}
	}
	out := run{squared: make([]float64, rounds)}
	gradient := make([]float64, p.Dim)
	for k := range rounds {
		theta := trainer.State().Theta
		p.Gradient(gradient, theta)
		out.squared[k] = floats.Dot(gradient, gradient)
		out.reached = max(out.reached, floats.Distance(theta, p.Minimiser, 2))
		record, err := trainer.Step(ctx)
		if err != nil {
			return run{err: err}
		}
		ratio := record.Eps / record.EpsStdPredicted
		out.ratios += ratio * ratio
		if (k+1)%reportEvery == 0 {
			b.advance(reportEvery)
		}
	}
	b.advance(rounds % reportEvery)
	out.reached += gamma.At(1) * math.Sqrt(float64(p.Dim))
	return out
}

// lemma measures Lemma 1 at the start and at the minimum, at the largest gamma of
// all the horizons.
func (b *bench) lemma(ctx context.Context, r *SettingReport) error {
	gamma := learner.HorizonLaw{X0: b.setting.gamma0, K: b.options.Rounds[0]}.At(1)
	checks := []struct {
		name  string
		theta []float64
		into  *LemmaCheck
	}{
		{"Lemma 1 at the start", r.Problem.Start, &r.AtStart},
		{"Lemma 1 at the minimum", r.Problem.Minimiser, &r.AtMinimum},
	}
	errs := make([]error, len(checks))
	gate := make(chan struct{}, b.options.workers())
	var wait sync.WaitGroup
	for i, c := range checks {
		wait.Add(1)
		go func() {
			defer wait.Done()
			gate <- struct{}{}
			defer func() { <-gate }()
			*c.into, errs[i] = b.lemmaAt(ctx, r.Constants, c.name, c.theta, gamma)
			b.advance(b.options.LemmaDraws)
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

// lemmaAt measures Lemma 1 at one theta. The name goes into the seed.
func (b *bench) lemmaAt(ctx context.Context, c Constants, name string, theta []float64, gamma float64) (LemmaCheck, error) {
	seed, draws := b.root.Derive(name), b.options.LemmaDraws
	l, err := b.link(draws, seed, false)
	if err != nil {
		return LemmaCheck{}, err
	}
	defer l.Close()
	return b.problem.measureLemma(ctx, c, l, theta, gamma, draws, seed)
}

// point puts the runs of one horizon together.
func (r *SettingReport) point(rounds int, runs []run) (Point, error) {
	all, even, odd := make([]int, len(runs)), []int(nil), []int(nil)
	for s := range runs {
		all[s] = s
		if s%2 == 0 {
			even = append(even, s)
		} else {
			odd = append(odd, s)
		}
	}
	p := Point{Rounds: rounds, Seeds: len(runs), First: runs[0].squared[0], Bound: r.Rate.Bound(rounds), OneLBound: r.OneL.Bound(rounds)}
	at, _ := leastMean(runs, all)
	values := valuesAt(runs, all, at)
	p.At = at + 1
	p.Minimum, p.StdErr = meanErr(values)
	slices.Sort(values)
	for i, q := range []float64{0, 0.25, 0.5, 0.75, 1} {
		p.Quantiles[i] = stat.Quantile(q, stat.LinInterp, values, nil)
	}
	atEven, _ := leastMean(runs, even)
	atOdd, _ := leastMean(runs, odd)
	a, aErr := meanErr(valuesAt(runs, odd, atEven))
	b, bErr := meanErr(valuesAt(runs, even, atOdd))
	p.HeldOut, p.HeldOutErr = (a+b)/2, math.Hypot(aErr, bErr)/2
	averages, tails := make([]float64, len(runs)), make([]float64, len(runs))
	for s, one := range runs {
		p.Reached = max(p.Reached, one.reached)
		averages[s], tails[s] = stat.Mean(one.squared, nil), stat.Mean(one.squared[rounds*3/4:], nil)
	}
	p.Average, p.AverageErr = meanErr(averages)
	p.Tail, p.TailErr = meanErr(tails)
	exact, err := r.Problem.Exact(r.Assumptions.Mu, r.Assumptions.Omega, r.Assumptions.DecodedVariance,
		learner.HorizonLaw{X0: r.Eta0, K: rounds}, learner.HorizonLaw{X0: r.Gamma0, K: rounds}, rounds)
	switch {
	case err == nil:
		p.Exact, p.ExactTail, p.HasExact = slices.Min(exact), stat.Mean(exact[rounds*3/4:], nil), true
	case err != ErrNoClosedForm:
		return Point{}, err
	}
	p.Below = p.Minimum <= p.Bound && p.HeldOut <= p.Bound && p.Average <= p.Bound
	p.Informative = p.Bound < p.First
	return p, nil
}

// leastMean returns the index of the round, from 0, at which the mean over the given
// runs is least, and that mean.
func leastMean(runs []run, which []int) (at int, least float64) {
	least = math.Inf(1)
	for k := range runs[which[0]].squared {
		sum := 0.0
		for _, s := range which {
			sum += runs[s].squared[k]
		}
		if mean := sum / float64(len(which)); mean < least {
			at, least = k, mean
		}
	}
	return at, least
}

func valuesAt(runs []run, which []int, k int) []float64 {
	values := make([]float64, len(which))
	for i, s := range which {
		values[i] = runs[s].squared[k]
	}
	return values
}

// meanErr returns the mean of two or more values and its standard error.
func meanErr(values []float64) (mean, stdErr float64) {
	mean, std := stat.MeanStdDev(values, nil)
	return mean, std / math.Sqrt(float64(len(values)))
}

func ringPoint(rounds int, over, without []run, rate Rate) RingPoint {
	n := rounds * len(over)
	p := RingPoint{Rounds: rounds, Seeds: len(over), EpsRounds: n, Bound: rate.Bound(rounds)}
	which := make([]int, len(over))
	ratios := 0.0
	for s := range over {
		which[s] = s
		ratios += over[s].ratios
		for k, x := range over[s].squared {
			p.Difference = max(p.Difference, math.Abs(x-without[s].squared[k])/over[s].squared[0])
		}
	}
	_, p.Ring = leastMean(over, which)
	_, p.Statistics = leastMean(without, which)
	p.EpsRatio = math.Sqrt(ratios / float64(n))
	p.EpsRatioErr = 1 / math.Sqrt(2*float64(n))
	return p
}
