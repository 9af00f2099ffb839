package paper

import (
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
)

// chapterProgress says how far a chapter is. A nil one says nothing. It is for several
// goroutines.
type chapterProgress struct {
	w    io.Writer
	name string
	each bool // run is told of as it ends
	o    Observer

	mu sync.Mutex
	// running has the runs on their way.
	running map[*job]way
	// plan is the work of the chapter, done what is behind it, here what of that this
	// sitting did, on whatever machines, all in expected seconds; runs and ran count runs.
	plan, done, here float64
	runs, ran        int
	began, said      time.Time
}

// way is the work done of a run on its way, and what of it earlier sittings did.
type way struct{ done, before float64 }

// Observer hears of a report while it is made, from any goroutine; it must not wait. What is
// nil is left out.
type Observer struct {
	// Chapter hears of a chapter that begins, the k-th of so many from 1 on.
	Chapter func(name string, k, of int)
	// Planned hears of the runs of a chapter where these are known before.
	Planned func(runs []Run)
	// Running hears that a run is at a round, Ended that its result is there.
	Running func(r Run, round, rounds int)
	Ended   func(r Run)
	// Progress hears how many of a chapter's runs have ended, of the work the share, and about
	// how many seconds are left.
	Progress func(chapter string, ended, runs int, share, left float64)
}

// Run names a run of a report.
type Run struct {
	Chapter, What string
	Seed          int64
}

// run names a job.
func (p *chapterProgress) run(j *job) Run {
	what := j.what
	if what == "" {
		what = j.Config.Heading()
	}
	return Run{p.name, what, j.Config.Experiment.Seed}
}

// sayEvery is the time from one line of progress to the next.
const sayEvery = 10 * time.Second

// begin plans a chapter's runs and says what it expects of them. With most set, they
// are the most that there may be.
func (r *reproduction) begin(name string, jobs []job, most bool) {
	p := &chapterProgress{w: r.stderr, name: name, o: r.opt.Observer, each: r.opt.Verbose, runs: len(jobs), began: time.Now(), said: time.Now(), running: map[*job]way{}}
	for _, j := range jobs {
		j.Config = r.shortened(j.Config)
		p.plan += j.expectedSeconds()
	}
	r.progress = p
	word := "about"
	if most {
		word = "at most"
	}
	fmt.Fprintf(p.w, "%s: %d runs, %s %v on two cores\n", name, p.runs, word, inWords(p.plan))
	if p.o.Planned == nil || most {
		return
	}
	var runs []Run
	for i := range jobs {
		runs = append(runs, p.run(&jobs[i]))
	}
	p.o.Planned(runs)
}

// finished counts a run, of this sitting or of an earlier one.
func (p *chapterProgress) finished(j *job, cached bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	cost := j.expectedSeconds()
	p.done += cost
	p.ran++
	if !cached {
		p.here += cost - p.running[j].before
	}
	delete(p.running, j)
	if p.each {
		p.said = time.Time{}
	}
	if p.o.Ended != nil {
		p.o.Ended(p.run(j))
	}
	p.say()
}

// within hears that a run is at some round: first, that it goes on from there. A run that
// another machine took up anew may be behind that.
func (p *chapterProgress) within(j *job, round int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rounds := j.Config.Optimizer.Rounds
	at := j.expectedSeconds() * float64(min(max(round, 0), rounds)) / float64(rounds)
	w, ok := p.running[j]
	if w.done = at; !ok || at < w.before {
		w.before = at
	}
	p.running[j] = w
	if p.o.Running != nil {
		p.o.Running(p.run(j), min(max(round, 0), rounds), rounds)
	}
	p.say()
}

// say tells the observer, and writes a line unless one was written a moment ago.
func (p *chapterProgress) say() {
	now := time.Now()
	due := now.Sub(p.said) >= sayEvery
	if !due && p.o.Progress == nil {
		return
	}
	more, worked := 0.0, p.here
	for _, w := range p.running {
		more += w.done
		worked += w.done - w.before
	}
	left := math.Max(0, p.plan-p.done-more)
	share := 1 - left/math.Max(p.plan, left)
	if worked > 0 {
		left *= now.Sub(p.began).Seconds() / worked
	}
	if p.o.Progress != nil {
		p.o.Progress(p.name, p.ran, p.runs, share, left)
	}
	if due {
		p.said = now
		fmt.Fprintf(p.w, "%s: %d of %d runs, about %v left\n", p.name, p.ran, p.runs, inWords(left))
	}
}

func inWords(seconds float64) time.Duration {
	return time.Duration(math.Ceil(seconds)) * time.Second
}

// expectedSeconds is what a run takes on two cores, roughly: estimates are corrected by
// what the runs before took.
func (j job) expectedSeconds() float64 {
	const (
		overhead        = 0.3  // of loading data
		lenetSample     = 1e-5 // a forward pass
		logisticSample  = 4e-7
		gradientSamples = 4 // forward passes to a gradient
		tests           = 2000
	)
	c := j.Config
	losses, err := experiment.Passes(c)
	if err != nil {
		return 0 // the run will say so
	}
	samples := float64(losses * c.Devices.Count * c.Optimizer.BatchSize)
	sample := logisticSample
	if c.Task.Model == "lenet" {
		sample = lenetSample
	}
	if c.System().Gradients {
		samples *= gradientSamples
	}
	round := samples*sample + encryptionSeconds(c)
	evaluations := float64(c.Optimizer.Rounds/c.Optimizer.EvaluateEvery + 6)
	return overhead + float64(c.Optimizer.Rounds)*round + evaluations*tests*sample
}

// encryptionSeconds is what the uplink of a round takes, all devices together.
func encryptionSeconds(c config.Config) float64 {
	if !c.System().Encrypts {
		return 0
	}
	p, form, err := setup.ParameterSet(c.Encryption)
	if err != nil {
		return 0 // the run will say so
	}
	const perResidue = 6e-7 // of n times the number of primes
	share := 0.5
	if form == xmkckks.Whole {
		share = 1
	}
	return perResidue * share * float64(p.N*len(p.Primes))
}
