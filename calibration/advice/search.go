package advice

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"ringwave/crypto/xmkckks"
	"ringwave/phy/bench"
	"ringwave/phy/trial"
)

// search simulates candidates briefly, and the best of them at length.
type search struct {
	bench Bench
	opt   Options
	// candidates that may do, and refusals of those that cannot.
	candidates []*candidate
	few        bool    // only the best of all is simulated at length
	below      float64 // airtime of what is looked at; 0 for all
	refusals   []string
	spent      int // samples of all transmitters, by the survey

	done, total int // rounds
}

func newSearch(b Bench, o Options) *search {
	return &search{bench: b, opt: o}
}

// finalists is how many candidates are simulated at length.
const finalists = 6

func (s *search) run(ctx context.Context) (Advice, error) {
	s.list()
	coarse, err := s.survey(ctx)
	if err != nil {
		return Advice{}, err
	}
	most := finalists
	if s.few {
		most = 1
	}
	fine, err := s.race(ctx, s.best(coarse, most))
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
	one.opt.Repeats = w.Repeats
	one.opt.Groups, one.opt.Bases, one.opt.SamplesPerSymbol = []int{w.Group}, []int{w.Base}, []int{w.SamplesPerSymbol}
	if reason := one.refuse(w.Regime); reason != "" {
		return nil, reason, nil
	}
	c, err := one.fitOwn(*w)
	if err != nil {
		return nil, fmt.Sprintf("%v with %s: %v", w.Regime, w.Params.Name, err), nil
	}
	r, err := one.simulate(ctx, c, freshly, trial.Effort{Least: ownLeast, Most: s.opt.Fresh, Reach: reach, Samples: s.budget(longest)})
	if err != nil {
		return nil, "", err
	}
	s.done, s.total = s.done+one.done, s.total+one.total
	o := one.outlook(r, w.Repeats)
	return &o, "", nil
}

// What a candidate's rounds may take, in samples of all transmitters: 50 million are about
// a second of one core.
const (
	shortest = 100_000_000 // to see whether it may do
	longer   = 250_000_000 // to find the best
	longest  = 1_500_000_000
	// surveyed is what all of the first looks together may take.
	surveyed = 1_000_000_000
)

// reach is how far the interval of what is read at once may go to either side where ways
// are judged, from ownLeast or judgedLeast rounds on.
const (
	reach       = 0.025
	ownLeast    = 60
	judgedLeast = 40
)

// budget returns how many samples each transmitter may send.
func (s *search) budget(all int) int { return all / len(s.bench.Devices) }

// judge takes other rounds for what seems best than those by which it does: the best of
// many is flattered by its own. The first of them, and while one does not reach what is
// wanted the next, is simulated until that is settled.
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
	var a Advice
	for _, c := range list {
		effort := trial.Effort{Least: judgedLeast, Most: s.opt.Fresh, Reach: reach, Samples: s.budget(longest)}
		if !a.Reached {
			effort.Reach, effort.Enough = 0, s.settled(c, slices.Max(repeats[c]))
		}
		r, err := s.simulate(ctx, c, freshly, effort)
		if err != nil {
			return Advice{}, err
		}
		for _, n := range repeats[c] {
			o := s.outlook(r, n)
			a.Reached = a.Reached || s.reaches(o)
			a.Outlooks = append(a.Outlooks, o)
		}
	}
	slices.SortStableFunc(a.Outlooks, s.surely)
	if a.Reached { // of others, as far as fewer rounds tell
		a.Outlooks = slices.DeleteFunc(a.Outlooks, func(o Outlook) bool { return o.Within < s.opt.Wanted })
	}
	return a, nil
}

// settled reports of rounds of a candidate whether they settle that it reaches what is
// wanted, or that it does not.
func (s *search) settled(c *candidate, repeats int) func([]trial.Outcome) bool {
	return func(rounds []trial.Outcome) bool {
		if len(rounds) < judgedLeast {
			return false
		}
		o := s.outlook(result{c, rounds}, repeats)
		return !s.few && s.reaches(o) || o.WithinHigh < s.opt.Wanted
	}
}

// found is an outlook and whose it is.
type found struct {
	o Outlook
	c *candidate
}

// dearer is how many times the airtime of the best way found so far a candidate may
// take, at the least, to be looked at: a few rounds may flatter the best.
const dearer = 1.5

// survey simulates a few rounds of the candidates, the shortest first, until the others
// cannot be the best or it has taken too long. What fails with one set fails with all.
func (s *search) survey(ctx context.Context) ([]result, error) {
	slices.SortStableFunc(s.candidates, func(a, b *candidate) int { return cmp.Compare(s.airtime(a), s.airtime(b)) })
	failed, best := map[way]bool{}, math.Inf(1)
	var all []result
	for _, c := range s.candidates {
		if s.airtime(c) > dearer*best || s.spent > surveyed {
			break
		}
		if failed[c.way()] {
			continue
		}
		unread := func(rounds []trial.Outcome) bool {
			return len(rounds) >= hopeless && !slices.ContainsFunc(rounds, func(o trial.Outcome) bool { return o.Attempt > 0 })
		}
		r, err := s.simulate(ctx, c, coarsely, trial.Effort{Most: s.opt.Coarse, Samples: s.budget(shortest), Enough: unread})
		if err != nil {
			return nil, err
		}
		for _, o := range r.rounds {
			for _, t := range o.Tries {
				s.spent += t.Samples * len(s.bench.Devices)
			}
		}
		all = append(all, r)
		failed[c.way()] = true
		for _, o := range s.outlooks(r) {
			failed[c.way()] = failed[c.way()] && o.Within == 0
			if o.Within >= s.opt.Wanted {
				best = min(best, o.RoundSeconds)
			}
		}
	}
	return all, nil
}

// way is how a candidate sends, whatever the set.
type way struct {
	regime               Regime
	group, base, samples int
}

func (c *candidate) way() way { return way{c.regime, c.group, c.base, c.samples} }

// race simulates more rounds of candidates, those that seem best first. One that falls
// behind the best so far and what is wanted for certain is given up.
func (s *search) race(ctx context.Context, list []*candidate) ([]result, error) {
	var all []result
	lead := 0.0 // the best lower end
	for _, c := range list {
		behind := func(rounds []trial.Outcome) bool {
			o := s.outlook(result{c, rounds}, s.opt.Repeats)
			return o.WithinHigh < min(lead, s.opt.Wanted)
		}
		r, err := s.simulate(ctx, c, finely, trial.Effort{Most: s.opt.Fine, Samples: s.budget(longer), Enough: behind})
		if err != nil {
			return nil, err
		}
		lead = max(lead, s.outlook(r, s.opt.Repeats).WithinLow)
		all = append(all, r)
	}
	return all, nil
}

// result is the simulated rounds of a candidate.
type result struct {
	c      *candidate
	rounds []trial.Outcome
}

// stage is what rounds are simulated for. Each has rounds of its own.
type stage int

const (
	coarsely stage = iota // to find what is worth a closer look
	finely                // to find the best
	freshly               // to judge these
)

// hopeless is how many rounds in a row without success end a coarse look.
const hopeless = 2

// simulate makes rounds of a candidate, on all cores.
func (s *search) simulate(ctx context.Context, c *candidate, g stage, e trial.Effort) (result, error) {
	before := s.done
	s.total += e.Most
	e.Workers, e.Done = s.opt.Workers, s.advance
	rounds, err := trial.Simulate(ctx, s.trials(c, g), e)
	s.total -= e.Most - (s.done - before)
	if ctx.Err() != nil {
		return result{}, fmt.Errorf("computing advice: %w", context.Cause(ctx))
	}
	return result{c, rounds}, err
}

// advance hears of a round.
func (s *search) advance() {
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
		Rounds: len(r.rounds), AirtimeSeconds: s.airtime(c), EpsStd: c.design.DecodedStd(), RoundSeconds: math.Inf(1),
	}
	once, within, samples := 0, 0, 0
	var misfits, alphas []float64
	for _, round := range r.rounds {
		for i, t := range round.Tries {
			samples += c.sent(t, repeats)
			if t.Read(repeats) {
				within++
				if i == 0 {
					once++
				}
				misfits, alphas = append(misfits, t.Misfit), append(alphas, t.Alpha)
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
	return compare(a, b, s.reaches(a), s.reaches(b))
}

// reaches reports whether an outlook reaches what is wanted for certain; of a changed bench,
// as far as few rounds tell.
func (s *search) reaches(o Outlook) bool {
	if s.few {
		return o.Within >= s.opt.Wanted
	}
	return o.WithinLow >= s.opt.Wanted
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

// best returns the candidates worth a closer look, at most so many: those that seem to
// reach what is wanted, the shortest first, and of each regime one; and those that are the
// nearest.
func (s *search) best(results []result, most int) []*candidate {
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
	seen := map[Regime]bool{}
	for _, e := range entries {
		if slices.Contains(list, e.c) || len(list) >= most && (s.few || seen[e.c.regime]) {
			continue
		}
		seen[e.c.regime] = true
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
