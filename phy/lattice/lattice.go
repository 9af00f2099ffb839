// Package lattice turns superposed soft symbols into integers without knowing
// who contributed how much.
//
// It takes in real symbols y_k = sum_i h_i d_{i,k} + noise, d balanced digits
// (zero mean, odd base, |d| at most 7), h_i constant over the block, and gives
// integers Y_k = sum_i H_i d_{i,k} with H_i = round(alpha h_i) for one real
// scale alpha (phy/README.md, section 3). The scale is given (emulated gains), given
// nearly (mean-aligned), or found in the symbols themselves (blind). Which result
// is right is decided by the caller's linear check, an Accept. The package never
// learns a gain, nor the number of devices; it knows nothing of keys, frames or
// waveforms.
//
// Two properties of a block are all that is used. Its characteristic function
// phi(t) = E[cos(2 pi t y)] comes near the noise's own where every t h_i is near
// an integer: such t are the candidates for alpha. And its density is a comb: the
// noiseless symbol takes few values, so that where the noise leaves valleys
// between them, a symbol is first moved to the centre of its tooth, and then
// rounded. A tooth is the sum of all devices, never one of them. The noise then
// no longer adds to the misfit of the lattice, and finer scales can be read.
//
// SNR in this package is per device and real symbol: E[d^2] mu^2 / Var[noise],
// E[d^2] = (B^2-1)/12, the noise that of the real part alone.
package lattice

import (
	"errors"
	"math"
)

// MaxLevel bounds |Y| in results: 2^24, the largest superposed digit that
// phy/digit joins.
const MaxLevel = 1 << 24

var (
	// ErrNotFinite says that a symbol is NaN or infinite.
	ErrNotFinite = errors.New("a soft symbol is not a finite number")
	// ErrNoSignal says that all symbols are equal: no digits were sent.
	ErrNoSignal = errors.New("the soft symbols do not vary: no digits to be seen")
	// ErrTooShort says that a block has fewer than MinSymbols symbols.
	ErrTooShort = errors.New("the block is too short for a blind search")
	// ErrNoLattice says that no scale gave integers that were accepted.
	ErrNoLattice = errors.New("no lattice scale gives an accepted block")
	// ErrScale says that a given scale is not a positive number, or so large that
	// |Y| would exceed MaxLevel.
	ErrScale = errors.New("the lattice scale is out of range")
)

// Accept reports whether integers are an integer superposition of what was sent:
// the linear check. It must not keep or change y.
type Accept func(y []int32) bool

// Stats says how well symbols lie on the lattice of one scale.
type Stats struct {
	// Distance is the mean squared distance of alpha y to the integers, from 0 to
	// 1/4; 1/12 for symbols that know nothing of the lattice.
	Distance float64
	// Quality is the mean of cos(2 pi alpha y), from -1 to 1.
	Quality float64
	// Largest is the largest |Y|.
	Largest int32
}

// Candidate is a scale worth trying.
type Candidate struct {
	// Alpha is the scale, in integers a unit of y.
	Alpha float64
	// Quality is phi(Alpha) of the block, noise included, from -1 to 1.
	Quality float64
	// Noise is the standard deviation, in units of y, of Gaussian noise that alone
	// would give this Quality: misfit and noise together.
	Noise float64
	// Margin is how far the worst tooth of the density stays from the boundary
	// between two integers, in units of the lattice: 1/2 at best, negative where
	// one crosses it.
	Margin float64
}

// round writes the integers nearest to alpha y to dst, which is as long as y. NaN becomes 0
// and whatever exceeds MaxLevel is clipped to it.
func round(dst []int32, y []float32, alpha float64) {
	dst = dst[:len(y)]
	for k, v := range y {
		x := alpha * float64(v)
		if math.Abs(x) <= MaxLevel {
			dst[k] = int32(nearest(x))
		} else {
			dst[k] = clipped(x)
		}
	}
}

// measure returns the statistics of Slice.
func measure(y []float32, alpha float64) Stats {
	var s Stats
	largest := 0.0
	for _, v := range y {
		x := math.Abs(alpha * float64(v))
		if !(x <= MaxLevel) {
			if x > MaxLevel {
				largest = MaxLevel
			}
			s.Distance += 0.25
			s.Quality--
			continue
		}
		i := nearest(x)
		if i > largest { // max minds what is no number, and takes its time over it
			largest = i
		}
		d := x - i
		s.Distance += d * d
		s.Quality += cosTurn(d)
	}
	if n := float64(len(y)); n > 0 {
		s.Distance /= n
		s.Quality /= n
	}
	s.Largest = int32(largest)
	return s
}

func clipped(x float64) int32 {
	switch {
	case x > 0:
		return MaxLevel
	case x < 0:
		return -MaxLevel
	}
	return 0
}

// nearest rounds |x| <= 2^24 to the nearest integer, ties to even: the sum with
// 1.5 2^52 has no room for a fraction. math.RoundToEven does the same by the bits
// where the processor's level is not known at compile time, and slower.
func nearest(x float64) float64 {
	const shift = 3 << 51
	return (x + shift) - shift
}

// cosTurn returns cos(2 pi d) for |d| <= 1/2 within 3e-7, as 1 - 2 sin^2(pi d): the
// sine's series to x^11 leaves 6e-8 at the range's end, pi/2. All powers of pi are
// in the coefficients, and the sine's d is taken out: the rest is even.
func cosTurn(d float64) float64 {
	const p2 = math.Pi * math.Pi
	z := d * d
	s := 1 + z*(-p2/6+z*(p2*p2/120+z*(-p2*p2*p2/5040+z*(p2*p2*p2*p2/362880-z*(p2*p2*p2*p2*p2/39916800)))))
	return 1 - 2*p2*z*s*s
}

// Combine adds a repetition of the same symbols to a weighted mean: acc becomes
// (weight acc + y)/(weight + 1), where weight is the number of repetitions that
// acc already holds (Chase combining). Noise of equal strength falls as
// 1/(weight + 1). With weight 0 it copies.
func Combine(acc, y []float32, weight float64) {
	y = y[:len(acc)]
	if weight == 0 {
		copy(acc, y)
		return
	}
	g := float32(1 / (weight + 1))
	for k := range acc {
		acc[k] += g * (y[k] - acc[k])
	}
}
