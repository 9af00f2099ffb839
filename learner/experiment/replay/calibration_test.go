package replay

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
)

// The player knows what the run's receiver knew of its calibration, from the copy in the
// run's folder: the file is gone.
func TestPlayerKnowsTheCalibration(t *testing.T) {
	bench := []string{"devices.count=3", "channel.mean_per_device=[0.5, 0.6, 0.7]", "encryption.parameter_set=demo-1024", "encryption.delta_max=1", "task.dataset=strokes"}
	load := func(set ...string) experiment.Config {
		c, err := experiment.Load("../"+experimenttest.AlignedConfig, slices.Concat(bench, set)...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	found := filepath.Join(t.TempDir(), "calibration")
	k, err := experiment.Lab{}.NewCalibration(load(append(experimenttest.Quickly, "calibration.blocks=32", "calibration.looks=1")...), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Run(t.Context(), found, experiment.CalibrationObserver{NoAdvice: true}); err != nil {
		t.Fatal(err)
	}
	copied, gone := filepath.Join(t.TempDir(), runfolder.CalibrationName), filepath.Join(found, runfolder.CalibrationName)
	if err := os.Rename(gone, copied); err != nil {
		t.Fatal(err)
	}
	c := load("calibration.file=" + gone)
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		t.Fatal(err)
	}
	known, err := uplink.ReadLinkStats(copied, c, root)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlayer(c, filepath.Dir(copied))
	if err != nil {
		t.Fatal(err)
	}
	then, none := uplink.ReceiveConfig(c, uplink.SeedLinkSecret(root), ch, known, p.ctx), uplink.ReceiveConfig(c, uplink.SeedLinkSecret(root), ch, nil, p.ctx)
	if now := p.cfg; now.Level != then.Level || now.Tolerance != then.Tolerance || now.Alpha != then.Alpha || then.Level == none.Level {
		t.Errorf("the player has level %v, tolerance %v and alpha %v, the run had %v, %v and %v, and without calibration %v", now.Level, now.Tolerance, now.Alpha, then.Level, then.Tolerance, then.Alpha, none.Level)
	}
}
