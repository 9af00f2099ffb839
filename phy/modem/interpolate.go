package modem

import "math"

const (
	// interpolated is how many samples a value between samples is made of, half of them
	// before it.
	interpolated = 24
	// fractions is at how many places between samples values are taken.
	fractions = 64
)

// interpolator takes the mean of values between samples, as a clock that runs apart from the
// receiver's has them. A band limits pulses, and rings where they are flat: what is left of
// that in gains is the same in all symbols only where the pulses' own samples are taken.
type interpolator struct {
	table [fractions][interpolated]float32 // a sinc under a Blackman window, by fraction
	taps  []float32
}

func newInterpolator(window int) *interpolator {
	p := &interpolator{taps: make([]float32, interpolated+window-1)}
	for f := range p.table {
		sum := 0.0
		var taps [interpolated]float64
		for n := range taps {
			x := float64(n) - (interpolated/2 - 1) - float64(f)/fractions
			u := math.Pi * x / (interpolated / 2)
			taps[n] = sinc(x) * (0.42 + 0.5*math.Cos(u) + 0.08*math.Cos(2*u))
			sum += taps[n]
		}
		for n, t := range taps {
			p.table[f][n] = float32(t / sum)
		}
	}
	return p
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// mean returns the filter of the mean of n values, the first of which lies a fraction behind
// a sample: its taps begin interpolated/2 - 1 samples before that one.
func (p *interpolator) mean(fraction, n int) []float32 {
	taps := p.taps[:interpolated+n-1]
	clear(taps)
	for i := range n {
		for k, t := range p.table[fraction] {
			taps[i+k] += t / float32(n)
		}
	}
	return taps
}
