package external

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// ErrBrokenOff says that a run was to stop while its program was evaluating the model of a round,
// which is not one that may be saved.
var ErrBrokenOff = errors.New("the evaluation of a round was broken off")

// worker asks the program. All batches of a direction are one question.
type worker struct{ l *Learner }

// Together returns a number that no batches reach.
func (w worker) Together() int { return math.MaxInt }

// numbers returns the numbers of samples.
func numbers(set *dataset.Set, rows []int) []int {
	n := make([]int, len(rows))
	for j, row := range rows {
		n[j] = int(set.Row(row)[0])
	}
	return n
}

// Batches sets the losses to NaN where Err has a reason.
func (w worker) Batches(at model.Point, set *dataset.Set, batches []model.Batch, want model.Want) {
	r := request{Request: "loss", Round: at.Round, Gamma: at.Gamma, Direction: &at.Key, Minus: &want.Minus, Base: &want.F}
	for _, b := range batches {
		r.Batches = append(r.Batches, numbers(set, b.Samples))
	}
	answer, err := w.l.losses(at.Theta, r)
	for i := range batches {
		b := &batches[i]
		if err != nil {
			b.F, b.Plus, b.Minus = math.NaN(), math.NaN(), math.NaN()
			continue
		}
		b.F, b.Plus, b.Minus = 0, answer.Plus[i], 0
		if want.F {
			b.F = answer.Base[i]
		}
		if want.Minus {
			b.Minus = answer.Minus[i]
		}
	}
}

// losses asks for losses.
func (l *Learner) losses(theta []float64, r request) (a lossAnswer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.at(theta, r, &a); err != nil {
		return a, err
	}
	if err := a.check(r); err != nil {
		return a, l.fatal(l.saidOf(r.Request, err))
	}
	return a, nil
}

// Losses is not used: a direction has no key there.
func (w worker) Losses(_, _ []float64, _ float64, _ *dataset.Set, _ []int) (f, plus, minus float64) {
	return math.NaN(), math.NaN(), math.NaN()
}

// Evaluate asks for the mean loss of some samples.
func (w worker) Evaluate(theta []float64, set *dataset.Set, from, to int) (loss float64, correct int) {
	rows := make([]int, to-from)
	for j := range rows {
		rows[j] = from + j
	}
	a, err := w.l.evaluate(theta, numbers(set, rows))
	if err != nil {
		return math.NaN(), 0
	}
	return a.Loss * float64(len(rows)), int(math.Round(a.Accuracy * float64(len(rows))))
}

// evaluate asks for the mean loss of samples.
func (l *Learner) evaluate(theta []float64, samples []int) (a evaluateAnswer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := request{Request: "evaluate", Samples: samples}
	if err := l.at(theta, r, &a); errors.Is(err, context.Canceled) {
		// The round is over, but for what is said of it: it is not one that may be saved.
		l.err = fmt.Errorf("%w: %s", ErrBrokenOff, err)
		return a, l.err
	} else if err != nil {
		return a, err
	}
	if err := a.check(); err != nil {
		return a, l.fatal(l.saidOf(r.Request, err))
	}
	return a, nil
}
