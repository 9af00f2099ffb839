package experimenttest

import (
	"path/filepath"
	"strings"
	"testing"

	"ringwave/calibration"
	"ringwave/learner/experiment/runfolder"
)

// Quickly makes soundings short, of three devices.
var Quickly = []string{"calibration.blocks=160", "calibration.length_chips=63", "calibration.guard_samples=48", "calibration.delay_search_samples=40"}

// CalibrationIn reads the calibration of a folder.
func CalibrationIn(t testing.TB, dir string) calibration.File {
	t.Helper()
	f, err := calibration.Read(filepath.Join(dir, runfolder.CalibrationName))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// measuredAlone is the text of a file without date and identity, and without how boards
// are set, which memory and recordings do not know.
func measuredAlone(f calibration.File) string {
	f = f.Anonymous()
	f.Bench.ReceiveGainsDB, f.Bench.Clock = nil, ""
	for i := range f.Devices {
		f.Devices[i].TransmitGainsDB = nil
	}
	return string(f.Text())
}

// WantSameCalibration says in which line two files differ first.
func WantSameCalibration(t *testing.T, what string, a, b calibration.File) {
	t.Helper()
	x, y := strings.Split(measuredAlone(a), "\n"), strings.Split(measuredAlone(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			t.Errorf("%s: line %d is %q, and elsewhere %q", what, i+1, y[i], x[i])
			return
		}
	}
	if len(x) != len(y) {
		t.Errorf("%s: %d lines and %d", what, len(x), len(y))
	}
}
