package modem

import "math"

// flatness compares the windows that an integrator may take, by how flat the
// superposed symbols themselves are within them.
//
// The preamble, being the same for all devices, shows the sum of their pulses
// only. Where gains have both signs, edges of one device may hide those of
// another, or tower above the flat middle. Symbols that devices choose
// independently have no such sum: the mean square of what is not constant within a
// window is that of each device, added, whatever their signs.
type flatness struct {
	sps, window int
	reach       int // windows are looked at up to so many samples to either side

	// Of each window, from -reach on, over all symbols: the squared deviations from
	// the windows' means, how far these lie below those of the window in the middle,
	// the square of that, and the power of the means.
	deviation, gain, square, power []float64
	symbols                        float64

	// Running sums along the samples of one symbol.
	re, im, energy []float64
	single         []float64 // deviations of one symbol
}

func newFlatness(sps, window int) flatness {
	reach := sps / 2
	n, span := 2*reach+1, 2*reach+window+1
	return flatness{
		sps: sps, window: window, reach: reach,
		deviation: make([]float64, n), gain: make([]float64, n), square: make([]float64, n), power: make([]float64, n),
		re: make([]float64, span), im: make([]float64, span), energy: make([]float64, span),
		single: make([]float64, n),
	}
}

// measure takes in so many symbols, the window of the first of them beginning at
// sample first. Symbols that are not in the capture with all windows, or are
// damaged, are left out.
func (f *flatness) measure(samples []complex64, first, symbols int) {
	clear(f.deviation)
	clear(f.gain)
	clear(f.square)
	clear(f.power)
	f.symbols = 0
	for k := range symbols {
		from := first - f.reach + k*f.sps
		if to := from + len(f.re) - 1; from >= 0 && to <= len(samples) {
			f.add(samples[from:to])
		}
	}
}

// add takes in the samples of one symbol's windows.
func (f *flatness) add(samples []complex64) {
	for n, x := range samples {
		if !valid(x) {
			return
		}
		re, im := float64(real(x)), float64(imag(x))
		f.re[n+1] = f.re[n] + re
		f.im[n+1] = f.im[n] + im
		f.energy[n+1] = f.energy[n] + re*re + im*im
	}
	f.symbols++
	for s := range f.single {
		re, im := f.re[s+f.window]-f.re[s], f.im[s+f.window]-f.im[s]
		mean := (re*re + im*im) / float64(f.window)
		f.power[s] += mean
		f.single[s] = f.energy[s+f.window] - f.energy[s] - mean
	}
	here := f.single[f.reach]
	for s, v := range f.single {
		f.deviation[s] += v
		f.gain[s] += here - v
		f.square[s] += (here - v) * (here - v)
	}
}

// better returns how many samples from the middle one the flattest window lies, 0
// unless it is better by more than chance and by so much that it matters.
func (f *flatness) better() int {
	const (
		// Between symbols it may be flat, too, but there is less power.
		leastPower = 0.75
		// In units of the deviation that a gain has from symbol to symbol.
		significant = 4
		// Windows of noise alone all have the same deviation. A sample on an edge
		// that adds a quarter to it costs less than half a decibel.
		matters = 1.25
	)
	most := 0.0
	for _, p := range f.power {
		most = math.Max(most, p)
	}
	best := f.reach
	for s, v := range f.deviation {
		if v < f.deviation[best] && f.power[s] >= leastPower*most {
			best = s
		}
	}
	gain := f.gain[best]
	variance := f.square[best] - gain*gain/f.symbols
	// Below this, single precision has no say.
	floor := 1e-7 * most
	if gain*gain <= significant*significant*variance || f.deviation[f.reach] < matters*f.deviation[best]+floor {
		return 0
	}
	return best - f.reach
}
