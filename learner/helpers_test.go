package learner

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// gaussianGains are h_{i,k} ~ N(mu, sigma^2), as in the paper's experiments.
type gaussianGains struct {
	seed      keystream.Seed
	mu, sigma float64
	h         []float64
}

func (g *gaussianGains) Gains(round int) []float64 {
	stream := g.seed.Derive("gains").Stream()
	stream.Start(uint32(round), 0)
	rnd := rand.New(stream)
	for i := range g.h {
		g.h[i] = g.mu + g.sigma*rnd.NormFloat64()
	}
	return g.h
}

func newEZOFL(t testing.TB, devices int, sigma, sigmaN float64, seed keystream.Seed) *EZOFL {
	t.Helper()
	mu := make([]float64, devices)
	for i := range mu {
		mu[i] = 1
	}
	gains := &gaussianGains{seed: seed, mu: 1, sigma: sigma, h: make([]float64, devices)}
	a, err := NewEZOFL(gains, mu, sigmaN, seed)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// paperConfig is that of the paper's MNIST experiment.
func paperConfig() Config {
	return Config{
		Rounds:    400,
		BatchSize: 128,
		Eta:       PowerLaw{X0: 0.05, P: 0.5},
		Gamma:     PowerLaw{X0: 0.05, P: 0.25},
	}
}

// newTask splits the training set at random among the devices.
func newTask(t testing.TB, train, test *dataset.Set, devices int, a Aggregator, seed keystream.Seed) Task {
	t.Helper()
	m, err := model.NewLogistic(train.Dim)
	if err != nil {
		t.Fatal(err)
	}
	shards, err := dataset.IID(train.Len(), devices, seed)
	if err != nil {
		t.Fatal(err)
	}
	return Task{Model: m, Train: train, Test: test, Shards: shards, Aggregator: a, Seed: seed}
}

func newTrainer(t testing.TB, cfg Config, task Task) *Trainer {
	t.Helper()
	trainer, err := New(cfg, task)
	if err != nil {
		t.Fatal(err)
	}
	return trainer
}

// strokes returns ring against bar.
func strokes(t testing.TB, train, test int) (*dataset.Set, *dataset.Set) {
	t.Helper()
	all, allTest, err := dataset.Strokes(keystream.FromInteger(77), 2*train, 2*test)
	if err != nil {
		t.Fatal(err)
	}
	one, err := all.Choose([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	other, err := allTest.Choose([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	return one, other
}

// mnist returns 0 against 1, and skips the test where there is no data.
func mnist(t testing.TB) *dataset.Task {
	t.Helper()
	root := os.Getenv("RINGWAVE_DATA")
	if root == "" {
		t.Skip("RINGWAVE_DATA not set: it names the folder with the MNIST files")
	}
	source, err := dataset.Find("mnist", []string{root})
	if err != nil {
		t.Fatal(err)
	}
	task, err := source.Load([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func runAll(t testing.TB, trainer *Trainer) []Record {
	t.Helper()
	var records []Record
	for !trainer.Done() {
		r, err := trainer.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}
