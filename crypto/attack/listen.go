package attack

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
)

// listener is a client with a receiver of its own: one antenna a device, and the
// channels, which systems that estimate them make known by their pilots. Over
// Rayleigh channels it hears any one device alone, with noise.
type listener struct {
	std float64
	rnd *rand.Rand
}

// newListener draws its channels and gives what it hears of one among the given
// number of devices: its symbols with complex noise of the given deviation at each
// antenna, times the length of the vector that cancels all others.
func newListener(devices, target int, noiseStd float64, rnd *rand.Rand) *listener {
	h := make([][]complex128, devices) // h[i][m]: row i says r h_i = (i is the target)
	for i := range h {
		for range devices {
			h[i] = append(h[i], complex(rnd.NormFloat64(), rnd.NormFloat64())/math.Sqrt2)
		}
		one := complex(0, 0)
		if i == target {
			one = 1
		}
		h[i] = append(h[i], one)
	}
	r, length := solve(h), 0.0
	for _, x := range r {
		length += real(x)*real(x) + imag(x)*imag(x)
	}
	return &listener{std: noiseStd * math.Sqrt(length), rnd: rnd}
}

// hear returns a symbol as the client has it.
func (l *listener) hear(symbol complex128) complex128 {
	return symbol + complex(l.std*l.rnd.NormFloat64(), l.std*l.rnd.NormFloat64())/math.Sqrt2
}

// solve returns the solution of n equations in n unknowns, each with its right side
// as its last entry, by elimination with the largest pivot. It overwrites them.
func solve(a [][]complex128) []complex128 {
	n := len(a)
	for col := range n {
		pivot := col
		for row := col; row < n; row++ {
			if cmplx.Abs(a[row][col]) > cmplx.Abs(a[pivot][col]) {
				pivot = row
			}
		}
		a[col], a[pivot] = a[pivot], a[col]
		for row := range n {
			if row == col {
				continue
			}
			f := a[row][col] / a[col][col]
			for k := col; k <= n; k++ {
				a[row][k] -= f * a[col][k]
			}
		}
	}
	x := make([]complex128, n)
	for i := range x {
		x[i] = a[i][n] / a[i][i]
	}
	return x
}
