package advice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ringwave/crypto/xmkckks"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
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

// change gives a gain another mean and deviation, its standard errors with them.
func (d Device) change(mean, deviation float64) Device {
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

// remedies gives what may be changed.
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
	if slices.ContainsFunc(b.Devices, func(d Device) bool { return relativeVariance(d.Gain.Mean(), d.Gain.SecondMoment()) > 1e-12 }) {
		try("half the fluctuation of the gains", func(n *Bench) {
			for i, d := range n.Devices {
				n.Devices[i] = d.change(1, 0.5)
			}
		})
	}
	if i, by := b.weakest(); by > 1 {
		try(fmt.Sprintf("device %d %.1f dB stronger", i+1, 20*math.Log10(by)), func(n *Bench) { n.Devices[i] = n.Devices[i].change(by, by) })
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

// weakest gives the device of the lowest mean, and the factor that brings it to the
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
	return device, min(2, next/low)
}

// suggested bounds the rounds simulated of what a suggestion would give.
const suggested = 100

// suggest tries each remedy with the best outlook's set, or the set that came nearest.
func (s *search) suggest(a Advice) ([]Suggestion, error) {
	if len(a.Outlooks) == 0 {
		return nil, nil
	}
	before := a.Outlooks[0]
	i := slices.IndexFunc(s.opt.Sets, func(p xmkckks.Params) bool { return p.Name == before.Set })
	opt := s.opt
	opt.Sets = opt.Sets[i : i+1]
	opt.Coarse, opt.Fine = min(opt.Coarse, hopeless), min(opt.Fine, suggested)
	opt.Groups = nearby(opt.Groups, before.Group)
	opt.Bases = nearby(opt.Bases, before.Base)
	opt.SamplesPerSymbol = nearby(opt.SamplesPerSymbol, before.SamplesPerSymbol)
	opt.Progress = nil
	list := s.bench.remedies(opt.Modem)
	s.expect(len(list))
	var out []Suggestion
	for _, r := range list {
		t := newSearch(s.ctx, r.bench, opt)
		t.few = true
		found, err := t.run()
		if err != nil {
			return nil, fmt.Errorf("trying %s: %w", r.change, err)
		}
		s.advance()
		if len(found.Outlooks) == 0 {
			continue
		}
		out = append(out, s.suggestion(r.change, before, found.Outlooks[0]))
	}
	return out, nil
}

// nearby gives a value of a list with its neighbours, those that a better bench may
// allow or ask for.
func nearby(list []int, value int) []int {
	sorted := slices.Sorted(slices.Values(list))
	i := slices.Index(sorted, value)
	return sorted[max(0, i-1):min(len(sorted), i+2)]
}

// suggestion words what a change gives.
func (s *search) suggestion(change string, before, after Outlook) Suggestion {
	v := Suggestion{Change: change, Before: before, After: after}
	how := fmt.Sprintf("%v, G = %d, base %d, %d samples a symbol, %d repeats", after.Regime, after.Group, after.Base, after.SamplesPerSymbol, after.Repeats)
	gain := 1 - after.RoundSeconds/before.RoundSeconds
	reaches, reached := after.Within >= s.opt.Wanted, before.Within >= s.opt.Wanted
	switch {
	case reaches && !reached:
		v.Sentence = fmt.Sprintf("%s: %.3f of rounds would be read within %d attempts in place of %.3f, with %.3g s a round (%s)", change, after.Within, s.opt.Attempts, before.Within, after.RoundSeconds, how)
	case reaches && gain > 0.03:
		v.Sentence = fmt.Sprintf("%s: a round would take %.3g s in place of %.3g s (%s)", change, after.RoundSeconds, before.RoundSeconds, how)
	case !reaches && after.WithinLow > before.WithinHigh:
		v.Sentence = fmt.Sprintf("%s: %.3f of rounds would be read within %d attempts in place of %.3f, which is still too few (%s)", change, after.Within, s.opt.Attempts, before.Within, how)
	default:
		v.Sentence = fmt.Sprintf("%s: nothing to gain: %.3g s a round, %.3f of them read within %d attempts", change, after.RoundSeconds, after.Within, s.opt.Attempts)
	}
	return v
}
