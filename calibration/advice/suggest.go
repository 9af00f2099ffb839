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
	"ringwave/phy/rounds"
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
func altered(d rounds.Device, mean, deviation float64) rounds.Device {
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
	if slices.ContainsFunc(b.Devices, func(d rounds.Device) bool {
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
	if flat && !b.Compensated && slices.ContainsFunc(b.Devices, func(d rounds.Device) bool { return d.Delay > 0 }) {
		try("delays compensated", func(n *Bench) { n.Compensated = true })
	}
	if b.Phases != rounds.PhasesTrimmed && !b.OnLattice {
		try("phases trimmed", func(n *Bench) { n.Phases = rounds.PhasesTrimmed })
	}
	if b.ReceiverBits > 0 {
		try(fmt.Sprintf("a receiver of %d bits", b.ReceiverBits+2), func(n *Bench) { n.ReceiverBits = min(24, n.ReceiverBits+2) })
	}
	if slices.ContainsFunc(b.Devices, func(d rounds.Device) bool { return d.ConverterBits > 0 }) {
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

// suggested bounds the rounds by which a change is judged: as few as can show that 99 %
// are reached.
const suggested = 400

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
	opt.Coarse, opt.Fine, opt.Fresh = min(opt.Coarse, hopeless), min(opt.Fine, suggested/16), min(opt.Fresh, suggested)
	opt.Groups = nearby(opt.Groups, now.Group)
	opt.Bases = nearby(opt.Bases, now.Base)
	opt.SamplesPerSymbol = nearby(opt.SamplesPerSymbol, now.SamplesPerSymbol)
	list := s.bench.remedies(opt.Modem)
	s.expect(len(list))
	for _, r := range list {
		t := newSearch(r.bench, opt)
		after, err := t.remedied(ctx, now)
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
// it as it is, or of a near one that takes less airtime.
func (s *search) remedied(ctx context.Context, now Outlook) (Outlook, error) {
	best := now
	same, err := s.fit(now.Regime, now.Group, now.Base, now.SamplesPerSymbol, s.opt.Sets[0])
	if err == nil {
		results, err := s.simulate(ctx, []*candidate{same}, freshly, s.opt.Fresh)
		if err != nil {
			return now, err
		}
		for _, o := range s.outlooks(results[0]) {
			if s.surely(o, best) < 0 {
				best = o
			}
		}
	}
	s.few, s.below = true, math.Inf(1)
	if best.WithinLow >= s.opt.Wanted {
		s.below = best.RoundSeconds
	}
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

// leastGain is the share of a round's airtime that is worth a change of the bench. At
// 400 rounds and nine attempts in ten that are read, the airtime of a round has a
// deviation of about 1.7 %.
const leastGain = 0.05

// gain words what a change gives; empty if nothing.
func (s *search) gain(change string, before, after Outlook) string {
	how := fmt.Sprintf("%v, G = %d, base %d, %d samples a symbol, %d repeats", after.Regime, after.Group, after.Base, after.SamplesPerSymbol, after.Repeats)
	reaches, reached := after.WithinLow >= s.opt.Wanted, before.WithinLow >= s.opt.Wanted
	switch {
	case reaches && !reached:
		return fmt.Sprintf("%s: %.3f of rounds would be read within %d attempts in place of %.3f, with %.3g s a round (%s)", change, after.Within, s.opt.Attempts, before.Within, after.RoundSeconds, how)
	case reaches && after.RoundSeconds < (1-leastGain)*before.RoundSeconds:
		return fmt.Sprintf("%s: a round would take %.3g s in place of %.3g s (%s)", change, after.RoundSeconds, before.RoundSeconds, how)
	case !reached && after.WithinLow > before.WithinHigh:
		return fmt.Sprintf("%s: %.3f of rounds would be read within %d attempts in place of %.3f, which is still too few (%s)", change, after.Within, s.opt.Attempts, before.Within, how)
	}
	return ""
}
