package main

import (
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
)

// The samples held out for validation are a fifth of the training set, no device has one,
// and the test set is gone.
func TestValidationIsOfTheTrainingSet(t *testing.T) {
	noData(t)
	c := paperMNIST()
	c.Task.StrokesTrain, c.Task.StrokesTest = 1000, 100
	root := keystream.FromInteger(1)
	task, err := Lab{}.LoadTask(c, root, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := task.test
	n := task.train.Len()
	if err := task.validated(root); err != nil {
		t.Fatal(err)
	}
	if task.test == before || task.test.Len() != n/validationFolds {
		t.Fatalf("%d samples are for validation, of %d", task.test.Len(), n)
	}
	seen := map[int]bool{}
	for _, shard := range task.shards {
		for _, s := range shard {
			seen[s] = true
		}
	}
	if len(seen) != n-task.test.Len() {
		t.Errorf("devices have %d samples, of %d with %d held out", len(seen), n, task.test.Len())
	}
	// What is held out is what devices do not have, in the same order.
	k := 0
	for s := range n {
		if seen[s] {
			continue
		}
		if !slices.Equal(task.test.Row(k), task.train.Row(s)) || task.test.Y[k] != task.train.Y[s] {
			t.Fatalf("sample %d held out is not sample %d of the training set", k, s)
		}
		k++
	}
}

// A run on validation samples is not taken for one on the test set.
func TestValidationHasItsKey(t *testing.T) {
	c := paperMNIST()
	one, errA := job{cfg: c}.key(dataInUse{})
	other, errB := job{cfg: c, validate: true}.key(dataInUse{})
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

// A search that was cut short chooses nothing and shows no accuracy; it is made only
// where it is asked for.
func TestReproduceSearch(t *testing.T) {
	dir, data := t.TempDir(), fewImages(t)
	page := reproduced(t, dir, "cifar-search", "--data", data)
	wantIn(t, page, "held out", "16 packed directions", "– cut short", "rounds run")
	for _, tried := range cifarTried() {
		for _, s := range tried {
			s.rounds = 3
			wantIn(t, string(readFile(t, dir, "report.md")), escaped(s.steps()))
		}
	}
	if strings.Contains(page, ">chosen</td>") || strings.Contains(page, " %</td>") {
		t.Error("a search that was cut short has a result")
	}
	all, err := chosen(nil)
	if err != nil || slices.ContainsFunc(all, func(c chapter) bool { return c.name == "cifar-search" }) {
		t.Errorf("a report of all has the search: %v", err)
	}
	if one, err := chosen([]string{"cifar-search"}); err != nil || len(one) != 1 {
		t.Errorf("%v, %v", one, err)
	}
}

// escaped is text as Markdown has it.
func escaped(text string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`).Replace(text)
}
