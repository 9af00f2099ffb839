package learner

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
)

// drawnGains are h_{i,k} ~ N(1, 1).
type drawnGains struct{ h []float64 }

func (g *drawnGains) Gains(round int) []float64 {
	rnd := rand.New(keystream.FromInteger(uint64(round)).Derive("gains").Stream())
	for i := range g.h {
		g.h[i] = 1 + rnd.NormFloat64()
	}
	return g.h
}

// The first of several directions is what a round of one gives, to the bit; all meet
// the same gains, and each has receiver noise of its own, of deviation sigma_n. R = 4000
// rounds bound a variance within 5 sqrt(2/R) and a correlation within 5/sqrt(R).
func TestEZOFLCarriesPackedDirections(t *testing.T) {
	const devices, directions, rounds, sigma = 3, 4, 4000, 0.7
	mu := []float64{1, -2, 0.5}
	build := func() *EZOFL {
		a, err := NewEZOFL(&drawnGains{make([]float64, devices)}, mu, sigma, keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	packed, one, gains := build(), build(), &drawnGains{make([]float64, devices)}
	rnd := rand.New(keystream.FromInteger(4).Stream())
	var square, product [directions]float64
	for k := 1; k <= rounds; k++ {
		delta := make([][]float64, directions)
		for p := range delta {
			for range devices {
				delta[p] = append(delta[p], rnd.NormFloat64())
			}
		}
		out, err := packed.AggregatePacked(context.Background(), k, delta)
		if err != nil {
			t.Fatal(err)
		}
		want, err := one.Aggregate(context.Background(), k, delta[0])
		if err != nil {
			t.Fatal(err)
		}
		if s := out.Scalars[0]; s.M != want.M || s.Ideal != want.Ideal || s.EpsStd != want.EpsStd || out.Attempts != 1 {
			t.Fatalf("round %d: %+v, one direction gives %+v", k, s, want)
		}
		h := gains.Gains(k)
		for p, s := range out.Scalars {
			ideal := 0.0
			for i := range h {
				ideal += h[i] * delta[p][i] / mu[i]
			}
			if math.Abs(s.Ideal-ideal) > 1e-12 || s.EpsStd != sigma {
				t.Errorf("round %d, direction %d: %+v, want %v", k, p, s, ideal)
			}
			eps := (s.M - s.Ideal) / sigma
			square[p] += eps * eps / rounds
			product[p] += eps * (out.Scalars[0].M - out.Scalars[0].Ideal) / sigma / rounds
		}
	}
	for p := range square {
		if math.Abs(square[p]-1) > 5*math.Sqrt(2./rounds) {
			t.Errorf("direction %d: the noise has %.4f of its variance", p, square[p])
		}
		if p > 0 && math.Abs(product[p]) > 5/math.Sqrt(rounds) {
			t.Errorf("direction %d has some of the first one's noise: %.4f", p, product[p])
		}
	}
	if _, err := packed.AggregatePacked(context.Background(), 1, [][]float64{{1, 2, 3}, {1}}); err == nil || !strings.Contains(err.Error(), "has 1 scalars, 3 gains") {
		t.Error(err)
	}
}
