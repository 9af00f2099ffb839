package theory

import (
	"math"
	"testing"

	"ringwave/crypto/keystream"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s is %v; it must be %v to a share of %v", what, got, want, tolerance)
	}
}

func problems(t *testing.T) []*Problem {
	t.Helper()
	var all []*Problem
	for _, make := range []func(keystream.Seed) (*Problem, error){NewQuadratic, NewLogistic} {
		p, err := make(keystream.FromInteger(3))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// unequal returns the moments of four devices that differ, one of them with a
// negative mean.
func unequal() (mu, sigma, omega []float64) {
	mu, sigma = []float64{1, -2, 0.5, 1.5}, []float64{1, 1, 0.5, 0}
	for i := range mu {
		omega = append(omega, mu[i]*mu[i]+sigma[i]*sigma[i])
	}
	return mu, sigma, omega
}
