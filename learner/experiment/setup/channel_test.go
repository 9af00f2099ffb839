package setup

import (
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
)

// The seed of a bench's places is the experiment's; of its chance, another than a
// run's: what a calibration has seen does not come again.
func TestCalibrationSeesOtherGains(t *testing.T) {
	c, err := config.Load("../"+experimenttest.WaveformConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	a, err := NewChannel(c, root)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewChannel(c, root.Derive("calibration"))
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float64, 3), make([]float64, 3)
	a.Scaled(x, 1, 0, 0)
	b.Scaled(y, 1, 0, 0)
	if slices.Equal(x, y) {
		t.Errorf("gains %v and %v", x, y)
	}
}
