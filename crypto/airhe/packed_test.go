package airhe

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
)

// The first of several directions is what a round of one gives, to the bit; each has
// the predicted error, and none has another's: encryption randomness and receiver noise
// are its own. R = 2000 rounds bound a variance within 5 sqrt(2/R) and a correlation
// within 5/sqrt(R).
func TestPackedDirections(t *testing.T) {
	const devices, directions, rounds = 4, 4, 2000
	cfg := Config{devices, 1, 0, 0.05}
	packed, one := newAggregator(t, cfg, 1), newAggregator(t, cfg, 1)
	rnd := rand.New(keystream.FromInteger(4).Stream())
	var square, product [directions]float64
	predicted := 0.0
	for k := 1; k <= rounds; k++ {
		delta, first := make([][]float64, devices), make([][]float64, devices)
		ideal := make([]float64, directions)
		for p := range ideal {
			for i := range delta {
				d := (2*rnd.Float64() - 1) / 2
				delta[i], ideal[p] = append(delta[i], d), ideal[p]+d
			}
		}
		for i := range delta {
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
		if out.M[0] != want.M[0] || truth.Ideal[0] != wanted.Ideal[0] || truth.EpsStd != wanted.EpsStd || out.Attempts != want.Attempts {
			t.Fatalf("round %d: %+v of %+v, one direction gives %+v of %+v", k, out, truth, want, wanted)
		}
		for p, m := range out.M {
			if math.Abs(truth.Ideal[p]-ideal[p]) > 1e-12 {
				t.Errorf("round %d, direction %d: %v, want %v", k, p, truth.Ideal[p], ideal[p])
			}
			eps := m - truth.Ideal[p]
			square[p] += eps * eps / rounds
			product[p] += eps * (out.M[0] - truth.Ideal[0]) / rounds
		}
		predicted += truth.EpsStd * truth.EpsStd / rounds
	}
	for p := range square {
		t.Logf("direction %d: %.4f of the predicted variance, correlation with the first %.4f", p, square[p]/predicted, product[p]/predicted)
		if math.Abs(square[p]/predicted-1) > 5*math.Sqrt(2./rounds) {
			t.Errorf("direction %d: the squared error is %.4f of the predicted", p, square[p]/predicted)
		}
		if p > 0 && math.Abs(product[p]/predicted) > 5/math.Sqrt(rounds) {
			t.Errorf("direction %d has some of the first one's error: %.4f", p, product[p]/predicted)
		}
	}
}

func TestPackedClippingAndRefusals(t *testing.T) {
	a := newAggregator(t, Config{2, 0.5, 0, 0}, 0)
	out, err := a.Aggregate(context.Background(), 1, [][]float64{{3, -2, 0.1}, {-0.25, 2, 0.2}})
	if err != nil || out.Clipped != 3 || len(out.M) != 3 || math.Abs(out.M[1]) > 6*a.Truth().EpsStd {
		t.Errorf("%+v, %v", out, err)
	}
	for want, delta := range map[string][][]float64{
		"device 2 has 1 values": {{1, 1}, {1}}, "device 2 is no number": {{1, 1}, {1, math.NaN()}},
	} {
		if _, err := a.Aggregate(context.Background(), 2, delta); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// Every direction of a round has a of its own.
func TestDirectionsHaveTheirOwnRandomness(t *testing.T) {
	x := NewEncryptor(NewSecretKey(keystream.FromInteger(1)), keystream.FromInteger(2))
	seen := map[Ciphertext]bool{}
	for round := range uint32(20) {
		for direction := range uint32(20) {
			ct := x.Encrypt(5, round, direction)
			ct[N] = 0
			if seen[ct] {
				t.Errorf("round %d, direction %d: a was there before", round, direction)
			}
			seen[ct] = true
		}
	}
}
