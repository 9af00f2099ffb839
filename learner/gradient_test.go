package learner

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

func newGradientTrainer(t testing.TB, cfg Config, task Task, a GradientAggregator) *GradientTrainer {
	t.Helper()
	tr, err := NewGradientTrainer(cfg, GradientTask{Task: task, Gradients: a})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// scripted gives what a test wants and keeps what it was given.
type scripted struct {
	outcome func(k int, gradients [][]float64) (GradientOutcome, error)
	seen    [][]float64
}

func (s *scripted) AggregateGradients(_ context.Context, k int, gradients [][]float64) (GradientOutcome, error) {
	s.seen = nil
	for _, g := range gradients {
		s.seen = append(s.seen, slices.Clone(g))
	}
	return s.outcome(k, gradients)
}

// A round is theta - 2 eta gamma sum, on the batches and from the model of a
// Trainer of the same seed: the losses of the first round are the same, and along
// any direction the gradient is the Delta f that it would send, over 2 gamma.
func TestGradientRoundIsThatOfDifferences(t *testing.T) {
	train, test := strokes(t, 500, 100)
	cfg := paperConfig()
	cfg.BatchSize, cfg.Gamma = 32, PowerLaw{X0: 1e-5, P: 0}
	seed := keystream.FromInteger(3)
	task := newTask(t, train, test, 4, noiseless{}, seed)
	zero := newTrainer(t, cfg, task)
	zeroRecord, err := zero.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	a := &scripted{outcome: (&PlainGradients{}).aggregate}
	tr := newGradientTrainer(t, cfg, task, a)
	before := tr.State().Theta
	record, err := tr.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if record.TrainLoss != zeroRecord.TrainLoss {
		t.Errorf("training loss %v, by differences %v", record.TrainLoss, zeroRecord.TrainLoss)
	}
	sum := make([]float64, len(before))
	for i, g := range a.seen {
		slope := 0.0
		for j, x := range g {
			slope += x * zero.phi[0][j]
			sum[j] += x
		}
		if want := zero.delta[0][i] / (2 * record.Gamma); math.Abs(slope-want) > 1e-5*math.Max(1, math.Abs(want)) {
			t.Errorf("device %d: slope %v, by differences %v", i+1, slope, want)
		}
	}
	for j, x := range tr.State().Theta {
		if want := before[j] - 2*record.Eta*record.Gamma*sum[j]; math.Abs(x-want) > 1e-15 {
			t.Fatalf("theta[%d] is %v, expected %v", j, x, want)
		}
	}
}

func (a *PlainGradients) aggregate(k int, g [][]float64) (GradientOutcome, error) {
	return a.AggregateGradients(context.Background(), k, g)
}

// Neither the number of goroutines nor an interruption changes a bit.
func TestGradientTrainerRepeats(t *testing.T) {
	train, test := strokes(t, 500, 100)
	cfg := paperConfig()
	cfg.Rounds, cfg.BatchSize, cfg.EvalEvery = 12, 32, 3
	task := newTask(t, train, test, 5, noiseless{}, keystream.FromInteger(3))
	run := func(workers, stop int) (records []GradientRecord, theta []float64) {
		cfg.Workers = workers
		tr := newGradientTrainer(t, cfg, task, &PlainGradients{})
		for !tr.Done() {
			if tr.State().Round == stop {
				s := tr.State()
				tr = newGradientTrainer(t, cfg, task, &PlainGradients{})
				if err := tr.Restore(s); err != nil {
					t.Fatal(err)
				}
			}
			r, err := tr.Step(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
		if _, err := tr.Step(context.Background()); !errors.Is(err, ErrDone) {
			t.Errorf("after the last round: %v", err)
		}
		return records, tr.State().Theta
	}
	records, theta := run(1, -1)
	for _, other := range [][2]int{{3, -1}, {2, 5}} {
		r, th := run(other[0], other[1])
		if !slices.Equal(r, records) || !slices.Equal(th, theta) {
			t.Errorf("%d workers, stopped at %d: another result", other[0], other[1])
		}
	}
}

func TestGradientTrainerSkipsAndRefuses(t *testing.T) {
	train, test := strokes(t, 500, 100)
	cfg := paperConfig()
	task := newTask(t, train, test, 2, noiseless{}, keystream.FromInteger(3))
	step := func(out GradientOutcome, fail error) (GradientRecord, State, error) {
		tr := newGradientTrainer(t, cfg, task, &scripted{outcome: func(int, [][]float64) (GradientOutcome, error) { return out, fail }})
		r, err := tr.Step(context.Background())
		return r, tr.State(), err
	}
	r, s, err := step(GradientOutcome{Skipped: true, Clipped: 2}, nil)
	if err != nil || !r.Skipped || s.Round != 1 || s.Skipped != 1 || s.Clipped != 2 || slices.Max(s.Theta) != 0 {
		t.Errorf("skipped: %+v, %v", r, err)
	}
	broken := errors.New("broken")
	if _, s, err := step(GradientOutcome{}, broken); !errors.Is(err, broken) || s.Round != 0 {
		t.Errorf("error of the uplink: round %d, %v", s.Round, err)
	}
	if _, s, err := step(GradientOutcome{Sum: []float64{1}}, nil); err == nil || s.Round != 0 {
		t.Errorf("short sum: round %d, %v", s.Round, err)
	}
	bad := make([]float64, task.Model.Dim())
	bad[3] = math.NaN()
	if _, s, err := step(GradientOutcome{Sum: bad}, nil); !errors.Is(err, ErrDiverged) || s.Round != 0 {
		t.Errorf("sum that is no number: round %d, %v", s.Round, err)
	}
	task.Model = lossesOnly{task.Model}
	if _, err := NewGradientTrainer(cfg, GradientTask{Task: task, Gradients: &PlainGradients{}}); err == nil || !strings.Contains(err.Error(), "no gradient, only losses") {
		t.Errorf("a model without gradients: %v", err)
	}
	if _, err := NewGradientTrainer(cfg, GradientTask{Task: task}); err == nil {
		t.Error("a task without an aggregator of gradients was taken")
	}
	if _, err := (&PlainGradients{}).aggregate(1, nil); err == nil {
		t.Error("no gradients were added")
	}
}

// lossesOnly hides a model's gradient.
type lossesOnly struct{ model.Model }

func (m lossesOnly) NewWorker() model.Worker { return lossWorker{m.Model.NewWorker()} }

type lossWorker struct{ w model.Worker }

func (l lossWorker) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	return l.w.Losses(theta, phi, gamma, set, batch)
}

func (l lossWorker) Evaluate(theta []float64, set *dataset.Set, from, to int) (float64, int) {
	return l.w.Evaluate(theta, set, from, to)
}
