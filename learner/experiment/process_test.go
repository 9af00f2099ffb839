package experiment_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/external/externaltest"
	"ringwave/radio/intake"
)

func TestMain(m *testing.M) {
	if !externaltest.Play() {
		os.Exit(m.Run())
	}
}

// withProcess returns the configuration of a short run whose model is a program.
func withProcess(t *testing.T, command []string, more ...string) experiment.Config {
	t.Helper()
	text, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	c, err := experiment.Load(experimenttest.LoopbackConfig, append([]string{
		"task.model=process", "task.dataset=process", "task.fallback=", "task.command=" + string(text), "optimizer.directions=philox",
		"devices.count=3", "optimizer.batch_size=2", "optimizer.rounds=30", "optimizer.evaluate_every_rounds=10", "optimizer.checkpoint_every_rounds=5",
		"optimizer.eta0=0.001", "optimizer.gamma0=0.1", "encryption.parameter_set=lean-2048", "encryption.delta_max=1000",
	}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// metricsOf runs an experiment and returns its folder and metrics.csv.
func metricsOf(t *testing.T, c experiment.Config) (string, []byte) {
	t.Helper()
	e, err := experiment.Lab{NoPlots: true}.New(c)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := e.Run(t.Context(), dir, experiment.Observer{}); err != nil {
		t.Fatal(err)
	}
	return dir, experimenttest.ReadFile(t, dir, runfolder.MetricsName)
}

// A program that dies in a run is started again, and a run that was interrupted goes on: the
// same rounds to the byte, on ring elements and over a waveform, with packed directions and in
// float32.
func TestProcessGoesOn(t *testing.T) {
	for name, more := range map[string][]string{
		"ring":   nil,
		"packed": {"optimizer.packed_directions=3", "optimizer.train_loss=pairs"},
		"fzoo":   {"optimizer.packed_directions=3", "optimizer.estimator=one-sided", "optimizer.step=fzoo", "optimizer.momentum=0.5"},
		"waveform": {
			"link.kind=waveform", "encryption.form=short", "optimizer.rounds=6", "optimizer.evaluate_every_rounds=3", "optimizer.checkpoint_every_rounds=2", "link.snr_db=90",
		},
	} {
		how := ""
		if name == "packed" {
			how = "single"
		}
		_, want := metricsOf(t, withProcess(t, externaltest.Command(t, how), more...))
		if how == "" {
			for _, bad := range []string{"update=die", "loss=die", "evaluate=die"} {
				if _, got := metricsOf(t, withProcess(t, externaltest.Command(t, bad), more...)); !bytes.Equal(got, want) {
					t.Errorf("%s, %s: metrics.csv is another", name, bad)
				}
			}
		}
		c := withProcess(t, externaltest.Command(t, how), more...)
		e, err := experiment.Lab{NoPlots: true}.New(c)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "run")
		ctx, cancel := context.WithCancel(t.Context())
		_, err = e.Run(ctx, dir, experiment.Observer{Round: func(r learner.Record) {
			if r.Round == 4 {
				cancel()
			}
		}})
		if !errors.Is(err, experiment.ErrInterrupted) {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := (experiment.Lab{NoPlots: true}).Resume(t.Context(), dir, experiment.Observer{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := experimenttest.ReadFile(t, dir, runfolder.MetricsName); !bytes.Equal(got, want) {
			t.Errorf("%s: the rounds of a run that was interrupted are others", name)
		}
		if says := string(experimenttest.ReadFile(t, dir, experiment.ModelName)[:400]); !strings.Contains(says, `"program":"`+e.Task.What(c)+`"`) || strings.Contains(says, "classes") {
			t.Errorf("%s: the model says of itself %q", name, says)
		}
		if ev, err := (experiment.Lab{}).Evaluate(dir, ""); err != nil || ev.TestSamples != externaltest.Test || math.IsNaN(float64(ev.TestLoss)) {
			t.Errorf("%s: evaluated as %+v, %v", name, ev, err)
		}
	}
}

// What a program does wrong ends a run with a sentence that is the user's to mend.
func TestProcessErrors(t *testing.T) {
	for how, want := range map[string]string{
		"hello=Hi!":                      `asked for hello: it answers "Hi!"`,
		"loss=every die":                 `asked for loss: it has ended with exit status 3; its last words are "out of memory", after 2 starts`,
		"evaluate=every die":             `asked for evaluate: it has ended with exit status 3`,
		`update={"id":ID,"digest":"00"}`: `asked for update: the digest is "00"`,
	} {
		c := withProcess(t, externaltest.Command(t, how), "task.restarts=1")
		e, err := experiment.Lab{NoPlots: true}.New(c)
		if err == nil {
			_, err = e.Run(t.Context(), filepath.Join(t.TempDir(), "run"), experiment.Observer{})
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the learner of all devices") {
			t.Errorf("%s: got %v, want %q in it", how, err, want)
		}
		if !intake.IsUserError(err) {
			t.Errorf("%s: %v is not the user's", how, err)
		}
	}
}

// A program whose loss has grown beyond all measure is no result, whatever its scale.
func TestProcessThatDiverges(t *testing.T) {
	for eta, want := range map[string]string{
		"0.001": "",
		"500":   "training diverged: the training loss is",
	} {
		e, err := experiment.Lab{NoPlots: true}.New(withProcess(t, externaltest.Command(t, ""), "optimizer.eta0="+eta, "experiment.aggregator=none"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Run(t.Context(), filepath.Join(t.TempDir(), "run"), experiment.Observer{})
		if why := r.Summary.Unusable; (want == "") != (why == "") || !strings.HasPrefix(why, want) || want != "" && !strings.HasSuffix(why, "a hundred times what it began with") {
			t.Errorf("eta0 = %s: %q, %v, %v", eta, why, err, r.Summary.TrainLoss)
		}
	}
}

// A run whose program cannot evaluate ends in that round, and one that goes on has the rounds
// of one that was never broken off; a program of another kind is not taken.
func TestProcessThatCannotEvaluate(t *testing.T) {
	_, want := metricsOf(t, withProcess(t, externaltest.Command(t, "")))
	e, err := experiment.Lab{NoPlots: true}.New(withProcess(t, externaltest.Command(t, `evaluate={"id":ID,"error":"no memory"}`)))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := e.Run(t.Context(), dir, experiment.Observer{}); err == nil || !strings.Contains(err.Error(), `round 10: the learner of all devices, `) || !strings.Contains(err.Error(), `it says "no memory"`) {
		t.Errorf("got %v", err)
	}
	externaltest.Command(t, "single")
	if _, err := experiment.Resume(t.Context(), dir, experiment.Observer{}); err == nil || !strings.Contains(err.Error(), "the program that learns says other things of itself") {
		t.Errorf("another program: %v", err)
	}
	externaltest.Command(t, "")
	if _, err := (experiment.Lab{NoPlots: true}).Resume(t.Context(), dir, experiment.Observer{}); err != nil {
		t.Fatal(err)
	}
	if got := experimenttest.ReadFile(t, dir, runfolder.MetricsName); !bytes.Equal(got, want) {
		t.Error("the rounds are others")
	}
}

// A run whose program hangs stops when it is asked to, and goes on.
func TestProcessHangsAtTheEnd(t *testing.T) {
	_, want := metricsOf(t, withProcess(t, externaltest.Command(t, "")))
	hangs := externaltest.Hangs(t)
	e, err := experiment.Lab{NoPlots: true}.New(withProcess(t, externaltest.Command(t, "update=hang"), "task.answer_seconds=1000"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hangs
		cancel()
	}()
	if _, err := e.Run(ctx, dir, experiment.Observer{}); !errors.Is(err, experiment.ErrInterrupted) {
		t.Fatalf("got %v", err)
	}
	externaltest.Command(t, "")
	if _, err := (experiment.Lab{NoPlots: true}).Resume(t.Context(), dir, experiment.Observer{}); err != nil {
		t.Fatal(err)
	}
	if got := experimenttest.ReadFile(t, dir, runfolder.MetricsName); !bytes.Equal(got, want) {
		t.Error("the rounds are others")
	}
}

// A run says that its program was started again.
func TestProcessRestartIsSaid(t *testing.T) {
	e, err := experiment.Lab{NoPlots: true}.New(withProcess(t, externaltest.Command(t, "loss=die")))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	round, warned := 0, map[int]string{}
	r, err := e.Run(t.Context(), dir, experiment.Observer{
		Round:  func(r learner.Record) { round = r.Round },
		Warned: func(text string) { warned[round] = text },
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := warned[1]; len(warned) != 1 || !strings.Contains(text, "started again, once so far") {
		t.Errorf("warned of %v", warned)
	}
	if said := string(experimenttest.ReadFile(t, dir, experiment.LearnerLogName)); said != "Traceback:\nout of memory\n" {
		t.Errorf("the program has said %q", said)
	}
	if notes := strings.Join(r.Summary.Notes, "\n"); !strings.Contains(notes, `started again, once in this sitting, and got the model back (the last time it has ended with exit status 3; its last words are "out of memory")`) {
		t.Errorf("notes are %q", notes)
	}
}

// pythonWith returns a Python that has a module, or skips the test.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	t.Skipf("SKIPPED: no python3 here has %s", module)
	return ""
}

// The example in NumPy has the course of the built-in logistic regression: losses and M of 400
// encrypted rounds agree to the rounding of sums.
func TestNumPyLearner(t *testing.T) {
	data := os.Getenv("RINGWAVE_DATA")
	if data == "" {
		t.Skip("SKIPPED: RINGWAVE_DATA is not set, the folder with MNIST")
	}
	python := pythonWith(t, "numpy")
	const config = "../../hw-configs/learner-numpy.toml"
	command, err := json.Marshal([]string{python, "../../scripts/learners/logistic_numpy.py"})
	if err != nil {
		t.Fatal(err)
	}
	var rows [2][]runfolder.Row // of the program, and built in
	for i, set := range [][]string{
		{"task.command=" + string(command)},
		{"task.model=logistic", "task.dataset=mnist", "task.command=[]"},
	} {
		c, err := experiment.Load(config, set...)
		if err != nil {
			t.Fatal(err)
		}
		dir, _ := metricsOf(t, c)
		if rows[i], err = runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 400); err != nil {
			t.Fatal(err)
		}
	}
	if len(rows[0]) != 400 || len(rows[1]) != 400 {
		t.Fatalf("%d and %d rounds", len(rows[0]), len(rows[1]))
	}
	for k, own := range rows[0] {
		built := rows[1][k]
		if math.Abs(own.TrainLoss-built.TrainLoss) > 1e-13 || math.Abs(own.M-built.M) > 1e-11 || own.TestAccuracy != built.TestAccuracy && !math.IsNaN(own.TestAccuracy) {
			t.Fatalf("round %d: loss %v, M %v, accuracy %v, built in %v, %v, %v", k+1, own.TrainLoss, own.M, own.TestAccuracy, built.TrainLoss, built.M, built.TestAccuracy)
		}
	}
}

// The example in PyTorch learns, and its theta, float32, is the copy here to the bit: another
// would end the run.
func TestTorchLearner(t *testing.T) {
	data := os.Getenv("RINGWAVE_DATA")
	if data == "" {
		t.Skip("SKIPPED: RINGWAVE_DATA is not set, the folder with MNIST")
	}
	command, err := json.Marshal([]string{pythonWith(t, "torch, numpy"), "../../scripts/learners/mlp_torch.py"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := experiment.Load("../../hw-configs/learner-torch.toml", "task.command="+string(command), "optimizer.rounds=40", "optimizer.packed_directions=2")
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Lab{NoPlots: true}.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(t.Context(), filepath.Join(t.TempDir(), "run"), experiment.Observer{})
	if err != nil || r.Summary.TestAccuracy < 0.9 {
		t.Errorf("accuracy %v, %v", r.Summary.TestAccuracy, err)
	}
}

// The language model of the examples is pretrained on one text and learns of another: a run that
// was interrupted has the rounds of one that was not, and what it has learned can be sampled.
func TestLanguageModelLearner(t *testing.T) {
	python := pythonWith(t, "torch, numpy")
	folder := t.TempDir()
	script := func(arguments ...string) []string {
		return append([]string{python, "../../scripts/learners/lm_torch.py", "--folder", folder, "--train", "norms"}, arguments...)
	}
	run := func(arguments ...string) string {
		t.Helper()
		line := script(arguments...)
		out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(line, " "), err, out)
		}
		return string(out)
	}
	// Enough of it for ten stretches of 64 windows, of which one is held out.
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, and then it sleeps.\n\n", 700)
	for _, name := range []string{"text.txt", "before.txt"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if out := run("pretrain", "--steps", "3", "--width", "8", "--layers", "1", filepath.Join(folder, "before.txt")); !strings.Contains(out, "2264 parameters") {
		t.Errorf("pretrain printed %q", out)
	}

	c := withProcess(t, script("learn"), "optimizer.packed_directions=2", "optimizer.train_loss=pairs", "optimizer.rounds=4",
		"optimizer.evaluate_every_rounds=2", "optimizer.checkpoint_every_rounds=1")
	whole, want := metricsOf(t, c)
	e, err := experiment.Lab{NoPlots: true}.New(c)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	_, err = e.Run(ctx, dir, experiment.Observer{Round: func(r learner.Record) {
		if r.Round == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, experiment.ErrInterrupted) {
		t.Fatal(err)
	}
	if _, err := (experiment.Lab{NoPlots: true}).Resume(t.Context(), dir, experiment.Observer{}); err != nil {
		t.Fatal(err)
	}
	if got := experimenttest.ReadFile(t, dir, runfolder.MetricsName); !bytes.Equal(got, want) {
		t.Error("the rounds of a run that was interrupted are others")
	}
	before := run("sample", "--characters", "20")
	if after := run("sample", "--characters", "20", "--theta", filepath.Join(whole, "model.npy")); len(before) == 0 || len(after) == 0 {
		t.Errorf("sampled %q and %q", before, after)
	}
	if out := run("adapt", "--steps", "2"); !strings.Contains(out, "48 trained of 2264 parameters") || !strings.Contains(out, "steps: perplexity") {
		t.Errorf("adapt printed %q", out)
	}
}
