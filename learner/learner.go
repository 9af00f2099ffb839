// Package learner trains a model by federated zero-order optimisation: the outer
// loop of the paper's Algorithm 1.
//
// It takes in a task (model, samples, their partition among devices), the laws
// of the step sizes and an Aggregator, and gives the course of training, round
// by round, with a state from which it can be continued. It hands the scalars
// Delta f of a round to the Aggregator and gets M_k back. It knows nothing of
// rings, keys, channels or radios.
//
// A Trainer has all devices in it. Devices can be elsewhere instead: each is a Member,
// with its samples and its Replica of the model, and NewRemote makes the server's
// Trainer, to which they send their values by its Aggregator.
//
// Equation numbers are those of the paper, as it is printed: Delta f is Eq. 3,
// Y_k Eq. 4, M_k Eq. 17, g_k Eq. 18.
package learner

import (
	"context"

	"ringwave/crypto/aggregate"
)

// Aggregator turns the devices' values into those that all of them get back.
type Aggregator interface {
	// Aggregate runs round k, 1 <= k <= K. values[i] has the P >= 1 values of device i:
	// Delta f_{i,k} (Eq. 3), or what the estimator has in its place, along each of P
	// directions; for a GradientTrainer the gradient of f_i, P = d. It is nil where the
	// devices are elsewhere. It must not keep or change them. An error, ctx's among them, ends the run; a round that merely failed
	// is an Outcome with Skipped set.
	//
	// The outcome should depend on k and the values alone, and not on the rounds
	// before: otherwise a restored run continues differently.
	Aggregate(ctx context.Context, k int, values [][]float64) (aggregate.Outcome, error)
}

// Simulated is an Aggregator whose channel is simulated. Training does not need what it
// tells beside the outcome: it is for records and plots.
type Simulated interface {
	Aggregator
	// Truth returns what the simulation knows of the round that Aggregate ran last,
	// unless that was skipped.
	Truth() aggregate.Truth
}

// truthOf returns what is known of the round that an aggregator ran last.
func truthOf(a Aggregator) (truth aggregate.Truth, known bool) {
	s, ok := a.(Simulated)
	if !ok {
		return aggregate.Truth{}, false
	}
	truth = s.Truth()
	return truth, len(truth.Ideal) > 0
}
