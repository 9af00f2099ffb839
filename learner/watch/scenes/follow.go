package scenes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ringwave/calibration"
	"ringwave/crypto/round"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/watch"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// tail is a file of lines that another process adds to.
type tail struct {
	path  string
	most  int   // bytes of a line
	end   int64 // of what was read
	lines int64
}

// The most bytes of a line of metrics.csv and of a log.
const (
	mostMetricsLine = 1 << 12
	mostLogLine     = 1 << 16
)

// next hands the whole lines that are new to each. Again says that the file has become shorter:
// nothing was read, and it is to be taken in from its beginning.
func (t *tail) next(each func(line string) error) (again bool, err error) {
	if info, err := os.Stat(t.path); err == nil && !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is no file", t.path) // opening a pipe would wait
	}
	f, err := os.Open(t.path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() < t.end {
		t.end, t.lines = 0, 0
		return true, nil
	}
	from := t.end
	lines := intake.NewLines(io.NewSectionReader(f, from, info.Size()-from), intake.LineLimits{Bytes: t.most, Lines: math.MaxInt64})
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		if err := each(string(line)); err != nil {
			return false, fmt.Errorf("%s line %d: %w", t.path, t.lines+1, err)
		}
		t.lines++
		t.end = from + lines.End()
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("%s behind line %d: %w", t.path, t.lines, err)
	}
	return false, nil
}

// followed is a run's folder that another process may be writing.
type followed struct {
	scene *watch.Scene
	dir   string
	cfg   config.Config

	mu      sync.Mutex
	metrics tail
	log     tail
	header  runfolder.Header // nil before it was read
	raw     [][]string       // the last lines, the newest last
	run     Run              // what its rounds come to
	last    int              // round
	logLost bool             // the log cannot be read
	tables  []watch.Table    // of the summary
	ended   bool
}

// runFolder shows a run's folder, and goes on doing so while it grows.
func runFolder(b *watch.Board, dir string) error {
	c, err := config.LoadUnpermitted(filepath.Join(dir, runfolder.ConfigName), nil)
	if err != nil {
		return intake.UserError(err)
	}
	f := &followed{dir: dir, cfg: c, metrics: tail{path: filepath.Join(dir, runfolder.MetricsName), most: mostMetricsLine}, log: tail{path: filepath.Join(dir, runfolder.LogName), most: mostLogLine}}
	f.scene = b.Add(watch.KindRun, filepath.Base(dir)+" – "+c.Heading())
	f.restart()
	if err := f.look(); err != nil {
		b.Remove(f.scene)
		return err
	}
	showConfig(f.scene, dir)
	f.scene.SetRefresh(f.refresh)
	return showRecordings(f.scene, dir, c)
}

// restart takes rounds in from the beginning.
func (f *followed) restart() {
	voids := f.run.voids
	if voids == nil {
		voids = map[round.Check]int{}
	}
	f.run = Run{config: f.cfg, title: f.cfg.Heading(), voids: voids, means: make([]meanGain, f.cfg.Devices.Count), devices: calibrated(f.dir)}
	f.header, f.raw, f.last, f.metrics.end, f.metrics.lines = nil, nil, 0, 0, 0
}

// calibrated returns the devices of the calibration that a run went by; none where there is
// none.
func calibrated(dir string) (list []experiment.DeviceState) {
	if !there(dir, runfolder.CalibrationName) {
		return nil
	}
	file, err := calibration.Read(filepath.Join(dir, runfolder.CalibrationName))
	if err != nil {
		return nil // the run has said so
	}
	for _, d := range file.Devices {
		list = append(list, experiment.DeviceState{Radio: radio.Info{Serial: d.Serial}, Mu: d.Mu.Value, Omega: d.Omega.Value, Phase: d.PhaseRad.Value, OffsetHz: d.OffsetHz.Value, Gain: math.NaN()})
	}
	return list
}

// refresh looks at the folder again.
func (f *followed) refresh() {
	err := f.look()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.scene.SetStatus(watch.Status{State: watch.StateFailed, Text: err.Error(), SecondsLeft: -1})
	}
	if !f.ended {
		f.scene.Touch() // another process writes without a word
	}
}

// look reads what is new. Rounds that a resumed run took back are read anew.
func (f *followed) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	again, err := f.metrics.next(f.line)
	if again || errors.Is(err, errFalls) {
		f.restart()
		_, err = f.metrics.next(f.line)
	}
	if err != nil {
		return intake.UserError(err)
	}
	if f.header == nil {
		return intake.UserError(fmt.Errorf("%s: it has no header yet", f.metrics.path))
	}
	f.tellLog()
	return f.show()
}

// errFalls says that rounds do not rise.
var errFalls = errors.New("rounds must rise")

// line takes in a line of metrics.csv.
func (f *followed) line(line string) (err error) {
	if f.header == nil {
		f.header, err = runfolder.ParseHeader(line)
		return err
	}
	row, err := f.header.Row(line)
	if err != nil {
		return err
	}
	if row.Round <= f.last && len(f.raw) > 0 {
		return fmt.Errorf("round %d follows round %d: %w", row.Round, f.last, errFalls)
	}
	f.last = row.Round
	f.raw = append(f.raw, strings.Split(strings.TrimSuffix(line, "\r"), ","))
	if len(f.raw) > lastRows {
		f.raw = slices.Delete(f.raw, 0, 1)
	}
	f.run.history.add(row, nil)
	f.run.counts.attempts += row.Attempts
	if row.Skipped {
		f.run.counts.skipped++
	} else {
		f.run.counts.read++
	}
	if !math.IsNaN(row.TestAccuracy) {
		f.run.evaluated = evaluated{number(row.TestAccuracy), row.Round}
	}
	return nil
}

// tellLog tells what the log has that is new.
func (f *followed) tellLog() {
	if f.logLost {
		return
	}
	_, err := f.log.next(f.logged)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.logLost = true
		f.scene.Event(watch.EventWarning, "the log cannot be read on: "+err.Error())
	}
}

// logged takes in a line of log.jsonl. One that is no JSON is left out.
func (f *followed) logged(line string) error {
	var all map[string]any
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if intake.CheckJSON("the line", []byte(line), intake.JSONLimits{Depth: 8, Members: 256, Elements: 1 << 12}) != nil || d.Decode(&all) != nil {
		return nil
	}
	at, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(all["time"])) // else there is none
	var level slog.Level
	_ = level.UnmarshalText([]byte(fmt.Sprint(all["level"]))) // else it is an information
	if level < slog.LevelInfo {
		return nil
	}
	rec := slog.NewRecord(at, level, fmt.Sprint(all["msg"]), 0)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key != "time" && key != "level" && key != "msg" {
			rec.AddAttrs(slog.Any(key, all[key]))
		}
	}
	kind, text := eventOf(rec, nil)
	f.scene.EventAt(at, kind, text)
	if kind != watch.EventVoid {
		return nil
	}
	for check := round.LinearCheck; check <= round.GainsCheck; check++ {
		if check.String() == fmt.Sprint(all["check"]) {
			f.run.voids[check]++
		}
	}
	return nil
}

// show sets the parts.
func (f *followed) show() error {
	status := watch.Status{Unit: "round", Done: f.last, Of: f.cfg.Optimizer.Rounds, Share: share(f.last, f.cfg.Optimizer.Rounds), SecondsLeft: -1}
	figures := append(f.run.learningFigures(), f.run.airFigures()...)
	for i := range figures {
		figures[i].Note = strings.TrimSuffix(strings.ReplaceAll(figures[i].Note, "in this sitting", "in the whole run"), ", ")
	}
	over := there(f.dir, runfolder.SummaryName)
	if over {
		s, err := runfolder.ReadSummary(filepath.Join(f.dir, runfolder.SummaryName))
		if err != nil {
			return intake.UserError(err)
		}
		status.Text = s.Unusable
		figures = append(figures,
			watch.Figure{Key: "final_accuracy", View: watch.ViewLearning, Label: "test accuracy at the end", Value: number(float64(s.TestAccuracy)), Alarm: s.Unusable != ""},
			watch.Figure{Key: "final_loss", View: watch.ViewLearning, Label: "training loss at the end", Value: number(float64(s.TrainLoss))},
			watch.Figure{Key: "seconds", View: watch.ViewLearning, Label: "time it took", Value: number(s.Seconds), Unit: "s"})
		if f.tables == nil {
			f.tables = []watch.Table{summaryTable(filepath.Join(f.dir, runfolder.SummaryName))}
		}
	}
	status.State = stateOf(f.dir, over)
	f.ended = status.State == watch.StateEnded
	var plots []watch.Plot
	if f.ended {
		plots = svgPlots(f.dir, watch.ViewLearning)
	}
	if len(plots) == 0 { // the run draws at its end
		plots = f.run.history.plots(f.cfg.Heading(), f.cfg.OverWaveform())
	}
	f.scene.SetStatus(status)
	f.scene.SetFigures(figures)
	retries := f.run.retriesTable()
	retries.Note = "of the whole run, by its log"
	f.scene.SetTables(append(withRows(f.roundsTable(), retries, f.run.devicesTable()), f.tables...))
	f.scene.SetPlots(plots)
	return nil
}

// roundsTable has the last lines of metrics.csv as they are, the newest first.
func (f *followed) roundsTable() watch.Table {
	t := watch.Table{Name: "rounds", View: watch.ViewLearning, Title: fmt.Sprintf("The last %d rounds, as metrics.csv has them", lastRows), Columns: numeric(f.header...)}
	for _, row := range slices.Backward(f.raw) {
		t.Rows = append(t.Rows, row)
	}
	return t
}

// summaryTable has a summary.json as it is.
func summaryTable(path string) watch.Table {
	t := watch.Table{Name: "summary", View: watch.ViewLearning, Title: "The result, as summary.json has it", Columns: []watch.Column{{Label: "key"}, {Label: "value"}}}
	text, err := intake.ReadFile(path, mostFile)
	var all map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &all) != nil {
		return t // which who has read it before has said
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := strings.Join(strings.Fields(string(all[key])), " ")
		const most = 500
		if len(value) > most {
			value = value[:most] + "…"
		}
		if len(t.Rows) < mostTableRows {
			t.Rows = append(t.Rows, []string{key, strings.Trim(value, `"`)})
		}
	}
	return t
}
