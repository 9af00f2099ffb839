package xmkckks

import (
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
)

// The sums of Rician envelopes: expectations within five standard errors of a
// simulation's, and a bound at 1e-3 that holds and is not silly; where the
// Gaussian law of the same mean and second moment would be wrong.
func TestRicianSums(t *testing.T) {
	const draws = 400_000
	for _, k := range []float64{0, 0.5, 4, 100} {
		for _, n := range []int{1, 3} {
			r := channel.NewRicianMean(k, 1)
			var mu, omega, ks []float64
			for range n {
				mu, omega, ks = append(mu, r.Mean()), append(omega, r.SecondMoment()), append(ks, k)
			}
			laws := squareLaws(mu, omega, ks)
			want, bound := expectedSums(laws, 2), largeSum(laws, 2, 1e-3)
			rnd := rand.New(keystream.FromInteger(uint64(n)).Stream())
			var s, q, s2, q2 float64
			above, half := 0, 0
			for range draws {
				sum := 0.0
				for range n {
					h := 2 * r.Draw(rnd)
					sum += h * h
				}
				s, s2 = s+sum, s2+sum*sum
				q, q2 = q+sum*sum, q2+sum*sum*sum*sum
				if sum > bound {
					above++
				}
				if sum > bound/2 {
					half++
				}
			}
			near := func(name string, sum, squares, want float64) {
				mean := sum / draws
				if e := 5 * math.Sqrt((squares/draws-mean*mean)/draws); math.Abs(mean-want) > e {
					t.Errorf("K = %v, N = %d: %s is %v, want %v within %v", k, n, name, mean, want, e)
				}
			}
			near("S", s, s2, want.S)
			near("Q", q, q2, want.Q)
			if float64(above) > 1e-3*draws || half == 0 {
				t.Errorf("K = %v, N = %d: the bound %v is exceeded %d times of %d, its half %d times", k, n, bound, above, draws, half)
			}
		}
	}
	rayleigh := channel.Rician{K: 0, Omega: 1}
	mu, omega := []float64{rayleigh.Mean()}, []float64{1}
	if a, b := expectedSums(squareLaws(mu, omega, []float64{0}), 1).Q, expectedSums(squareLaws(mu, omega, nil), 1).Q; math.Abs(a-2) > 1e-12 || b > 1.8 {
		t.Errorf("E[h^4] of a Rayleigh gain is %v, by the Gaussian law %v: want 2 and about 1.77", a, b)
	}
}
