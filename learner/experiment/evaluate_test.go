package experiment_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// A run's model leaves its folder: evaluated by its checkpoint and by its file it decides
// as the run's summary says, in the middle of a run as after it; on other samples, as
// these say.
func TestEvaluate(t *testing.T) {
	experimenttest.NoData(t)
	c, err := experiment.Load(experimenttest.LoopbackConfig, "task.dataset=strokes", "task.strokes_train=400", "task.strokes_test=200",
		"optimizer.rounds=12", "optimizer.checkpoint_every_rounds=6", "optimizer.evaluate_every_rounds=6")
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.New(c)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	run, err := e.Run(t.Context(), dir, experiment.Observer{Round: func(r learner.Record) {
		if r.Round == 8 {
			if v, err := (experiment.Lab{}).Evaluate(dir, ""); err != nil || v.Round != 6 {
				t.Errorf("during the run: %+v, %v", v, err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, experiment.ModelName)
	for _, f := range []string{"", file} {
		v, err := experiment.Lab{}.Evaluate(dir, f)
		if err != nil || v.TestAccuracy != float64(run.Summary.TestAccuracy) || math.Abs(float64(v.TrainLoss-run.Summary.TrainLoss)) > 1e-12 || v.TestSamples != 100 {
			t.Errorf("%q: %+v, %v, and the run says %v", f, v, err, run.Summary.TestAccuracy)
		}
	}
	other, err := experiment.Lab{}.Evaluate(dir, file, "task.strokes_test=800")
	if err != nil || other.TestSamples != 400 || other.TestAccuracy < 0.6 {
		t.Errorf("on other samples: %+v, %v", other, err)
	}
	refused(t, dir, file)
}

// refused wants a sentence of what no evaluation takes.
func refused(t *testing.T, dir, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.safetensors")
	if err := os.WriteFile(cut, data[:len(data)-8], 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large.safetensors")
	if err := os.WriteFile(large, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, arguments := range map[string][]string{
		"must be a key of [task]":                    {dir, "", "optimizer.rounds=3"},
		"cut.safetensors: tensor":                    {dir, cut},
		"large.safetensors: the length is more than": {dir, large},
		"missing.safetensors":                        {dir, filepath.Join(dir, "missing.safetensors")},
		runfolder.ConfigName + ": the configuration": {t.TempDir(), ""},
		"has no checkpoint":                          {emptied(t, dir), ""},
		"parameters, and that of the configuration":  {dir, "", "task.dataset=cifar10", "task.fallback="},
	} {
		if strings.HasPrefix(want, "parameters") {
			t.Setenv("RINGWAVE_DATA", experimenttest.FewImages(t))
		}
		_, err := experiment.Lab{}.Evaluate(arguments[0], arguments[1], arguments[2:]...)
		if !intake.IsUserError(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// emptied is a run's folder with its configuration alone.
func emptied(t *testing.T, dir string) string {
	t.Helper()
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, runfolder.ConfigName), experimenttest.ReadFile(t, dir, runfolder.ConfigName), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}
