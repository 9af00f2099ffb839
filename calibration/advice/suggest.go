package advice

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ringwave/crypto/xmkckks"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/trial"
)

// changed is a distribution of gains whose mean is multiplied by one factor, and
// whose deviations from it by another.
type changed struct {
	channel.Fading
	mean, deviation float64
}

func (c changed) Draw(rnd *rand.Rand) float64 {
	mu := c.Fading.Mean()
	return c.mean*mu + c.deviation*(c.Fading.Draw(rnd)-mu)
}

func (c changed) Mean() float64 { return c.mean * c.Fading.Mean() }

func (c changed) SecondMoment() float64 {
	mu := c.Fading.Mean()
	return c.Mean()*c.Mean() + c.deviation*c.deviation*max(0, c.Fading.SecondMoment()-mu*mu)
}

// altered returns a gain another mean and deviation, its standard errors with them.
func altered(d Device, mean, deviation float64) Device {
	d.Gain = changed{d.Gain, mean, deviation}
	d.MeanStd *= mean
	d.StdStd *= deviation
	return d
}

// remedy is something to do to a bench.
type remedy struct {
	change string
	bench  Bench
}

// remedies returns what may be changed.
func (b Bench) remedies(m modem.Config) []remedy {
	var list []remedy
	try := func(change string, alter func(*Bench)) {
		next := b
		next.Devices = slices.Clone(b.Devices)
		alter(&next)
		list = append(list, remedy{change, next})
	}
	for _, dB := range []float64{3, 6} {
		try(fmt.Sprintf("%g dB more SNR", dB), func(n *Bench) { n.Noise *= modem.Power(math.Pow(10, -dB/10)) })
	}
	if slices.ContainsFunc(b.Devices, func(d Device) bool {
		return bench.RelativeVariance(d.Gain.Mean(), d.Gain.SecondMoment()) > 1e-12
	}) {
		try("half the fluctuation of the gains", func(n *Bench) {
			for i, d := range n.Devices {
				n.Devices[i] = altered(d, 1, 0.5)
			}
		})
	}
	if i, by := b.weakest(); by > worthwhile {
		try(fmt.Sprintf("device %d %.1f dB stronger", i+1, 20*math.Log10(by)), func(n *Bench) { n.Devices[i] = altered(n.Devices[i], by, by) })
	}
	_, flat := m.Pulse.(modem.FlatTop)
	if flat && !b.Compensated && slices.ContainsFunc(b.Devices, func(d Device) bool { return d.Delay > 0 }) {
		try("delays compensated", func(n *Bench) { n.Compensated = true })
	}
	if b.Phases != PhasesTrimmed && !b.OnLattice {
		try("phases trimmed", func(n *Bench) { n.Phases = PhasesTrimmed })
	}
	if b.ReceiverBits > 0 {
		try(fmt.Sprintf("a receiver of %d bits", b.ReceiverBits+2), func(n *Bench) { n.ReceiverBits = min(24, n.ReceiverBits+2) })
	}
	if slices.ContainsFunc(b.Devices, func(d Device) bool { return d.ConverterBits > 0 }) {
		try("two bits more in the transmitters", func(n *Bench) {
			for i, d := range n.Devices {
				if d.ConverterBits > 0 {
					n.Devices[i].ConverterBits = min(24, d.ConverterBits+2)
				}
			}
		})
	}
	return list
}

// worthwhile is by what factor a device must be weaker than all others to be worth
// making stronger: 1 dB.
const worthwhile = 1.122

// weakest returns the device of the lowest mean, and the factor that brings it to the
// next one, at most 2: 6 dB.
func (b Bench) weakest() (device int, by float64) {
	low, next := math.Inf(1), math.Inf(1)
	for i, d := range b.Devices {
		switch size := math.Abs(d.Gain.Mean()); {
		case size < low:
			device, low, next = i, size, low
		case size < next:
			next = size
		}
	}
	if math.IsInf(next, 1) {
		return device, 1 // alone, it is weaker than none
	}
	return device, min(2, next/low)
}

// suggested bounds the rounds by which a change is judged that can only save airtime.
const suggested = 100

// mostSuggestions bounds how many are given.
const mostSuggestions = 4

// suggest tries each remedy: first with the best outlook's own way to run the protocol,
// on the same draws, then with the ways near it that take less airtime. Gains that
// chance explains are none.
func (s *search) suggest(ctx context.Context, a *Advice) error {
	if len(a.Outlooks) == 0 {
		return nil
	}
	now := a.Outlooks[0]
	i := slices.IndexFunc(s.opt.Sets, func(p xmkckks.Params) bool { return p.Name == now.Set })
	opt := s.opt
	opt.Sets, opt.Own, opt.Progress, opt.Shown = opt.Sets[i:i+1], nil, nil, 1
	opt.Coarse, opt.Fine = min(opt.Coarse, hopeless), 1
	opt.Groups = nearby(opt.Groups, now.Group)
	opt.Bases = nearby(opt.Bases, now.Base)
	opt.SamplesPerSymbol = nearby(opt.SamplesPerSymbol, now.SamplesPerSymbol)
	list := s.bench.remedies(opt.Modem)
	s.total += len(list)
	for _, r := range list {
		t := newSearch(r.bench, opt)
		after, err := t.remedied(ctx, now, s.reaches(now))
		if err != nil {
			return fmt.Errorf("trying %s: %w", r.change, err)
		}
		s.advance()
		if sentence := s.gain(r.change, now, after); sentence != "" {
			a.Suggestions = append(a.Suggestions, Suggestion{r.change, sentence, now, after})
		} else {
			a.Idle = append(a.Idle, r.change)
		}
	}
	slices.SortStableFunc(a.Suggestions, func(a, b Suggestion) int { return s.surely(a.After, b.After) })
	a.Suggestions = a.Suggestions[:min(mostSuggestions, len(a.Suggestions))]
	return nil
}

// remedied returns the best outlook of a changed bench: that of the way that was best on
// it as it is, or of a near one that takes less airtime. Where the bench as it is reaches
// what is wanted, and that nearly always at once, its way cannot become better.
func (s *search) remedied(ctx context.Context, now Outlook, reached bool) (Outlook, error) {
	best := now
	s.few, s.below = true, math.Inf(1)
	same, err := s.fit(now.Regime, now.Group, now.Base, now.SamplesPerSymbol, s.opt.Sets[0])
	if err == nil && !(reached && now.AirtimeSeconds > (1-leastGain)*now.RoundSeconds) {
		e := trial.Effort{Most: s.opt.Fresh, Samples: s.budget(longest), Enough: func(rounds []trial.Outcome) bool {
			o := s.outlook(result{same, rounds}, now.Repeats)
			return len(rounds) >= judgedLeast && (o.WithinHigh < now.Within || o.WithinLow > now.Within)
		}}
		if reached {
			e.Most = min(e.Most, suggested)
		}
		r, err := s.simulate(ctx, same, freshly, e)
		if err != nil {
			return now, err
		}
		for _, o := range s.outlooks(r) {
			if s.surely(o, best) < 0 {
				best = o
			}
		}
	}
	if s.reaches(best) {
		s.below = best.RoundSeconds
	}
	s.opt.Fresh = min(s.opt.Fresh, suggested)
	a, err := s.run(ctx)
	if err != nil {
		return best, err
	}
	if len(a.Outlooks) > 0 && s.surely(a.Outlooks[0], best) < 0 {
		best = a.Outlooks[0]
	}
	return best, nil
}

// nearby returns a value of a list with its neighbours, those that a better bench may
// allow or ask for, and the largest.
func nearby(list []int, value int) []int {
	sorted := slices.Sorted(slices.Values(list))
	i, last := slices.Index(sorted, value), len(sorted)-1
	near := sorted[max(0, i-1):min(last+1, i+2)]
	if near[len(near)-1] != sorted[last] {
		near = append(slices.Clone(near), sorted[last])
	}
	return near
}

// leastGain is the share of a round's airtime that is worth a change of the bench.
const leastGain = 0.05

// gain words what a change gives; empty if nothing.
func (s *search) gain(change string, before, after Outlook) string {
	how := fmt.Sprintf("%v, G = %d, base %d, %d samples a symbol, %d repeats", after.Regime, after.Group, after.Base, after.SamplesPerSymbol, after.Repeats)
	reaches, reached := after.Within >= s.opt.Wanted, s.reaches(before)
	switch {
	case reaches && !reached && after.WithinLow > before.Within:
		return fmt.Sprintf("%s: %.3f of rounds would be read within %d attempts in place of %.3f, with %.3g s a round (%s)", change, after.Within, s.opt.Attempts, before.Within, after.RoundSeconds, how)
	case reaches && after.RoundSeconds < (1-leastGain)*before.RoundSeconds:
		return fmt.Sprintf("%s: a round would take %.3g s in place of %.3g s (%s)", change, after.RoundSeconds, before.RoundSeconds, how)
	case !reached && after.WithinLow > before.WithinHigh:
		return fmt.Sprintf("%s: %.3f of rounds would be read within %d attempts in place of %.3f, which is still too few (%s)", change, after.Within, s.opt.Attempts, before.Within, how)
	}
	return ""
}
