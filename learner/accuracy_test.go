package learner

import (
	"context"
	"math"
	"testing"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
)

// stepped returns n samples of one feature, 0 and 1 in turn, whose class is the
// feature where right says so, and the other class elsewhere.
func stepped(n int, right func(i int) bool) *dataset.Set {
	set := &dataset.Set{Dim: 1, Shape: []int{1}, Classes: []string{"0", "1"}}
	for i := range n {
		class := uint8(i % 2)
		set.X = append(set.X, float64(class))
		if !right(i) {
			class = 1 - class
		}
		set.Y = append(set.Y, class)
	}
	return set
}

// skipping carries nothing, so that the model stays as it was restored.
type skipping struct{}

func (skipping) Aggregate(context.Context, int, [][]float64) (aggregate.Outcome, error) {
	return aggregate.Outcome{Skipped: true, Attempts: 1}, nil
}

// The logit of theta = (4, -2) is -2 at the feature 0 and 2 at 1: it predicts the
// feature. Of 4 training samples that is right for 3, of the 301 test samples, which
// are more than two blocks, for every third from the first on, which are 101. A
// sample that is predicted right has the loss log(1 + exp(-2)), another one 2 more.
func TestAccuracyByHand(t *testing.T) {
	train := stepped(4, func(i int) bool { return i != 2 })
	test := stepped(301, func(i int) bool { return i%3 == 0 })
	right := math.Log1p(math.Exp(-2))
	want := Result{TrainLoss: right + 2./4, TrainAccuracy: 3. / 4, TestLoss: right + 2*200./301, TestAccuracy: 101. / 301}
	cfg := paperConfig()
	cfg.Rounds, cfg.BatchSize, cfg.EvalEvery = 4, 2, 2
	task := newTask(t, train, test, 2, skipping{}, keystream.FromInteger(3))
	check := func(name string, evaluated bool, got Result) {
		t.Helper()
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
		if evaluated && (got.TestAccuracy != want.TestAccuracy || !near(got.TestLoss, want.TestLoss)) {
			t.Errorf("%s: accuracy %v and loss %v on the test set, want %v and %v", name, got.TestAccuracy, got.TestLoss, want.TestAccuracy, want.TestLoss)
		}
		if !evaluated && (got.TestAccuracy != 0 || got.TestLoss != 0) {
			t.Errorf("%s: accuracy %v and loss %v, and not evaluated", name, got.TestAccuracy, got.TestLoss)
		}
	}
	final := func(name string, got Result) {
		t.Helper()
		check(name, true, got)
		if got.TrainAccuracy != want.TrainAccuracy || math.Abs(got.TrainLoss-want.TrainLoss) > 1e-12 {
			t.Errorf("%s: accuracy %v and loss %v on the training set, want %v and %v", name, got.TrainAccuracy, got.TrainLoss, want.TrainAccuracy, want.TrainLoss)
		}
	}
	state := State{Theta: []float64{4, -2}}

	differences := newTrainer(t, cfg, task)
	if err := differences.Restore(state); err != nil {
		t.Fatal(err)
	}
	for _, r := range runAll(t, differences) {
		check("by differences", r.Round%2 == 0, Result{TestLoss: r.TestLoss, TestAccuracy: r.TestAccuracy})
	}
	final("by differences, at the end", differences.Final())

	gradients := newGradientTrainer(t, cfg, task, skipping{})
	if err := gradients.Restore(state); err != nil {
		t.Fatal(err)
	}
	for !gradients.Done() {
		r, err := gradients.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		check("by gradients", r.Round%2 == 0, Result{TestLoss: r.TestLoss, TestAccuracy: r.TestAccuracy})
	}
	final("by gradients, at the end", gradients.Final())
}
