package sweepreport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/compare"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
	"ringwave/radio/intake"
)

// The files of a report beside its figures.
const (
	HTMLName     = "report.html"
	MarkdownName = "report.md"
	RunsName     = "runs.csv"
	CurvesName   = "curves.csv"

	figurePrefix = "sweep-" // of every figure's file
)

// Report is what came of a sweep, as a program reads it.
type Report struct {
	Name string   `json:"name"`
	Keys []string `json:"keys"` // swept
	Runs int      `json:"runs"` // asked for
	// Without are the runs that have no result.
	Without []Missing `json:"without_result"`
	// Accuracies are those to which rounds are counted, rising, as shares.
	Accuracies []float64 `json:"accuracies"`
	Table      []Line    `json:"table"` // a line a combination of values
	Figures    []string  `json:"figures"`
}

// Line is a combination of values, and what came of its runs.
type Line struct {
	Values map[string]any `json:"values"` // by key
	compare.Results
	Without int `json:"runs_without_result"`

	texts []string // the values, as a reader sees them
}

// Missing is a run without a result.
type Missing struct {
	Run    int            `json:"run"` // its place in the plan, from 0 on
	Values map[string]any `json:"values"`
	Seed   int64          `json:"seed"`

	texts []string
}

// Write makes the report of a sweep in the folder out. dirs are the run folders of the
// plan's points; "" stands for a run that has no result. A report that is there is replaced
// as a whole once the new one is complete; a folder with anything else in it is refused.
func Write(ctx context.Context, p sweep.Plan, out string, dirs []string) (Report, error) {
	if len(dirs) != len(p.Points) || len(dirs) == 0 {
		return Report{}, fmt.Errorf("a report over %d run folders of %d runs: there must be as many, and one or more", len(dirs), len(p.Points))
	}
	if n := combinations(p) * len(p.Seeds); n != len(p.Points) {
		return Report{}, fmt.Errorf("a plan with %d runs for %d combinations of values and seeds: it must be as it was loaded", len(p.Points), n)
	}
	if err := Replaceable(out); err != nil {
		return Report{}, err
	}
	dir, err := beside(out)
	if err != nil {
		return Report{}, intake.PathError(err)
	}
	defer os.RemoveAll(dir) // what is left of it
	w := &writer{stopped: ctx.Err, plan: p, dirs: dirs, dir: dir, out: out}
	if err := w.write(); err != nil {
		return Report{}, err
	}
	return w.report, intake.PathError(replace(dir, out))
}

func combinations(p sweep.Plan) int {
	n := 1
	for _, a := range p.Axes {
		n *= len(a.Values)
	}
	return n
}

// writer makes a report in a folder that is not yet in its place.
type writer struct {
	stopped  func() error // why nobody wants the report any more; nil while somebody does
	plan     sweep.Plan
	dirs     []string
	dir, out string

	heading string // the title; "" before it is asked for
	report  Report
	combos  []combo
	rows    []figures // of the runs, for runs.csv
	rounds  int       // the most of any run
	lines   lines     // how curves over rounds are laid out
	tallies []*compare.Tally
}

// combo is one combination of values.
type combo struct {
	at     []int // its places on the plan's axes
	line   *Line
	curves curves
}

// curves are drawn of a combination; empty for those that are not.
type curves struct{ loss, accuracy []chart.Series }

func (w *writer) write() error {
	w.report = Report{Name: w.plan.Name, Keys: append([]string{}, w.plan.Keys...), Runs: len(w.dirs), Without: []Missing{}, Figures: []string{}}
	for _, point := range w.plan.Points {
		w.rounds = max(w.rounds, point.Config.Optimizer.Rounds)
	}
	w.lines = w.layout(none)
	if err := w.readAll(); err != nil {
		return err
	}
	w.report.Accuracies = compare.Telling(w.tallies)
	if w.report.Accuracies == nil {
		w.report.Accuracies = []float64{}
	}
	for i, t := range w.tallies {
		w.combos[i].line.Results = t.Results(w.report.Accuracies)
	}
	if err := w.writeRuns(); err != nil {
		return err
	}
	sections, err := w.draw()
	if err != nil {
		return err
	}
	return w.writeReport(sections)
}

// readAll reads every run, and writes the rounds of each.
func (w *writer) readAll() error {
	out, err := newCSV(filepath.Join(w.dir, CurvesName), "run", "round", "train_loss", "test_accuracy")
	if err != nil {
		return err
	}
	defer out.abandon()
	seeds := len(w.plan.Seeds)
	w.report.Table = make([]Line, len(w.plan.Points)/seeds)
	w.rows = make([]figures, len(w.plan.Points))
	for i := range w.report.Table {
		if err := w.readCombo(i, w.plan.Points[i*seeds:][:seeds], out); err != nil {
			return err
		}
	}
	return out.close()
}

// readCombo reads the runs of the i-th combination.
func (w *writer) readCombo(i int, points []sweep.Point, out *csv) error {
	line := &w.report.Table[i]
	line.texts = points[0].Values
	line.Values = w.values(points[0].Config)
	c := combo{at: w.places(i), line: line}
	tally := compare.NewTally(points[0].Config)
	spot, drawn := w.lines.spots[i]
	var kept [][]runfolder.Row
	for k, point := range points {
		if err := w.stopped(); err != nil {
			return err
		}
		run := i*len(points) + k
		if w.dirs[run] == "" {
			line.Without++
			w.report.Without = append(w.report.Without, Missing{run, line.Values, point.Config.Experiment.Seed, point.Values})
			continue
		}
		summary, rows, err := read(w.dirs[run], point.Config)
		if err != nil {
			return err
		}
		w.rows[run] = figures{summary: summary, tally: tally, at: tally.Add(summary, rows)}
		w.rows[run].summary.Notes = nil // which are long, and no numbers
		out.rounds(run, rows)
		if drawn {
			kept = append(kept, rows)
		}
	}
	if len(kept) > 0 {
		c.curves.loss, c.curves.accuracy = chart.GroupCurves(spot.label, spot.position, chart.Window(w.rounds), spot.faint, kept)
	}
	w.combos, w.tallies = append(w.combos, c), append(w.tallies, tally)
	return out.err
}

// values returns the values of the keys swept.
func (w *writer) values(c config.Config) map[string]any {
	all := map[string]any{}
	for _, key := range w.plan.Keys {
		all[key] = c.Value(key)
	}
	return all
}

// places returns where on each axis the i-th combination is.
func (w *writer) places(i int) []int {
	at := make([]int, len(w.plan.Axes))
	for k := len(at) - 1; k >= 0; k-- {
		n := len(w.plan.Axes[k].Values)
		at[k], i = i%n, i/n
	}
	return at
}

// index returns which combination is at some places.
func (w *writer) index(at []int) (i int) {
	for k, a := range w.plan.Axes {
		i = i*len(a.Values) + at[k]
	}
	return i
}

// read reads the folder of a run, which must be of a configuration.
func read(dir string, c config.Config) (s runfolder.Summary, rows []runfolder.Row, err error) {
	if err = isOf(dir, c); err != nil {
		return s, nil, err
	}
	if s, err = runfolder.ReadSummary(filepath.Join(dir, runfolder.SummaryName)); err != nil {
		return s, nil, intake.UserError(fmt.Errorf("%w (has the run ended?)", err))
	}
	rows, err = runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), c.Optimizer.Rounds)
	return s, rows, intake.UserError(err)
}

// isOf refuses the folder of another run.
func isOf(dir string, c config.Config) error {
	path := filepath.Join(dir, runfolder.ConfigName)
	want, err := c.Encode()
	if err != nil {
		return err
	}
	const most = 1 << 20
	got, err := intake.ReadFile(path, most)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return intake.UserError(fmt.Errorf("%s: the run's configuration cannot be read: %w", path, err))
	}
	if !bytes.Equal(got, want) {
		return intake.UserError(fmt.Errorf("%s is not the configuration that the sweep asks for: must be that of the run with seed %d of %s", path, c.Experiment.Seed, c.Experiment.Name))
	}
	return nil
}
