package paper

import (
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
)

// The samples held out for validation are a fifth of the training set, no device has one,
// and the test set is gone.
func TestValidationIsOfTheTrainingSet(t *testing.T) {
	experimenttest.NoData(t)
	c := paperMNIST()
	c.Task.StrokesTrain, c.Task.StrokesTest = 1000, 100
	root := keystream.FromInteger(1)
	task, err := experiment.Lab{}.LoadTask(c, root, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := task.Test
	n := task.Train.Len()
	task.Validated(root)
	if task.Test == before || task.Test.Len() != n/experiment.ValidationFolds {
		t.Fatalf("%d samples are for validation, of %d", task.Test.Len(), n)
	}
	seen := map[int]bool{}
	for _, shard := range task.Shards {
		for _, s := range shard {
			seen[s] = true
		}
	}
	if len(seen) != n-task.Test.Len() {
		t.Errorf("devices have %d samples, of %d with %d held out", len(seen), n, task.Test.Len())
	}
	// What is held out is what devices do not have, in the same order.
	k := 0
	for s := range n {
		if seen[s] {
			continue
		}
		if !slices.Equal(task.Test.Row(k), task.Train.Row(s)) || task.Test.Y[k] != task.Train.Y[s] {
			t.Fatalf("sample %d held out is not sample %d of the training set", k, s)
		}
		k++
	}
}

// A run on validation samples is not taken for one on the test set.
func TestValidationHasItsKey(t *testing.T) {
	c := paperMNIST()
	one, errA := job{Cell: Cell{Config: c}}.key(dataInUse{})
	other, errB := job{Cell: Cell{Config: c, Validate: true}}.key(dataInUse{})
	if errA != nil || errB != nil || one == other {
		t.Errorf("%s, %s: %v, %v", one, other, errA, errB)
	}
}

// What is used is among what is tried, each once, and nothing else differs between them.
func TestCIFARTried(t *testing.T) {
	for k, used := range cifarLearns() {
		tried := cifarTried()[k]
		if n := len(slices.DeleteFunc(slices.Clone(tried), func(s cifarSetting) bool { return s != used })); n != 1 {
			t.Errorf("%s is tried %d times", used.title(), n)
		}
		for _, s := range tried {
			s.eta0, s.etaPower, s.gammaPower, s.clip = used.eta0, used.etaPower, used.gammaPower, used.clip
			if s != used {
				t.Errorf("%s differs in more than its steps and bound from %s", s.title(), used.title())
			}
		}
	}
}

// The highest median is chosen, the first of several, and no run that diverged.
func TestSearchChooses(t *testing.T) {
	of := func(eta0 float64, accuracies ...float64) searched {
		return searched{cifarSetting{eta0: eta0}, runsOf(3, accuracies)}
	}
	wild := of(5, 0.99)
	wild.results[0].Diverged = true
	for _, c := range []struct {
		tried []searched
		want  float64
	}{
		{[]searched{of(1, 0.7), of(2, 0.8), of(3, 0.75)}, 2},
		{[]searched{of(1, 0.8), of(2, 0.8)}, 1},
		{[]searched{of(1, 0.6, 0.7, 0.95), of(2, 0.71, 0.72, 0.73)}, 2},
		{[]searched{of(1, 0.6), wild}, 1},
	} {
		if got := best(c.tried).eta0; got != c.want {
			t.Errorf("eta0 = %v is chosen, want %v", got, c.want)
		}
	}
}
