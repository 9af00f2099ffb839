package learner

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
	"ringwave/learner/philox"
)

// counted is a model that counts the losses that are computed of batches.
type counted struct {
	model.Model
	losses *atomic.Int64
}

func (m counted) NewWorker() model.Worker { return countedWorker{m.Model.NewWorker(), m.losses} }

type countedWorker struct {
	model.Worker
	losses *atomic.Int64
}

func (w countedWorker) Partial(want model.Want, theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	n := int64(1)
	if want.F {
		n++
	}
	if want.Minus {
		n++
	}
	w.losses.Add(n)
	return model.Partial(w.Worker, want, theta, phi, gamma, set, batch)
}

// A device computes P+1 losses a round for one-sided differences, and 2P for two-sided ones
// with one more for the record, by itself and in a Trainer.
func TestPasses(t *testing.T) {
	train, test := strokes(t, 60, 30)
	for _, x := range []struct {
		change func(c *Config)
		want   int
	}{
		{func(c *Config) { c.Packed = 0 }, 3},
		{func(*Config) {}, 11},
		{func(c *Config) { c.PairLoss = true }, 10},
		{func(c *Config) { c.Estimator = OneSided }, 6},
		{func(c *Config) { c.Estimator = OnePoint }, 6},
		{func(c *Config) { c.Estimator, c.PairLoss = OnePoint, true }, 10},
	} {
		cfg := paperConfig()
		cfg.Packed = 5
		x.change(&cfg)
		task := newTask(t, train, test, 3, &Plain{}, keystream.FromInteger(1))
		var losses atomic.Int64
		task.Model = counted{task.Model, &losses}
		if _, err := newTrainer(t, cfg, task).Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := losses.Swap(0); got != int64(3*x.want) || cfg.Passes() != x.want {
			t.Errorf("%v, P = %d: three devices compute %d losses, and one is said to compute %d; want %d each", cfg.Estimator, cfg.Packed, got, cfg.Passes(), x.want)
		}
		if _, _, _, _, err := members(t, cfg, task)[1].Scalars(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if got := losses.Load(); got != int64(x.want) {
			t.Errorf("%v, P = %d: a device by itself computes %d losses, want %d", cfg.Estimator, cfg.Packed, got, x.want)
		}
	}
}

// Summed over all 2^d directions, one-sided differences of a quadratic give gamma grad f, half
// of what two-sided ones give, and what is even in Phi is in the second moment alone:
// E[g^2] = d (gamma^2 |grad f|^2 + (gamma^2/2 sum a)^2).
func TestOneSidedHalf(t *testing.T) {
	const d, gamma = 6, 0.4
	curvature, theta, grad := []float64{1, 2, 0.5, 3, 1.5, 0.7}, []float64{1, -2, 0.3, 0.4, -1, 2}, make([]float64, d)
	m, err := model.NewQuadratic(curvature, theta)
	if err != nil {
		t.Fatal(err)
	}
	set := &dataset.Set{X: make([]float64, d), Y: []uint8{0}, Dim: d}
	for j, a := range curvature {
		grad[j] = a * theta[j]
	}
	for estimator, slope := range map[Estimator]float64{TwoPoint: 2, OneSided: 1} {
		mean, phi, square := make([]float64, d), make([]float64, d), 0.0
		for bits := range 1 << d {
			for j := range phi {
				phi[j] = float64(1 - 2*(bits>>j&1))
			}
			base, plus, minus := m.NewWorker().Losses(theta, phi, gamma, set, []int{0})
			x := estimator.scalar(plus, minus, base)
			floats.AddScaled(mean, x/(1<<d), phi)
			square += d * x * x / (1 << d)
		}
		floats.AddScaled(mean, -slope*gamma, grad)
		if off := floats.Norm(mean, 2); off > 1e-14 || estimator.Slope() != slope {
			t.Errorf("%v: the mean is off by %v from %v gamma grad f; Slope is %v", estimator, off, slope, estimator.Slope())
		}
		even := 0.0
		if estimator == OneSided {
			even = gamma * gamma / 2 * floats.Sum(curvature)
		}
		if want := d * (slope*slope*gamma*gamma*floats.Dot(grad, grad) + even*even); math.Abs(square/want-1) > 1e-14 {
			t.Errorf("%v: the second moment is %v, want %v", estimator, square, want)
		}
	}
}

// parabola is a task of one parameter: three devices whose samples' mean losses are 1.5/2
// (theta - x)^2 but for a constant, x being the mean of the device's. The mean of all is 2.
func parabola(t *testing.T) Task {
	t.Helper()
	m, err := model.NewQuadratic([]float64{1.5}, []float64{10})
	if err != nil {
		t.Fatal(err)
	}
	set := &dataset.Set{X: []float64{0, 2, 3, 1, 4, 2}, Y: make([]uint8, 6), Dim: 1, Classes: []string{"0", "1"}}
	return Task{Model: m, Train: set, Test: set, Shards: [][]int{{0, 1}, {2, 3}, {4, 5}}, Aggregator: &Plain{}, Seed: keystream.FromInteger(8)}
}

// In units of the gradient, a step with one parameter is that of gradient descent: exact with
// two points, whatever gamma is, and with momentum, whose window of 44 rounds is longer than the
// run; with one side to gamma.
func TestGradientUnits(t *testing.T) {
	const eta, rounds = 0.1, 30
	for _, x := range []struct {
		estimator Estimator
		momentum  float64
		gamma     StepLaw
		bound     float64
	}{
		{TwoPoint, 0, PowerLaw{X0: 0.5, P: 0.3}, 1e-13},
		{OneSided, 0, PowerLaw{X0: 1e-5}, 1e-4},
		{TwoPoint, 0.9, PowerLaw{X0: 0.5, P: 0.3}, 1e-13},
	} {
		cfg := Config{Rounds: rounds, BatchSize: 2, Eta: PowerLaw{X0: eta}, Gamma: x.gamma, Estimator: x.estimator, MeanOf: 3, Momentum: x.momentum}
		trainer := newTrainer(t, cfg, parabola(t))
		theta, velocity := 10.0, 0.0
		for !trainer.Done() {
			if _, err := trainer.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			velocity = 1.5*(theta-2) + x.momentum*velocity
			theta -= eta * velocity
			if got := trainer.State().Theta[0]; math.Abs(got-theta) > x.bound {
				t.Fatalf("%v, momentum %v: theta is %v after round %d, and by gradient descent %v", x.estimator, x.momentum, got, trainer.State().Round, theta)
			}
		}
	}
}

// replicaOf returns a replica of logistic regression with 5 features.
func replicaOf(t *testing.T, cfg Config) *Replica {
	t.Helper()
	m, err := model.NewLogistic(5)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReplica(cfg, m, keystream.FromInteger(3))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// directionsOf draws a round's directions from the seed and the round.
func directionsOf(cfg Config, k int) [][]float64 {
	stream := keystream.FromInteger(3).Derive("directions").Stream()
	var all [][]float64
	for p := range max(cfg.Packed, 1) {
		stream.Start(uint32(k), uint32(p))
		phi := make([]float64, 6)
		cfg.Directions.Draw(phi, rand.New(stream))
		all = append(all, phi)
	}
	return all
}

// FZOO's step is eta/(P sigma) sum_p M_p Phi_p, the same whatever M is multiplied by, and none
// where all M are equal.
func TestFZOO(t *testing.T) {
	cfg := paperConfig()
	cfg.Packed, cfg.Step = 4, FZOO
	m := []float64{0.3, -1.1, 0.7, 2.5} // mean 0.6, squared deviations 0.09, 2.89, 0.01 and 3.61
	sigma := math.Sqrt((0.09 + 2.89 + 0.01 + 3.61) / 3)
	want := make([]float64, 6)
	for p, phi := range directionsOf(cfg, 1) {
		floats.AddScaled(want, -cfg.Eta.At(1)/4/sigma*m[p], phi)
	}
	for _, scale := range []float64{1, 1000, 1e-9, 0x1p-40, -1, 1e300, 1e-300} {
		r, scaled := replicaOf(t, cfg), slices.Clone(m)
		floats.Scale(scale, scaled)
		if err := r.Apply(1, scaled); err != nil {
			t.Fatal(err)
		}
		sign := math.Copysign(1, scale)
		for j, x := range r.theta {
			if math.Abs(sign*x-want[j]) > 1e-15 {
				t.Errorf("M times %v: theta[%d] is %v, want %v", scale, j, x, sign*want[j])
			}
		}
	}
	for _, x := range []float64{0, 0.1, -0.1, 1e308, 5e-324} {
		r := replicaOf(t, cfg)
		if err := r.Apply(1, []float64{x, x, x, x}); err != nil {
			t.Fatal(err)
		}
		if r.Round() != 1 || !slices.Equal(r.theta, make([]float64, 6)) {
			t.Errorf("where all M are %v, theta is %v after round %d", x, r.theta, r.Round())
		}
	}
}

// With momentum a round's step is eta_k sum_j beta^j g_{k-j} over the last W rounds, of which
// each g has its own round's gamma and deviation, whatever was skipped; and it differs from the
// recursion without end by no more than beta^W of the largest steps.
func TestMomentum(t *testing.T) {
	const rounds = 40
	for name, change := range map[string]func(c *Config){
		"plain":    func(*Config) {},
		"packed":   func(c *Config) { c.Packed = 3 },
		"fzoo":     func(c *Config) { c.Packed, c.Step, c.Directions = 3, FZOO, Gaussian },
		"gradient": func(c *Config) { c.MeanOf, c.Estimator = 7, OneSided },
		"philox":   func(c *Config) { c.Directions = Philox },
	} {
		cfg := paperConfig()
		cfg.Momentum = 0.5
		change(&cfg)
		const window = 7 // 0.5^7 < 1 %
		p := max(cfg.Packed, 1)
		r, rnd := replicaOf(t, cfg), rand.New(rand.NewPCG(1, 2))
		theta, endless, velocity := make([]float64, 6), make([]float64, 6), make([]float64, 6)
		g := map[int][]float64{}
		for k := 1; k <= rounds; k++ {
			floats.Scale(0.5, velocity)
			g[k] = make([]float64, 6)
			m := make([]float64, p)
			for i := range m {
				m[i] = rnd.NormFloat64()
			}
			var err error
			if k%5 == 0 {
				err = r.Skip(k)
			} else if err = r.Apply(k, m); err == nil {
				scale := 1 / float64(p)
				if cfg.Step == FZOO {
					mean := floats.Sum(m) / 3
					scale /= math.Sqrt((sq(m[0]-mean) + sq(m[1]-mean) + sq(m[2]-mean)) / 2)
				}
				if cfg.MeanOf > 0 {
					scale /= cfg.Gamma.At(k) * 7
				}
				for i, phi := range directionsOf(cfg, k) {
					floats.AddScaled(g[k], scale*m[i], phi)
				}
				floats.Add(velocity, g[k])
				for j := range min(window, k) {
					floats.AddScaled(theta, -cfg.Eta.At(k)*math.Pow(0.5, float64(j)), g[k-j])
				}
				floats.AddScaled(endless, -cfg.Eta.At(k), velocity)
			}
			if err != nil {
				t.Fatal(err)
			}
			if off := floats.Distance(r.theta, theta, math.Inf(1)); off > 1e-13 {
				t.Fatalf("%s: after round %d theta is off by %v", name, k, off)
			}
		}
		if off, size := floats.Distance(theta, endless, 2), floats.Norm(theta, 2); off == 0 || off > 0.05*size {
			t.Errorf("%s: theta of norm %v is %v off from the recursion without end", name, size, off)
		}
	}
}

func sq(x float64) float64 { return x * x }

// The window is where the weight first is 1 % or less.
func TestWindow(t *testing.T) {
	for beta, want := range map[float64]int{0: 1, 0.005: 1, 0.02: 2, 0.5: 7, 0.9: 44, 0.99: 459, MaxMomentum: 4603} {
		if got := (Config{Momentum: beta}).Window(); got != want {
			t.Errorf("the window of momentum %v is %d, want %d", beta, got, want)
		}
	}
}

// methods are configurations with what is not the paper's.
func methods() map[string]func(c *Config) {
	return map[string]func(c *Config){
		"one-sided": func(c *Config) { c.Estimator, c.Packed = OneSided, 3 },
		"fzoo":      func(c *Config) { c.Estimator, c.Packed, c.Step = OneSided, 4, FZOO },
		"gradient":  func(c *Config) { c.MeanOf = 7 },
		"momentum":  func(c *Config) { c.Momentum, c.Packed = 0.8, 2 },
		"all of them": func(c *Config) {
			c.Estimator, c.Packed, c.Step, c.Momentum, c.Directions = OneSided, 3, FZOO, 0.7, Philox
		},
	}
}

// A trainer that goes on from a state, written as JSON in between, has the records and the
// model of one that never stopped, and its state does not change with the other's.
func TestResumeMethods(t *testing.T) {
	train, test := strokes(t, 100, 50)
	for name, change := range methods() {
		cfg := paperConfig()
		cfg.Rounds, cfg.BatchSize = 30, 10
		change(&cfg)
		make := func() *Trainer {
			return newTrainer(t, cfg, newTask(t, train, test, 3, rarely{&Plain{}}, keystream.FromInteger(5)))
		}
		whole := make()
		runAll(t, whole)
		for _, stop := range []int{0, 1, 6, 25} {
			first := make()
			for range stop {
				if _, err := first.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			state := first.State()
			runAll(t, first)
			text, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			var read State
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			second := make()
			if err := second.Restore(read); err != nil {
				t.Fatal(err)
			}
			for _, m := range read.Past {
				clear(m)
			}
			runAll(t, second)
			if !reflect.DeepEqual(second.State(), whole.State()) {
				t.Errorf("%s: stopped after %d rounds, the states differ", name, stop)
			}
		}
	}
}

// A state without the scalars that momentum needs is refused, and theta alone, too.
func TestRestoreMomentumErrors(t *testing.T) {
	train, test := strokes(t, 60, 30)
	cfg := paperConfig()
	cfg.Momentum, cfg.Packed = 0.5, 2
	trainer := newTrainer(t, cfg, newTask(t, train, test, 3, rarely{&Plain{}}, keystream.FromInteger(5)))
	for range 8 {
		if _, err := trainer.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := trainer.State()
	for text, spoil := range map[string]func(s *State){
		"the scalars of 0 rounds; allowed is 6":              func(s *State) { s.Past = nil },
		"the scalars of 6 rounds; allowed is 2":              func(s *State) { s.Round = 2 },
		"1 scalars of round 4; allowed is 2, or none":        func(s *State) { s.Past[1] = s.Past[1][:1] },
		"a scalar of round 8 is no finite number":            func(s *State) { s.Past[5][1] = math.NaN() },
		"theta has 3 values; allowed is 785, the model's":    func(s *State) { s.Theta = s.Theta[:3] },
		"restoring training: the round is 401; allowed is 0": func(s *State) { s.Round = 401 },
	} {
		s := trainer.State()
		spoil(&s)
		if err := trainer.Restore(s); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q in it", err, text)
		}
	}
	if err := trainer.replica.Restore(want.Round, want.Theta); err == nil || !strings.Contains(err.Error(), "allowed is to replay these rounds") {
		t.Errorf("theta alone: %v", err)
	}
	if want.Past[2] != nil || !reflect.DeepEqual(trainer.State(), want) {
		t.Errorf("a refused state changed the trainer: %+v", trainer.State().Past)
	}
}

// Estimators and steps that do not go with the rest are refused.
func TestMethodErrors(t *testing.T) {
	train, test := strokes(t, 60, 30)
	for want, change := range map[string]func(c *Config){
		"one-sided differences; allowed is the loss at theta":        func(c *Config) { c.Estimator, c.PairLoss = OneSided, true },
		"the packed directions are 1 with the step fzoo; allowed":    func(c *Config) { c.Step = FZOO },
		"the step is StepRule(2)":                                    func(c *Config) { c.Step = 2 },
		"divided by -1 devices":                                      func(c *Config) { c.MeanOf = -1 },
		"the momentum is 1; allowed is 0 to 0.999":                   func(c *Config) { c.Momentum = 1 },
		"the momentum is NaN":                                        func(c *Config) { c.Momentum = math.NaN() },
		"the momentum is 0.99 with 4096 packed directions, whose st": func(c *Config) { c.Momentum, c.Packed = 0.99, 4096 },
	} {
		cfg := paperConfig()
		change(&cfg)
		if _, err := New(cfg, newTask(t, train, test, 3, &Plain{}, keystream.FromInteger(1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	for _, change := range methods() {
		cfg := paperConfig()
		change(&cfg)
		cfg.Packed = 1
		if cfg.Step == FZOO {
			continue // which has several directions
		}
		if _, err := NewGradientTrainer(cfg, newTask(t, train, test, 3, &Plain{}, keystream.FromInteger(1))); err == nil || !strings.Contains(err.Error(), "gradients are sent whole") {
			t.Errorf("%+v: got %v", cfg, err)
		}
	}
	for _, e := range []Estimator{TwoPoint, OnePoint, OneSided} {
		if got, err := ParseEstimator(e.String()); err != nil || got != e {
			t.Errorf("%v is parsed as %v (%v)", e, got, err)
		}
	}
	for _, s := range []StepRule{PlainStep, FZOO} {
		if got, err := ParseStepRule(s.String()); err != nil || got != s {
			t.Errorf("%v is parsed as %v (%v)", s, got, err)
		}
	}
	if _, err := ParseEstimator("three-point"); err == nil {
		t.Error("three-point is an estimator")
	}
	if _, err := ParseStepRule("adam"); err == nil {
		t.Error("adam is a step")
	}
}

// led is a model whose theta a test keeps, too, by what it is told.
type led struct {
	model.Model
	theta []float64
	most  int // steps in a round
}

func (m *led) Single() bool { return false }
func (m *led) Err() error   { return nil }

func (m *led) Follow(_ int, theta, next []float64, steps []model.Step) error {
	if m.theta == nil {
		m.theta = slices.Clone(theta)
	}
	m.most = max(m.most, len(steps))
	phi := make([]float64, len(theta))
	for _, s := range steps {
		drawSigns(phi, philox.New(s.Key))
		for j, sign := range phi {
			m.theta[j] -= s.Size * sign
		}
	}
	if !slices.Equal(m.theta, next) {
		return fmt.Errorf("the steps of the keys lead to %v, not to %v", m.theta, next)
	}
	return nil
}

// A Follower has theta by ordinary steps along keys, of momentum W P of them, and the same as
// a model that is led by none, but for the order of rounding.
func TestFollowerWithMomentum(t *testing.T) {
	train, test := strokes(t, 60, 30)
	cfg := paperConfig()
	cfg.Rounds, cfg.Packed, cfg.Momentum, cfg.Directions = 20, 2, 0.5, Philox
	task := newTask(t, train, test, 3, &Plain{}, keystream.FromInteger(5))
	alone := newTrainer(t, cfg, task)
	runAll(t, alone)
	m := &led{Model: task.Model}
	task.Model = m
	with := newTrainer(t, cfg, task)
	runAll(t, with)
	if off := floats.Distance(with.State().Theta, alone.State().Theta, math.Inf(1)); off > 1e-15 || m.most != 7*2 {
		t.Errorf("theta is off by %v, and a round has %d steps, want 14", off, m.most)
	}
}

// equal gives the same M in every direction.
type equal struct{ p int }

func (c equal) Aggregate(context.Context, int, [][]float64) (aggregate.Outcome, error) {
	return aggregate.Outcome{M: slices.Repeat([]float64{0.25}, c.p), Attempts: 1}, nil
}

// A round of FZOO whose M are all equal counts as run, and makes no step, with momentum too.
func TestFZOOWithoutSpread(t *testing.T) {
	train, test := strokes(t, 60, 30)
	cfg := paperConfig()
	cfg.Rounds, cfg.Packed, cfg.Step, cfg.Momentum = 3, 4, FZOO, 0.9
	trainer := newTrainer(t, cfg, newTask(t, train, test, 3, equal{4}, keystream.FromInteger(5)))
	start := trainer.State().Theta
	runAll(t, trainer)
	if s := trainer.State(); s.Round != 3 || s.Skipped != 0 || !slices.Equal(s.Theta, start) || len(s.Past) != 3 {
		t.Errorf("after round %d, with %d skipped, theta has moved or the past has %d rounds", s.Round, s.Skipped, len(s.Past))
	}
}
