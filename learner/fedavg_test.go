package learner

import (
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// A round of federated averaging leaves the mean of the models that devices have after their own
// steps, each on a batch of its own.
func TestFederatedAveraging(t *testing.T) {
	const features, classes, devices, steps = 5, 3, 4, 7
	rnd := rand.New(rand.NewPCG(50, 51))
	set := &dataset.Set{Dim: features, Shape: []int{features}, Classes: make([]string, classes)}
	for i := range 80 {
		for range features {
			set.X = append(set.X, rnd.NormFloat64())
		}
		set.Y = append(set.Y, uint8(i%classes))
	}
	m, err := model.NewSoftmax(features, classes)
	if err != nil {
		t.Fatal(err)
	}
	shards, err := dataset.IID(set.Len(), devices, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Rounds: 3, BatchSize: 6, Eta: PowerLaw{0.5, 0}, Gamma: PowerLaw{0.1, 0}, LocalSteps: steps}
	task := Task{Model: m, Train: set, Test: set, Shards: shards, Aggregator: &Plain{}, Seed: keystream.FromInteger(2)}
	trainer, err := NewGradientTrainer(cfg, task)
	if err != nil {
		t.Fatal(err)
	}
	want, rate := make([]float64, m.Dim()), 2*devices*0.5*0.1
	w := m.NewWorker().(model.GradientWorker)
	grad := make([]float64, m.Dim())
	batches := map[[6]int]bool{}
	for k := 1; k <= cfg.Rounds; k++ {
		mean := make([]float64, m.Dim())
		for i := range devices {
			d := newDevice(Config{BatchSize: cfg.BatchSize}, task.Seed, i, shards[i])
			local := append([]float64(nil), want...)
			for step := range steps {
				d.draw(uint32(k), uint32(step))
				batches[[6]int(d.batch)] = true
				w.Gradient(grad, local, set, d.batch)
				for j := range local {
					local[j] -= rate * grad[j]
				}
			}
			for j := range mean {
				mean[j] += local[j] / devices
			}
		}
		want = mean
		if _, err := trainer.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for j, x := range trainer.State().Theta {
			if math.Abs(x-want[j]) > 1e-12 {
				t.Fatalf("round %d: theta[%d] is %v, want %v", k, j, x, want[j])
			}
		}
	}
	if n := len(batches); n != 3*devices*steps {
		t.Errorf("%d batches, want %d that differ", n, 3*devices*steps)
	}
}
