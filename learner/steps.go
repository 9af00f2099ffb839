package learner

import (
	"fmt"
	"math"
)

// StepLaw is the course of a step size, eta_k or gamma_k, over the rounds.
type StepLaw interface {
	// At returns the step size of round k, k = 1..K: above 0 and finite.
	At(k int) float64
}

// PowerLaw is X0 * (1+k)^-P, the law of the paper's experiments: there P is 0.5
// for eta_k and 0.25 for gamma_k, and X0 is 0.05 for both on MNIST.
type PowerLaw struct{ X0, P float64 }

// At returns X0 * (1+k)^-P.
func (l PowerLaw) At(k int) float64 { return l.X0 * math.Pow(1+float64(k), -l.P) }

// HorizonLaw is X0 * K^(-1/4) in every round of a run of K rounds, the law of
// Theorem 2 for eta_k and for gamma_k.
type HorizonLaw struct {
	X0 float64
	K  int
}

// At returns X0 * K^(-1/4), whatever the round.
func (l HorizonLaw) At(int) float64 { return l.X0 * math.Pow(float64(l.K), -0.25) }

// CosineLaw falls from X0 in the first of K rounds to X0 (pi/2K)^2, near 0, in the last, as
// half a period of a cosine does: X0/2 (1 + cos(pi (k-1)/K)).
type CosineLaw struct {
	X0 float64
	K  int
}

// At returns X0 cos^2(pi (k-1)/2K), the same with small values exact.
func (l CosineLaw) At(k int) float64 {
	c := math.Cos(math.Pi / 2 * float64(k-1) / float64(l.K))
	return l.X0 * (c * c)
}

// WarmUp is k/Rounds of another law in the first Rounds rounds, and then that law.
type WarmUp struct {
	Law    StepLaw
	Rounds int
}

// At returns the other law's step size times min(1, k/Rounds).
func (l WarmUp) At(k int) float64 {
	if k >= l.Rounds {
		return l.Law.At(k)
	}
	return l.Law.At(k) * (float64(k) / float64(l.Rounds))
}

// checkLaw looks at the ends only: all laws are monotone but WarmUp, which is least at an end,
// and infinite at one if it is anywhere.
func checkLaw(name string, law StepLaw, rounds int) error {
	if law == nil {
		return fmt.Errorf("%s: no step law is given", name)
	}
	for _, k := range []int{1, rounds} {
		if x := law.At(k); !(x > 0) || math.IsInf(x, 0) {
			return fmt.Errorf("%s: the step size of round %d is %v; allowed is above 0 and finite", name, k, x)
		}
	}
	return nil
}
