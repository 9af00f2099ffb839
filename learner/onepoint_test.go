package learner

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
)

// TestOnePointEstimator draws g = Phi M of one-point scalars of linear losses,
// f(theta + gamma Phi) = c + gamma a . Phi: E[g] = b_1 gamma a with b_1 = 1, half of the
// two-point estimate's. With |a|^2 = d and Rademacher Phi, E||g||^2 = d (c^2 + gamma^2 d),
// and of R draws the squared distance of the mean from E[g], over its expectation
// (E||g||^2 - ||E g||^2)/R, is 1 within 5 sqrt(2 (d + 8))/d, as in
// TestEstimatorUnbiased.
func TestOnePointEstimator(t *testing.T) {
	const d, rounds, gamma, c = 40, 40000, 0.5, 0.7
	rnd := rand.New(rand.NewPCG(1, 2))
	slope, phi, mean := make([]float64, d), make([]float64, d), make([]float64, d)
	Rademacher.Draw(slope, rnd)
	for range rounds {
		Rademacher.Draw(phi, rnd)
		step := gamma * floats.Dot(slope, phi)
		m := OnePoint.scalar(c+step, c-step, c)
		floats.AddScaled(mean, m/rounds, phi)
	}
	floats.AddScaled(mean, -gamma, slope)
	expected := (d*(c*c+gamma*gamma*d) - gamma*gamma*d) / rounds
	statistic := floats.Dot(mean, mean) / expected
	if bound := 5 * math.Sqrt(2*(d+8)) / d; math.Abs(statistic-1) > bound {
		t.Errorf("the statistic is %.3f, want 1 within %.3f", statistic, bound)
	}
	if got := TwoPoint.scalar(c+1, c-2, c); got != 3 {
		t.Errorf("the two-point scalar is %v, want 3", got)
	}
}

// recorder keeps the scalars of the last round.
type recorder struct{ delta []float64 }

func (r *recorder) Aggregate(_ context.Context, _ int, delta [][]float64) (aggregate.Outcome, error) {
	r.delta = slices.Concat(delta...)
	return aggregate.Outcome{M: make([]float64, 1), Attempts: 1}, nil
}

// TestOnePointTrainer: from the model 0 a small step leaves every loss near log 2, where
// two-point differences are near 0.
func TestOnePointTrainer(t *testing.T) {
	train, test := strokes(t, 60, 30)
	for estimator, want := range map[Estimator]float64{TwoPoint: 0, OnePoint: math.Ln2} {
		cfg := paperConfig()
		cfg.Estimator, cfg.Gamma = estimator, PowerLaw{X0: 1e-6}
		var r recorder
		trainer := newTrainer(t, cfg, newTask(t, train, test, 3, &r, keystream.FromInteger(1)))
		if _, err := trainer.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, x := range r.delta {
			if math.Abs(x-want) > 1e-3 {
				t.Errorf("%v: device %d sends %v, want %v", estimator, i+1, x, want)
			}
		}
	}
	cfg := paperConfig()
	cfg.Estimator = 3
	if _, err := New(cfg, newTask(t, train, test, 3, &recorder{}, keystream.FromInteger(1))); err == nil || !strings.Contains(err.Error(), "one-point") {
		t.Errorf("estimator 3: %v", err)
	}
}

// constantly counts scalars that are no finite number.
type constantly struct {
	m     float64
	wrong int
}

func (c *constantly) Aggregate(_ context.Context, _ int, delta [][]float64) (aggregate.Outcome, error) {
	for _, x := range slices.Concat(delta...) {
		if !isFinite(x) {
			c.wrong++
		}
	}
	return aggregate.Outcome{M: []float64{c.m}, Attempts: 1}, nil
}

// TestOverflow: where it is allowed, losses beyond the largest number end no run, and
// the reports stay finite. TestDivergence has the same run end.
func TestOverflow(t *testing.T) {
	train, test := strokes(t, 60, 30)
	cfg := paperConfig()
	cfg.Rounds, cfg.Overflow, cfg.Eta = 10, true, PowerLaw{X0: 1}
	a := &constantly{m: 1e307}
	trainer := newTrainer(t, cfg, newTask(t, train, test, 3, a, keystream.FromInteger(1)))
	records := runAll(t, trainer)
	overflows := 0
	for _, r := range records {
		if !isFinite(r.TrainLoss) {
			t.Errorf("round %d: the loss is %v", r.Round, r.TrainLoss)
		}
		overflows += r.Overflowed
	}
	if last := records[len(records)-1]; overflows == 0 || last.TrainLoss != math.MaxFloat64 {
		t.Errorf("%d scalars overflowed, the last loss is %v", overflows, last.TrainLoss)
	}
	if a.wrong != 0 {
		t.Errorf("%d scalars that are no finite number were sent", a.wrong)
	}
	if s := trainer.State(); !slices.ContainsFunc(s.Theta, func(x float64) bool { return math.Abs(x) > 1e306 }) {
		t.Error("the model was clipped")
	}
	for _, c := range []struct{ x, want float64 }{
		{math.NaN(), 7}, {math.Inf(1), math.MaxFloat64}, {math.Inf(-1), -math.MaxFloat64}, {3, 3},
	} {
		if got := overflowed(c.x, 7); got != c.want {
			t.Errorf("%v is taken as %v, want %v", c.x, got, c.want)
		}
	}
}
