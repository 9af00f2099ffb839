package moments

import (
	"math"
	"slices"
	"sort"
)

// ranksOf returns ranks 1 to n, equal values in the order of their places.
func ranksOf(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return x[order[a]] < x[order[b]] })
	ranks := make([]float64, len(x))
	for r, i := range order {
		ranks[i] = float64(r + 1)
	}
	return ranks
}

// scores returns van der Waerden's normal scores: what follows is exact for any law.
// Missing values stay NaN.
func scores(x []float64) []float64 {
	var present []float64
	for _, v := range x {
		if !math.IsNaN(v) {
			present = append(present, v)
		}
	}
	ranks := ranksOf(present)
	out := slices.Clone(x)
	i := 0
	for k, v := range x {
		if !math.IsNaN(v) {
			out[k] = normalQuantile(ranks[i] / float64(len(present)+1))
			i++
		}
	}
	return out
}

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func correlation(a, b []float64) float64 {
	ma, mb := meanOf(a), meanOf(b)
	var ab, aa, bb float64
	for i := range a {
		u, v := a[i]-ma, b[i]-mb
		ab, aa, bb = ab+u*v, aa+u*u, bb+v*v
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// regression returns the slope of y on x.
func regression(x, y []float64) float64 {
	mx, my := meanOf(x), meanOf(y)
	var xy, xx float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}

// kendall is Mann and Kendall's test for a trend: tau of the ranks against time and
// its probability without one. Discordant pairs are counted as a merge sort's
// inversions.
func kendall(ranks []float64) (tau, p float64) {
	n := float64(len(ranks))
	pairs := n * (n - 1) / 2
	s := pairs - 2*float64(inversions(slices.Clone(ranks), make([]float64, len(ranks))))
	shift := math.Max(0, math.Abs(s)-1) // continuity
	return s / pairs, normalTail(shift / math.Sqrt(n*(n-1)*(2*n+5)/18))
}

func inversions(x, scratch []float64) int {
	if len(x) < 2 {
		return 0
	}
	h := len(x) / 2
	count := inversions(x[:h], scratch[:h]) + inversions(x[h:], scratch[h:])
	i, j := 0, h
	for k := range scratch {
		if j == len(x) || i < h && x[i] <= x[j] {
			scratch[k] = x[i]
			i++
			continue
		}
		scratch[k] = x[j]
		j++
		count += h - i
	}
	copy(x, scratch)
	return count
}

// changePoint is the CUSUM of the ranks: the largest distance from the straight line,
// which under exchangeable values tends to that of a Brownian bridge from below, so
// that p is on the safe side. at is the first place after the change.
func changePoint(ranks []float64) (at int, size, p float64) {
	n := float64(len(ranks))
	sum, top := 0.0, 0.0
	at = 1
	for i, r := range ranks[:len(ranks)-1] {
		sum += r - (n+1)/2
		if a := math.Abs(sum); a > top {
			top, at = a, i+1
		}
	}
	size = top / math.Sqrt(n*(n*n-1)/12)
	return at, size, kolmogorovTail(size)
}

// kolmogorovTail is the probability that a Brownian bridge reaches d.
func kolmogorovTail(d float64) float64 {
	if d < 0.3 {
		return 1
	}
	sum, sign := 0.0, 1.0
	for j := 1.0; j <= 20; j++ {
		sum += sign * math.Exp(-2*j*j*d*d)
		sign = -sign
	}
	return math.Min(1, 2*sum)
}

// serial holds the correlations of scores at the first lags against independence,
// pairs within sessions only. q is Ljung and Box's Q, first the correlation at the
// first lag. p is that of the largest correlation, times the number of lags: the tail
// of Q itself is far heavier than chi-square's at the few blocks of a calibration
// (ten times at 1e-4 for 64 blocks and 8 lags), while each correlation is close to
// normal.
func serial(u []float64, spans []span) (q, first, p float64, lags int) {
	var n, square float64
	for _, v := range u {
		if !math.IsNaN(v) {
			n, square = n+1, square+v*v
		}
	}
	lags = min(10, int(n)/8)
	largest := 0.0
	for lag := 1; lag <= lags; lag++ {
		sum, pairs := 0.0, 0.0
		for _, sp := range spans {
			for k := sp.first; k+lag < sp.end; k++ {
				if v := u[k] * u[k+lag]; !math.IsNaN(v) {
					sum, pairs = sum+v, pairs+1
				}
			}
		}
		if pairs == 0 {
			continue
		}
		if lag == 1 {
			first = sum / square
		}
		part := n * (n + 2) * (sum / square) * (sum / square) / pairs
		q += part
		largest = math.Max(largest, part)
	}
	return q, first, math.Min(1, float64(lags)*normalTail(math.Sqrt(largest))), lags
}
