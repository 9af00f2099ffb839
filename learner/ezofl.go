package learner

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
)

// EZOFL is aggregation without encryption: Y_k of Eq. 4, the sum over devices of
// (Delta f_{i,k}/mu_i) h_{i,k} plus receiver noise n_k ~ N(0, sigma_n^2). It
// stands for M_k, as the paper's non-encrypted baseline. It is Simulated, and for one
// goroutine.
type EZOFL struct {
	gains  aggregate.Gains
	mu     []float64
	sigmaN float64
	stream *keystream.Stream
	rnd    *rand.Rand

	y, ideal []float64 // of the last round
}

// NewEZOFL returns the aggregator for len(mu) devices. Each mu_i, the mean of
// h_{i,k}, is finite and not 0; sigmaN, the deviation of n_k in the unit of
// Delta f, is finite and 0 or more. The noise of round k depends on the seed and
// k alone.
func NewEZOFL(gains aggregate.Gains, mu []float64, sigmaN float64, seed keystream.Seed) (*EZOFL, error) {
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

// Aggregate returns M = Y_k: of several values one symbol after another over the same gains
// h_{i,k}, each with receiver noise n_k of its own.
func (a *EZOFL) Aggregate(ctx context.Context, k int, values [][]float64) (aggregate.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return aggregate.Outcome{}, err
	}
	h := a.gains.Gains(k)
	if len(values) != len(a.mu) || len(h) != len(a.mu) {
		return aggregate.Outcome{}, fmt.Errorf("ezofl: round %d has values of %d devices, %d gains and %d channel means; allowed is one of each a device",
			k, len(values), len(h), len(a.mu))
	}
	width, err := aggregate.Width(values)
	if err != nil {
		return aggregate.Outcome{}, fmt.Errorf("ezofl: round %d: %w", k, err)
	}
	a.stream.Start(uint32(k), 0)
	a.y, a.ideal = a.y[:0], a.ideal[:0]
	for p := range width {
		var ideal float64
		for i, v := range values {
			ideal += v[p] / a.mu[i] * h[i]
		}
		a.ideal = append(a.ideal, ideal)
		a.y = append(a.y, ideal+a.sigmaN*a.rnd.NormFloat64())
	}
	return aggregate.Outcome{M: a.y, Attempts: 1}, nil
}

// Truth returns Y_k without n_k, and sigma_n.
func (a *EZOFL) Truth() aggregate.Truth { return aggregate.Truth{Ideal: a.ideal, EpsStd: a.sigmaN} }
