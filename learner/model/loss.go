package model

import "math"

// crossEntropy returns the binary cross-entropy of a sample of class y, 0 or 1, at the
// given logit: softplus(-u) for class 1, softplus(u) for class 0. It is made of
// additions, multiplications and divisions that are each rounded, and so gives the
// same bits on all processors, which math.Exp and math.Log do not; the error is a few
// units in the last place.
func crossEntropy(logit float64, y uint8) float64 {
	t := logit
	if y == 1 {
		t = -t
	}
	return max(t, 0) + log1pUnit(expNegative(-math.Abs(t)))
}

// categorical returns the cross-entropy of a sample of class y at the logits of all classes,
// log(sum_c exp(z_c)) - z_y, with the same bits on all processors, as crossEntropy.
func categorical[T float32 | float64](logits []T, y uint8) float64 {
	top, sum := float64(logits[largest(logits)]), 0.0
	for _, z := range logits {
		sum += expNegative(float64(z) - top)
	}
	return logAbove1(sum) - (float64(logits[y]) - top)
}

// largest returns the index of the largest logit, the first of equal ones; one that is no
// number is the largest.
func largest[T float32 | float64](logits []T) uint8 {
	at := 0
	for c, z := range logits {
		if z > logits[at] || z != z {
			at = c
		}
	}
	return uint8(at)
}

// probabilities puts the softmax of logits in their place.
func probabilities(logits []float64) {
	top, sum := logits[largest(logits)], 0.0
	for c, z := range logits {
		logits[c] = expNegative(z - top)
		sum += logits[c]
	}
	for c := range logits {
		logits[c] /= sum
	}
}

// logAbove1 returns log(x) for x from 1 to 2^30, and x where it is no number.
func logAbove1(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	fraction, exponent := math.Frexp(x) // x = 2 fraction 2^(exponent-1), 2 fraction in [1, 2)
	n := float64(exponent - 1)
	return float64(n*ln2High) + (float64(n*ln2Low) + log1pUnit(2*fraction-1))
}

// ln2 in two parts: the first has zeros at its end, so that its multiples up to 1100
// are exact.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// expNegative returns exp(x) for x <= 0, and x where it is no number. Where the result
// would be below 2^-1000 it is 0.
func expNegative(x float64) float64 {
	if x < -693 {
		return 0
	}
	if math.IsNaN(x) {
		return x
	}
	// x = n ln 2 + r with |r| <= ln(2)/2.
	n := math.Floor(float64(x/math.Ln2) + 0.5)
	r := float64(x-float64(n*ln2High)) - float64(n*ln2Low)
	// Even and odd terms are summed side by side. The first that is left out is below
	// 0.35^14/14! = 5e-18.
	q := float64(r * r)
	even := 1 + float64(q*(1./2+float64(q*(1./24+float64(q*(1./720+float64(q*(1./40320+float64(q*(1./3628800+float64(q*(1./479001600))))))))))))
	odd := 1 + float64(q*(1./6+float64(q*(1./120+float64(q*(1./5040+float64(q*(1./362880+float64(q*(1./39916800+float64(q*(1./6227020800))))))))))))
	sum := even + float64(r*odd)
	// 2^n by its exponent: -1000 <= n <= 0.
	return float64(sum * math.Float64frombits(uint64(1023+int(n))<<52))
}

// log1pUnit returns log(1+z) for 0 <= z <= 1, as 2 artanh(s) with s = z/(2+z) <= 1/3.
func log1pUnit(z float64) float64 {
	s := z / (2 + z)
	q := float64(s * s)
	w := float64(q * q)
	// Terms q^k/(2k+1), every other one side by side. The first that is left out is below
	// 3^-34/35 = 2e-18 of the first.
	even, odd := 1./33, 1./31
	for _, over := range [...][2]float64{{1. / 29, 1. / 27}, {1. / 25, 1. / 23}, {1. / 21, 1. / 19}, {1. / 17, 1. / 15}, {1. / 13, 1. / 11}, {1. / 9, 1. / 7}, {1. / 5, 1. / 3}} {
		even = over[0] + float64(w*even)
		odd = over[1] + float64(w*odd)
	}
	sum := (1 + float64(w*even)) + float64(q*odd)
	return 2 * float64(s*sum)
}
