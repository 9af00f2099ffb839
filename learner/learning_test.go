package learner

import (
	"slices"
	"testing"
	"time"

	"ringwave/crypto/keystream"
)

func TestLearnsStrokes(t *testing.T) {
	train, test := strokes(t, 2000, 1000)
	cfg := paperConfig()
	trainer := newTrainer(t, cfg, newTask(t, train, test, 10, &Plain{}, keystream.FromInteger(1)))
	runAll(t, trainer)
	final := trainer.Final()
	t.Logf("test accuracy on strokes %.2f %%, training loss %.4f", 100*final.TestAccuracy, final.TrainLoss)
	if final.TestAccuracy <= 0.97 {
		t.Errorf("test accuracy is %.2f %%; it must be above 97 %%", 100*final.TestAccuracy)
	}
}

// TestPaperMNIST is the paper's non-encrypted MNIST experiment at sigma = 1, of
// which Table III reports 97.78 %.
func TestPaperMNIST(t *testing.T) {
	if testing.Short() {
		t.Skip("five whole runs: not with -short")
	}
	data := mnist(t)
	var accuracies []float64
	for n := range uint64(5) {
		seed := keystream.FromInteger(n + 1)
		start := time.Now()
		trainer := newTrainer(t, paperConfig(), newTask(t, data.Train, data.Test, 10, newEZOFL(t, 10, 1, 1, seed), seed))
		runAll(t, trainer)
		took := time.Since(start)
		final := trainer.Final()
		accuracies = append(accuracies, final.TestAccuracy)
		t.Logf("seed %d: test accuracy %.2f %%, training loss %.4f, 400 rounds in %v",
			n+1, 100*final.TestAccuracy, final.TrainLoss, took.Round(time.Millisecond))
	}
	slices.Sort(accuracies)
	t.Logf("median test accuracy %.2f %%", 100*accuracies[2])
	if accuracies[2] < 0.97 {
		t.Errorf("the median test accuracy is %.2f %%; it must be 97 %% or more", 100*accuracies[2])
	}
}
