package experiment

import (
	"fmt"
	"math"
	"slices"

	"ringwave/learner"
	"ringwave/learner/experiment/runfolder"
)

// heldOut goes by the samples that no device learns from: which round's model is the best, and
// when there is nothing more to be had. A Task without such samples has none.
type heldOut struct {
	patience int             // evaluations without a better model that end a run; 0 for never
	best     *runfolder.Best // nil before the first evaluation
}

// after takes note of a round, and keeps the model where it is the best so far.
func (h *heldOut) after(r learner.Record, theta func() []float64) {
	if h == nil || !r.Validated {
		return
	}
	switch loss := r.ValidationLoss; {
	case !math.IsInf(loss, 0) && !math.IsNaN(loss) && (h.best == nil || loss < h.best.Loss):
		h.best = &runfolder.Best{Round: r.Round, Loss: loss, Accuracy: r.ValidationAccuracy, Theta: slices.Clone(theta())}
	case h.best != nil:
		h.best.Waited++
	}
}

// plateau reports whether there was no better model for as long as a run is to wait.
func (h *heldOut) plateau() bool {
	return h != nil && h.patience > 0 && h.best != nil && h.best.Waited >= h.patience
}

// state returns what a checkpoint keeps.
func (h *heldOut) state() *runfolder.Best {
	if h == nil || h.best == nil {
		return nil
	}
	best := *h.best
	return &best
}

// restore goes on from a checkpoint. A run that was at a plateau and is extended waits anew.
func (h *heldOut) restore(best *runfolder.Best, extended bool) {
	if h == nil || best == nil {
		return
	}
	h.best = best
	if extended && h.plateau() {
		h.best.Waited = 0
	}
}

// model returns the model that the run is about, and the round that it is after: the best by the
// samples that are held out, or the last.
func (s *Experiment) model() (theta []float64, round int) {
	if b := s.held.state(); b != nil {
		return b.Theta, b.Round
	}
	state := s.Trainer.State()
	return state.Theta, state.Round
}

// result returns how well that model does. The loss of training is the last one's where there
// is no other.
func (s *Experiment) result() learner.Result {
	if s.held.state() == nil {
		return s.Trainer.Final()
	}
	var r learner.Result
	theta, _ := s.model()
	r.TrainLoss, r.TrainAccuracy = learner.Evaluate(s.Task.Model, theta, s.Task.Train)
	r.TestLoss, r.TestAccuracy = learner.Evaluate(s.Task.Model, theta, s.Task.Test)
	return r
}

// heldOutNotes say which model the results are of, and why the run ended.
func (s *Experiment) heldOutNotes() (notes []string) {
	b := s.held.state()
	if b == nil {
		return nil
	}
	notes = append(notes, fmt.Sprintf("the model is that after round %d, whose loss on the %d samples that are held out for validation is the least of all that were evaluated: %.4g, accuracy %.2f %%",
		b.Round, s.Task.Validation.Len(), b.Loss, 100*b.Accuracy))
	if s.held.plateau() {
		notes = append(notes, fmt.Sprintf("training ended after round %d: %d evaluations in a row had no lower validation loss (optimizer.end_after_plateau_evaluations)", s.Trainer.State().Round, b.Waited))
	}
	return notes
}
