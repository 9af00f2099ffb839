package model

import (
	"fmt"
	"math/rand/v2"
	"slices"

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
	return &softmaxWorker{features: m.features, dotter: newDotter(), logits: make([]float64, m.classes)}
}

type softmaxWorker struct {
	features int
	dotter   dotter
	// base are the logits at theta of the samples of batches, one after the other, which many
	// directions share, and along those at phi.
	base, along []float64
	of          softmaxBase
	logits      []float64 // of a sample
	one         [1]Batch
}

// softmaxBase says what the logits at theta are of: the number of a theta and of the batches of
// its round, and these.
type softmaxBase struct {
	at    uint64
	first *int
	count int
}

// Losses passes over the samples twice for all three points, as logits are linear in theta.
func (w *softmaxWorker) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	return w.Partial(Want{F: true, Minus: true}, theta, phi, gamma, set, batch)
}

// Partial leaves out what follows from the logits.
func (w *softmaxWorker) Partial(want Want, theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	w.one[0] = Batch{Samples: batch}
	w.Batches(Point{Theta: theta, Phi: phi, Gamma: gamma}, set, w.one[:], want)
	return w.one[0].F, w.one[0].Plus, w.one[0].Minus
}

// Together returns 1: what is shared are the logits at theta, by directions.
func (w *softmaxWorker) Together() int { return 1 }

// Batches computes the logits at theta once for all directions of a round.
func (w *softmaxWorker) Batches(at Point, set *dataset.Set, batches []Batch, want Want) {
	w.prepare(at, set, batches)
	classes, base := len(w.logits), w.base
	for i := range batches {
		b := &batches[i]
		b.F, b.Plus, b.Minus = 0, 0, 0
		w.along = w.products(w.along[:0], at.Phi, set, b.Samples)
		for j, sample := range b.Samples {
			u, v, y := base[:classes], w.along[j*classes:][:classes], set.Y[sample]
			base = base[classes:]
			b.Plus += categorical(w.beside(u, v, at.Gamma), y)
			if want.F {
				b.F += categorical(u, y)
			}
			if want.Minus {
				b.Minus += categorical(w.beside(u, v, -at.Gamma), y)
			}
		}
		n := float64(len(b.Samples))
		b.F, b.Plus, b.Minus = b.F/n, b.Plus/n, b.Minus/n
	}
}

// prepare has base be the logits of the batches at theta.
func (w *softmaxWorker) prepare(at Point, set *dataset.Set, batches []Batch) {
	of := softmaxBase{at: at.At}
	for _, b := range batches {
		if of.count == 0 {
			of.first = &b.Samples[0]
		}
		of.count += len(b.Samples)
	}
	if at.At != 0 && of == w.of {
		return
	}
	w.base, w.of = w.base[:0], of
	for _, b := range batches {
		w.base = w.products(w.base, at.Theta, set, b.Samples)
	}
}

// products appends the logits of samples at theta. Two classes at a time are done for all samples,
// so that theta is read once.
func (w *softmaxWorker) products(dst, theta []float64, set *dataset.Set, samples []int) []float64 {
	classes, from := len(w.logits), len(dst)
	dst = slices.Grow(dst, classes*len(samples))[:from+classes*len(samples)]
	biases := classes * w.features
	for c := 0; c < classes; c += 2 {
		d := min(c+1, classes-1)
		first, second := theta[c*w.features:][:w.features], theta[d*w.features:][:w.features]
		for j, sample := range samples {
			x, y := w.dotter.dot(set.Row(sample), set.Row(samples[min(j+1, len(samples)-1)]), first, second)
			at := dst[from+j*classes:][:classes]
			at[c], at[d] = x+theta[biases+c], y+theta[biases+d]
		}
	}
	return dst
}

// beside returns the logits at theta + gamma phi of a sample, from those at theta and at phi.
func (w *softmaxWorker) beside(at, along []float64, gamma float64) []float64 {
	for c, u := range at {
		w.logits[c] = u + float64(gamma*along[c])
	}
	return w.logits
}

// decide returns a sample's logits at theta.
func (w *softmaxWorker) decide(theta, x []float64) []float64 {
	biases := len(w.logits) * w.features
	for c := range w.logits {
		w.logits[c] = floats.Dot(x, theta[c*w.features:(c+1)*w.features]) + theta[biases+c]
	}
	return w.logits
}

// Evaluate counts a sample as correct if the logit of its class is the largest; of equal ones
// it takes the first.
func (w *softmaxWorker) Evaluate(theta []float64, set *dataset.Set, from, to int) (loss float64, correct int) {
	for i := from; i < to; i++ {
		logits := w.decide(theta, set.Row(i))
		loss += categorical(logits, set.Y[i])
		if largest(logits) == set.Y[i] {
			correct++
		}
	}
	return loss, correct
}

// Classify takes a sample for the class of the largest logit.
func (w *softmaxWorker) Classify(classes []uint8, theta []float64, set *dataset.Set, from, to int) {
	for i := from; i < to; i++ {
		classes[i-from] = largest(w.decide(theta, set.Row(i)))
	}
}

// Gradient sums (p_c - [c = y]) x over the batch for each class c, p_c its predicted
// probability, and p_c - [c = y] for its bias.
func (w *softmaxWorker) Gradient(grad, theta []float64, set *dataset.Set, batch []int) (loss float64) {
	clear(grad)
	biases := len(w.logits) * w.features
	for _, i := range batch {
		x, y := set.Row(i), set.Y[i]
		slopes := w.decide(theta, x)
		loss += categorical(slopes, y)
		probabilities(slopes)
		slopes[y]--
		for c, slope := range slopes {
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
