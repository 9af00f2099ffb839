package experiment

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
)

// calibrationOf calibrates the bench of a configuration and gives the file.
func calibrationOf(t *testing.T, c Config) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "calibration")
	k, err := Lab{}.NewCalibration(c, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Run(t.Context(), dir, CalibrationObserver{NoAdvice: true}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, runfolder.CalibrationName)
}

// The receiver of a run that goes on goes by the calibration in the run's folder,
// whatever became of the file that the configuration names.
func TestRunGoesByItsCopyOfTheCalibration(t *testing.T) {
	experimenttest.NoData(t)
	bench := []string{"devices.count=3", "channel.mean_per_device=[0.5, 0.6, 0.7]", "encryption.parameter_set=demo-1024", "encryption.delta_max=1"}
	c, err := Load(experimenttest.AlignedConfig, slices.Concat(bench, experimenttest.Quickly, []string{"calibration.blocks=32", "calibration.looks=1"})...)
	if err != nil {
		t.Fatal(err)
	}
	copied, gone := filepath.Join(t.TempDir(), runfolder.CalibrationName), calibrationOf(t, c)
	if err := os.Rename(gone, copied); err != nil {
		t.Fatal(err)
	}
	c, err = Load(experimenttest.AlignedConfig, append(bench, "task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300", "calibration.file="+gone)...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSessionIn(Lab{}, filepath.Dir(copied), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := xmkckks.NewContext(s.Design.Params, s.Design.Form, 1, s.Design.Witnesses, s.root.Derive("public"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := uplink.ReadLinkStats(copied, c, s.root)
	if err != nil {
		t.Fatal(err)
	}
	secret := uplink.SeedLinkSecret(s.root)
	now, want, none := uplink.ReceiveConfig(c, secret, s.Channel, s.known, ctx), uplink.ReceiveConfig(c, secret, s.Channel, file, ctx), uplink.ReceiveConfig(c, secret, s.Channel, nil, ctx)
	if now.Level != want.Level || now.Tolerance != want.Tolerance || now.Alpha != want.Alpha || now.Level == none.Level || now.Level != setup.LevelOf(c, file.Channel) {
		t.Errorf("the receiver has level %v, tolerance %v and alpha %v, of the file %v, %v and %v, and without calibration %v", now.Level, now.Tolerance, now.Alpha, want.Level, want.Tolerance, want.Alpha, none.Level)
	}
}

// A calibration of links without chance in their places serves runs of all seeds.
func TestOneFileForAllSeeds(t *testing.T) {
	experimenttest.NoData(t)
	c, err := Load(experimenttest.LoopbackConfig, slices.Concat(experimenttest.Quickly, []string{"calibration.blocks=64", "calibration.looks=1", "devices.count=2"})...)
	if err != nil {
		t.Fatal(err)
	}
	file := calibrationOf(t, c)
	for seed := 1; seed <= 5; seed++ {
		c, err := Load(experimenttest.LoopbackConfig, "calibration.file="+file, "devices.count=2", "task.dataset=strokes", "task.strokes_train=600", "experiment.seed="+strconv.Itoa(seed))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(c); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// The sign of a mean is the channel's where nobody turns phases: a real gain with a
// negative one is scaled by it, and not by its magnitude.
func TestNegativeMean(t *testing.T) {
	experimenttest.NoData(t)
	set := []string{"channel.mean_per_device=[1, -1, 1, 1, -0.5, 1, 1, 2]", "calibration.blocks=100", "calibration.looks=1"}
	c, err := Load(experimenttest.LoopbackConfig, slices.Concat(experimenttest.Quickly, set)...)
	if err != nil {
		t.Fatal(err)
	}
	file := calibrationOf(t, c)
	for _, aggregator := range []string{config.XMKCKKS, config.Plain} {
		c, err := Load(experimenttest.LoopbackConfig, append(set, "calibration.file="+file, "task.dataset=strokes", "experiment.aggregator="+aggregator)...)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		truth, _ := s.Channel.Moments()
		found, _ := s.links().Moments()
		for i := range truth {
			if math.Abs(found[i]-truth[i]) > 0.15 {
				t.Errorf("%s: mu of device %d is %v, found is %v", aggregator, i+1, truth[i], found[i])
			}
		}
	}
}
