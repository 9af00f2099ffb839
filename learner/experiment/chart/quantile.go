package chart

import (
	"math"
	"slices"
)

// Quantile returns the p-quantile, p from 0 to 1, of sorted values by the
// definition that R calls type 7 and NumPy "linear": with h = (n-1)p, the
// values at ranks floor(h) and floor(h)+1, counted from 0, weighted by h's
// fraction. At p = 1/2 it is the usual median. It is NaN if there are no values
// or p is out of range.
//
// It is not gonum's stat.Quantile, neither of whose definitions is the usual
// median: of 1, 2, 3, 4 both give 2, of 1, 2, 3 its LinInterp gives 1.5.
func Quantile(p float64, sorted []float64) float64 {
	if len(sorted) == 0 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	h := float64(len(sorted)-1) * p
	i := int(h)
	if i+1 >= len(sorted) || sorted[i] == sorted[i+1] {
		return sorted[i]
	}
	fraction := h - float64(i)
	if fraction == 0 {
		return sorted[i] // nothing of the next, which may be infinite
	}
	return sorted[i]*(1-fraction) + sorted[i+1]*fraction
}

// Quartiles returns the three quartiles of values, in any order, by Quantile.
// NaN are left out.
func Quartiles(values []float64) (lower, median, upper float64) {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(sorted)
	return Quantile(0.25, sorted), Quantile(0.5, sorted), Quantile(0.75, sorted)
}
