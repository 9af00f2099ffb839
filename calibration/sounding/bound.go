package sounding

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"ringwave/phy/modem"
)

// Bounds are Cramer-Rao bounds: the least variances of unbiased estimates from one
// burst.
type Bounds struct {
	Gain   float64 // E|error|^2
	Delay  float64 // samples^2
	Offset float64 // (cycles a sample)^2
}

// unitBounds are the bounds at gain 1 and noise 1.
type unitBounds struct {
	Bounds
	energy float64
}

// Bound returns the Cramer-Rao bounds of estimates from one burst of Samples(1), with
// gain, image, DC, delay and offset all unknown, in white Gaussian noise: those of the
// Fisher matrix 2/noise Re J^H J of the eight real unknowns, J the derivatives of the
// fitted samples. Several bursts with common delay and offset have the bounds of these
// at the sum of |gain|^2.
//
// With E = Energy, n = Fitted, and where unknowns do not couple, they are
//
//	gain:   noise/E
//	delay:  noise/(2 |gain|^2 E (2 pi RMSBandwidth)^2)
//	offset: 6 noise/((2 pi)^2 |gain|^2 (E/n) n (n^2 - 1)), for a constant envelope.
//
// Prefix and suffix could add to E, and are given away: they are where filters settle.
// At gain 0 delay and offset have infinite bounds.
func (s *Sounding) Bound(gain complex128, noise modem.Power) Bounds {
	n, power := float64(noise), square(gain)
	b := Bounds{Gain: n * s.bound.Gain, Delay: math.Inf(1), Offset: math.Inf(1)}
	if power > 0 {
		b.Delay, b.Offset = n*s.bound.Delay/power, n*s.bound.Offset/power
	}
	return b
}

// newUnitBounds inverts the Fisher matrix. The gain's own bound does not depend on the
// gain: what an unknown delay takes from it grows with the gain as the delay's
// deviation falls.
func newUnitBounds(r *regressors) (unitBounds, error) {
	nuisances := []int{atGain, atImage, atDC} // the carrier is at 0 Hz here
	const linear, all = 6, 8
	fisher := mat.NewSymDense(all, nil)
	var rows [all]complex128
	var b unitBounds
	for n := range r.signal {
		x := r.at(n)
		b.energy += square(x[atGain])
		for k, i := range nuisances {
			rows[2*k], rows[2*k+1] = x[i], complex(0, 1)*x[i]
		}
		rows[linear], rows[linear+1] = x[atDelay], x[atOffset]
		for i := range rows {
			for j := i; j < all; j++ {
				product := real(rows[i])*real(rows[j]) + imag(rows[i])*imag(rows[j])
				fisher.SetSym(i, j, fisher.At(i, j)+2*product)
			}
		}
	}
	var c mat.Cholesky
	if !c.Factorize(scaled(fisher)) {
		return b, errors.New("the unknowns of the sounding cannot be told apart")
	}
	var inverse mat.SymDense
	if err := c.InverseTo(&inverse); err != nil {
		return b, fmt.Errorf("inverting the Fisher matrix of the sounding: %w", err)
	}
	at := func(i int) float64 { return inverse.At(i, i) / fisher.At(i, i) }
	b.Gain = at(2*atGain) + at(2*atGain+1)
	b.Delay, b.Offset = at(linear), at(linear+1)
	return b, nil
}

// scaled returns a matrix with ones on its diagonal, lest units spoil its condition.
func scaled(m *mat.SymDense) *mat.SymDense {
	n := m.SymmetricDim()
	out := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			out.SetSym(i, j, m.At(i, j)/math.Sqrt(m.At(i, i)*m.At(j, j)))
		}
	}
	return out
}
