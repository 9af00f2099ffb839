package learner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

func newGradientTrainer(t testing.TB, cfg Config, task Task, a Aggregator) *GradientTrainer {
	t.Helper()
	task.Aggregator = a
	tr, err := NewGradientTrainer(cfg, task)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// scripted returns what a test wants. It knows of no truth.
type scripted struct {
	outcome aggregate.Outcome
	err     error
}

func (s scripted) Aggregate(context.Context, int, [][]float64) (aggregate.Outcome, error) {
	return s.outcome, s.err
}

// A round is theta - 2 eta gamma sum, on the batches and from the model of a
// Trainer of the same seed: the losses of the first round are the same, and along
// any direction the gradient is the Delta f that it would send, over 2 gamma.
func TestGradientRoundIsThatOfDifferences(t *testing.T) {
	train, test := strokes(t, 500, 100)
	cfg := paperConfig()
	cfg.BatchSize, cfg.Gamma = 32, PowerLaw{X0: 1e-5, P: 0}
	seed := keystream.FromInteger(3)
	task := newTask(t, train, test, 4, &Plain{}, seed)
	zero := newTrainer(t, cfg, task)
	zeroRecord, err := zero.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	a := &watched{}
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
			slope += x * zero.replica.phi[0][j]
			sum[j] += x
		}
		if want := zero.delta[i][0] / (2 * record.Gamma); math.Abs(slope-want) > 1e-5*math.Max(1, math.Abs(want)) {
			t.Errorf("device %d: slope %v, by differences %v", i+1, slope, want)
		}
	}
	for j, x := range tr.State().Theta {
		if want := before[j] - 2*record.Eta*record.Gamma*sum[j]; math.Abs(x-want) > 1e-15 {
			t.Fatalf("theta[%d] is %v, expected %v", j, x, want)
		}
	}
}

// Neither the number of goroutines nor an interruption changes a bit.
func TestGradientTrainerRepeats(t *testing.T) {
	train, test := strokes(t, 500, 100)
	cfg := paperConfig()
	cfg.Rounds, cfg.BatchSize, cfg.EvalEvery = 12, 32, 3
	task := newTask(t, train, test, 5, &Plain{}, keystream.FromInteger(3))
	run := func(workers, stop int) (records []string, theta []float64) {
		cfg.Workers = workers
		tr := newGradientTrainer(t, cfg, task, &Plain{})
		for !tr.Done() {
			if tr.State().Round == stop {
				s := tr.State()
				tr = newGradientTrainer(t, cfg, task, &Plain{})
				if err := tr.Restore(s); err != nil {
					t.Fatal(err)
				}
			}
			r, err := tr.Step(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, fmt.Sprintf("%+v", r)) // as NaN is not NaN
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
	task := newTask(t, train, test, 2, &Plain{}, keystream.FromInteger(3))
	step := func(out aggregate.Outcome, fail error) (Record, State, error) {
		tr := newGradientTrainer(t, cfg, task, scripted{out, fail})
		r, err := tr.Step(context.Background())
		return r, tr.State(), err
	}
	r, s, err := step(aggregate.Outcome{Attempts: 2, Skipped: true, Clipped: 2}, nil)
	if err != nil || !r.Skipped || s.Round != 1 || s.Skipped != 1 || s.Clipped != 2 || s.Repeated != 1 || slices.Max(s.Theta) != 0 {
		t.Errorf("skipped: %+v, %v", r, err)
	}
	broken := errors.New("broken")
	if _, s, err := step(aggregate.Outcome{}, broken); !errors.Is(err, broken) || s.Round != 0 {
		t.Errorf("error of the uplink: round %d, %v", s.Round, err)
	}
	if _, s, err := step(aggregate.Outcome{M: []float64{1}}, nil); err == nil || s.Round != 0 {
		t.Errorf("short sum: round %d, %v", s.Round, err)
	}
	bad := make([]float64, task.Model.Dim())
	bad[3] = math.NaN()
	if _, s, err := step(aggregate.Outcome{M: bad}, nil); !errors.Is(err, ErrDiverged) || s.Round != 0 {
		t.Errorf("sum that is no number: round %d, %v", s.Round, err)
	}
	task.Model = lossesOnly{task.Model}
	if _, err := NewGradientTrainer(cfg, task); err == nil || !strings.Contains(err.Error(), "no gradient, only losses") {
		t.Errorf("a model without gradients: %v", err)
	}
	task.Aggregator = nil
	if _, err := NewGradientTrainer(cfg, task); err == nil {
		t.Error("a task without an aggregator was taken")
	}
	if _, err := (&Plain{}).Aggregate(context.Background(), 1, nil); err == nil {
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

// What a harness knows beside the outcome is in the record, and only there: with it or
// without it the model is the same.
func TestTruthIsBesideTheOutcome(t *testing.T) {
	train, test := strokes(t, 60, 30)
	cfg := paperConfig()
	cfg.BatchSize, cfg.Packed, cfg.Rounds = 4, 2, 3
	for _, gradients := range []bool{false, true} {
		run := func(a Aggregator) (r Record, theta []float64) {
			task := newTask(t, train, test, 3, a, keystream.FromInteger(7))
			var tr interface {
				Step(context.Context) (Record, error)
				State() State
			}
			if gradients {
				cfg.Packed = 1
				tr = newGradientTrainer(t, cfg, task, a)
			} else {
				tr = newTrainer(t, cfg, task)
			}
			for range 3 {
				var err error
				if r, err = tr.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return r, tr.State().Theta
		}
		told, theta := run(biased{&Plain{}})
		untold, same := run(struct{ Aggregator }{biased{&Plain{}}})
		if !slices.Equal(theta, same) {
			t.Errorf("gradients %v: the model depends on what only a simulation knows", gradients)
		}
		// Plain is off by nothing from a truth that is 0.5 less, with a deviation of 0.25.
		if math.Abs(told.Eps-0.5) > 1e-12 || told.EpsStdPredicted != 0.25 || !gradients && (math.Abs(told.M-told.MIdeal-0.5) > 1e-12 || math.Abs(told.EpsSquare-4) > 1e-9) {
			t.Errorf("gradients %v: %+v", gradients, told)
		}
		if !math.IsNaN(untold.MIdeal) || !math.IsNaN(untold.Eps) || !math.IsNaN(untold.EpsStdPredicted) || untold.EpsSquare != 0 || math.IsNaN(untold.M) != gradients {
			t.Errorf("gradients %v, without truth: %+v", gradients, untold)
		}
	}
}

// biased says of Plain that it ought to give 1/2 less.
type biased struct{ *Plain }

func (b biased) Truth() aggregate.Truth {
	truth := aggregate.Truth{EpsStd: 0.25}
	for _, x := range b.Plain.Truth().Ideal {
		truth.Ideal = append(truth.Ideal, x-0.5)
	}
	return truth
}
