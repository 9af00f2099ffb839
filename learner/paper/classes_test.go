package paper

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
)

// Without MNIST the chapter says so; it is made only where it is asked for.
func TestReproduceClasses(t *testing.T) {
	experimenttest.NoData(t)
	page := reproduced(t, t.TempDir(), "", "classes")
	experimenttest.WantAll(t, page, "MNIST was not found, and no other set here has ten classes", "missing")
	if all, err := chosen(nil); err != nil || slices.ContainsFunc(all, func(c chapter) bool { return c.name == "classes" }) {
		t.Errorf("a report of all has the chapter: %v", err)
	}
}

// All that is tried can be run, is evaluated often and at the end, and has its steps in units of the
// gradient of the mean loss: theta moves by eta0 times it, by the laws of both trainers.
func TestClassesMethods(t *testing.T) {
	r := &reproduction{}
	for _, m := range r.classesMethods() {
		for _, s := range m.tried {
			c := m.configure(s)
			if err := c.Check(); err != nil {
				t.Errorf("%s, %v: %v", m.name, s, err)
			}
			if o := c.Optimizer; o.EvaluateEvery*20 > o.Rounds {
				t.Errorf("%s is evaluated every %d of %d rounds", m.name, o.EvaluateEvery, o.Rounds)
			}
			step := c.Optimizer.Eta0
			if m.directions == 0 {
				step = 2 * float64(c.Devices.Count) * c.Optimizer.Eta0 * c.Optimizer.Gamma0
			} else if err := encrypt(c).Check(); err != nil || c.Optimizer.Estimate != "gradient" {
				t.Errorf("%s, %v: %v", m.name, s, err)
			}
			if math.Abs(step-s.eta0) > 1e-12 {
				t.Errorf("%s, %v: a step of %v", m.name, s, step)
			}
		}
	}
}

// Rounds to a goal are those of the first evaluation that has it, of the encrypted runs.
func TestClassesCosts(t *testing.T) {
	run := func(accuracies ...float64) cellResult {
		return cellResult{Evaluated: []int{10, 20, 30}, Accuracies: accuracies, Accuracy: accuracies[2]}
	}
	m := classesResult{
		classesMethod: classesMethod{rounds: 30, directions: 8}, seconds: 2e-6,
		plain:     []cellResult{run(0.9, 0.9, 0.9), run(0.9, 0.9, 0.9), run(0.9, 0.9, 0.9)},
		encrypted: []cellResult{run(0.5, 0.81, 0.7), run(0.8, 0.9, 0.901), run(0.1, 0.2, 0.3)},
	}
	if got := m.to(0.8); !slices.Equal(got, []float64{10, 20, math.Inf(1)}) {
		t.Errorf("rounds to 80 %%: %v", got)
	}
	if got := m.costText(0.8); got != "20 rounds, 320 passes, 40.0 µs" {
		t.Errorf("to 80 %%: %s", got)
	}
	if got := m.costText(0.9); !strings.Contains(got, "not within 30") {
		t.Errorf("to 90 %%: %s", got)
	}
	if got := m.apart(); math.Abs(got-0.6) > 1e-12 {
		t.Errorf("apart by %v", got)
	}
}
