package experiment

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"ringwave/crypto/keystream"
	"ringwave/learner"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/external"
	"ringwave/learner/model"
	"ringwave/learner/weights"
	"ringwave/radio/intake"
)

// The files of a run's model, once the run has come to its end: theta for NumPy, and as
// named tensors.
const (
	ModelNPYName = "model.npy"
	ModelName    = "model.safetensors"
)

// writeModel writes the model as it is into the run's folder.
func (s *Experiment) writeModel() error {
	theta, round := s.model()
	array, err := weights.EncodeNPY(theta)
	if err != nil {
		return err
	}
	says := map[string]string{
		"model": s.Config.Task.Model, "dataset": s.Task.Name,
		"round": strconv.Itoa(round), "experiment": s.Config.Experiment.Name,
	}
	if l, ok := s.Task.Model.(*external.Learner); ok {
		says["program"] = l.Name()
	} else {
		says["classes"] = fmt.Sprint(s.Config.Task.Classes)
	}
	tensors, err := weights.EncodeSafetensors(theta, model.Tensors(s.Task.Model), says)
	if err != nil {
		return err
	}
	return errors.Join(s.folder.WriteAtomic(ModelNPYName, array), s.folder.WriteAtomic(ModelName, tensors))
}

// Evaluation is how well a model decides.
type Evaluation struct {
	Dataset       string          `json:"dataset"`
	FallbackUsed  bool            `json:"fallback_used"`
	Model         string          `json:"model"`
	Round         int             `json:"round,omitempty"` // of the run; 0 for weights from elsewhere
	TestSamples   int             `json:"test_samples"`
	TestLoss      runfolder.Float `json:"test_loss"`
	TestAccuracy  float64         `json:"test_accuracy"`
	TrainSamples  int             `json:"train_samples"`
	TrainLoss     runfolder.Float `json:"train_loss"`
	TrainAccuracy float64         `json:"train_accuracy"`
	// Classes names the classes where there are more than two, and Confusion[y][c] is how many
	// test samples of class y the model takes for class c.
	Classes   []string `json:"classes,omitempty"`
	Confusion [][]int  `json:"confusion,omitempty"`
}

// WriteText writes how well a model decides, which is the one after a round or, where it
// is not empty, that of a file.
func (e Evaluation) WriteText(w io.Writer, file string) error {
	of := fmt.Sprintf("after round %d", e.Round)
	if file != "" {
		of = "of " + file
	}
	_, err := fmt.Fprintf(w, "%s %s, on %s%s\n  test accuracy      %.2f %%  (%d samples, mean loss %.4g)\n  training accuracy  %.2f %%  (%d samples, mean loss %.4g)\n",
		e.Model, of, e.Dataset, map[bool]string{true: " (the fallback: the data set asked for was not found)"}[e.FallbackUsed],
		100*e.TestAccuracy, e.TestSamples, float64(e.TestLoss), 100*e.TrainAccuracy, e.TrainSamples, float64(e.TrainLoss))
	if err != nil || e.Confusion == nil {
		return err
	}
	return e.writeConfusion(w)
}

// writeConfusion writes, class by class, how many of its test samples are taken for it, and for
// which other most often.
func (e Evaluation) writeConfusion(w io.Writer) error {
	for y, row := range e.Confusion {
		all, other := 0, -1
		for c, n := range row {
			all += n
			if c != y && n > 0 && (other < 0 || n > row[other]) {
				other = c
			}
		}
		line := fmt.Sprintf("  class %-12s %.2f %% of %d", e.Classes[y], 100*float64(row[y])/float64(max(all, 1)), all)
		if other >= 0 {
			line += fmt.Sprintf(", %d taken for %s", row[other], e.Classes[other])
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// confusion returns how many test samples of each class a model takes for each; nil of two
// classes, and of a model that does not say.
func confusion(t *Task, theta []float64) [][]int {
	if t.Test == nil || len(t.Test.Classes) < 3 {
		return nil
	}
	return learner.Confusion(t.Model, theta, t.Test)
}

// plotConfusion draws what the model takes the test samples for.
func (s *Experiment) plotConfusion() ([]string, error) {
	if s.lab.NoPlots {
		return nil, nil
	}
	theta, _ := s.model()
	counts := confusion(s.Task, theta)
	if counts == nil {
		return nil, nil
	}
	plots, err := chart.ConfusionPlot(s.folder.Path(), s.Config.Heading(), s.Task.Test.Classes, counts)
	if err != nil {
		return nil, fmt.Errorf("drawing the confusion matrix: %w", err)
	}
	return plots, nil
}

// Evaluate decides the samples of a run's data set by the model of its last checkpoint,
// whether the run has ended or not, or by that of a safetensors file. Overrides of the
// form task.key=value name other data.
func (l Lab) Evaluate(dir, file string, overrides ...string) (Evaluation, error) {
	for _, o := range overrides {
		if key, _, _ := strings.Cut(o, "="); !strings.HasPrefix(strings.TrimSpace(key), "task.") {
			return Evaluation{}, intake.UserError(fmt.Errorf("--set %s: must be a key of [task]: evaluating uses the model and its data only", o))
		}
	}
	c, err := l.Load(filepath.Join(dir, runfolder.ConfigName), overrides...)
	if err != nil {
		return Evaluation{}, err
	}
	t, err := l.LoadTask(c, keystream.FromInteger(uint64(c.Experiment.Seed)), nil)
	if err != nil {
		return Evaluation{}, err
	}
	defer t.Close()
	out := Evaluation{
		Dataset: t.Name, FallbackUsed: t.FallbackUsed, Model: c.Task.Model,
		TestSamples: t.Test.Len(), TrainSamples: t.Train.Len(),
	}
	theta, round, err := thetaOf(dir, file, t.Model)
	if err != nil {
		return out, err
	}
	out.Round = round
	testLoss, trainLoss := 0.0, 0.0
	testLoss, out.TestAccuracy = learner.Evaluate(t.Model, theta, t.Test)
	trainLoss, out.TrainAccuracy = learner.Evaluate(t.Model, theta, t.Train)
	if out.Confusion = confusion(t, theta); out.Confusion != nil {
		out.Classes = t.Test.Classes
	}
	out.TestLoss, out.TrainLoss = runfolder.Float(testLoss), runfolder.Float(trainLoss)
	return out, intake.UserError(model.Err(t.Model))
}

// thetaOf reads theta of a model: of a file, or if that is "" of a run's checkpoint, with
// the round that it is of.
func thetaOf(dir, file string, m model.Model) (theta []float64, round int, err error) {
	if file == "" {
		point, err := runfolder.ReadCheckpoint(dir)
		if err == nil && len(point.Theta) != m.Dim() {
			err = fmt.Errorf("%s: its model has %d parameters, and that of the configuration has %d", filepath.Join(dir, runfolder.CheckpointName), len(point.Theta), m.Dim())
		}
		if point.Best != nil && err == nil {
			return point.Best.Theta, point.Best.Round, nil
		}
		return point.Theta, point.Round, intake.PathError(err)
	}
	tensors := model.Tensors(m)
	data, err := intake.ReadFile(file, weights.MaxBytes(tensors))
	if err != nil {
		return nil, 0, intake.PathError(fmt.Errorf("reading a model from %s: %w", file, err))
	}
	theta, err = weights.DecodeSafetensors(data, tensors)
	if err != nil {
		return nil, 0, intake.UserError(fmt.Errorf("%s: %w", file, err))
	}
	return theta, 0, nil
}
