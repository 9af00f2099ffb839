package advice

import (
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/digit"
	"ringwave/phy/modem"
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
	layout    layout
	alpha     float64 // known scale; 0 to be found
	tolerance float64
}

// name is what a candidate's random streams are called: not for display.
func (c *candidate) name() string {
	return fmt.Sprintf("%v G=%d B=%d sps=%d %s alpha<=%v", c.regime, c.group, c.base, c.samples, c.set, c.maxAlpha)
}

// layout is the frames of a round.
type layout struct {
	blocks  [transmissions][]int // symbols, those of the pattern in the first
	samples [transmissions]int
	// digits is L, those of a coefficient, and top the distribution of the last one. 0
	// stands for digits that are all uniform, and frames without a pattern.
	digits int
	top    []float64
}

// topDigit gives the distribution of the last of the balanced digits of an integer that
// is uniform in (-q/2, q/2), for q = ratio B^(L-1): the probability of each digit and of
// those below it. It is not uniform, and near 0 for a ratio near 1.
func topDigit(base int, ratio float64) []float64 {
	sum, out := 0.0, make([]float64, base)
	for k := range out {
		d := float64(k - (base-1)/2)
		sum += max(0, min(ratio/2, d+0.5)-max(-ratio/2, d-0.5)) / ratio
		out[k] = sum
	}
	return out
}

// airtimeSamples gives the samples of all frames of a group.
func (l layout) airtimeSamples() int {
	sum := 0
	for _, n := range l.samples {
		sum += n
	}
	return sum
}

// symbols gives those of all blocks of a group.
func (l layout) symbols() int {
	sum := 0
	for _, blocks := range l.blocks {
		for _, n := range blocks {
			sum += n
		}
	}
	return sum
}

// alphas gives the finest scales to offer a set, the finest first.
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
	links := s.bench.links()
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

// factors gives the K-factors where all gains are Rician envelopes, nil otherwise.
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

// modem gives the modem of a candidate.
func (s *search) modem(c *candidate) modem.Config {
	m := s.opt.Modem
	m.SamplesPerSymbol = c.samples
	m.Preamble.Level = float32(c.base-1) / 2
	return m
}

// lay asks a link that only listens for the lengths of a round's frames.
func (s *search) lay(c *candidate) error {
	p := c.design.Params
	mod, err := zq.NewModulus(p.Primes)
	if err != nil {
		return err
	}
	w, err := phy.NewWaveform(phy.WaveformConfig{
		Modulus: mod, Devices: len(s.bench.Devices), Group: c.group, Base: c.base, BlockSymbols: s.opt.BlockSymbols,
		Modem: s.modem(c), Secret: keystream.Seed{},
	})
	if err != nil {
		return err
	}
	codec, err := digit.New(mod, c.base)
	if err != nil {
		return err
	}
	c.layout.digits = codec.Digits()
	c.layout.top = topDigit(c.base, math.Exp2(p.LogQ()-float64(codec.Digits()-1)*math.Log2(float64(c.base))))
	for t := range phy.Transmission(transmissions) {
		n := c.design.PayloadLength(t)
		if c.layout.blocks[t], err = w.FrameBlocks(t, n); err != nil {
			return err
		}
		if c.layout.samples[t], err = w.FrameSamples(t, n); err != nil {
			return err
		}
	}
	return nil
}

// slots gives the number of time slots.
func (c *candidate) slots(devices int) int { return (devices + c.group - 1) / c.group }

// airtime gives the seconds of an attempt without repeats.
func (s *search) airtime(c *candidate) float64 {
	return float64(c.slots(len(s.bench.Devices))*c.layout.airtimeSamples()) / s.bench.SampleRateHz
}
