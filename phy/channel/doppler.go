package channel

import (
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
)

// MaxDoppler is the largest Doppler spread in cycles a sample.
const MaxDoppler = 1e-3

const (
	// dopplerPaths is the number of waves that make a branch of the scattered part.
	dopplerPaths = 32
	// dopplerStep is the number of samples from one exact gain to the next; between them
	// gains are linear, to less than 0.2 % of the scattered part at MaxDoppler.
	dopplerStep = 16
)

// doppler is a gain that fades in time: its law at any instant is the configured one, and
// its scattered part has Clarke's spectrum, of autocorrelation J_0(2 pi f t).
type doppler struct {
	law      Fading
	shift    float64 // largest, in cycles a sample
	freq     [2][dopplerPaths]float64
	phase    [2][dopplerPaths]float64
	origin   float64 // samples
	n        int64   // since then
	first    float64 // the gain at the beginning, never 0
	from, to float64 // the gains around the present instant, against the first
	stream   *keystream.Stream
	draws    *rand.Rand
}

// newDoppler returns nil for gains that stay.
func newDoppler(air Air, seed keystream.Seed) *doppler {
	if air.Doppler == 0 {
		return nil
	}
	d := &doppler{law: air.Gain, shift: air.Doppler, stream: seed.Stream()}
	d.draws = rand.New(d.stream)
	d.start(Moment{})
	return d
}

// start draws the waves of a block of fading, at an attempt's time: attempts of the same
// block go on in it.
func (d *doppler) start(m Moment) {
	if d == nil {
		return
	}
	d.stream.Start(m.Round, m.Block)
	for b := range d.freq {
		for k := range d.freq[b] {
			// Angles spread evenly but for one draw a wave within its share.
			angle := 2 * math.Pi * (float64(k) + d.draws.Float64()) / dopplerPaths
			d.freq[b][k] = d.shift * math.Cos(angle)
			d.phase[b][k] = 2 * math.Pi * d.draws.Float64()
		}
	}
	d.origin, d.n = m.Time, 0
	if d.first = d.at(0); d.first == 0 {
		d.first = math.SmallestNonzeroFloat32
	}
	d.from, d.to = 1, d.at(dopplerStep)/d.first
}

// at returns the gain so many samples after the attempt's beginning.
func (d *doppler) at(n int64) float64 {
	switch law := d.law.(type) {
	case Gaussian:
		return law.Mu + law.Sigma*d.branch(0, n)
	case Rician:
		los := math.Sqrt(law.Omega * law.K / (law.K + 1))
		scatter := math.Sqrt(law.Omega / (2 * (law.K + 1)))
		return math.Hypot(los+scatter*d.branch(0, n), scatter*d.branch(1, n))
	}
	return d.law.Mean()
}

// branch returns a branch of the scattered part, of variance 1.
func (d *doppler) branch(b int, n int64) float64 {
	sum := 0.0
	for k, f := range d.freq[b] {
		sum += math.Cos(2*math.Pi*(turns(f*d.origin)+f*float64(n)) + d.phase[b][k])
	}
	return sum * math.Sqrt(2.0/dopplerPaths)
}

// apply multiplies x by the gain against the first.
func (d *doppler) apply(x []complex64) {
	if d == nil {
		return
	}
	for n := range x {
		gain := float32(d.from + float64(d.n%dopplerStep)/dopplerStep*(d.to-d.from))
		x[n] = complex(gain*real(x[n]), gain*imag(x[n]))
		if d.n++; d.n%dopplerStep == 0 {
			d.from, d.to = d.to, d.at(d.n+dopplerStep)/d.first
		}
	}
}
