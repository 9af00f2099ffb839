package experiment

import (
	"errors"
	"fmt"
	"math"

	"ringwave/learner"
)

// hopelessLoss is the training loss above which a run has no usable result: a hundred
// times that of a model which knows nothing, ln 2 for two classes, where a model that has
// learned badly stays within ten times. Beyond, the right class has in the mean a
// probability of e^-69 or less, and steps were taken that nothing held back.
const hopelessLoss = 100 * math.Ln2

// hopelessRounds is how many rounds a run may begin with of which none is read, before it
// is said: where every second round is lost, one run in a thousand hears it in vain.
const hopelessRounds = 10

// Unusable is the error of a run that has ended without a usable result: nothing that
// the machine has failed at.
type Unusable struct{ Reason string }

// Error returns the reason in a sentence.
func (u *Unusable) Error() string { return "no usable result: " + u.Reason }

// asUnusable returns err as an *Unusable, if it is one.
func asUnusable(err error) (u Unusable, ok bool) {
	var p *Unusable
	if ok = errors.As(err, &p); ok {
		u = *p
	}
	return u, ok
}

// unusableReason says why what training came to is of no use; "" if it may be.
func unusableReason(state learner.State, result learner.Result) string {
	if state.Round > 0 && state.Skipped == state.Round {
		return fmt.Sprintf("none of the %d rounds was read, and the model is the untrained one: log.jsonl says which check failed", state.Round)
	}
	if loss := result.TrainLoss; !(loss <= hopelessLoss) {
		return fmt.Sprintf("training diverged: the training loss is %.4g, more than %.3g, a hundred times that of a model which knows nothing", loss, hopelessLoss)
	}
	return ""
}

// warnings notices, while a run is on its way, that it will end without a usable
// result.
type warnings struct {
	unread bool    // no round was read so far
	grown  bool    // that the loss has grown was said
	batch  float64 // a record's loss is a sum over so many samples; 1 for a mean
	advice string  // against a loss that grows
}

// smallerSteps returns the advice to take them, to be appended, where they may help.
func (s *Experiment) smallerSteps() string {
	if s.Config.System().Unchecked { // M is noise of the size of q
		return ""
	}
	return ": smaller steps, optimizer.eta0 and optimizer.gamma0, may help"
}

// newWarnings returns those of a run after the rounds which its trainer has behind it.
func (s *Experiment) newWarnings() warnings {
	state, batch := s.Trainer.State(), 1.0
	if o := s.Config.Optimizer; s.Config.Task.Loss == "sum" && o.TrainLoss == "pairs" {
		batch = float64(o.BatchSize)
	}
	return warnings{unread: state.Skipped == state.Round, batch: batch, advice: s.smallerSteps()}
}

// after returns what is to be said after a round; "" for nothing. Each thing is said
// once.
func (w *warnings) after(r learner.Record) string {
	w.unread = w.unread && r.Skipped
	if w.unread && r.Round == hopelessRounds {
		return fmt.Sprintf("none of the first %d rounds was read: the model has learned nothing so far (log.jsonl says which check failed)", hopelessRounds)
	}
	if loss := r.TrainLoss / w.batch; !w.grown && !(loss <= hopelessLoss) {
		w.grown = true
		return fmt.Sprintf("in round %d the loss is %.4g, more than a hundred times that of a model which knows nothing: training diverges%s", r.Round, loss, w.advice)
	}
	return ""
}
