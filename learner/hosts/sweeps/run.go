package sweeps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ringwave/calibration"
	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/hosts/jobs"
	"ringwave/radio/intake"
)

// RunKind is the kind of jobs that are runs of an experiment.
const RunKind = "run"

// Runs computes them: the result is a run's folder, but for its plots and for what only
// more rounds would need.
type Runs struct{ Lab experiment.Lab }

// runBody is what such a job is made of.
type runBody struct {
	Config string `json:"config"` // TOML, with every key
	// Calibration is the text of the calibration that the run goes by; "" for none.
	Calibration string `json:"calibration,omitempty"`
	Data        string `json:"data"` // what it learns from, as dataOf says it
}

// mostBody bounds a body, in bytes.
const mostBody = 1 << 20

func parseRun(l experiment.Lab, body []byte) (b runBody, c config.Config, err error) {
	if len(body) > mostBody {
		return b, c, intake.UserError(fmt.Errorf("a run of %d bytes; allowed are %d", len(body), mostBody))
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return b, c, intake.UserError(fmt.Errorf("a run that is no JSON: %w", err))
	}
	c, err = l.Parse("the run's configuration", []byte(b.Config), nil)
	if err == nil {
		err = computable(c, b.Calibration)
	}
	return b, c, err
}

// computable refuses a configuration that is not to be run because somebody on the bus says
// so. The calibration that it names must come with it.
func computable(c config.Config, calibration string) error {
	if c.OverRadios() {
		return intake.UserError(errors.New("the run is over radios: nothing that comes over the bus is sent on the air"))
	}
	if c.Task.Model == "process" {
		return intake.UserError(errors.New("the run's model is a program: nothing that comes over the bus is started"))
	}
	if c.Calibration.File != "" && calibration == "" {
		return intake.UserError(errors.New("the run names a calibration and does not bring it"))
	}
	return nil
}

// missing reports whether an error is that files of a data set are not here.
func missing(err error) bool {
	var m *dataset.MissingError
	return errors.As(err, &m)
}

// dataOf says what a task was loaded from.
func dataOf(t *experiment.Task) string {
	parts := []string{t.Name}
	for _, f := range t.Files {
		parts = append(parts, filepath.Base(f.Path)+" "+f.SHA256)
	}
	return strings.Join(parts, ", ")
}

// Compute is of jobs.Kind. It draws no plots: they are many, and are drawn for all runs
// together.
func (r Runs) Compute(ctx context.Context, body []byte, dir string, progress func(done, of int)) error {
	r.Lab.NoPlots = true
	b, c, err := parseRun(r.Lab, body)
	if err != nil {
		return err
	}
	if b.Calibration != "" {
		c.Calibration.File = dir + "." + runfolder.CalibrationName
		if err := runfolder.WriteFile(c.Calibration.File, []byte(b.Calibration)); err != nil {
			return err
		}
		defer os.Remove(c.Calibration.File)
	}
	watch := experiment.Observer{Round: func(rec learner.Record) { progress(rec.Round, c.Optimizer.Rounds) }}
	err = r.run(ctx, b, c, dir, watch)
	var unusable *experiment.Unusable
	switch {
	case errors.As(err, &unusable):
		return nil // which is a result: summary.json says why
	case errors.Is(err, experiment.ErrInterrupted):
		return context.Canceled
	}
	return err
}

// run begins the run, or goes on with it.
func (r Runs) run(ctx context.Context, b runBody, c config.Config, dir string, watch experiment.Observer) error {
	if _, err := os.Stat(filepath.Join(dir, runfolder.SummaryName)); err == nil {
		return nil // it had ended when its worker was stopped
	}
	if runfolder.HasCheckpoint(dir) {
		if _, err := r.Lab.Resume(ctx, dir, watch); err == nil || !intake.IsUserError(err) {
			return err
		}
		// What is there is of no use: begun by another program, or damaged.
	}
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return err
	}
	e, err := r.Lab.New(c)
	if missing(err) {
		return jobs.Other(err)
	}
	if err != nil {
		return err
	}
	if found := dataOf(e.Task); found != b.Data {
		return jobs.Other(errors.Join(errors.New("other data are here than the run wants: "+difference(b.Data, found)), e.Close()))
	}
	_, err = e.Run(ctx, dir, watch)
	return err
}

// difference says what is found in place of what is wanted, of sets of data.
func difference(want, found string) string {
	wants, finds := strings.Split(want, ", "), strings.Split(found, ", ")
	if wants[0] != finds[0] {
		return fmt.Sprintf("%s in place of %s", finds[0], wants[0])
	}
	for i, w := range wants {
		if i >= len(finds) || finds[i] != w {
			name, sum, _ := strings.Cut(w, " ")
			return fmt.Sprintf("%s of %s is another file than the one of SHA-256 %.16s…", name, wants[0], sum)
		}
	}
	return fmt.Sprintf("%s has more files", finds[0])
}

// leftOut reports whether a file of a run's folder is no part of a result: what only more
// rounds would need.
func leftOut(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".lock") ||
		slices.Contains([]string{experiment.JournalName, runfolder.CheckpointName, "link.secret"}, name)
}

// Result is of jobs.Kind.
func (r Runs) Result(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking into the run's folder: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && !leftOut(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Check is of jobs.Kind.
func (r Runs) Check(body []byte, dir string) error {
	_, want, err := parseRun(r.Lab, body)
	if err != nil {
		return err
	}
	got, err := r.Lab.Load(filepath.Join(dir, runfolder.ConfigName))
	if err != nil {
		return err
	}
	if want.Calibration.File != "" {
		want.Calibration.File, got.Calibration.File = runfolder.CalibrationName, runfolder.CalibrationName
		if _, err := intake.ReadFile(filepath.Join(dir, runfolder.CalibrationName), calibration.MaxFile); err != nil {
			return fmt.Errorf("%s: %w", runfolder.CalibrationName, err)
		}
	}
	wanted, err := want.Digest()
	if err != nil {
		return err
	}
	if digest, err := got.Digest(); err != nil || digest != wanted {
		return errors.New("its configuration is another one")
	}
	if _, err := runfolder.ReadSummary(filepath.Join(dir, runfolder.SummaryName)); err != nil {
		return err
	}
	_, err = runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), want.Optimizer.Rounds)
	return err
}
