package sampler

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/crypto/keystream"
)

// leastP is the p-value below which a statistical test fails. The seeds are
// fixed: a failure is a changed sampler or a wrong one, not bad luck.
const leastP = 1e-6

func testStream(name string) *keystream.Stream {
	return keystream.FromInteger(2025).Derive(name).Stream()
}

// chiSquare compares counts with cell probabilities that sum to 1, and gives the
// p-value. Cells expected to hold fewer than ten are joined into one.
func chiSquare(t *testing.T, what string, count []int, prob []float64) {
	t.Helper()
	var n, restCount int
	var sum, restProb, chi2 float64
	for i, c := range count {
		n += c
		sum += prob[i]
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Fatalf("%s: probabilities sum to %g", what, sum)
	}
	cells := 0
	add := func(c int, p float64) {
		if e := p * float64(n); e > 0 {
			chi2 += (float64(c) - e) * (float64(c) - e) / e
			cells++
		}
	}
	for i, c := range count {
		if prob[i]*float64(n) < 10 {
			restCount += c
			restProb += prob[i]
			continue
		}
		add(c, prob[i])
	}
	switch {
	case restProb*float64(n) >= 1:
		add(restCount, restProb)
	case restCount > 10: // expected below 1
		t.Errorf("%s: %d in cells that should hold fewer than 1", what, restCount)
	}
	p := distuv.ChiSquared{K: float64(cells - 1)}.Survival(chi2)
	t.Logf("%s: chi-square %.1f, %d cells, p = %.3g", what, chi2, cells, p)
	if p < leastP {
		t.Errorf("%s: p = %.3g", what, p)
	}
}

// checkMoments compares mean and variance with what is claimed, within five
// deviations of each; m4 is E x^4 over the variance squared.
func checkMoments(t *testing.T, what string, x []float64, variance, m4 float64) {
	t.Helper()
	var sum, square float64
	for _, v := range x {
		sum += v
		square += v * v
	}
	n := float64(len(x))
	mean := sum / n / math.Sqrt(variance) * math.Sqrt(n)
	ratio := (square/n/variance - 1) / math.Sqrt((m4-1)/n)
	if m4 == 1 { // the square is constant
		ratio = (square/n/variance - 1) * 1e12
	}
	t.Logf("%s: mean %.2f and variance %.2f deviations from the claim", what, mean, ratio)
	if math.Abs(mean) > 5 || math.Abs(ratio) > 5 {
		t.Errorf("%s: mean %.2f, variance %.2f deviations from the claim", what, mean, ratio)
	}
}

// checkLags looks for correlation of x, and of its square, with later samples.
func checkLags(t *testing.T, what string, x []float64, variance float64) {
	t.Helper()
	for lag := 1; lag <= 4; lag++ {
		var r float64
		for i := range x[lag:] {
			r += x[i] * x[i+lag]
		}
		r /= variance * math.Sqrt(float64(len(x)-lag))
		if math.Abs(r) > 5 {
			t.Errorf("%s: correlation at lag %d is %.2f deviations", what, lag, r)
		}
	}
}

// probabilities returns the exact law of d on [-Bound, Bound].
func probabilities(d Distribution) []float64 {
	switch d {
	case Zero:
		return []float64{1}
	case Ternary:
		return []float64{1. / 3, 1. / 3, 1. / 3}
	case Signs:
		return []float64{0.5, 0, 0.5}
	case Binomial:
		p := make([]float64, 43)
		c := math.Ldexp(1, -42) // 42 choose i, over 2^42
		for i := range p {
			p[i] = c
			c = c * float64(42-i) / float64(i+1)
		}
		return p
	case Gaussian:
		return tableLaw(gaussianTail[:])
	}
	panic(fmt.Sprint("no law for ", d))
}

// tableLaw returns P(-K), ..., P(K) of a tail table of K entries.
func tableLaw(tail []uint64) []float64 {
	k := len(tail)
	p := make([]float64, 2*k+1)
	p[k] = math.Ldexp(float64(-tail[0]), -64)
	for i, c := range tail {
		next := uint64(0)
		if i+1 < k {
			next = tail[i+1]
		}
		p[k+1+i] = math.Ldexp(float64(c-next), -65)
		p[k-1-i] = p[k+1+i]
	}
	return p
}

// gaussianLaw returns the discrete Gaussian of parameter sigma^2 = v on [-n, n].
func gaussianLaw(v float64, n int) []float64 {
	p := make([]float64, 2*n+1)
	var total float64
	for i := range p {
		x := float64(i - n)
		p[i] = math.Exp(-x * x / (2 * v))
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// convolve returns the law of x + z y for laws p of x and q of y, both centred.
func convolve(p, q []float64, z int) []float64 {
	out := make([]float64, len(p)+z*(len(q)-1))
	for j, w := range q {
		if w == 0 {
			continue
		}
		part := out[z*j:]
		for i, v := range p {
			part[i] += v * w
		}
	}
	return out
}

// distance returns the total variation between p and the discrete Gaussian of
// parameter v, over the support of p.
func distance(p []float64, v float64) float64 {
	var d float64
	for i, q := range gaussianLaw(v, len(p)/2) {
		d += math.Abs(p[i] - q)
	}
	return d / 2
}
