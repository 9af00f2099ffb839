package heairfed

import (
	"math"
	"math/cmplx"
)

// array holds the channel coefficients of a round: array[i][m] from device i to
// antenna m.
type array [][]complex128

func newArray(devices, antennas int) array {
	h := make(array, devices)
	for i := range h {
		h[i] = make([]complex128, antennas)
	}
	return h
}

// dot returns w^H h.
func dot(w, h []complex128) (sum complex128) {
	for m, x := range h {
		sum += cmplx.Conj(w[m]) * x
	}
	return sum
}

func norm(w []complex128) float64 {
	sum := 0.0
	for _, x := range w {
		sum += real(x)*real(x) + imag(x)*imag(x)
	}
	return math.Sqrt(sum)
}

// How long the receive vector is improved: by then the least gain has settled to
// a few per cent, which is what an answer to this non-convex problem is worth.
const (
	beamSteps  = 12
	dualSweeps = 40
)

// beamform returns a unit vector w that makes the least |w^H h_i| large, and that
// least. It starts at the sum of the h_i and at each of them, and keeps the best.
func beamform(h array) (w []complex128, least float64) {
	w = make([]complex128, len(h[0]))
	w[0] = 1
	least = leastGain(w, h)
	for start := -1; start < len(h); start++ {
		current := make([]complex128, len(w))
		for i := range h {
			if start < 0 || i == start {
				for m, x := range h[i] {
					current[m] += x
				}
			}
		}
		if !normalise(current) {
			continue
		}
		if g := improve(current, h); g > least {
			w, least = current, g
		}
	}
	return w, least
}

// improve moves the unit vector w to where the least gain is larger, and gives it.
// With the phases of all w^H h_i held as they are, to find the shortest w with all
// |w^H h_i| >= 1 is a convex problem; its answer never makes the least gain of the
// unit vector smaller, and gives new phases to hold.
func improve(w []complex128, h array) (least float64) {
	least = leastGain(w, h)
	turned := newArray(len(h), len(w))
	best := append([]complex128(nil), w...)
	for range beamSteps {
		for i := range h {
			phase := complex(1, 0)
			if y := dot(w, h[i]); y != 0 {
				phase = y / complex(cmplx.Abs(y), 0)
			}
			for m, x := range h[i] {
				turned[i][m] = x * cmplx.Conj(phase)
			}
		}
		shortest(w, turned)
		if !normalise(w) {
			break
		}
		if g := leastGain(w, h); g > least {
			least = g
			copy(best, w)
		}
	}
	copy(w, best)
	return least
}

// shortest sets w to about the shortest vector with Re w^H u_i >= 1 for all i: it
// is sum alpha_i u_i with alpha_i >= 0, found one alpha at a time.
func shortest(w []complex128, u array) {
	alpha := make([]float64, len(u))
	clear(w)
	for range dualSweeps {
		for i := range u {
			length := norm(u[i])
			if length == 0 {
				continue
			}
			next := math.Max(0, alpha[i]+(1-real(dot(w, u[i])))/(length*length))
			for m, x := range u[i] {
				w[m] += complex(next-alpha[i], 0) * x
			}
			alpha[i] = next
		}
	}
}

// normalise scales w to length 1, and tells whether it has a direction at all.
func normalise(w []complex128) bool {
	l := norm(w)
	if !(l > 0) || math.IsInf(l, 0) {
		return false
	}
	for m := range w {
		w[m] /= complex(l, 0)
	}
	return true
}

func leastGain(w []complex128, h array) float64 {
	least := math.Inf(1)
	for i := range h {
		least = math.Min(least, cmplx.Abs(dot(w, h[i])))
	}
	return least
}
