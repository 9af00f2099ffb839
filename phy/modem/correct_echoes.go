package modem

import (
	"math"
	"math/cmplx"
)

// unechoer is the filter that samples are convolved with so that echoes leave the first path
// alone: its coefficients, of which the first is that of a lag, which may be negative. One
// without any does nothing.
type unechoer struct {
	first        int
	coefficients []complex128
}

const (
	// seriesEnd is the most that the terms of a series left out add up to: -80 dB.
	seriesEnd = 1e-4
	// leastCoefficient is what coefficients left out are smaller than: -94 dB.
	leastCoefficient = 2e-5
	// delayReach is to how many samples to either side a delay of a fraction of one reaches.
	delayReach = 8
)

// echoed returns a correction's echoes as a filter, and the sum of their magnitudes.
func (c Correction) echoed() (echoes unechoer, sum float64) {
	for _, e := range c.Echoes {
		if sum += cmplx.Abs(e.Gain); e.Gain != 0 {
			echoes = echoes.plus(e.delayed())
		}
	}
	return echoes, sum
}

// unechoed returns the filter of a correction: of echoes T it is 1 - T + T^2 - ..., which
// converges as gains add up to less than 1.
func (c Correction) unechoed() unechoer {
	echoes, sum := c.echoed()
	if sum == 0 {
		return unechoer{}
	}
	term := unechoer{0, []complex128{1}}
	all := term
	for rest := sum; rest > seriesEnd*(1-sum); rest *= sum {
		term = term.timesMinus(echoes)
		all = all.plus(term)
	}
	return all
}

// delayed returns an echo as a filter: of a fraction of a sample a sinc in a window.
func (e Echo) delayed() unechoer {
	whole := int(math.Round(float64(e.Delay)))
	fraction := float64(e.Delay) - float64(whole)
	if math.Abs(fraction) < 1e-3 {
		return unechoer{whole, []complex128{e.Gain}}
	}
	f := unechoer{first: whole - delayReach}
	for k := -delayReach; k <= delayReach; k++ {
		t := float64(k) - fraction
		window := math.Cos(math.Pi / 2 * t / (delayReach + 1))
		f.coefficients = append(f.coefficients, e.Gain*complex(math.Sin(math.Pi*t)/(math.Pi*t)*window*window, 0))
	}
	return f
}

func (f unechoer) end() int { return f.first + len(f.coefficients) }

// plus returns the sum of two filters, of which one may be empty.
func (f unechoer) plus(g unechoer) unechoer {
	if len(f.coefficients) == 0 {
		return g
	}
	first := min(f.first, g.first)
	sum := unechoer{first, make([]complex128, max(f.end(), g.end())-first)}
	for _, part := range []unechoer{f, g} {
		for k, v := range part.coefficients {
			sum.coefficients[part.first-first+k] += v
		}
	}
	return sum
}

// timesMinus returns minus one filter after the other.
func (f unechoer) timesMinus(g unechoer) unechoer {
	out := unechoer{f.first + g.first, make([]complex128, len(f.coefficients)+len(g.coefficients)-1)}
	for i, x := range f.coefficients {
		for k, y := range g.coefficients {
			out.coefficients[i+k] -= x * y
		}
	}
	return out
}

// most returns the largest magnitude that samples of magnitude 1 become.
func (f unechoer) most() float64 {
	if len(f.coefficients) == 0 {
		return 1
	}
	sum := 0.0
	for _, v := range f.coefficients {
		sum += cmplx.Abs(v)
	}
	return sum
}

// unecho takes echoes off samples in place. Those that are all later than what they are of take
// off what has been sent, sample by sample; others take the filter.
func (c Correction) unecho(samples []complex64) {
	echoes, _ := c.echoed()
	if echoes.first < 1 {
		c.unechoed().apply(samples)
		return
	}
	values := make([]complex64, len(echoes.coefficients))
	for k, v := range echoes.coefficients {
		values[len(values)-1-k] = complex64(v) // the latest first, as what it takes was sent first
	}
	for n := range samples {
		oldest := n - echoes.end() + 1
		skip := min(max(0, -oldest), len(values))
		var sum complex64
		for k, v := range values[skip:] {
			sum += v * samples[oldest+skip+k]
		}
		samples[n] -= sum
	}
}

// apply filters samples in place: those before the first and behind the last are 0.
func (f unechoer) apply(samples []complex64) {
	if len(f.coefficients) == 0 {
		return
	}
	before, behind := max(0, f.end()-1), max(0, -f.first)
	padded := make([]complex64, before+len(samples)+behind)
	copy(padded[before:], samples)
	for at := 0; at < len(samples); at += corrected {
		block := samples[at:min(at+corrected, len(samples))]
		clear(block)
		for k, v := range f.coefficients {
			if cmplx.Abs(v) >= leastCoefficient {
				addTimes(block, padded[before+at-f.first-k:], complex64(v))
			}
		}
	}
}

// addTimes adds to each sample that of x times a value.
func addTimes(dst, x []complex64, value complex64) {
	x = x[:len(dst)]
	re, im := real(value), imag(value)
	for n, v := range x {
		dst[n] += complex(re*real(v)-im*imag(v), re*imag(v)+im*real(v))
	}
}
