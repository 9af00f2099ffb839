package model

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"ringwave/learner/dataset"
)

// Softmax is logistic regression of more than two classes: a logit a class, and the mean
// categorical cross-entropy of their softmax. Theta has the weights, class by class one a
// feature, followed by a bias a class, so that d is the number of classes times that of
// features plus one; it starts at zero, where the loss is the logarithm of the number of
// classes.
type Softmax struct{ features, classes int }

// NewSoftmax returns the model of samples of the given number of features, at least 1, and
// classes, from 2 to 256.
func NewSoftmax(features, classes int) (*Softmax, error) {
	if features < 1 || classes < 2 || classes > 256 {
		return nil, fmt.Errorf("softmax regression: there are %d features and %d classes; allowed are 1 or more and 2 to 256", features, classes)
	}
	return &Softmax{features, classes}, nil
}

// Dim returns the number of classes times that of features plus one.
func (m *Softmax) Dim() int { return m.classes * (m.features + 1) }

// Features returns the number of features of a sample.
func (m *Softmax) Features() int { return m.features }

// Classes returns the number of classes.
func (m *Softmax) Classes() int { return m.classes }

// Init sets theta to zero; it draws nothing.
func (m *Softmax) Init(theta []float64, _ *rand.Rand) { clear(theta) }

// NewWorker returns a Worker.
func (m *Softmax) NewWorker() Worker {
	return &softmaxWorker{m.features, newDotter(), make([]float64, m.classes), make([]float64, m.classes), make([]float64, m.classes)}
}

type softmaxWorker struct {
	features int
	dotter   dotter
	// at are the logits of a sample at theta, along those at phi, and side those at a point
	// on either side.
	at, along, side []float64
}

// Losses passes over the samples once for all three points, as logits are linear in theta.
func (w *softmaxWorker) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	return w.Partial(Want{F: true, Minus: true}, theta, phi, gamma, set, batch)
}

// Partial leaves out what follows from the logits.
func (w *softmaxWorker) Partial(want Want, theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	for b, i := range batch {
		y := set.Y[i]
		w.logits(theta, phi, set.Row(i), set.Row(batch[min(b+1, len(batch)-1)]))
		plus += categorical(w.beside(gamma), y)
		if want.F {
			f += categorical(w.at, y)
		}
		if want.Minus {
			minus += categorical(w.beside(-gamma), y)
		}
	}
	n := float64(len(batch))
	return f / n, plus / n, minus / n
}

// logits sets at and along of a sample, and fetches the next.
func (w *softmaxWorker) logits(theta, phi, x, next []float64) {
	biases := len(w.at) * w.features
	for c := range w.at {
		from, to := c*w.features, (c+1)*w.features
		at, along := w.dotter.dot(x, next, theta[from:to], phi[from:to])
		w.at[c], w.along[c] = at+theta[biases+c], along+phi[biases+c]
	}
}

// beside returns the logits at theta + gamma phi.
func (w *softmaxWorker) beside(gamma float64) []float64 {
	for c, at := range w.at {
		w.side[c] = at + gamma*w.along[c]
	}
	return w.side
}

// decide sets at to a sample's logits at theta.
func (w *softmaxWorker) decide(theta, x []float64) {
	biases := len(w.at) * w.features
	for c := range w.at {
		w.at[c] = floats.Dot(x, theta[c*w.features:(c+1)*w.features]) + theta[biases+c]
	}
}

// Evaluate counts a sample as correct if the logit of its class is the largest; of equal ones
// it takes the first.
func (w *softmaxWorker) Evaluate(theta []float64, set *dataset.Set, from, to int) (loss float64, correct int) {
	for i := from; i < to; i++ {
		w.decide(theta, set.Row(i))
		loss += categorical(w.at, set.Y[i])
		if largest(w.at) == set.Y[i] {
			correct++
		}
	}
	return loss, correct
}

// Classify takes a sample for the class of the largest logit.
func (w *softmaxWorker) Classify(classes []uint8, theta []float64, set *dataset.Set, from, to int) {
	for i := from; i < to; i++ {
		w.decide(theta, set.Row(i))
		classes[i-from] = largest(w.at)
	}
}

// Gradient sums (p_c - [c = y]) x over the batch for each class c, p_c its predicted
// probability, and p_c - [c = y] for its bias.
func (w *softmaxWorker) Gradient(grad, theta []float64, set *dataset.Set, batch []int) (loss float64) {
	clear(grad)
	biases := len(w.at) * w.features
	for _, i := range batch {
		x, y := set.Row(i), set.Y[i]
		w.decide(theta, x)
		loss += categorical(w.at, y)
		copy(w.side, w.at)
		probabilities(w.side)
		w.side[y]--
		for c, slope := range w.side {
			floats.AddScaled(grad[c*w.features:(c+1)*w.features], slope, x)
			grad[biases+c] += slope
		}
	}
	n := float64(len(batch))
	floats.Scale(1/n, grad)
	return loss / n
}

// Tensors returns the weights, a row a class, and the biases.
func (m *Softmax) Tensors() []Tensor {
	return []Tensor{{"weight", []int{m.classes, m.features}}, {"bias", []int{m.classes}}}
}
