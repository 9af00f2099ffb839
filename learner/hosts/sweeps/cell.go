package sweeps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ringwave/learner/experiment"
	"ringwave/learner/hosts/jobs"
	"ringwave/learner/paper"
	"ringwave/radio/intake"
)

// CellKind is the kind of jobs that are cells of the paper's report.
const CellKind = "cell"

// Cells computes them: the result is a file with what paper.ComputeCell returns.
type Cells struct{ Lab experiment.Lab }

// cellName is the result's file, cellPart what an interrupted one goes on from.
const (
	cellName = "cell.json"
	cellPart = "cell.part"
)

// cellBody is what such a job is made of.
type cellBody struct {
	Config   string  `json:"config"` // TOML, with every key
	Goal     float64 `json:"goal"`
	GoalLoss float64 `json:"goal_loss"`
	Validate bool    `json:"validate"`
	Key      string  `json:"key"` // paper.CellKey: of the data, too
}

func (k Cells) parse(body []byte) (b cellBody, c paper.Cell, err error) {
	if len(body) > mostBody {
		return b, c, intake.UserError(fmt.Errorf("a cell of %d bytes; allowed are %d", len(body), mostBody))
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return b, c, intake.UserError(fmt.Errorf("a cell that is no JSON: %w", err))
	}
	c = paper.Cell{Goal: b.Goal, GoalLoss: b.GoalLoss, Validate: b.Validate}
	if c.Config, err = k.Lab.Parse("the cell's configuration", []byte(b.Config), nil); err != nil {
		return b, c, err
	}
	return b, c, computable(c.Config, "")
}

// Compute is of jobs.Kind.
func (k Cells) Compute(ctx context.Context, body []byte, dir string, progress func(done, of int)) error {
	b, c, err := k.parse(body)
	if err != nil {
		return err
	}
	key, err := paper.CellKey(k.Lab, c)
	switch {
	case missing(err):
		return jobs.Other(err)
	case err != nil:
		return err
	case key != b.Key:
		return jobs.Other(errors.New("the data here are others than those of the report"))
	}
	kept, err := paper.ComputeCell(ctx, k.Lab, c, filepath.Join(dir, cellPart), func(round int) { progress(round, c.Config.Optimizer.Rounds) })
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, cellName), kept, 0o644)
}

// Result is of jobs.Kind.
func (k Cells) Result(string) ([]string, error) { return []string{cellName}, nil }

// Check is of jobs.Kind.
func (k Cells) Check(body []byte, dir string) error {
	_, c, err := k.parse(body)
	if err != nil {
		return err
	}
	kept, err := intake.ReadFile(filepath.Join(dir, cellName), c.MostBytes())
	if err == nil && !json.Valid(kept) {
		err = errors.New("it is no JSON")
	}
	return err // whoever asks looks at what it says
}

// Cell has a cell computed by workers: paper.Options.Compute.
func (e *Engine) Cell(ctx context.Context, c paper.Cell, key string, progress func(round int)) ([]byte, error) {
	encoded, err := c.Config.Encode()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(cellBody{string(encoded), c.Goal, c.GoalLoss, c.Validate, key})
	if err != nil {
		return nil, fmt.Errorf("encoding a cell: %w", err)
	}
	id := jobs.NewID(e.Program, []byte(key))
	dir := filepath.Join(e.o.Folder, cellsName, id)
	if err := os.RemoveAll(dir); err != nil { // of a sitting that ended as it came
		return nil, intake.PathError(err)
	}
	title := c.Config.Heading()
	rounds := float64(c.Config.Optimizer.Rounds)
	err = e.Do(ctx, jobs.Job{ID: id, Kind: CellKind, Title: title, Body: body}, dir, func(share float64) { progress(int(share * rounds)) })
	if errors.Is(err, context.Canceled) {
		return nil, experiment.ErrInterrupted
	}
	if err != nil {
		return nil, err
	}
	kept, err := intake.ReadFile(filepath.Join(dir, cellName), c.MostBytes())
	return kept, errors.Join(err, os.RemoveAll(dir))
}
