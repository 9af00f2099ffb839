package learner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
)

// smallRun is a run of 30 rounds with uneven events: the channel of the paper,
// and a skipped or repeated round here and there.
func smallRun(t testing.TB, workers int, directions Directions) *Trainer {
	t.Helper()
	train, test := strokes(t, 300, 150)
	seed := keystream.FromInteger(4)
	cfg := paperConfig()
	cfg.Rounds, cfg.BatchSize, cfg.EvalEvery, cfg.Workers, cfg.Directions = 30, 20, 7, workers, directions
	return newTrainer(t, cfg, newTask(t, train, test, 7, uneven{newEZOFL(t, 7, 1, 0.1, seed)}, seed))
}

// uneven skips every fifth round, repeats every third and clips every fourth.
type uneven struct{ Simulated }

func (u uneven) Aggregate(ctx context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
	out, err := u.Simulated.Aggregate(ctx, k, delta)
	if k%3 == 0 {
		out.Attempts += 2
	}
	if k%4 == 0 {
		out.Clipped = 3
	}
	if k%5 == 0 {
		out.Skipped, out.M = true, nil
	}
	return out, err
}

func TestResume(t *testing.T) {
	for _, directions := range []Directions{Rademacher, Gaussian, Sphere} {
		t.Run(directions.String(), func(t *testing.T) {
			whole := smallRun(t, 0, directions)
			want := runAll(t, whole)
			for _, stop := range []int{0, 1, 5, 14, 30} {
				first := smallRun(t, 0, directions)
				for range stop {
					if _, err := first.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				state := first.State()
				runAll(t, first) // must not reach into the state
				second := smallRun(t, 0, directions)
				if err := second.Restore(state); err != nil {
					t.Fatal(err)
				}
				clear(state.Theta) // must not reach into the trainer
				if got := runAll(t, second); !slices.Equal(got, want[stop:]) {
					t.Errorf("stopped after %d rounds, the records differ", stop)
				}
				if !reflect.DeepEqual(second.State(), whole.State()) {
					t.Errorf("stopped after %d rounds, the states differ", stop)
				}
			}
		})
	}
}

func TestSameForAnyWorkers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	one := smallRun(t, 1, Rademacher)
	want := runAll(t, one)
	for _, workers := range []int{0, 2, 3, 16} {
		for _, procs := range []int{1, 2} {
			runtime.GOMAXPROCS(procs)
			other := smallRun(t, workers, Rademacher)
			if got := runAll(t, other); !slices.Equal(got, want) {
				t.Errorf("%d workers on %d cores: the records differ", workers, procs)
			}
			if !reflect.DeepEqual(other.State(), one.State()) || other.Final() != one.Final() {
				t.Errorf("%d workers on %d cores: the results differ", workers, procs)
			}
		}
	}
}

func TestRecords(t *testing.T) {
	trainer := smallRun(t, 0, Rademacher)
	for k := 1; k <= 30; k++ {
		before := trainer.State()
		r, err := trainer.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		after := trainer.State()
		checkRecord(t, k, r, before, after)
	}
	if s := trainer.State(); s.Skipped != 6 || s.Repeated != 10 || s.Clipped != 21 {
		t.Errorf("got %d skipped, %d repeated, %d clipped", s.Skipped, s.Repeated, s.Clipped)
	}
	if _, err := trainer.Step(t.Context()); !errors.Is(err, ErrDone) {
		t.Errorf("after the last round: %v", err)
	}
}

// checkRecord checks what is recorded of round k of 30.
func checkRecord(t *testing.T, k int, r Record, before, after State) {
	t.Helper()
	if r.Round != k || after.Round != k {
		t.Fatalf("round %d is recorded as %d", k, r.Round)
	}
	if r.Skipped != (k%5 == 0) || r.Skipped != slices.Equal(before.Theta, after.Theta) {
		t.Errorf("round %d: skipped is %v and theta unchanged %v", k, r.Skipped, slices.Equal(before.Theta, after.Theta))
	}
	if r.Skipped && (r.M != 0 || r.MIdeal != 0 || r.Eps != 0 || r.EpsStdPredicted != 0) {
		t.Errorf("skipped round %d records %+v", k, r)
	}
	if !r.Skipped && (r.Eps != r.M-r.MIdeal || r.EpsStdPredicted != 0.1) {
		t.Errorf("round %d records %+v", k, r)
	}
	if r.Evaluated != (k%7 == 0 || k == 30) || (r.TestAccuracy > 0) != r.Evaluated {
		t.Errorf("round %d: evaluated is %v with accuracy %v", k, r.Evaluated, r.TestAccuracy)
	}
	if want := 0.05 / math.Sqrt(1+float64(k)); math.Abs(r.Eta-want) > 1e-15 {
		t.Errorf("round %d: eta is %v, want %v", k, r.Eta, want)
	}
	if k == 1 && math.Abs(r.TrainLoss-math.Ln2) > 1e-12 {
		t.Errorf("the loss at theta = 0 is %v, want log 2", r.TrainLoss)
	}
}

// TestStepByHand recomputes one round from the paper's formulas alone.
func TestStepByHand(t *testing.T) {
	train, test := strokes(t, 60, 30)
	seed := keystream.FromInteger(8)
	cfg := paperConfig()
	cfg.BatchSize = 1000 // every device takes its whole shard
	task := newTask(t, train, test, 3, &Plain{}, seed)
	trainer := newTrainer(t, cfg, task)
	start := trainer.State()
	for j := range start.Theta {
		start.Theta[j] = math.Sin(float64(j)) / 50
	}
	start.Round = 4
	if err := trainer.Restore(start); err != nil {
		t.Fatal(err)
	}
	record, err := trainer.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loss := func(theta []float64, shard []int) float64 {
		var sum float64
		for _, i := range shard {
			u := theta[train.Dim]
			for j, x := range train.Row(i) {
				u += theta[j] * x
			}
			p := 1 / (1 + math.Exp(-u))
			if train.Y[i] == 0 {
				p = 1 - p
			}
			sum -= math.Log(p)
		}
		return sum / float64(len(shard))
	}
	const eta, gamma = 0.05 * 0.40824829046386302, 0.05 * 0.63894310424627285 // (1+5)^-1/2, (1+5)^-1/4
	phi := trainer.replica.phi[0]
	plus, minus := slices.Clone(start.Theta), slices.Clone(start.Theta)
	for j := range phi {
		plus[j] += gamma * phi[j]
		minus[j] -= gamma * phi[j]
	}
	var m, mean float64
	for _, shard := range task.Shards {
		m += loss(plus, shard) - loss(minus, shard)
		mean += loss(start.Theta, shard) / 3
	}
	if math.Abs(record.M-m) > 1e-12 || math.Abs(record.TrainLoss-mean) > 1e-12 {
		t.Errorf("M is %v, want %v; the training loss %v, want %v", record.M, m, record.TrainLoss, mean)
	}
	for j, got := range trainer.State().Theta {
		if want := start.Theta[j] - eta*m*phi[j]; math.Abs(got-want) > 1e-14 {
			t.Fatalf("theta[%d] is %v, want %v", j, got, want)
		}
	}
}

// watch calls a function in the middle of the aggregation.
type watch struct {
	during func(ctx context.Context) error
}

func (w watch) Aggregate(ctx context.Context, _ int, _ [][]float64) (aggregate.Outcome, error) {
	return aggregate.Outcome{M: []float64{1}, Attempts: 1}, w.during(ctx)
}

func TestCancel(t *testing.T) {
	train, test := strokes(t, 60, 30)
	ctx, cancel := context.WithCancel(t.Context())
	waits := true
	task := newTask(t, train, test, 3, watch{func(inner context.Context) error {
		cancel()
		if !waits {
			return nil
		}
		<-inner.Done() // it is ctx, or this waits for ever
		return inner.Err()
	}}, keystream.FromInteger(1))
	trainer := newTrainer(t, paperConfig(), task)
	before := trainer.State()
	if _, err := trainer.Step(ctx); !errors.Is(err, context.Canceled) || !reflect.DeepEqual(trainer.State(), before) {
		t.Errorf("a round that was broken off gave %v, or changed the state", err)
	}
	waits = false
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	if r, err := trainer.Step(ctx); err != nil || r.Round != 1 {
		t.Errorf("a round that was not broken off gave %v", err)
	}
	before = trainer.State()
	if _, err := trainer.Step(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancelled context", err)
	}
	if !reflect.DeepEqual(trainer.State(), before) {
		t.Error("a round that did not start changed the state")
	}
}

func TestStepErrors(t *testing.T) {
	train, test := strokes(t, 60, 30)
	broken := errors.New("no carrier")
	fail := broken
	task := newTask(t, train, test, 3, watch{func(context.Context) error { return fail }}, keystream.FromInteger(1))
	trainer := newTrainer(t, paperConfig(), task)
	before := trainer.State()
	if _, err := trainer.Step(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "round 1: aggregating") {
		t.Errorf("got %v", err)
	}
	if !reflect.DeepEqual(trainer.State(), before) {
		t.Error("a failed round changed the state")
	}
	fail = nil
	if r, err := trainer.Step(t.Context()); err != nil || r.Round != 1 {
		t.Errorf("the round could not be run again: %v", err)
	}
}

type constant float64

func (c constant) Aggregate(context.Context, int, [][]float64) (aggregate.Outcome, error) {
	return aggregate.Outcome{M: []float64{float64(c)}, Attempts: 1}, nil
}

func TestDivergence(t *testing.T) {
	train, test := strokes(t, 60, 30)
	for _, m := range []float64{math.NaN(), math.Inf(1), math.MaxFloat64} {
		cfg := paperConfig()
		cfg.Eta = PowerLaw{X0: 10} // MaxFloat64 becomes infinite in theta
		trainer := newTrainer(t, cfg, newTask(t, train, test, 3, constant(m), keystream.FromInteger(1)))
		var err error
		for range 2 {
			if err == nil {
				_, err = trainer.Step(t.Context())
			}
		}
		if !errors.Is(err, ErrDiverged) {
			t.Errorf("M = %v: got %v", m, err)
		}
	}
}

func TestNewErrors(t *testing.T) {
	train, test := strokes(t, 60, 30)
	task := newTask(t, train, test, 3, &Plain{}, keystream.FromInteger(1))
	for want, spoil := range map[string]func(c *Config, task *Task){
		"the number of rounds is 0; allowed is 1":       func(c *Config, _ *Task) { c.Rounds = 0 },
		"the batch size is 0; allowed is 1 or more":     func(c *Config, _ *Task) { c.BatchSize = 0 },
		"the directions are Directions(7)":              func(c *Config, _ *Task) { c.Directions = 7 },
		"between evaluations are -1":                    func(c *Config, _ *Task) { c.EvalEvery = -1 },
		"the number of workers is -1":                   func(c *Config, _ *Task) { c.Workers = -1 },
		"eta: no step law":                              func(c *Config, _ *Task) { c.Eta = nil },
		"gamma: the step size of round 1 is 0":          func(c *Config, _ *Task) { c.Gamma = PowerLaw{} },
		"eta: the step size of round 1 is +Inf":         func(c *Config, _ *Task) { c.Eta = HorizonLaw{X0: 1} },
		"lacks its model":                               func(_ *Config, task *Task) { task.Model = nil },
		"the number of devices is 0":                    func(_ *Config, task *Task) { task.Shards = nil },
		"device 2 has no sample":                        func(_ *Config, task *Task) { task.Shards = [][]int{{1}, {}} },
		"device 1 has sample 60; allowed is 0 to 59":    func(_ *Config, task *Task) { task.Shards = [][]int{{60}} },
		"the test set has no sample":                    func(_ *Config, task *Task) { s := *test; s.Y = nil; task.Test = &s },
		"the training set has 60 samples of 783":        func(_ *Config, task *Task) { s := *train; s.Dim = 783; task.Train = &s },
		"the training set has 3 classes; allowed is 2":  func(_ *Config, task *Task) { s := *train; s.Classes = make([]string, 3); task.Train = &s },
		"setting up training: the number of rounds is ": func(c *Config, _ *Task) { c.Rounds = math.MaxInt32; c.Rounds++ },
	} {
		c, changed := paperConfig(), task
		spoil(&c, &changed)
		if _, err := New(c, changed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestRestoreErrors(t *testing.T) {
	trainer := smallRun(t, 1, Rademacher)
	want := trainer.State()
	for name, spoil := range map[string]func(s *State){
		"the round is 31; allowed is 0 to 30":   func(s *State) { s.Round = 31 },
		"the round is -1":                       func(s *State) { s.Round = -1 },
		"theta has 3 values; allowed is 785":    func(s *State) { s.Theta = s.Theta[:3] },
		"theta[2] is NaN; allowed is finite":    func(s *State) { s.Theta[2] = math.NaN() },
		"are 0, -1 and 0; allowed is 0 or more": func(s *State) { s.Skipped = -1 },
	} {
		s := trainer.State()
		spoil(&s)
		if err := trainer.Restore(s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q in it", err, name)
		}
	}
	if !reflect.DeepEqual(trainer.State(), want) {
		t.Error("a refused state changed the trainer")
	}
}

func TestStepLaws(t *testing.T) {
	for _, c := range []struct {
		law  StepLaw
		k    int
		want float64
	}{
		{PowerLaw{0.05, 0.5}, 3, 0.025},
		{PowerLaw{0.05, 0.25}, 15, 0.025},
		{HorizonLaw{0.05, 10000}, 1, 0.005},
		{HorizonLaw{0.05, 10000}, 10000, 0.005},
		{PowerLaw{0.05, 0}, 400, 0.05},
		{CosineLaw{0.4, 4}, 1, 0.4},
		{CosineLaw{0.4, 4}, 3, 0.2},
		{CosineLaw{0.4, 3}, 3, 0.1},
		{CosineLaw{0.4, 1}, 1, 0.4},
		{WarmUp{PowerLaw{0.4, 0}, 4}, 1, 0.1},
		{WarmUp{PowerLaw{0.4, 0}, 4}, 4, 0.4},
		{WarmUp{PowerLaw{0.4, 0}, 4}, 5, 0.4},
		{WarmUp{PowerLaw{0.4, 0.5}, 4}, 3, 0.15},
		{WarmUp{PowerLaw{0.4, 0.5}, 0}, 3, 0.2},
	} {
		if got := c.law.At(c.k); math.Abs(got-c.want) > 1e-16 {
			t.Errorf("%+v at %d is %v, want %v", c.law, c.k, got, c.want)
		}
	}
	for _, rounds := range []int{1, 2, 1000, math.MaxInt32} { // the last is near 0, and above
		law := CosineLaw{0.4, rounds}
		if got, near := law.At(rounds), 0.4*math.Pow(math.Pi/2/float64(rounds), 2); !(got > 0) || rounds > 2 && math.Abs(got/near-1) > 1e-5 {
			t.Errorf("the cosine ends at %v after %d rounds, want near %v", got, rounds, near)
		}
	}
}

// TestAllocations counts those of a round without evaluation.
func TestAllocations(t *testing.T) {
	train, test := strokes(t, 300, 150)
	for _, workers := range []int{1, 2} {
		cfg := paperConfig()
		cfg.Workers, cfg.BatchSize = workers, 20
		trainer := newTrainer(t, cfg, newTask(t, train, test, 7, &Plain{}, keystream.FromInteger(1)))
		allocs := testing.AllocsPerRun(50, func() {
			if _, err := trainer.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
		})
		// One is the context that does not end.
		if allocs > 2 {
			t.Errorf("with %d workers a round allocates %v times", workers, allocs)
		}
	}
}

// BenchmarkStep is one round of the paper's MNIST experiment, on drawn images of
// the same number and size.
func BenchmarkStep(b *testing.B) {
	train, test := strokes(b, 12665, 1)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			cfg := paperConfig()
			cfg.Rounds, cfg.Workers = math.MaxInt32, workers
			trainer := newTrainer(b, cfg, newTask(b, train, test, 10, &Plain{}, keystream.FromInteger(1)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := trainer.Step(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
