// Package learner trains a model by federated zero-order optimisation: the outer
// loop of the paper's Algorithm 1.
//
// It takes in a task (model, samples, their partition among devices), the laws
// of the step sizes and an Aggregator, and gives the course of training, round
// by round, with a state from which it can be continued. It hands the scalars
// Delta f of a round to the Aggregator and gets M_k back. It knows nothing of
// rings, keys, channels or radios.
//
// Equation numbers are those of the paper, as it is printed: Delta f is Eq. 3,
// Y_k Eq. 4, M_k Eq. 17, g_k Eq. 18.
package learner

import "context"

// Aggregator turns the devices' scalars into the one scalar that all of them
// get back.
type Aggregator interface {
	// Aggregate runs round k, 1 <= k <= K, with delta[i] = Delta f_{i,k} (Eq. 3)
	// of device i, or what the estimator has in its place. It must not keep or change delta. An error ends the run; a
	// round that merely failed is an Outcome with Skipped set.
	//
	// The outcome should depend on k and delta alone, and not on the rounds
	// before: otherwise a restored run continues differently.
	Aggregate(ctx context.Context, k int, delta []float64) (Outcome, error)
}

// Packer is an Aggregator that carries P scalars of each device in one round, under the
// same gains: one for each of P directions. The paper has one.
type Packer interface {
	Aggregator
	// AggregatePacked runs round k with delta[p][i], 0 <= p < P, the scalar of device i
	// along direction p. What holds for Aggregate holds for it; with P = 1 it does what
	// Aggregate does.
	AggregatePacked(ctx context.Context, k int, delta [][]float64) (PackedOutcome, error)
}

// Scalar is what a round gave for one direction: M, Ideal and EpsStd of Outcome.
type Scalar struct{ M, Ideal, EpsStd float64 }

// PackedOutcome is what one round of packed aggregation gave.
type PackedOutcome struct {
	// Scalars has one value a direction. The next round may reuse it.
	Scalars []Scalar
	// Attempts and Skipped are those of Outcome: a round succeeds or fails whole.
	Attempts int
	Skipped  bool
	// Clipped is the number of messages, over devices and directions, that were out of
	// range and were cut to it.
	Clipped int
}

// Outcome is what one round of aggregation gave.
type Outcome struct {
	// M is M_k (Eq. 17): sum_i (h_{i,k}/mu_i) Delta f_{i,k} + epsilon_k.
	M float64
	// Ideal is sum_i (h_{i,k}/mu_i) Delta f_{i,k}, computed from the gains by
	// the harness that simulates them. No device and no server knows it.
	Ideal float64
	// EpsStd is the predicted standard deviation of epsilon_k = M - Ideal, given
	// the gains.
	EpsStd float64
	// Attempts is how often the round was sent, at least 1.
	Attempts int
	// Skipped says that every attempt failed: M is 0 and means nothing, and the
	// model must not change.
	Skipped bool
	// Clipped is the number of devices whose message was out of range and was
	// cut to it.
	Clipped int
}
