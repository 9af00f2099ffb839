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
		delta, first := make([][]float64, devices), make([][]float64, devices)
		for i := range delta {
			for range directions {
				delta[i] = append(delta[i], rnd.NormFloat64())
			}
			first[i] = delta[i][:1]
		}
		out, err := packed.Aggregate(context.Background(), k, delta)
		if err != nil {
			t.Fatal(err)
		}
		want, err := one.Aggregate(context.Background(), k, first)
		if err != nil {
			t.Fatal(err)
		}
		truth, wanted := packed.Truth(), one.Truth()
		if out.M[0] != want.M[0] || truth.Ideal[0] != wanted.Ideal[0] || wanted.EpsStd != sigma || truth.EpsStd != sigma || out.Attempts != 1 {
			t.Fatalf("round %d: %+v of %+v, one direction gives %+v of %+v", k, out, truth, want, wanted)
		}
		h := gains.Gains(k)
		for p, m := range out.M {
			ideal := 0.0
			for i := range h {
				ideal += h[i] * delta[i][p] / mu[i]
			}
			if math.Abs(truth.Ideal[p]-ideal) > 1e-12 {
				t.Errorf("round %d, direction %d: %v, want %v", k, p, truth.Ideal[p], ideal)
			}
			eps := (m - truth.Ideal[p]) / sigma
			square[p] += eps * eps / rounds
			product[p] += eps * (out.M[0] - truth.Ideal[0]) / sigma / rounds
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
}

// Devices must all send as many values.
func TestEZOFLRefusesOtherWidths(t *testing.T) {
	packed, err := NewEZOFL(&drawnGains{make([]float64, 3)}, []float64{1, -2, 0.5}, 0.7, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packed.Aggregate(context.Background(), 1, [][]float64{{1, 2}, {1}, {1, 2}}); err == nil || !strings.Contains(err.Error(), "device 2 has 1 values and device 1 has 2") {
		t.Error(err)
	}
}
