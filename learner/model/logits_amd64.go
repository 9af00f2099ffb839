//go:build !purego

package model

import (
	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/vector"
)

// dotter computes products of a sample with two vectors.
type dotter struct{ vectors bool }

func newDotter() dotter { return dotter{vector.Fastest() != vector.Portable} }

// dot returns the products of x with a and with b, all as long as x, to the bit as
// gonum's floats.Dot gives them on this kind of processor: it has a sum for each remainder
// modulo 4. It fetches next, the sample that comes then, or any other.
func (d dotter) dot(x, next, a, b []float64) (xa, xb float64) {
	groups := len(x) / 4
	if !d.vectors || groups == 0 || len(next) < len(x) {
		return floats.Dot(x, a), floats.Dot(x, b)
	}
	a, b = a[:len(x)], b[:len(x)]
	var sums [8]float64
	twoDots(&x[0], &next[0], &a[0], &b[0], groups, &sums)
	for i := 4 * groups; i < len(x); i++ {
		// Converted, so that no product is joined with its addition.
		sums[0] += float64(x[i] * a[i])
		sums[4] += float64(x[i] * b[i])
	}
	total := func(s []float64) float64 { return (s[1] + s[3]) + (s[0] + s[2]) }
	return total(sums[:4]), total(sums[4:])
}
