package experiment

import (
	"context"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
)

// TestOverflowIsReported: a loss beyond the largest number is said, and ends no run.
func TestOverflowIsReported(t *testing.T) {
	experimenttest.NoData(t)
	c, err := config.Load(experimenttest.Fig4Config, []string{"task.dataset=strokes", "task.strokes_train=100", "task.strokes_test=100", "optimizer.rounds=3", "devices.count=2", "optimizer.eta0=1e300"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.assemble(xmkckks.NewLedger(setup.SharesPerKey(c)), 0, 1); err != nil {
		t.Fatal(err)
	}
	var rows []runfolder.Row
	for !s.Trainer.Done() {
		r, err := s.Trainer.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row(r))
	}
	if n := overflowedRows(rows); n != 2 {
		t.Errorf("%d of 3 rounds overflowed: losses %v, %v, %v", n, rows[0].TrainLoss, rows[1].TrainLoss, rows[2].TrainLoss)
	}
}
