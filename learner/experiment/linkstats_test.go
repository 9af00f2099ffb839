package experiment

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
)

// The receiver of a run that goes on goes by the calibration in the run's folder,
// whatever became of the file that the configuration names.
func TestRunGoesByItsCopyOfTheCalibration(t *testing.T) {
	experimenttest.NoData(t)
	bench := []string{"devices.count=3", "channel.mean_per_device=[0.5, 0.6, 0.7]", "encryption.parameter_set=demo-1024", "encryption.delta_max=1"}
	c, err := Load(experimenttest.AlignedConfig, slices.Concat(bench, experimenttest.Quickly, []string{"calibration.blocks=32", "calibration.looks=1"})...)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "calibration")
	k, err := Lab{}.NewCalibration(c, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Run(t.Context(), dir, CalibrationObserver{NoAdvice: true}); err != nil {
		t.Fatal(err)
	}
	copied, gone := filepath.Join(t.TempDir(), runfolder.CalibrationName), filepath.Join(dir, runfolder.CalibrationName)
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
