package advice

import (
	"fmt"
	"math"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/trial"
	"ringwave/phy/zq"
)

// candidate is one way to run the protocol: all but the repeats, which one simulation
// shows for all.
type candidate struct {
	regime      Regime
	group, base int
	samples     int // a symbol
	set         string
	maxAlpha    float64 // of the blind search

	design    xmkckks.Design
	modulus   *zq.Modulus
	lengths   [slot.Transmissions]int // coefficients of a payload
	frames    [slot.Transmissions]int // samples of each
	alpha     float64                 // known scale; 0 to be found
	tolerance float64
}

// name is what a candidate's random streams are called: not for display.
func (c *candidate) name() string {
	return fmt.Sprintf("%v G=%d B=%d sps=%d %s alpha<=%v", c.regime, c.group, c.base, c.samples, c.set, c.maxAlpha)
}

// alphas returns the finest scales to offer a set, the finest first.
func alphas(most float64) []float64 {
	list := []float64{most}
	for _, a := range []float64{16, 8, 4, 2, 1} {
		if a < most {
			list = append(list, a)
		}
	}
	return list
}

// fit makes a candidate of a set, or says why the set cannot carry it.
func (s *search) fit(regime Regime, group, base, samples int, p xmkckks.Params) (*candidate, error) {
	return s.fitForm(regime, group, base, samples, p, p.Form, alphas(s.opt.MaxAlpha))
}

// fitOwn makes a candidate of the user's own way, as it is.
func (s *search) fitOwn(w Own) (*candidate, error) {
	return s.fitForm(w.Regime, w.Group, w.Base, w.SamplesPerSymbol, w.Params, w.Form, []float64{s.opt.MaxAlpha})
}

// fitForm takes the first of the finest scales of a blind search that the set bears.
func (s *search) fitForm(regime Regime, group, base, samples int, p xmkckks.Params, form xmkckks.Form, blind []float64) (*candidate, error) {
	c := &candidate{regime: regime, group: group, base: base, samples: samples, set: p.Name}
	links := s.bench.Links()
	met := links.Met(regime)
	link := xmkckks.Link{Mu: met.Mu, Omega: met.Omega, K: s.bench.factors(), DeltaMax: s.opt.DeltaMax, Messages: s.opt.Messages, Shares: s.opt.KeyShares}
	finest := []float64{0}
	factor := 1.0
	switch regime {
	case bench.Emulated:
		c.alpha = math.Ldexp(1, s.bench.LatticeBits)
		link.Alpha = c.alpha
	case bench.MeanAligned:
		c.tolerance = links.AlignedTolerance(group)
		c.alpha = bench.AlignedScale
		link.Alpha = bench.AlignedScale * (1 + c.tolerance)
	case bench.Blind:
		finest = blind
		if group < len(links.Mu) {
			factor = bench.GroupScale
		}
	}
	var first error
	for _, a := range finest {
		if a > 0 {
			c.maxAlpha, link.Alpha = a, a*factor
		}
		var err error
		if c.design, err = xmkckks.NewDesign(p, form, link); err == nil {
			return c, s.lay(c)
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// factors returns the K-factors where all gains are Rician envelopes, nil otherwise.
func (b Bench) factors() []float64 {
	var k []float64
	for _, d := range b.Devices {
		r, ok := d.Gain.(channel.Rician)
		if !ok {
			return nil
		}
		k = append(k, r.K)
	}
	return k
}

// modem returns the modem of a candidate.
func (s *search) modem(c *candidate) modem.Config {
	m := s.opt.Modem
	m.SamplesPerSymbol = c.samples
	m.Preamble.Level = float32(c.base-1) / 2
	return m
}

// lay asks a link that only listens for the lengths of a round's frames.
func (s *search) lay(c *candidate) (err error) {
	if c.modulus, err = zq.NewModulus(c.design.Params.Primes); err != nil {
		return err
	}
	w, err := phy.NewWaveform(s.link(c))
	if err != nil {
		return err
	}
	for t := range slot.Transmission(slot.Transmissions) {
		c.lengths[t] = c.design.PayloadLength(t)
		if c.frames[t], err = w.FrameSamples(t, c.lengths[t]); err != nil {
			return err
		}
	}
	return nil
}

// slots returns the number of time slots.
func (c *candidate) slots(devices int) int { return (devices + c.group - 1) / c.group }

// airtime returns the samples of an attempt without repeats.
func (c *candidate) airtime(devices int) int {
	sum := 0
	for _, n := range c.frames {
		sum += n
	}
	return c.slots(devices) * sum
}

// sent returns the samples of an attempt with so many repeats, up to the first
// transmission that failed.
func (c *candidate) sent(t trial.Try, repeats int) int {
	sum := 0
	for k, groups := range t.Frames {
		failed := false
		for _, frames := range groups {
			sum += c.frames[k] * min(frames, repeats+1)
			failed = failed || frames > repeats+1
		}
		if failed {
			break
		}
	}
	return sum
}

// airtime returns the seconds of an attempt without repeats.
func (s *search) airtime(c *candidate) float64 {
	return float64(c.airtime(len(s.bench.Devices))) / s.bench.SampleRateHz
}
