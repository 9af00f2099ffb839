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
		reason := unusableReason(learner.State{Round: c.rounds, Skipped: c.skipped}, learner.Result{TrainLoss: c.loss})
		if (reason == "") != c.usable {
			t.Errorf("%d of %d rounds skipped, loss %v: %q", c.skipped, c.rounds, c.loss, reason)
		}
	}
}
