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
		delta := make([][]float64, directions)
		ideal := make([]float64, directions)
		for p := range delta {
			for range devices {
				d := (2*rnd.Float64() - 1) / 2
				delta[p], ideal[p] = append(delta[p], d), ideal[p]+d
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
		if s := out.Scalars[0]; s.M != want.M || s.Ideal != want.Ideal || s.EpsStd != want.EpsStd || out.Attempts != want.Attempts {
			t.Fatalf("round %d: %+v, one direction gives %+v", k, s, want)
		}
		for p, s := range out.Scalars {
			if math.Abs(s.Ideal-ideal[p]) > 1e-12 || s.EpsStd != want.EpsStd {
				t.Errorf("round %d, direction %d: %+v, want %v", k, p, s, ideal[p])
			}
			eps := s.M - s.Ideal
			square[p] += eps * eps / rounds
			product[p] += eps * (out.Scalars[0].M - out.Scalars[0].Ideal) / rounds
		}
		predicted += want.EpsStd * want.EpsStd / rounds
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
	out, err := a.AggregatePacked(context.Background(), 1, [][]float64{{3, -0.25}, {-2, 2}, {0.1, 0.2}})
	if err != nil || out.Clipped != 3 || len(out.Scalars) != 3 || math.Abs(out.Scalars[1].M) > 6*out.Scalars[1].EpsStd {
		t.Errorf("%+v, %v", out, err)
	}
	for want, delta := range map[string][][]float64{
		"has 1 scalars": {{1, 1}, {1}}, "device 2 is no number": {{1, 1}, {1, math.NaN()}},
	} {
		if _, err := a.AggregatePacked(context.Background(), 2, delta); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// Every direction of a round has a of its own.
func TestDirectionsHaveTheirOwnRandomness(t *testing.T) {
	x := NewEncryptor(NewSecretKey(keystream.FromInteger(1)), keystream.FromInteger(2))
	seen := map[Ciphertext]bool{}
	for round := range uint32(20) {
		if x.Encrypt(5, round) != x.EncryptAlong(5, round, 0) {
			t.Errorf("round %d: the first direction is not that of Encrypt", round)
		}
		for direction := range uint32(20) {
			ct := x.EncryptAlong(5, round, direction)
			ct[N] = 0
			if seen[ct] {
				t.Errorf("round %d, direction %d: a was there before", round, direction)
			}
			seen[ct] = true
		}
	}
}
