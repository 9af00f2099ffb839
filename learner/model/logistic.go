package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"ringwave/learner/dataset"
)

// Logistic is logistic regression with mean binary cross-entropy, the model of
// the paper's MNIST experiment. Theta is one weight a feature followed by the
// bias, so that d is the number of features plus one; it starts at zero.
type Logistic struct{ features int }

// NewLogistic returns logistic regression on samples of the given number of
// features, at least 1.
func NewLogistic(features int) (*Logistic, error) {
	if features < 1 {
		return nil, fmt.Errorf("logistic regression: the number of features is %d; allowed is 1 or more", features)
	}
	return &Logistic{features: features}, nil
}

// Dim returns the number of features plus one.
func (m *Logistic) Dim() int { return m.features + 1 }

// Features returns the number of features of a sample.
func (m *Logistic) Features() int { return m.features }

// Init sets theta to zero; it draws nothing.
func (m *Logistic) Init(theta []float64, _ *rand.Rand) { clear(theta) }

// NewWorker returns a Worker, which for this model needs no scratch memory.
func (m *Logistic) NewWorker() Worker { return logisticWorker{m.features, newDotter()} }

type logisticWorker struct {
	features int
	dotter   dotter
}

// Losses passes over the samples once for all three points: the logit is linear
// in theta, so that at theta +- gamma*phi it is u +- gamma*w, with u the logit
// at theta and w the one at phi.
func (w logisticWorker) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	return w.Partial(Want{F: true, Minus: true}, theta, phi, gamma, set, batch)
}

// Partial leaves out what follows from the logits.
func (w logisticWorker) Partial(want Want, theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	bias := w.features
	for b, i := range batch {
		next := batch[min(b+1, len(batch)-1)]
		at, step := w.dotter.dot(set.Row(i), set.Row(next), theta[:bias], phi[:bias])
		at += theta[bias]
		step = gamma * (step + phi[bias])
		sign := towards(set.Y[i])
		plus += softplus(sign * (at + step))
		if want.F {
			f += softplus(sign * at)
		}
		if want.Minus {
			minus += softplus(sign * (at - step))
		}
	}
	n := float64(len(batch))
	return f / n, plus / n, minus / n
}

// Evaluate counts a sample as correct if its logit is above zero and its class
// is 1, or its logit is not above zero and its class is 0.
func (w logisticWorker) Evaluate(theta []float64, set *dataset.Set, from, to int) (loss float64, correct int) {
	for i := from; i < to; i++ {
		u := w.logit(theta, set.Row(i))
		loss += softplus(towards(set.Y[i]) * u)
		if ofLogit(u) == set.Y[i] {
			correct++
		}
	}
	return loss, correct
}

// Classify takes a sample for class 1 if its logit is above zero.
func (w logisticWorker) Classify(classes []uint8, theta []float64, set *dataset.Set, from, to int) {
	for i := from; i < to; i++ {
		classes[i-from] = ofLogit(w.logit(theta, set.Row(i)))
	}
}

// ofLogit returns the class that the one logit of two classes speaks for.
func ofLogit(u float64) uint8 {
	if u > 0 {
		return 1
	}
	return 0
}

func (w logisticWorker) logit(theta, x []float64) float64 {
	return floats.Dot(x, theta[:w.features]) + theta[w.features]
}

// towards returns the factor s for which the cross-entropy of a sample of class y
// at logit u is softplus(s*u): -log(1/(1+exp(-u))) for class 1, and the same of
// -u for class 0.
func towards(y uint8) float64 {
	if y == 1 {
		return -1
	}
	return 1
}

// softplus returns log(1 + exp(t)). The exponential is of a number that is never
// positive, so it cannot overflow.
func softplus(t float64) float64 {
	return max(t, 0) + math.Log1p(math.Exp(-math.Abs(t)))
}
