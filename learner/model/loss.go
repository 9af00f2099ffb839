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
	// The first term that is left out is below 0.35^14/14! = 5e-18.
	sum := 1.0
	for i := 13.0; i >= 1; i-- {
		sum = 1 + float64(float64(r*sum)/i)
	}
	// 2^n by its exponent: -1000 <= n <= 0.
	return float64(sum * math.Float64frombits(uint64(1023+int(n))<<52))
}

// log1pUnit returns log(1+z) for 0 <= z <= 1, as 2 artanh(s) with s = z/(2+z) <= 1/3.
func log1pUnit(z float64) float64 {
	s := z / (2 + z)
	square := float64(s * s)
	// The first term that is left out is below 3^-34/35 = 2e-18 of the first.
	sum := 0.0
	for i := 33.0; i >= 1; i -= 2 {
		sum = float64(sum*square) + 1/i
	}
	return 2 * float64(s*sum)
}
