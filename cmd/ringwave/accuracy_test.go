package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// cornerImages writes idx files of 2 x 2 images, the classes 0 and 1 in turn, that have
// light only in the first or in the last corner, which tells the class; of the first
// wrong ones the label is the other class. It gives the flags that name them.
func cornerImages(t *testing.T, trainImages, testImages, wrong int) []string {
	t.Helper()
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(3, 4))
	var flags []string
	for _, set := range []struct {
		name     string
		n, wrong int
	}{{"train", trainImages, 0}, {"test", testImages, wrong}} {
		n := set.n
		images := []byte{0, 0, 8, 3, 0, 0, byte(n >> 8), byte(n), 0, 0, 0, 2, 0, 0, 0, 2}
		labels := []byte{0, 0, 8, 1, 0, 0, byte(n >> 8), byte(n)}
		for i := range n {
			image := make([]byte, 4)
			image[3*(i%2)] = byte(200 + rnd.IntN(56))
			label := byte(i % 2)
			if i < set.wrong {
				label = 1 - label
			}
			images, labels = append(images, image...), append(labels, label)
		}
		for kind, content := range map[string][]byte{"images": images, "labels": labels} {
			path := filepath.Join(dir, set.name+"-"+kind)
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			flags = append(flags, "--set", "task."+set.name+"_"+kind+"="+path)
		}
	}
	return append(flags, "--set", "task.dataset=idx", "--set", "task.fallback=")
}

// A model that has learned tells the corners apart: it is right for all of
// the training images, and wrong for just those 90 of the 150 test images that have the
// wrong label. The test accuracy is 60/150 = 0.4, in metrics.csv where it was evaluated
// and in summary.json, by differences of losses and by gradients.
func TestAccuracyIsThatOfTheTestSet(t *testing.T) {
	images := cornerImages(t, 80, 150, 90)
	for _, aggregator := range []string{config.Digital, config.HEAirFed} {
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, slices.Concat([]string{"run", experimenttest.Fig4Config, "--out", dir}, images, []string{
			"--set", "experiment.aggregator=" + aggregator, "--set", "devices.count=2", "--set", "optimizer.rounds=30",
			"--set", "optimizer.evaluate_every_rounds=10", "--set", "optimizer.batch_size=20", "--set", "optimizer.eta0=1", "--set", "optimizer.gamma0=0.5",
			"--set", "encryption.delta_max=1", "--set", "channel.pilot_std=0", "--set", "link.snr_db=120"})...)
		rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		evaluated := 0
		for _, r := range rows {
			if r.Round%10 != 0 {
				continue
			}
			evaluated++
			if r.TestAccuracy != 0.4 {
				t.Errorf("%s: in round %d the test accuracy is %v, expected 0.4", aggregator, r.Round, r.TestAccuracy)
			}
		}
		s := summaryOf(t, dir)
		if evaluated != 3 || s.TestAccuracy != 0.4 {
			t.Errorf("%s: %d evaluations, and at the end the test accuracy %v, expected 3 and 0.4", aggregator, evaluated, s.TestAccuracy)
		}
	}
}
