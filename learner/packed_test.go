package learner

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
)

// watched is Plain, and keeps what it was given.
type watched struct {
	Plain
	seen [][]float64
}

func (a *watched) Aggregate(ctx context.Context, k int, values [][]float64) (aggregate.Outcome, error) {
	a.seen = nil
	for _, v := range values {
		a.seen = append(a.seen, slices.Clone(v))
	}
	return a.Plain.Aggregate(ctx, k, values)
}

// The step of packed directions is the mean of the steps that each of them alone would
// make, and the first direction is the one that a round without packing has.
func TestPackedStepIsTheMean(t *testing.T) {
	train, test := strokes(t, 60, 30)
	cfg := paperConfig()
	cfg.BatchSize, cfg.Packed = 4, 3
	task := newTask(t, train, test, 3, &watched{}, keystream.FromInteger(3))
	packed := newTrainer(t, cfg, task)
	cfg.Packed = 1
	single := newTrainer(t, cfg, task)
	start := single.State()
	for k := range 3 {
		record, err := packed.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first, err := single.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 && (record.M != first.M || record.TrainLoss != first.TrainLoss) {
			t.Fatalf("M of the first direction is %v, the loss %v; without packing %v and %v", record.M, record.TrainLoss, first.M, first.TrainLoss)
		}
		if k > 0 {
			continue
		}
		want := slices.Clone(start.Theta)
		for p, phi := range packed.replica.phi {
			sum := 0.0
			for _, own := range packed.delta {
				sum += own[p]
			}
			floats.AddScaled(want, -record.Eta*sum/3, phi)
		}
		if got := packed.State().Theta; floats.Distance(got, want, math.Inf(1)) > 1e-15 {
			t.Fatal("the step is not the mean of the directions' steps")
		}
	}
}

// The mean of P independent estimates has the variance of one over P. With losses that
// are nearly linear, ||g||^2 is d (a . Phi)^2, a . Phi nearly normal: over R rounds the
// variance of one direction is known to sqrt(2/R) of itself, that of P better. The bound
// is five deviations.
func TestPackedVariance(t *testing.T) {
	const rounds = 1500
	train, test := strokes(t, 60, 30)
	variance := func(packed int) float64 {
		cfg := paperConfig()
		cfg.Rounds, cfg.BatchSize, cfg.Packed = rounds, 60, packed
		// The model hardly moves: the gradient stays what it is.
		cfg.Eta, cfg.Gamma = PowerLaw{X0: 1e-9}, PowerLaw{X0: 1e-3}
		tr := newTrainer(t, cfg, newTask(t, train, test, 1, &watched{}, keystream.FromInteger(4)))
		var sum float64
		mean := make([]float64, train.Dim+1)
		before := tr.State().Theta
		for !tr.Done() {
			if _, err := tr.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			after := tr.State().Theta
			floats.Sub(before, after) // eta g
			sum += floats.Dot(before, before)
			floats.Add(mean, before)
			before = after
		}
		n := float64(cfg.Rounds)
		floats.Scale(1/n, mean)
		return (sum/n - floats.Dot(mean, mean)) * n / (n - 1)
	}
	one := variance(1)
	for _, p := range []int{4, 16} {
		ratio := one / variance(p) / float64(p)
		if bound := 5 * math.Sqrt(2*(1+1/float64(p))/rounds); math.Abs(ratio-1) > bound {
			t.Errorf("P = %d: the variance is 1/%.2f of that of one direction (bound on the ratio %.3f)", p, ratio*float64(p), bound)
		}
	}
}

// TrainLoss by pairs is the mean of the losses around theta, and changes nothing else.
func TestPairLoss(t *testing.T) {
	train, test := strokes(t, 60, 30)
	for _, packed := range []int{1, 4} {
		cfg := paperConfig()
		cfg.BatchSize, cfg.Packed = 4, packed
		task := newTask(t, train, test, 3, &watched{}, keystream.FromInteger(5))
		exact := newTrainer(t, cfg, task)
		cfg.PairLoss = true
		pairs := newTrainer(t, cfg, task)
		for range 5 {
			a, err := exact.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b, err := pairs.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var want float64
			for _, d := range pairs.devices {
				want += (floats.Sum(d.plus) + floats.Sum(d.minus)) / float64(2*packed*3)
			}
			if math.Abs(b.TrainLoss-want) > 1e-15 || b.TrainLoss == a.TrainLoss {
				t.Errorf("P = %d: the loss is %v, want %v; at theta %v", packed, b.TrainLoss, want, a.TrainLoss)
			}
			b.TrainLoss = a.TrainLoss
			if a != b {
				t.Errorf("P = %d: rounds differ: %+v and %+v", packed, a, b)
			}
		}
		if !slices.Equal(exact.State().Theta, pairs.State().Theta) {
			t.Errorf("P = %d: the models differ", packed)
		}
	}
}

// A device's scalar beyond the bound is cut to it, and counted.
func TestClip(t *testing.T) {
	train, test := strokes(t, 60, 30)
	cfg := paperConfig()
	cfg.BatchSize, cfg.Packed = 4, 2
	a := &watched{}
	free := newTrainer(t, cfg, newTask(t, train, test, 3, a, keystream.FromInteger(6)))
	if _, err := free.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	was := a.seen
	a.seen = nil
	cfg.Clip = (math.Abs(was[0][0]) + math.Abs(was[2][1])) / 2
	bound := newTrainer(t, cfg, newTask(t, train, test, 3, a, keystream.FromInteger(6)))
	record, err := bound.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cut := 0
	for i, own := range was {
		for p, x := range own {
			want := max(-cfg.Clip, min(x, cfg.Clip))
			if want != x {
				cut++
			}
			if a.seen[i][p] != want {
				t.Errorf("direction %d, device %d sends %v of %v, bound %v", p, i, a.seen[i][p], x, cfg.Clip)
			}
		}
	}
	if cut == 0 || record.Clipped != cut || bound.State().Clipped != cut {
		t.Errorf("%d scalars cut, %d counted, %d in all", cut, record.Clipped, bound.State().Clipped)
	}
	cfg.Clip = math.NaN()
	if _, err := New(cfg, newTask(t, train, test, 3, a, keystream.FromInteger(6))); err == nil {
		t.Error("a bound that is no number is taken")
	}
}

func TestPackedRefusals(t *testing.T) {
	train, test := strokes(t, 60, 30)
	for _, c := range []struct {
		packed int
		a      Aggregator
		want   string
	}{
		{-1, &watched{}, "-1"}, {MaxPacked + 1, &watched{}, "65537"}, {2, nil, "aggregator"},
	} {
		cfg := paperConfig()
		cfg.Packed = c.packed
		if _, err := New(cfg, newTask(t, train, test, 3, c.a, keystream.FromInteger(1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d packed directions: %v", c.packed, err)
		}
	}
}
