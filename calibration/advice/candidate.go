package advice

import (
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/rounds"
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
	layout    rounds.Layout
	alpha     float64 // known scale; 0 to be found
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
	c.layout, err = rounds.LayoutOf(w, mod, c.base, c.design.PayloadLength)
	return err
}

// slots returns the number of time slots.
func (c *candidate) slots(devices int) int { return (devices + c.group - 1) / c.group }

// airtime returns the seconds of an attempt without repeats.
func (s *search) airtime(c *candidate) float64 {
	return float64(c.slots(len(s.bench.Devices))*c.layout.Airtime()) / s.bench.SampleRateHz
}
