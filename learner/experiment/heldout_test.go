package experiment_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/model"
	"ringwave/learner/weights"
	"ringwave/radio/intake"
)

// heldOutKeys are of a run on all four classes of the strokes whose steps are so long that the
// validation loss rises again.
var heldOutKeys = []string{
	"task.classes=[3, 0, 2, 1]", "task.strokes_train=400", "task.validation_share=0.25",
	"optimizer.rounds=60", "optimizer.evaluate_every_rounds=2", "optimizer.eta0=3", "optimizer.gamma0=0.05",
	"encryption.randomness=seed", "encryption.key_epoch_rounds=0",
}

// copiedAfter copies a run's folder after a round, as a kill would leave it then.
func copiedAfter(t *testing.T, round int, dir, killed string) experiment.Observer {
	return experiment.Observer{Round: func(r learner.Record) {
		if r.Round != round {
			return
		}
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Error(err)
		}
	}}
}

// least returns the row of the least validation loss.
func least(t *testing.T, rows []runfolder.Row) runfolder.Row {
	t.Helper()
	best := runfolder.Row{Validation: &runfolder.ValidationRow{Loss: math.Inf(1)}}
	for _, r := range rows {
		if r.Validation != nil && r.Validation.Loss < best.Validation.Loss {
			best = r
		}
	}
	return best
}

func rowsOf(t *testing.T, dir string) []runfolder.Row {
	t.Helper()
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// A run with samples that are held out keeps the model that does best on them, whatever comes
// after, and says so; evaluate takes that one, too.
func TestBestModelIsKept(t *testing.T) {
	e, dir := short(t, heldOutKeys...), filepath.Join(t.TempDir(), "run")
	if n := e.Task.Validation.Len(); n != 100 || len(e.Task.Validation.Classes) != 4 {
		t.Fatalf("%d samples are held out of 400", n)
	}
	dealt := 0
	for _, s := range e.Task.Shards {
		dealt += len(s)
	}
	if dealt != 300 {
		t.Errorf("%d samples are dealt to devices, want 300", dealt)
	}
	thetas := map[int][]float64{}
	r, err := e.Run(t.Context(), dir, experiment.Observer{Round: func(r learner.Record) { thetas[r.Round] = slices.Clone(e.Trainer.State().Theta) }})
	if err != nil {
		t.Fatal(err)
	}
	best := least(t, rowsOf(t, dir))
	if best.Round == 60 || best.Round == 0 {
		t.Fatalf("the best round is %d: this test wants one that is not the last", best.Round)
	}
	s := r.Summary
	if s.BestRound != best.Round || float64(s.ValidationLoss) != best.Validation.Loss || float64(s.TestAccuracy) != best.TestAccuracy || s.RoundsCompleted != 60 {
		t.Errorf("round %d, validation loss %v, accuracy %v; want %d, %v, %v", s.BestRound, s.ValidationLoss, s.TestAccuracy, best.Round, best.Validation.Loss, best.TestAccuracy)
	}
	theta, err := weights.DecodeSafetensors(experimenttest.ReadFile(t, dir, experiment.ModelName), model.Tensors(e.Task.Model))
	if err != nil || !slices.Equal(theta, thetas[best.Round]) {
		t.Errorf("the model that is kept is not that of round %d: %v", best.Round, err)
	}
	evaluated, err := experiment.Lab{}.Evaluate(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if evaluated.Round != best.Round || evaluated.TestAccuracy != best.TestAccuracy {
		t.Errorf("evaluated: %+v", evaluated)
	}
	right, all := 0, 0
	for y, row := range evaluated.Confusion {
		right += row[y]
		for _, n := range row {
			all += n
		}
	}
	if all != evaluated.TestSamples || float64(right)/float64(all) != evaluated.TestAccuracy {
		t.Errorf("%d of %d on the diagonal, accuracy %v", right, all, evaluated.TestAccuracy)
	}
	var text bytes.Buffer
	if err := evaluated.WriteText(&text, ""); err != nil || !strings.Contains(text.String(), "class zigzag") {
		t.Errorf("%s, %v", text.String(), err)
	}
	experimenttest.ReadFile(t, dir, "confusion.png")
}

// A run ends at a plateau, at once where it is resumed there, goes on where it is extended, and
// has the same rounds where it was broken off on its way.
func TestPlateau(t *testing.T) {
	keys := append(slices.Clone(heldOutKeys), "optimizer.end_after_plateau_evaluations=3")
	dir := filepath.Join(t.TempDir(), "run")
	r, err := short(t, keys...).Run(t.Context(), dir, experiment.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, dir)
	if best := least(t, rows); len(rows) != best.Round+6 || len(rows) >= 60 || r.Summary.BestRound != best.Round {
		t.Fatalf("%d rounds, the best %d, and %d in the summary", len(rows), best.Round, r.Summary.BestRound)
	}
	if notes := strings.Join(r.Summary.Notes, "\n"); !strings.Contains(notes, "3 evaluations in a row had no lower validation loss") {
		t.Errorf("notes: %s", notes)
	}
	want := experimenttest.ReadFile(t, dir, runfolder.MetricsName)
	summary := func(dir string) (s runfolder.Summary) {
		if err := json.Unmarshal(experimenttest.ReadFile(t, dir, runfolder.SummaryName), &s); err != nil {
			t.Fatal(err)
		}
		s.Seconds = 0
		return s
	}
	again, err := experiment.Resume(t.Context(), dir, experiment.Observer{})
	if err != nil || again.Round != len(rows) || !bytes.Equal(want, experimenttest.ReadFile(t, dir, runfolder.MetricsName)) {
		t.Errorf("resumed at its end: round %d, %v", again.Round, err)
	}

	stopped := filepath.Join(t.TempDir(), "stopped")
	ctx, cancel := context.WithCancel(t.Context())
	_, err = short(t, keys...).Run(ctx, stopped, experiment.Observer{Round: func(r learner.Record) {
		if r.Round == len(rows)-3 {
			cancel()
		}
	}})
	if !errors.Is(err, experiment.ErrInterrupted) {
		t.Fatalf("got %v", err)
	}
	if _, err := experiment.Resume(t.Context(), stopped, experiment.Observer{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, experimenttest.ReadFile(t, stopped, runfolder.MetricsName)) {
		t.Error("a run that was broken off has other rounds")
	}
	a, b := summary(dir), summary(stopped)
	if a.BestRound != b.BestRound || a.TestAccuracy != b.TestAccuracy {
		t.Errorf("%+v, broken off %+v", a, b)
	}

	longer, err := experiment.Lab{NoPlots: true}.Extend(t.Context(), dir, 200, experiment.Observer{})
	if err != nil || longer.Round <= len(rows) {
		t.Errorf("extended: round %d, %v", longer.Round, err)
	}
}

// A run that sends no round twice has the same end after a kill: rounds that it takes from
// metrics.csv count for the best model and for the plateau, too.
func TestPlateauOfRecalledRounds(t *testing.T) {
	keys := append(slices.Clone(heldOutKeys), "optimizer.end_after_plateau_evaluations=3", "encryption.randomness=system", "optimizer.checkpoint_every_rounds=1000")
	dir, killed := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "killed")
	r, err := short(t, keys...).Run(t.Context(), dir, copiedAfter(t, 9, dir, killed))
	if err != nil {
		t.Fatal(err)
	}
	again, err := experiment.Lab{NoPlots: true}.Resume(t.Context(), killed, experiment.Observer{})
	if err != nil || again.Summary.BestRound != r.Summary.BestRound || r.Summary.BestRound > 8 {
		t.Errorf("best round %d after a kill in round 9, without %d: %v", again.Summary.BestRound, r.Summary.BestRound, err)
	}
}

// Nor is a line believed that says other of the samples held out than its round did.
func TestRecalledValidationIsCompared(t *testing.T) {
	keys := append(slices.Clone(heldOutKeys), "encryption.randomness=system", "optimizer.checkpoint_every_rounds=1000")
	dir, killed := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "killed")
	_, err := short(t, keys...).Run(t.Context(), dir, copiedAfter(t, 9, dir, killed))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(experimenttest.ReadFile(t, killed, runfolder.MetricsName)), "\n")
	fields := strings.Split(lines[4], ",") // round 4 is evaluated
	loss := len(fields) - 2
	if !strings.HasSuffix(lines[0], "validation_loss,validation_accuracy") || fields[loss] == "" {
		t.Fatalf("%s\n%s", lines[0], lines[4])
	}
	fields[loss] = "0.5"
	lines[4] = strings.Join(fields, ",")
	if err := os.WriteFile(filepath.Join(killed, runfolder.MetricsName), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = experiment.Lab{NoPlots: true}.Resume(t.Context(), killed, experiment.Observer{})
	if err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "has validation_loss = 0.5 in round 4, but the lines before give") {
		t.Errorf("got %v", err)
	}
}

// Who holds out all that a device has is told which key does it, before anything is written.
func TestValidationLeavesEachDeviceASample(t *testing.T) {
	experimenttest.NoData(t)
	c, err := experiment.Load(experimenttest.LoopbackConfig, "task.dataset=strokes", "task.strokes_train=40", "devices.count=20", "task.validation_share=0.5")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (experiment.Lab{}).New(c); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "task.validation_share = 0.5: device") || !strings.Contains(err.Error(), "of 20 keeps no sample of the 20 for training; allowed is a share that leaves each device one") {
		t.Errorf("got %v", err)
	}
}

// An extension beyond a plateau that is killed before its first checkpoint goes on.
func TestExtensionOfAPlateauKilled(t *testing.T) {
	keys := append(slices.Clone(heldOutKeys), "optimizer.end_after_plateau_evaluations=3", "optimizer.checkpoint_every_rounds=1000")
	dir, killed := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "killed")
	r, err := short(t, keys...).Run(t.Context(), dir, experiment.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	end := r.Round
	lab := experiment.Lab{NoPlots: true}
	longer, err := lab.Extend(t.Context(), dir, 200, copiedAfter(t, end+3, dir, killed))
	if err != nil {
		t.Fatal(err)
	}
	again, err := lab.Resume(t.Context(), killed, experiment.Observer{})
	if err != nil || again.Round != longer.Round || longer.Round <= end {
		t.Errorf("round %d after a kill, without %d, and %d before the extension: %v", again.Round, longer.Round, end, err)
	}
}

// What runs on hosts has nobody to hold samples out.
func TestValidationOverHosts(t *testing.T) {
	experimenttest.NoData(t)
	c, err := experiment.Load(experimenttest.LoopbackConfig, "task.dataset=strokes", "task.validation_share=0.1")
	if err != nil {
		t.Fatal(err)
	}
	shard, err := experiment.Lab{}.LoadShard(c, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shard.Member(c); err == nil || !strings.Contains(err.Error(), "task.validation_share = 0.1 holds out samples of all devices") {
		t.Errorf("got %v", err)
	}
}
