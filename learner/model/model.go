// Package model gives the loss and the accuracy of a model on samples.
//
// It takes in the parameters theta and samples of a dataset.Set, and gives the
// losses at theta and at two points on either side of it, and the accuracy. It
// knows nothing of devices, rounds, gradients or who chose the samples.
package model

import (
	"math/rand/v2"

	"ringwave/learner/dataset"
)

// Model is the fixed part of a model: its size and its start. It is safe for
// concurrent use.
type Model interface {
	// Dim returns d, the length of theta.
	Dim() int
	// Features returns the number of features that a sample must have.
	Features() int
	// Init writes the initial model, theta_0 of Algorithm 1, to theta of length
	// Dim, drawing what it needs from rnd.
	Init(theta []float64, rnd *rand.Rand)
	// NewWorker returns a new Worker with scratch memory of its own.
	NewWorker() Worker
}

// Worker computes losses. A Worker is for one goroutine; several Workers of one
// Model run at the same time, on the same theta, phi and set, which they only
// read. Its methods allocate nothing, and their results depend on their
// arguments alone, to the bit, on one kind of processor.
//
// Sets have samples of Features features and of classes 0 to Classes(m) - 1.
type Worker interface {
	// Losses returns the mean loss over the batch, samples set.Row(batch[j]), at
	// theta, at theta + gamma*phi and at theta - gamma*phi: f_i of Eq. 3 of the
	// paper at its two points, and at their middle. Theta and phi have length
	// Dim; the batch has at least one sample.
	Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64)
	// Evaluate gives, over the samples from..to-1 of the set, the sum of their
	// losses and the number whose class is predicted correctly.
	Evaluate(theta []float64, set *dataset.Set, from, to int) (loss float64, correct int)
}

// Classifier is a Worker that says what it takes samples for.
type Classifier interface {
	Worker
	// Classify sets classes[j] to the class that sample from+j is taken for, up to that of
	// sample to-1.
	Classify(classes []uint8, theta []float64, set *dataset.Set, from, to int)
}

// ClassifierOf returns the Worker as a Classifier, if it is one.
func ClassifierOf(w Worker) (Classifier, bool) {
	if sum, ok := w.(batchSumWorker); ok {
		w = sum.Worker
	}
	c, ok := w.(Classifier)
	return c, ok
}

// Want says which losses are wanted beside the one at theta + gamma*phi: that at theta, and
// that at theta - gamma*phi.
type Want struct{ F, Minus bool }

// PartialWorker is a Worker that can leave out losses, of which each takes a third of the
// work where a loss is a whole forward pass.
type PartialWorker interface {
	Worker
	// Partial returns what Losses gives of those that are wanted, to the bit; the others are
	// 0.
	Partial(want Want, theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64)
}

// Batch is a batch of samples, and its mean losses at theta, theta + gamma*phi and theta -
// gamma*phi; 0 of those that are not wanted.
type Batch struct {
	Samples        []int // set.Row's, one at least
	F, Plus, Minus float64
	// Sum says that Plus and Minus are sums over the batch, where F is a mean all the same.
	Sum bool
}

// Base returns the loss at theta in the units of Plus and Minus.
func (b *Batch) Base() float64 {
	if b.Sum {
		return float64(len(b.Samples)) * b.F
	}
	return b.F
}

// Point is theta, and what the points on either side of it are.
type Point struct {
	Theta, Phi []float64
	Gamma      float64
	// Key is that of Phi where it is made of one, in this round.
	Key   uint64
	Round int
	// Serial is another number for each other point that a Worker gets, so that it need not
	// make the same ready again; 0 says nothing.
	Serial uint64
	// At is another number for each other Theta, or round's batches, in the same way.
	At uint64
}

// BatchesWorker is a Worker that takes less time for many batches at once than for one
// after the other.
type BatchesWorker interface {
	Worker
	// Together returns how many samples take as long as one.
	Together() int
	// Batches sets the losses of each batch to what Losses gives, to the bit, of those
	// that are wanted.
	Batches(at Point, set *dataset.Set, batches []Batch, want Want)
}

// Batches sets the losses of batches that are wanted, by w.Batches if it has one.
func Batches(w Worker, at Point, set *dataset.Set, batches []Batch, want Want) {
	if many, ok := w.(BatchesWorker); ok {
		many.Batches(at, set, batches, want)
		return
	}
	for i := range batches {
		b := &batches[i]
		b.F, b.Plus, b.Minus = Partial(w, want, at.Theta, at.Phi, at.Gamma, set, b.Samples)
	}
}

// Partial returns the losses that are wanted, by w.Partial if it has one.
func Partial(w Worker, want Want, theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	if p, ok := w.(PartialWorker); ok {
		return p.Partial(want, theta, phi, gamma, set, batch)
	}
	f, plus, minus = w.Losses(theta, phi, gamma, set, batch)
	if !want.F {
		f = 0
	}
	if !want.Minus {
		minus = 0
	}
	return f, plus, minus
}

// Step is a step along the direction of a key: theta - Size phi.
type Step struct {
	Key  uint64
	Size float64
}

// Follower is a Model whose theta somebody else keeps, too: a program. It hears of steps.
type Follower interface {
	Model
	// Follow makes the steps of a round one after the other, where theta is as it is now,
	// and says whether theta is next then. An error ends the run.
	Follow(round int, theta, next []float64, steps []Step) error
	// Single reports whether theta is float32: each step is rounded to it.
	Single() bool
	// Err returns why losses could not be had, once there is a reason: they are NaN then.
	Err() error
}

// Classes returns the number of classes of a model's samples: two, unless it has a method
// that says another.
func Classes(m Model) int {
	if sum, ok := m.(batchSum); ok {
		m = sum.Model
	}
	if many, ok := m.(interface{ Classes() int }); ok {
		return many.Classes()
	}
	return 2
}

// Err returns m's where it has one.
func Err(m Model) error {
	if f, ok := m.(Follower); ok {
		return f.Err()
	}
	return nil
}
