package learner

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
)

// Gains gives the channel coefficients of each round.
type Gains interface {
	// Gains gives h_{i,k} of all devices i in round k, k >= 1: the same values
	// whenever it is asked for the same round. The slice may be reused by the
	// next call.
	Gains(round int) (h []float64)
}

// EZOFL is aggregation without encryption: Y_k of Eq. 4, the sum over devices of
// (Delta f_{i,k}/mu_i) h_{i,k} plus receiver noise n_k ~ N(0, sigma_n^2). It
// stands for M_k, as the paper's non-encrypted baseline. It is a Packer, for one
// goroutine.
type EZOFL struct {
	gains  Gains
	mu     []float64
	sigmaN float64
	stream *keystream.Stream
	rnd    *rand.Rand

	scalars []Scalar
}

// NewEZOFL gives the aggregator for len(mu) devices. Each mu_i, the mean of
// h_{i,k}, is finite and not 0; sigmaN, the deviation of n_k in the unit of
// Delta f, is finite and 0 or more. The noise of round k depends on the seed and
// k alone.
func NewEZOFL(gains Gains, mu []float64, sigmaN float64, seed keystream.Seed) (*EZOFL, error) {
	if len(mu) == 0 {
		return nil, fmt.Errorf("ezofl: mu has no value; allowed is one a device")
	}
	for i, m := range mu {
		if m == 0 || math.IsNaN(m) || math.IsInf(m, 0) {
			return nil, fmt.Errorf("ezofl: mu[%d] is %v; allowed is finite and not 0", i, m)
		}
	}
	if !(sigmaN >= 0) || math.IsInf(sigmaN, 0) {
		return nil, fmt.Errorf("ezofl: the deviation of the receiver noise is %v; allowed is finite and 0 or more", sigmaN)
	}
	stream := seed.Derive("receiver noise").Stream()
	return &EZOFL{
		gains:  gains,
		mu:     append([]float64(nil), mu...),
		sigmaN: sigmaN,
		stream: stream,
		rnd:    rand.New(stream),
	}, nil
}

// Aggregate gives M = Y_k. Ideal is Y_k without n_k and EpsStd is sigma_n.
func (a *EZOFL) Aggregate(ctx context.Context, k int, delta []float64) (Outcome, error) {
	out, err := a.AggregatePacked(ctx, k, [][]float64{delta})
	if err != nil {
		return Outcome{}, err
	}
	s := out.Scalars[0]
	return Outcome{M: s.M, Ideal: s.Ideal, EpsStd: s.EpsStd, Attempts: out.Attempts}, nil
}

// AggregatePacked gives Y_k along each direction: one symbol after another over the same
// gains h_{i,k}, each with receiver noise n_k of its own.
func (a *EZOFL) AggregatePacked(ctx context.Context, k int, delta [][]float64) (PackedOutcome, error) {
	if err := ctx.Err(); err != nil {
		return PackedOutcome{}, err
	}
	h := a.gains.Gains(k)
	for _, along := range delta {
		if len(along) != len(a.mu) || len(h) != len(a.mu) {
			return PackedOutcome{}, fmt.Errorf("ezofl: round %d has %d scalars, %d gains and %d channel means; allowed is one of each a device",
				k, len(along), len(h), len(a.mu))
		}
	}
	a.stream.Start(uint32(k), 0)
	a.scalars = a.scalars[:0]
	for _, along := range delta {
		var ideal float64
		for i, d := range along {
			ideal += d / a.mu[i] * h[i]
		}
		y := ideal + a.sigmaN*a.rnd.NormFloat64()
		a.scalars = append(a.scalars, Scalar{M: y, Ideal: ideal, EpsStd: a.sigmaN})
	}
	return PackedOutcome{Scalars: a.scalars, Attempts: 1}, nil
}
