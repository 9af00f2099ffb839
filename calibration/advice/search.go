package advice

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"ringwave/crypto/xmkckks"
	"ringwave/phy/bench"
	"ringwave/phy/rounds"
	"ringwave/phy/slot"
	"ringwave/phy/trial"
)

// search simulates all candidates briefly, and the best of them at length.
type search struct {
	bench Bench
	opt   Options
	// candidates that may do, and refusals of those that cannot.
	candidates []*candidate
	few        bool    // only the best of each regime is simulated at length
	below      float64 // airtime of what is looked at; 0 for all
	refusals   []string

	progress    sync.Mutex
	done, total int
}

func newSearch(b Bench, o Options) *search {
	return &search{bench: b, opt: o}
}

// seedOf returns the seed of a candidate's rounds, by its name.
func (s *search) seedOf(c *candidate) uint64 {
	seed := s.opt.Seed.Derive(c.name())
	return binary.LittleEndian.Uint64(seed[:])
}

// finalists is how many candidates are simulated at length, beside the best of each
// set and regime.
const finalists = 4

func (s *search) run(ctx context.Context) (Advice, error) {
	s.list()
	coarse, err := s.survey(ctx)
	if err != nil {
		return Advice{}, err
	}
	each := finalists
	if s.few {
		each = 0
	}
	best := s.best(coarse, each)
	fine, err := s.simulate(ctx, best, finely, s.opt.Fine)
	if err != nil {
		return Advice{}, err
	}
	a, err := s.judge(ctx, fine)
	if err != nil {
		return Advice{}, err
	}
	s.refuseTried(coarse)
	a.Refusals = s.refusals
	return a, nil
}

// own simulates the user's own way, or says why it does not do.
func (s *search) own(ctx context.Context) (*Outlook, string, error) {
	w := s.opt.Own
	if w == nil {
		return nil, "", nil
	}
	one := newSearch(s.bench, s.opt)
	one.opt.Repeats, one.opt.Progress = w.Repeats, nil
	one.opt.Groups, one.opt.Bases, one.opt.SamplesPerSymbol = []int{w.Group}, []int{w.Base}, []int{w.SamplesPerSymbol}
	if reason := one.refuse(w.Regime); reason != "" {
		return nil, reason, nil
	}
	c, err := one.fitOwn(*w)
	if err != nil {
		return nil, fmt.Sprintf("%v with %s: %v", w.Regime, w.Params.Name, err), nil
	}
	s.expect(1)
	defer s.advance()
	results, err := one.simulate(ctx, []*candidate{c}, freshly, s.opt.Fresh)
	if err != nil {
		return nil, "", err
	}
	o := one.outlook(results[0], w.Repeats)
	return &o, "", nil
}

// judge takes other rounds for what seems best than those by which it does: the best of
// many is flattered by its own.
func (s *search) judge(ctx context.Context, fine []result) (Advice, error) {
	var seeming []found
	for _, r := range fine {
		for _, o := range s.outlooks(r) {
			seeming = append(seeming, found{o, r.c})
		}
	}
	slices.SortStableFunc(seeming, func(a, b found) int { return s.better(a.o, b.o) })
	var list []*candidate
	repeats := map[*candidate][]int{}
	for _, f := range seeming[:min(s.opt.Shown, len(seeming))] {
		if repeats[f.c] == nil {
			list = append(list, f.c)
		}
		repeats[f.c] = append(repeats[f.c], f.o.Repeats)
	}
	results, err := s.simulate(ctx, list, freshly, s.opt.Fresh)
	if err != nil {
		return Advice{}, err
	}
	var a Advice
	for _, r := range results {
		for _, n := range repeats[r.c] {
			a.Outlooks = append(a.Outlooks, s.outlook(r, n))
		}
	}
	slices.SortStableFunc(a.Outlooks, s.surely)
	if len(a.Outlooks) > 0 && a.Outlooks[0].WithinLow >= s.opt.Wanted {
		a.Reached = true
		a.Outlooks = slices.DeleteFunc(a.Outlooks, func(o Outlook) bool { return o.WithinLow < s.opt.Wanted })
	}
	return a, nil
}

// found is an outlook and whose it is.
type found struct {
	o Outlook
	c *candidate
}

// dearer is how many times the airtime of the best way found so far a candidate may
// take, at the least, to be looked at: a few rounds may flatter the best.
const dearer = 1.5

// survey simulates a few rounds of the candidates, of each set and regime the shortest
// first, until the others cannot be the best.
func (s *search) survey(ctx context.Context) ([]result, error) {
	queues := map[kind][]*candidate{}
	var kinds []kind
	for _, c := range s.candidates {
		k := kind{c.set, c.regime}
		if queues[k] == nil {
			kinds = append(kinds, k)
		}
		queues[k] = append(queues[k], c)
	}
	for _, q := range queues {
		slices.SortStableFunc(q, func(a, b *candidate) int { return cmp.Compare(s.airtime(a), s.airtime(b)) })
	}
	shortest := map[kind]float64{}
	var all []result
	for {
		var wave []*candidate
		for _, k := range kinds {
			q := queues[k]
			if best := shortest[k]; len(q) > 0 && (best == 0 || s.airtime(q[0]) <= dearer*best) {
				wave = append(wave, q[0])
				queues[k] = q[1:]
			}
		}
		if len(wave) == 0 {
			return all, nil
		}
		results, err := s.simulate(ctx, wave, coarsely, s.opt.Coarse)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
		for _, r := range results {
			k := kind{r.c.set, r.c.regime}
			for _, o := range s.outlooks(r) {
				if o.Within >= s.opt.Wanted && (shortest[k] == 0 || o.RoundSeconds < shortest[k]) {
					shortest[k] = o.RoundSeconds
				}
			}
		}
	}
}

// kind is what candidates have in common that compete.
type kind struct {
	set    string
	regime Regime
}

// result is the simulated rounds of a candidate.
type result struct {
	c      *candidate
	trials [][]rounds.Attempt
}

// part is the number of rounds that one worker simulates at a time.
const part = 100

// stage is what rounds are simulated for. Each has rounds of its own.
type stage int

const (
	coarsely stage = iota // to find what is worth a closer look
	finely                // to find the best
	freshly               // to judge these
)

// stageRounds is more than the rounds of any stage.
const stageRounds = 1 << 24

// simulate makes rounds of all candidates, on all cores.
func (s *search) simulate(ctx context.Context, list []*candidate, g stage, trials int) ([]result, error) {
	type job struct{ candidate, from, to int }
	var jobs []job
	results := make([]result, len(list))
	for i, c := range list {
		results[i] = result{c: c, trials: make([][]rounds.Attempt, trials)}
		for from := 0; from < trials; from += part {
			jobs = append(jobs, job{i, from, min(from+part, trials)})
		}
	}
	s.expect(len(jobs))
	workers := s.opt.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, j := range jobs {
		group.Go(func() error {
			defer s.advance()
			if working.Err() != nil {
				return nil
			}
			return s.part(working, results[j.candidate], g, j.from, j.to)
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("computing advice: %w", context.Cause(ctx))
	}
	return results, err
}

// mostWhole is how many symbols a round of a group may have for all of its blocks to be
// simulated where ways are judged.
const mostWhole = 200_000

// roundsOf returns the rounds of a candidate.
func (s *search) roundsOf(c *candidate, g stage) rounds.Config {
	return rounds.Config{
		Bench: s.bench.Bench, Regime: c.regime, Alpha: c.alpha, Tolerance: c.tolerance, MaxAlpha: c.maxAlpha,
		Group: c.group, Base: c.base, Modem: s.modem(c), BlockSymbols: s.opt.BlockSymbols, Layout: c.layout,
		Attempts: s.opt.Attempts, Repeats: max(0, s.opt.Repeats), Least: cmp.Or(s.opt.Minimum, len(s.bench.Devices)),
		Whole:    s.opt.WholeFrames || g == freshly && c.layout.Symbols() <= mostWhole,
		Patterns: s.opt.Seed, Seed: s.seedOf(c),
	}
}

// hopeless is how many rounds in a row without success end a coarse look.
const hopeless = 4

// part simulates some rounds of a candidate. Where none of the first of a coarse look
// is read, the others are taken to fail, too.
func (s *search) part(ctx context.Context, r result, g stage, from, to int) error {
	simulation, err := rounds.New(s.roundsOf(r.c, g))
	if err != nil {
		return err
	}
	read := false
	for k := from; k < to; k++ {
		if ctx.Err() != nil || g == coarsely && !read && k-from == hopeless {
			return nil
		}
		r.trials[k] = simulation.Round(int(g)*stageRounds + k)
		for _, a := range r.trials[k] {
			read = read || a.Needed[slot.Transmissions-1] != rounds.Unread
		}
	}
	return nil
}

func (s *search) expect(jobs int) {
	s.progress.Lock()
	defer s.progress.Unlock()
	s.total += jobs
}

func (s *search) advance() {
	s.progress.Lock()
	defer s.progress.Unlock()
	s.done++
	if s.opt.Progress != nil {
		s.opt.Progress(s.done, s.total)
	}
}

// outlook judges a candidate with so many repeats by its rounds.
func (s *search) outlook(r result, repeats int) Outlook {
	c, devices := r.c, len(s.bench.Devices)
	o := Outlook{
		Regime: c.regime, Group: c.group, Slots: c.slots(devices), Base: c.base, SamplesPerSymbol: c.samples, Repeats: repeats,
		Set: c.set, Form: c.design.Form, MaxAlpha: c.maxAlpha, Alpha: math.NaN(), Misfit: math.NaN(),
		Rounds: len(r.trials), AirtimeSeconds: s.airtime(c), EpsStd: c.design.DecodedStd(), RoundSeconds: math.Inf(1),
	}
	once, within, samples := 0, 0, 0
	var misfits, alphas []float64
	for _, attempts := range r.trials {
		if attempts == nil { // taken to fail
			samples += s.opt.Attempts * c.layout.Samples[0] * o.Slots
			continue
		}
		for i, a := range attempts {
			samples += a.Samples(c.layout, repeats)
			if a.Read(repeats) {
				within++
				if i == 0 {
					once++
				}
				misfits, alphas = append(misfits, a.Misfit), append(alphas, a.Alpha)
				break
			}
		}
	}
	o.AtOnce, o.Within = float64(once)/float64(o.Rounds), float64(within)/float64(o.Rounds)
	o.Low, o.High = trial.Wilson(once, o.Rounds)
	o.WithinLow, o.WithinHigh = trial.Wilson(within, o.Rounds)
	if within == 0 {
		return o
	}
	o.RoundSeconds = float64(samples) / s.bench.SampleRateHz / float64(within)
	o.Misfit, o.Alpha = median(misfits), median(alphas)
	if c.regime == bench.Blind && o.Slots == 1 {
		link := c.design.Link
		link.Alpha = o.Alpha
		if d, err := xmkckks.NewDesign(c.design.Params, c.design.Form, link); err == nil {
			o.EpsStd = d.DecodedStd()
		}
	}
	return o
}

func median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// outlooks returns those of a candidate, the ones left out that need more airtime than
// one with fewer repeats and are not read more often.
func (s *search) outlooks(r result) []Outlook {
	var list []Outlook
	for repeats := range max(0, s.opt.Repeats) + 1 {
		o := s.outlook(r, repeats)
		if n := len(list); n > 0 && o.AtOnce <= list[n-1].AtOnce && o.Within <= list[n-1].Within {
			break
		}
		list = append(list, o)
	}
	return list
}

// better orders outlooks, the best first: those that reach what is wanted by their
// airtime, before all others by their probability.
func (s *search) better(a, b Outlook) int {
	return compare(a, b, a.Within >= s.opt.Wanted, b.Within >= s.opt.Wanted)
}

// surely is better with the lower end of the interval for what is reached.
func (s *search) surely(a, b Outlook) int {
	return compare(a, b, a.WithinLow >= s.opt.Wanted, b.WithinLow >= s.opt.Wanted)
}

func compare(a, b Outlook, reachA, reachB bool) int {
	switch {
	case reachA != reachB:
		if reachA {
			return -1
		}
		return 1
	case reachA:
		return cmp.Or(cmp.Compare(a.RoundSeconds, b.RoundSeconds), cmp.Compare(b.Within, a.Within), cmp.Compare(a.name(), b.name()))
	}
	return cmp.Or(cmp.Compare(b.Within, a.Within), cmp.Compare(a.RoundSeconds, b.RoundSeconds), cmp.Compare(a.name(), b.name()))
}

func (o Outlook) name() string {
	return fmt.Sprintf("%v %03d %02d %02d %d %s", o.Regime, o.Group, o.Base, o.SamplesPerSymbol, o.Repeats, o.Set)
}

// best returns the candidates worth a closer look: of each set and regime those that
// seem to reach what is wanted, the shortest first; and those that are the nearest.
func (s *search) best(results []result, each int) []*candidate {
	taken, listed := map[kind]int{}, map[*candidate]bool{}
	var entries []found
	for _, r := range results {
		for _, o := range s.outlooks(r) {
			if o.Within == 0 {
				continue
			}
			// A few rounds tell little: the upper end of the interval counts.
			o.Within = o.WithinHigh
			entries = append(entries, found{o, r.c})
		}
	}
	slices.SortStableFunc(entries, func(a, b found) int { return s.better(a.o, b.o) })
	var list []*candidate
	for _, e := range entries {
		k := kind{e.c.set, e.c.regime}
		if listed[e.c] || taken[k] >= 1 && len(list)-len(taken) >= each {
			continue
		}
		listed[e.c] = true
		taken[k]++
		list = append(list, e.c)
	}
	return list
}

// list makes all candidates, and says of those that cannot do why.
func (s *search) list() {
	for _, regime := range s.opt.Regimes {
		if reason := s.refuse(regime); reason != "" {
			s.refusals = append(s.refusals, reason)
			continue
		}
		for _, p := range s.opt.Sets {
			s.listSet(regime, p)
		}
	}
}

func (s *search) listSet(regime Regime, p xmkckks.Params) {
	var reason error
	for _, group := range s.opt.Groups {
		for _, base := range s.opt.Bases {
			for _, samples := range s.opt.SamplesPerSymbol {
				if regime != bench.Emulated && s.hopeless(regime, group, base, samples) {
					continue
				}
				c, err := s.fit(regime, group, base, samples, p)
				if err != nil {
					if reason == nil {
						reason = err
					}
					continue
				}
				if s.below > 0 && s.airtime(c) >= s.below {
					continue
				}
				if t := s.airtime(c); s.bench.CoherenceSeconds > 0 && t > s.bench.CoherenceSeconds {
					if reason == nil {
						reason = fmt.Errorf("an attempt takes %.3g s and gains last %.3g s", t, s.bench.CoherenceSeconds)
					}
					continue
				}
				s.candidates = append(s.candidates, c)
			}
		}
	}
	if reason != nil && !slices.ContainsFunc(s.candidates, func(c *candidate) bool { return c.regime == regime && c.set == p.Name }) {
		s.refusals = append(s.refusals, fmt.Sprintf("%s with %s: %v", regime, p.Name, reason))
	}
}

// snr returns E[d^2]/Var[noise] of a soft symbol of a device that counts as gain 1, dB.
func (s *search) snr(regime Regime, base, samples int) float64 {
	return 10 * math.Log10(bench.DigitPower(base)/s.symbolNoise(regime, base, samples))
}

// fluctuation returns the mean fluctuation of the worst group of aligned devices at the
// largest digit.
func (s *search) fluctuation(group, base int) float64 {
	return s.bench.Links().Fluctuation(group, base)
}

// hopeless reports whether a closed form shows that a candidate cannot do.
func (s *search) hopeless(regime Regime, group, base, samples int) bool {
	snr := s.snr(regime, base, samples)
	if regime == bench.MeanAligned {
		return s.fluctuation(group, base) >= 0.5 || snr < bench.NeededSNR(base, bench.AlignedScale, 1)-10*math.Log10(float64(1+max(0, s.opt.Repeats)))
	}
	// Devices whose gain is as weak as the noise are not told from none.
	return snr < 0
}
