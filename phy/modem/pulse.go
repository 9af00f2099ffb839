package modem

import (
	"fmt"
	"math"
	"math/cmplx"
)

// Pulse is the shape of a symbol: FlatTop or RootRaisedCosine.
type Pulse interface {
	validate(sps int) error
	// half is half the pulse's support: at is 0 outside [-half, half].
	half(sps int) Samples
	// at returns the pulse at t from its centre.
	at(t Samples, sps int) float64
	// guard is the number of symbols before and after the preamble's sequence
	// that repeat it cyclically.
	guard(sps int) Symbols
	receiver(sps int) receiver
}

// FlatTop is a pulse with raised-cosine edges and a flat middle of height 1. The
// receiver takes the mean of W samples, those that the flat middles of all
// devices share while their delays differ by no more than the tolerance:
//
//	W = floor(sps - 2 Edge - Tolerance),	or with Overlap
//	W = floor(sps - Edge - Tolerance).
//
// Within the tolerance no symbol reaches into another and no gain depends on the
// timing, whatever the delays. Beyond it, without Overlap, the edges keep symbols
// apart for up to two more edges of delay, but gains depend on the timing.
//
// The cost: against a filter matched to the same pulse the signal-to-noise ratio
// falls by W/E, E the pulse's energy in samples (sps - 1.25 Edge, or with Overlap
// sps - 0.25 Edge): at 8 samples a symbol and an Edge of 1 it is 1.3 dB (1.1 dB
// with Overlap), at an Edge of 2 it is 4.4 dB (2.7 dB). The bandwidth is several
// times the symbol rate.
//
// The preamble alone may mistake the flat middle where gains have both signs: see
// Detector.Settle.
//
// All this holds for pulses that reach the receiver's samples in their shape. An
// edge is not band-limited: a channel or converter that is rings around it. At 8
// samples a symbol, two devices half a sample apart, the delay a band-limited one,
// that leaves an error of -40 dB for an Edge of 1 (-52 dB with Overlap), and -62 dB
// for an Edge of 2 and a Tolerance of 1.
type FlatTop struct {
	// Edge is the length of each edge in samples, 0 or more.
	Edge Samples
	// Tolerance is by how much delays of devices may differ. 0 stands for the
	// edge's length.
	Tolerance Samples
	// Overlap lets the falling edge of a symbol coincide with the rising edge of
	// the next, so that the pulse is sps + Edge samples long, half of each edge
	// outside its own symbol. Otherwise it is sps samples long, edges included.
	Overlap bool
}

func (p FlatTop) tolerance() Samples {
	if p.Tolerance == 0 {
		return p.Edge
	}
	return p.Tolerance
}

// window returns W.
func (p FlatTop) window(sps int) int {
	return int(math.Floor(float64(2*p.flat(sps) - p.tolerance())))
}

// flat is half the length of the flat middle.
func (p FlatTop) flat(sps int) Samples {
	if p.Overlap {
		return (Samples(sps) - p.Edge) / 2
	}
	return Samples(sps)/2 - p.Edge
}

func (p FlatTop) validate(sps int) error {
	if !(p.Edge >= 0) || !(p.Tolerance >= 0) {
		return fmt.Errorf("a flat-top pulse with an edge of %v and a tolerance of %v samples: both must be 0 or more", p.Edge, p.Tolerance)
	}
	if p.Edge > Samples(sps) || p.tolerance() > Samples(sps) || p.window(sps) < 1 {
		return fmt.Errorf("an edge of %v and a tolerance of %v samples leave nothing of a symbol of %d samples to integrate", p.Edge, p.tolerance(), sps)
	}
	return nil
}

func (p FlatTop) half(sps int) Samples { return p.flat(sps) + p.Edge }

func (p FlatTop) at(t Samples, sps int) float64 {
	// A pulse without edges is half-open: [-sps/2, sps/2).
	if p.Edge == 0 {
		if 2*t >= -Samples(sps) && 2*t < Samples(sps) {
			return 1
		}
		return 0
	}
	over := (Samples(math.Abs(float64(t))) - p.flat(sps)) / p.Edge
	switch {
	case over <= 0:
		return 1
	case over >= 1:
		return 0
	}
	return (1 + math.Cos(math.Pi*float64(over))) / 2
}

func (p FlatTop) guard(int) Symbols { return 3 }

func (p FlatTop) receiver(sps int) receiver {
	return newIntegrator(sps, p.window(sps))
}

// RootRaisedCosine is the square root, in frequency, of a pulse without
// intersymbol interference; the receiver's matched filter is the other half. Its
// energy is that of a rectangle of height 1, one symbol long, so its noise
// bandwidth is the least possible: 1/sps of the samples'.
//
// Cut off to Span symbols it leaves intersymbol interference: at 8 samples a symbol
// and a roll-off of 0.25, -39 dB for a span of 8, -54 dB for 16, -62 dB for 24 (not
// monotone: -38 dB for 12); at 0.35, -59 dB for 12; at 0.5, -51 dB for 8, -65 dB
// for 16. A device whose timing is off by x symbols adds up to x^2 pi^2/3 of its
// power, less with more roll-off: -35 to -37 dB at 0.01 symbol for roll-offs up to
// 0.35.
//
// Within the last sample at either end the pulse fades to 0: a filter cut off
// sharply changes with each sample that enters it, and so would gains and
// interference with the timing.
type RootRaisedCosine struct {
	// RollOff is the excess bandwidth, above 0 up to 1. 0.25 is usual.
	RollOff float64
	// Span is the length of the filter in symbols, 4 to 64; 16 goes well with a
	// roll-off of 0.25.
	Span Symbols
}

func (p RootRaisedCosine) validate(int) error {
	if !(p.RollOff > 0 && p.RollOff <= 1) {
		return fmt.Errorf("a root-raised-cosine pulse of roll-off %v: it must be above 0 and at most 1", p.RollOff)
	}
	if p.Span < 4 || p.Span > 64 {
		return fmt.Errorf("a root-raised-cosine pulse of %d symbols: allowed are 4 to 64", p.Span)
	}
	return nil
}

func (p RootRaisedCosine) half(sps int) Samples { return Samples(int(p.Span)*sps+1) / 2 }

func (p RootRaisedCosine) at(t Samples, sps int) float64 {
	rest := float64(p.half(sps)) - math.Abs(float64(t))
	if rest <= 0 {
		return 0
	}
	return min(1, rest) * rootRaisedCosine(float64(t)/float64(sps), p.RollOff)
}

// rootRaisedCosine returns the pulse of roll-off b at u symbols from its centre.
func rootRaisedCosine(u, b float64) float64 {
	// The formula is 0/0 at u = 0 and at |u| = 1/(4b). Nearer than this it has
	// lost more digits than the limit is wrong by.
	const near = 1e-6
	if math.Abs(u) < near {
		return 1 - b + 4*b/math.Pi
	}
	x := 4 * b * u
	if math.Abs(math.Abs(x)-1) < near {
		a := math.Pi / (4 * b)
		return b / math.Sqrt2 * ((1+2/math.Pi)*math.Sin(a) + (1-2/math.Pi)*math.Cos(a))
	}
	return (math.Sin(math.Pi*u*(1-b)) + x*math.Cos(math.Pi*u*(1+b))) / (math.Pi * u * (1 - x*x))
}

// row sets dst[n] to at(first+n): sine and cosine are turned from sample to sample, and
// computed afresh every so often.
func (p RootRaisedCosine) row(dst []float64, first Samples, sps int) {
	const afresh, near = 64, 1e-3
	b, step := p.RollOff, 1/float64(sps)
	below, above := math.Pi*(1-b), math.Pi*(1+b)
	half := float64(p.half(sps))
	turnBelow, turnAbove := cmplx.Rect(1, below*step), cmplx.Rect(1, above*step)
	var sine, cosine complex128
	for n := range dst {
		t := float64(first) + float64(n)
		u := t * step
		if n%afresh == 0 {
			sine, cosine = cmplx.Rect(1, below*u), cmplx.Rect(1, above*u)
		}
		x := 4 * b * u
		rest := half - math.Abs(t)
		switch {
		case rest <= 0:
			dst[n] = 0
		case math.Abs(u) < near || math.Abs(math.Abs(x)-1) < near: // where 0/0 is near
			dst[n] = p.at(Samples(t), sps)
		default:
			dst[n] = min(1, rest) * (imag(sine) + x*real(cosine)) / (math.Pi * u * (1 - x*x))
		}
		sine, cosine = sine*turnBelow, cosine*turnAbove
	}
}

// guard covers what one pulse reaches. The cascade of both filters reaches twice
// as far, but there it is as small as what the cut-off leaves.
func (p RootRaisedCosine) guard(int) Symbols { return p.Span/2 + 2 }

// Interference returns the power that all other symbols leave in one behind the receiver's
// filter, against its own: that of what the cut-off takes away.
func (p RootRaisedCosine) Interference(samplesPerSymbol int) float64 {
	half := int(p.half(samplesPerSymbol))
	after := func(symbols int) (sum float64) {
		for t := -half; t <= half-symbols*samplesPerSymbol; t++ {
			sum += p.at(Samples(t), samplesPerSymbol) * p.at(Samples(t+symbols*samplesPerSymbol), samplesPerSymbol)
		}
		return sum
	}
	own, others := after(0), 0.0
	for k := 1; k <= int(p.Span); k++ {
		others += 2 * after(k) * after(k)
	}
	return others / (own * own)
}

func (p RootRaisedCosine) receiver(sps int) receiver {
	return newMatched(p, sps)
}

// NoiseBandwidth returns the noise power of a soft complex symbol for complex white
// noise of power 1 a sample: 1/W for FlatTop, 1/sps for RootRaisedCosine but for
// its cut-off. A soft real symbol has half of it. Symbols' noise is independent.
func NoiseBandwidth(p Pulse, samplesPerSymbol int) float64 {
	r := p.receiver(samplesPerSymbol)
	r.tune(0)
	return r.noise()
}
