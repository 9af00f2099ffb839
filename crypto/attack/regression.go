package attack

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"
)

// regression finds the polynomial s that fits y_k = s x_k + noise in
// R[X]/(X^n + 1) best, from many pairs. At the n odd powers of the 2n-th root of
// unity a product is a product of values, and the least squares are
// sum conj(X_k) Y_k / sum |X_k|^2 at each.
type regression struct {
	fft   *fourier.CmplxFFT
	n     int
	twist []complex128
	xy    []complex128
	xx    []float64
}

func newRegression(n int) *regression {
	r := &regression{fft: fourier.NewCmplxFFT(n), n: n, xy: make([]complex128, n), xx: make([]float64, n)}
	for k := range n {
		r.twist = append(r.twist, cmplx.Rect(1, math.Pi*float64(k)/float64(n)))
	}
	return r
}

// values evaluates a polynomial at the odd powers of the root.
func (r *regression) values(x []float64) []complex128 {
	y := make([]complex128, r.n)
	for k, v := range x {
		y[k] = complex(v, 0) * r.twist[k]
	}
	return r.fft.Coefficients(y, y)
}

// add takes a pair in: y less the products of known polynomials, and x.
func (r *regression) add(y []float64, x []int8, known ...[2][]int8) {
	at := r.values(y)
	for _, pair := range known {
		a, b := r.values(floats(pair[0])), r.values(floats(pair[1]))
		for k := range at {
			at[k] -= a[k] * b[k]
		}
	}
	for k, v := range r.values(floats(x)) {
		r.xy[k] += cmplx.Conj(v) * at[k]
		r.xx[k] += real(v)*real(v) + imag(v)*imag(v)
	}
}

// solve returns s.
func (r *regression) solve() []float64 {
	at := make([]complex128, r.n)
	for k := range at {
		at[k] = r.xy[k] / complex(r.xx[k]*float64(r.n), 0)
	}
	at = r.fft.Sequence(at, at)
	s := make([]float64, r.n)
	for k := range s {
		s[k] = real(at[k] * cmplx.Conj(r.twist[k]))
	}
	return s
}
