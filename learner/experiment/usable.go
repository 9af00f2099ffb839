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

// whyLost says why rounds were lost, as far as the link knows.
func (s *Experiment) whyLost() string {
	if w := s.waveform(); w != nil {
		if text := w.Tally.Report().Sentence(); text != "" {
			return text
		}
	}
	return "log.jsonl says which check failed"
}

// lostNote says of how many rounds there is nothing, and why; "" for none.
func (s *Experiment) lostNote(state learner.State) string {
	if state.Skipped == 0 || state.Skipped == state.Round || s.waveform() == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d rounds were not read: %s", state.Skipped, state.Round, s.whyLost())
}

// hopeless is the loss above which a run has no usable result.
type hopeless struct {
	loss float64
	// ofFirst says that it is known once the first round's is, as a program's loss has a scale
	// of its own.
	ofFirst bool
}

func (s *Experiment) hopeless() hopeless {
	if s.Config.Task.Model == process {
		return hopeless{math.MaxFloat64, true}
	}
	return hopeless{hopelessLoss, false}
}

// learn takes in the loss of a round.
func (h *hopeless) learn(loss float64) {
	if h.ofFirst && h.loss == math.MaxFloat64 && !math.IsNaN(loss) {
		h.loss = max(hopelessLoss, min(100*loss, math.MaxFloat64/2))
	}
}

// String says what a loss above it is more than.
func (h hopeless) String() string {
	if h.ofFirst {
		return fmt.Sprintf("%.3g and than a hundred times what it began with", hopelessLoss)
	}
	return fmt.Sprintf("%.3g, a hundred times that of a model which knows nothing", h.loss)
}

// unusableReason says why what training came to is of no use; "" if it may be. Why says why
// rounds were lost.
func unusableReason(state learner.State, result learner.Result, bound hopeless, why func() string) string {
	if state.Round > 0 && state.Skipped == state.Round {
		return fmt.Sprintf("none of the %d rounds was read, and the model is the untrained one: %s", state.Round, why())
	}
	kind, loss, known := "training", result.TrainLoss, result.TrainAccuracy
	if math.IsNaN(known) && math.IsNaN(loss) { // they are the devices' own
		kind, loss, known = "test", result.TestLoss, result.TestAccuracy
	}
	if unknown := math.IsNaN(known) && math.IsNaN(loss); !unknown && !(loss <= bound.loss) {
		return fmt.Sprintf("training diverged: the %s loss is %.4g, more than %v", kind, loss, bound)
	}
	return ""
}

// warnings notices, while a run is on its way, that it will end without a usable
// result.
type warnings struct {
	why    func() string // rounds were lost
	unread bool          // no round was read so far
	grown  bool          // that the loss has grown was said
	batch  float64       // a record's loss is a sum over so many samples; 1 for a mean
	advice string        // against a loss that grows

	hopeless hopeless
}

// smallerSteps returns the advice to take them, to be appended, where they may help.
func (s *Experiment) smallerSteps() string {
	if s.Config.System().Unchecked { // M is noise of the size of q
		return ""
	}
	return ": smaller steps, optimizer.eta0 and optimizer.gamma0, may help"
}

// losses counts rounds that are lost one after the other.
type losses struct{ first, n int }

// after takes in a round, and reports whether so many were lost that the run is to end. A
// round that a resumed run skips was not tried.
func (l *losses) after(r learner.Record, most int) bool {
	switch {
	case !r.Skipped:
		l.n = 0
	case r.Attempts > 0:
		if l.n++; l.n == 1 {
			l.first = r.Round
		}
	}
	return most > 0 && l.n >= most
}

// lost ends a run that has lost so many rounds in a row. It can be resumed.
func (s *Experiment) lost(l losses) error {
	if err := s.checkpoint(); err != nil {
		return err
	}
	state := s.Trainer.State()
	if state.Skipped == state.Round { // which says it all
		return &Unusable{unusableReason(state, learner.Result{}, s.hopeless(), s.whyLost) + s.howToGoOn()}
	}
	return &Unusable{fmt.Sprintf("all of the last %d rounds were lost, from round %d on: %s%s", l.n, l.first, s.whyLost(), s.howToGoOn())}
}

// howToGoOn is what to say of a run that has ended for lost rounds.
func (s *Experiment) howToGoOn() string {
	return fmt.Sprintf(" (it ended after optimizer.end_after_lost_rounds = %d; once that is mended, it goes on with --resume)", s.Config.Optimizer.EndAfterLost)
}

// newWarnings returns those of a run after the rounds which its trainer has behind it.
func (s *Experiment) newWarnings() warnings {
	state, batch := s.Trainer.State(), 1.0
	if o := s.Config.Optimizer; s.Config.Task.Loss == "sum" && o.TrainLoss == "pairs" {
		batch = float64(o.BatchSize)
	}
	return warnings{why: s.whyLost, unread: state.Skipped == state.Round, batch: batch, advice: s.smallerSteps(), hopeless: s.hopeless()}
}

// after returns what is to be said after a round; "" for nothing. Each thing is said
// once.
func (w *warnings) after(r learner.Record) string {
	w.unread = w.unread && r.Skipped
	if w.unread && r.Round == hopelessRounds {
		return fmt.Sprintf("none of the first %d rounds was read: the model has learned nothing so far (%s)", hopelessRounds, w.why())
	}
	loss := r.TrainLoss / w.batch
	w.hopeless.learn(loss)
	if !w.grown && loss > w.hopeless.loss { // NaN is not known
		w.grown = true
		return fmt.Sprintf("in round %d the loss is %.4g, more than %v: training diverges%s", r.Round, loss, w.hopeless, w.advice)
	}
	return ""
}
