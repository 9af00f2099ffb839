package sweeps

import (
	"path/filepath"
	"testing"

	"ringwave/learner/experiment/sweep"
)

// Whatever a file names its sweep, its folder is one below sweeps.
func TestDefaultOut(t *testing.T) {
	for name, want := range map[string]string{
		"sigma and N": "sigma_and_N", "../../x": "_.._x", "..": "_", "a/b": "a_b", "é=1,2": "_=1,2", ".hidden": "hidden",
	} {
		if got := DefaultOut(sweep.Plan{Name: name}); got != filepath.Join("sweeps", want) {
			t.Errorf("%q has the folder %s in place of %s", name, got, want)
		}
	}
}
