package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ringwave/learner/dataset"
)

// Quadratic has the loss 1/2 sum_j a_j (theta_j - x_j)^2 on a sample x: a test
// problem of which everything is known. Its gradient is a_j (theta_j - x_j), its
// Hessian is diag(a) everywhere, and the mean loss over any samples is least at
// their mean. It predicts no class and looks at none.
type Quadratic struct{ curvature, start []float64 }

// NewQuadratic returns the model of curvatures a_1..a_d, each above 0 and finite,
// that starts at the d finite values of start. It takes copies.
func NewQuadratic(curvature, start []float64) (*Quadratic, error) {
	if len(curvature) == 0 || len(start) != len(curvature) {
		return nil, fmt.Errorf("quadratic: there are %d curvatures and %d values to start from; allowed is one of each a parameter, at least 1", len(curvature), len(start))
	}
	for j, a := range curvature {
		if !(a > 0) || math.IsInf(a, 0) {
			return nil, fmt.Errorf("quadratic: curvature %d is %v; allowed is above 0 and finite", j+1, a)
		}
		if math.IsNaN(start[j]) || math.IsInf(start[j], 0) {
			return nil, fmt.Errorf("quadratic: value %d to start from is %v; allowed is finite", j+1, start[j])
		}
	}
	return &Quadratic{curvature: slices.Clone(curvature), start: slices.Clone(start)}, nil
}

// Dim returns the number of curvatures, which is that of features.
func (m *Quadratic) Dim() int { return len(m.curvature) }

// Features returns the number of curvatures.
func (m *Quadratic) Features() int { return len(m.curvature) }

// Init sets theta to the start; it draws nothing.
func (m *Quadratic) Init(theta []float64, _ *rand.Rand) { copy(theta, m.start) }

// NewWorker returns a Worker, which for this model needs no scratch memory.
func (m *Quadratic) NewWorker() Worker { return quadraticWorker{m.curvature} }

type quadraticWorker struct{ curvature []float64 }

// Losses computes the loss at each of the three points by itself, and not their
// difference from the gradient: it is what the two-point estimate is tried on.
func (w quadraticWorker) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	for _, i := range batch {
		x := set.Row(i)
		for j, a := range w.curvature {
			at, step := theta[j]-x[j], gamma*phi[j]
			f += a * at * at
			plus += a * (at + step) * (at + step)
			minus += a * (at - step) * (at - step)
		}
	}
	n := 2 * float64(len(batch))
	return f / n, plus / n, minus / n
}

// Evaluate returns the sum of the losses; no prediction is correct, as there is
// none.
func (w quadraticWorker) Evaluate(theta []float64, set *dataset.Set, from, to int) (loss float64, correct int) {
	for i := from; i < to; i++ {
		x := set.Row(i)
		for j, a := range w.curvature {
			at := theta[j] - x[j]
			loss += a * at * at / 2
		}
	}
	return loss, 0
}
