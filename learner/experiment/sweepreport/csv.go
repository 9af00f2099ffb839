package sweepreport

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"ringwave/learner/experiment/compare"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// csv is a file of comma-separated values as numpy.genfromtxt reads them, which knows no
// quotes: names and texts are without what would part or end a field.
type csv struct {
	path string
	f    *os.File
	w    *bufio.Writer
	line []byte
	err  error // the first
}

func newCSV(path string, columns ...string) (*csv, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, intake.PathError(fmt.Errorf("making the report: %w", err))
	}
	c := &csv{path: path, f: f, w: bufio.NewWriter(f)}
	for _, column := range columns {
		c.text(column)
	}
	c.end()
	return c, nil
}

func (c *csv) text(s string) {
	c.line = append(append(c.line, bare(s)...), ',')
}

func (c *csv) whole(n int64) { c.line = append(strconv.AppendInt(c.line, n, 10), ',') }

// number writes a number as both Python and Go read it, nan and inf among them.
func (c *csv) number(v float64) {
	switch {
	case math.IsNaN(v):
		c.line = append(c.line, "nan,"...)
	case math.IsInf(v, 0):
		c.line = append(c.line, strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64))+","...)
	default:
		c.line = append(strconv.AppendFloat(c.line, v, 'g', -1, 64), ',')
	}
}

// end ends the line.
func (c *csv) end() {
	if c.err == nil {
		_, c.err = c.w.Write(append(c.line[:len(c.line)-1], '\n'))
	}
	c.line = c.line[:0]
}

// close brings what was written to disk.
func (c *csv) close() error {
	for _, step := range []func() error{c.w.Flush, c.f.Sync, c.f.Close} {
		if err := step(); c.err == nil {
			c.err = err
		}
	}
	if c.err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(c.path), c.err)
	}
	return nil
}

// abandon closes the file where close was not reached.
func (c *csv) abandon() { _ = c.f.Close() }

// rounds writes the rounds of a run.
func (c *csv) rounds(run int, rows []runfolder.Row) {
	for _, r := range rows {
		c.whole(int64(run))
		c.whole(int64(r.Round))
		c.number(r.TrainLoss)
		c.number(r.TestAccuracy)
		c.end()
	}
}

// bare returns a text without what means something in a file of comma-separated values. An
// empty one is a dash: a field that is empty would be a missing number.
func bare(s string) string {
	if s == "" {
		return "-"
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == ',':
			return ';'
		case r == '"' || r == '#' || r == '\'' || r < ' ':
			return '_'
		}
		return r
	}, s))
}

// column is what a key is called in a file: without a dot, which NumPy would take out.
func column(key string) string { return strings.ReplaceAll(key, ".", "_") }

// figures are what is kept of a run; without a tally it has no result.
type figures struct {
	summary runfolder.Summary
	tally   *compare.Tally
	at      int // its place in the tally
}

// state says in a word what a run came to.
func (f figures) state() string {
	switch {
	case f.tally == nil:
		return "none"
	case f.summary.Unusable != "":
		return "unusable"
	}
	return "usable"
}

// numbers are the fields of a summary that are numbers or yes and no, by their names in
// summary.json, but for the seed, an unsigned number, which every line has before.
func numbers(s runfolder.Summary) (names []string, values []float64) {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		var x float64
		switch field := v.Field(i); field.Kind() {
		case reflect.Int, reflect.Int64:
			x = float64(field.Int())
		case reflect.Float64:
			x = field.Float()
		case reflect.Bool:
			if field.Bool() {
				x = 1
			}
		default:
			continue
		}
		names, values = append(names, name), append(values, x)
	}
	return names, values
}

// writeRuns writes a line a run.
func (w *writer) writeRuns() error {
	out, err := newCSV(filepath.Join(w.dir, RunsName), w.runColumns()...)
	if err != nil {
		return err
	}
	defer out.abandon()
	for run, point := range w.plan.Points {
		f := w.rows[run]
		out.whole(int64(run))
		out.whole(int64(run / len(w.plan.Seeds)))
		for _, v := range point.Values {
			out.text(v)
		}
		out.whole(point.Config.Experiment.Seed)
		out.text(f.state())
		out.text(w.folder(run))
		w.writeNumbers(out, f)
		out.end()
	}
	return out.close()
}

// runColumns are the names of what a line has.
func (w *writer) runColumns() []string {
	columns := []string{"run", "combination"}
	for _, key := range w.plan.Keys {
		columns = append(columns, column(key))
	}
	names, _ := numbers(runfolder.Summary{})
	columns = append(append(columns, "seed", "result", "folder"), names...)
	columns = append(columns, "worst_deviations", "transmission_seconds_per_round")
	for _, a := range w.report.Accuracies {
		percent := strconv.FormatFloat(100*a, 'f', 0, 64) // compare chooses whole ones
		columns = append(columns, "rounds_to_"+percent, "transmission_seconds_to_"+percent)
	}
	return columns
}

// folder returns a run's folder as it is found from the report's.
func (w *writer) folder(run int) string {
	dir := w.dirs[run]
	if rel, err := filepath.Rel(w.out, dir); err == nil && dir != "" {
		return filepath.ToSlash(rel)
	}
	return dir
}

func (w *writer) writeNumbers(out *csv, f figures) {
	_, values := numbers(f.summary)
	one := compare.Single{}
	if f.tally != nil {
		one = f.tally.Single(f.at, w.report.Accuracies)
	}
	values = append(values, one.WorstDeviations, one.Airtime)
	for i := range w.report.Accuracies {
		if f.tally == nil {
			values = append(values, 0, 0)
			continue
		}
		values = append(values, one.Rounds[i], one.Seconds[i])
	}
	for _, v := range values {
		if f.tally == nil {
			v = math.NaN()
		}
		out.number(v)
	}
}
