package experiment

import (
	"math"
	"testing"

	"ringwave/learner"
)

// A model that has learned badly is a result: only what no step could have made on purpose
// is none.
func TestBadResultsAreResults(t *testing.T) {
	for _, c := range []struct {
		rounds, skipped int
		loss            float64
		usable          bool
	}{
		{400, 399, math.Ln2, true}, {400, 0, math.Ln2, true}, {400, 0, 10 * math.Ln2, true}, {0, 0, math.Ln2, true},
		{400, 400, math.Ln2, false}, {400, 0, 101 * math.Ln2, false}, {400, 0, math.Inf(1), false}, {400, 0, math.NaN(), false},
	} {
		reason := unusableReason(learner.State{Round: c.rounds, Skipped: c.skipped}, learner.Result{TrainLoss: c.loss}, hopeless{loss: hopelessLoss}, func() string { return "nobody knows" })
		if (reason == "") != c.usable {
			t.Errorf("%d of %d rounds skipped, loss %v: %q", c.skipped, c.rounds, c.loss, reason)
		}
	}
}

// Where devices keep their losses to themselves, the test set tells, or nothing does.
func TestUnknownLossesAreNotLarge(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		loss, accuracy float64
		usable         bool
	}{{math.Ln2, 0.5, true}, {101 * math.Ln2, 0.5, false}, {nan, 0.5, false}, {nan, nan, true}, {math.Ln2, nan, true}, {101 * math.Ln2, nan, false}} {
		result := learner.Result{TrainLoss: nan, TrainAccuracy: nan, TestLoss: c.loss, TestAccuracy: c.accuracy}
		if reason := unusableReason(learner.State{Round: 400}, result, hopeless{loss: hopelessLoss}, nil); (reason == "") != c.usable {
			t.Errorf("test loss %v, accuracy %v: %q", c.loss, c.accuracy, reason)
		}
	}
	for loss, warned := range map[float64]bool{nan: false, math.Ln2: false, 101 * math.Ln2: true, math.Inf(1): true} {
		w := warnings{batch: 1, hopeless: hopeless{loss: hopelessLoss}}
		if text := w.after(learner.Record{Round: 3, TrainLoss: loss}); (text != "") != warned {
			t.Errorf("a round's loss is %v: %q", loss, text)
		}
	}
}

// What a program's loss is when it diverges is known once its first round's is.
func TestHopelessOfTheFirstRound(t *testing.T) {
	for _, c := range []struct{ first, loss float64 }{{5, 500}, {0, hopelessLoss}, {math.NaN(), math.MaxFloat64}, {math.MaxFloat64, math.MaxFloat64 / 2}} {
		h := hopeless{math.MaxFloat64, true}
		h.learn(math.NaN()) // a round that was not read
		h.learn(c.first)
		h.learn(c.first / 2)
		if h.loss != c.loss {
			t.Errorf("it began with %v: %v is hopeless, want %v", c.first, h.loss, c.loss)
		}
	}
}

// A run ends with the last of so many rounds that are lost in a row, never where none is
// said; rounds that were read begin anew, and rounds that were not tried count for nothing.
func TestLosses(t *testing.T) {
	for _, c := range []struct {
		rounds string // l lost, r read, s skipped by a resume
		most   int
		end    int // the round after which the run ends, 0 for none
		first  int
	}{
		{"llll", 3, 3, 1}, {"llrll", 3, 0, 0}, {"rlrlll", 3, 6, 4}, {"llsl", 3, 4, 1}, {"ssss", 3, 0, 0}, {"llll", 0, 0, 0}, {"l", 1, 1, 1}, {"", 1, 0, 0},
	} {
		var l losses
		end := 0
		for k, what := range c.rounds {
			r := learner.Record{Round: k + 1, Skipped: what != 'r'}
			if what != 's' {
				r.Attempts = 2
			}
			if l.after(r, c.most) && end == 0 {
				end = k + 1
				if l.first != c.first || l.n != c.most {
					t.Errorf("%q, %d: %d lost from round %d on, want round %d", c.rounds, c.most, l.n, l.first, c.first)
				}
			}
		}
		if end != c.end {
			t.Errorf("%q, %d: it ends after round %d, want %d", c.rounds, c.most, end, c.end)
		}
	}
}
