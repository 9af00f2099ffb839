package model

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"ringwave/learner/dataset"
)

// GradientWorker is a Worker that computes gradients as well, for the systems
// that send them whole. A model whose Worker is none can only be trained by
// differences of losses.
type GradientWorker interface {
	Worker
	// Gradient writes the gradient of the mean loss over the batch, samples
	// set.Row(batch[j]), at theta to grad, and gives that loss. Grad and theta have
	// length Dim; the batch has at least one sample.
	Gradient(grad, theta []float64, set *dataset.Set, batch []int) (loss float64)
}

// Gradient sums (p - y) x over the batch, p the predicted probability of class 1,
// and p - y for the bias.
func (w logisticWorker) Gradient(grad, theta []float64, set *dataset.Set, batch []int) (loss float64) {
	clear(grad)
	for _, i := range batch {
		x := set.Row(i)
		sign := towards(set.Y[i])
		t := sign * w.logit(theta, x)
		loss += softplus(t)
		slope := sign * logisticFunction(t)
		floats.AddScaled(grad[:w.features], slope, x)
		grad[w.features] += slope
	}
	n := float64(len(batch))
	floats.Scale(1/n, grad)
	return loss / n
}

// logisticFunction returns 1/(1 + exp(-t)), the derivative of softplus. The
// exponential is of a number that is never positive, so it cannot overflow.
func logisticFunction(t float64) float64 {
	e := math.Exp(-math.Abs(t))
	if t < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}
