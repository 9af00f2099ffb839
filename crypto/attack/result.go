package attack

import (
	"context"
	"fmt"
	"math"

	"ringwave/crypto/keystream"
)

// Measure says how much of a truth was recovered.
type Measure struct {
	// What says in a few words who tried what.
	What string `json:"what"`
	// Correlation is that of the recovered values with the true ones, -1..1; 0 where
	// one of them does not vary.
	Correlation float64 `json:"correlation"`
	// Exact is the share of values recovered exactly or, where the honest receiver
	// has noise of its own, to within that noise.
	Exact float64 `json:"exact"`
	// Advantage is 2p - 1, p the share of the values not 0 whose sign was recovered
	// (half of those left undecided): 0 for guessing, 1 for knowing.
	Advantage float64 `json:"advantage"`
	// Samples is the number of values.
	Samples int `json:"samples"`
}

// measure compares what was recovered with the truth; values that differ by at
// most tolerance are exact.
func measure(what string, recovered, truth []float64, tolerance float64) Measure {
	m := Measure{What: what, Samples: len(truth), Correlation: correlation(recovered, truth)}
	signs, exact, right := 0, 0, 0.0
	for k, x := range truth {
		if math.Abs(recovered[k]-x) <= tolerance {
			exact++
		}
		if x == 0 {
			continue
		}
		signs++
		switch {
		case recovered[k] == 0:
			right += 0.5
		case (recovered[k] > 0) == (x > 0):
			right++
		}
	}
	m.Exact = float64(exact) / float64(len(truth))
	if signs > 0 {
		m.Advantage = 2*right/float64(signs) - 1
	}
	return m
}

func correlation(x, y []float64) float64 {
	n := float64(len(x))
	var mx, my float64
	for k := range x {
		mx += x[k] / n
		my += y[k] / n
	}
	var xx, yy, xy float64
	for k := range x {
		xx += (x[k] - mx) * (x[k] - mx)
		yy += (y[k] - my) * (y[k] - my)
		xy += (x[k] - mx) * (y[k] - my)
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return max(-1, min(1, xy/math.Sqrt(xx)/math.Sqrt(yy))) // rounding may leave the range
}

// recovers tells that nearly everything was recovered.
func (m Measure) recovers() bool { return m.Correlation > 0.99 && m.Exact > 0.99 }

// chance tells that what was recovered is no more than guessing: correlation and
// advantage within five deviations, and no more values right than a guess among
// the secret's two or three values has.
func (m Measure) chance() bool {
	// A third of ternary values have no sign: the advantage has 1.22 times the spread.
	five := 5 / math.Sqrt(float64(m.Samples))
	return math.Abs(m.Correlation) < five && math.Abs(m.Advantage) < 1.3*five && m.Exact < 0.5+five
}

// Result is what one attack came to on one target.
type Result struct {
	// Name is the attack's, Target what is attacked.
	Name   string `json:"name"`
	Target string `json:"target"`
	// Attack is what the attack recovered, Control what the honest control beside it
	// did.
	Attack  Measure `json:"attack"`
	Control Measure `json:"control"`
	// Guard is the error with which the library refuses the step, empty where it has
	// no guard against it.
	Guard string `json:"guard,omitempty"`
	// AsStated tells that attack, control and guard came out as they must.
	AsStated bool `json:"as_stated"`
	// Verdict says in a sentence what this shows.
	Verdict string `json:"verdict"`
}

// Attack is one attack.
type Attack struct {
	// Name is what a user calls it, Short what it is.
	Name, Short string
	// Weight is about how long it takes against the others, for estimates.
	Weight float64
	run    func(ctx context.Context, seed keystream.Seed) ([]Result, error)
}

// Run carries the attack out. The results depend on the seed alone. It gives
// ctx's error if that ends first.
func (a Attack) Run(ctx context.Context, seed keystream.Seed) ([]Result, error) {
	results, err := a.run(ctx, seed.Derive("attack "+a.Name))
	if err != nil {
		return nil, fmt.Errorf("attack %s: %w", a.Name, err)
	}
	for i := range results {
		results[i].Name = a.Name
	}
	return results, nil
}

// All returns the attacks in the order of the report.
func All() []Attack {
	return []Attack{
		{"heairfed-client", "a client with the shared key decrypts another's gradient", 0.1, heairfedClient},
		{"airhe-client", "a client with the shared key decrypts another's scalar", 0.1, airheClient},
		{"xmkckks-client", "the same client tries xMK-CKKS, every parameter set", 4, xmkckksClient},
		{"colluding-clients", "N - 2 clients put their keys together, and N - 1", 2, colludingClients},
		{"small-share-noise", "one c~1 answered many times with sigma* = 3.2", 1, smallShareNoise},
		{"unflooded-rounds", "a client learns the common key from honest rounds without flooding", 10, unfloodedRounds},
		{"many-answers", "one c~1 answered 4,097 times with sigma* = 16", 2, manyAnswers},
		{"nearby-c1", "a share answered twice, for c~1 and for one near it", 0.1, nearbyC1},
		{"refreshed-errors", "b sent again and again with fresh errors on the same key", 1, refreshedErrors},
		{"chosen-c1", "a server that chooses c~1", 0.1, chosenC1},
		{"ghost", "a transmitter that nobody enrolled adds to M", 2, ghostTransmitter},
		{"lying-server", "a server that calls good attempts void solves for every scalar", 1, lyingServer},
		{"lost-device", "a server that calls devices lost after phase 3, one after the other", 1, lostDevice},
		{"chosen-b", "a server that chooses b~: 0, or an RLWE sample of a key of its own", 1, chosenB},
	}
}
