package scenes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringwave/calibration"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/curves"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweepreport"
	"ringwave/learner/experiment/uplink"
	"ringwave/learner/hosts/sweeps"
	"ringwave/learner/watch"
	"ringwave/radio/intake"
)

const (
	// mostFolders is how many folders below one are shown.
	mostFolders = 100
	// mostFile bounds a file that is shown, in bytes.
	mostFile = 8 << 20
	// mostPlots is how many plots of a folder are shown.
	mostPlots = 60
)

// Folder shows a folder: that of a run, a calibration, curves, a sweep or a report, or one
// that holds such; or a recording. It fails with a sentence where it is none of these.
func Folder(b *watch.Board, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return intake.PathError(err)
	}
	if !info.IsDir() {
		return recordingFile(b, path)
	}
	shown, err := showFolder(b, path)
	if err != nil || shown {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return intake.PathError(err)
	}
	n := 0
	for _, e := range entries {
		if !e.IsDir() || n == mostFolders {
			continue
		}
		shown, err := showFolder(b, filepath.Join(path, e.Name()))
		if err != nil {
			return err
		}
		if shown {
			n++
		}
	}
	if n == 0 {
		return intake.UserError(fmt.Errorf("%s: it is the folder of no run, calibration, curves, sweep or report, and holds none", path))
	}
	return nil
}

func there(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// showFolder shows a folder if it is one that this program writes.
func showFolder(b *watch.Board, dir string) (bool, error) {
	switch {
	case there(dir, runfolder.MetricsName):
		return true, runFolder(b, dir)
	case there(dir, experiment.SoundingsName):
		return true, calibrationFolder(b, dir)
	case there(dir, "curves.json"):
		return true, curvesFolder(b, dir)
	case there(dir, "state.json"):
		return true, sweepFolder(b, dir)
	case there(dir, "report.html") && there(dir, "plots"):
		return true, reportFolder(b, dir)
	}
	return false, nil
}

// still begins a scene of what is not being worked at.
func still(b *watch.Board, kind watch.Kind, title string) *watch.Scene {
	s := b.Add(kind, title)
	s.SetStatus(watch.Status{State: watch.StateEnded, Share: 1, SecondsLeft: -1})
	return s
}

// showConfig shows the folder's config.toml, if it can be read, and returns it.
func showConfig(s *watch.Scene, dir string) (config.Config, bool) {
	path := filepath.Join(dir, runfolder.ConfigName)
	text, err := intake.ReadFile(path, mostFile)
	if err != nil {
		return config.Config{}, false
	}
	s.SetConfig(string(text))
	c, err := config.LoadUnpermitted(path, nil)
	return c, err == nil
}

// followed is a run's folder that another process may be writing.
type followed struct {
	scene *watch.Scene
	dir   string
	cfg   config.Config
	known bool // cfg is

	mu      sync.Mutex
	size    int64 // of metrics.csv when it was read
	logged  int64 // bytes of the log that were told
	history history
	read    int
	skipped int
	rows    int
	last    runfolder.Row
	hosts   bool
	ended   bool
	acc     evaluated
}

// runFolder shows a run's folder, and goes on doing so while it grows.
func runFolder(b *watch.Board, dir string) error {
	f := &followed{dir: dir}
	c, err := config.LoadUnpermitted(filepath.Join(dir, runfolder.ConfigName), nil)
	if err != nil {
		return intake.UserError(err)
	}
	f.cfg, f.known = c, true
	f.scene = b.Add(watch.KindRun, filepath.Base(dir)+" – "+c.Heading())
	showConfig(f.scene, dir)
	if err := f.look(); err != nil {
		return err
	}
	f.scene.SetRefresh(f.refresh)
	return showRecordings(f.scene, dir, c)
}

// refresh looks at the folder again.
func (f *followed) refresh() {
	if err := f.look(); err != nil {
		f.scene.SetStatus(watch.Status{State: watch.StateFailed, Text: err.Error(), SecondsLeft: -1})
	}
	f.mu.Lock()
	ended := f.ended
	f.mu.Unlock()
	if !ended {
		f.scene.Touch() // another process writes without a word
	}
}

// look reads what is new.
func (f *followed) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := filepath.Join(f.dir, runfolder.MetricsName)
	info, err := os.Stat(path)
	if err != nil {
		return intake.PathError(err)
	}
	if info.Size() != f.size {
		rows, err := wholeRows(path, f.cfg.Optimizer.Rounds)
		if err != nil {
			return intake.UserError(err)
		}
		f.size = info.Size()
		f.take(rows)
	}
	f.tellLog()
	f.show()
	return nil
}

// wholeRows reads metrics.csv but for a last line that is being written.
func wholeRows(path string, rounds int) ([]runfolder.Row, error) {
	var err error
	for range 3 {
		var rows []runfolder.Row
		if rows, err = runfolder.ReadMetrics(path, rounds); err == nil {
			return rows, nil
		}
	}
	return nil, err
}

// take takes in all rows anew: a resumed run may have taken some back.
func (f *followed) take(rows []runfolder.Row) {
	f.history, f.read, f.skipped, f.rows = history{}, 0, 0, len(rows)
	for _, row := range rows {
		f.history.add(row, nil)
		if row.Skipped {
			f.skipped++
		} else {
			f.read++
		}
		if row.TestAccuracy == row.TestAccuracy { // not NaN
			f.acc = evaluated{number(row.TestAccuracy), row.Round}
		}
		f.last, f.hosts = row, row.Present > 0
	}
}

// show sets the parts.
func (f *followed) show() {
	status := watch.Status{State: watch.StateRunning, Unit: "round", Done: f.last.Round, Of: f.cfg.Optimizer.Rounds, Share: share(f.last.Round, f.cfg.Optimizer.Rounds), SecondsLeft: -1}
	r := Run{history: f.history, counts: counts{read: f.read, skipped: f.skipped}, evaluated: f.acc, config: f.cfg, title: f.cfg.Heading()}
	figures := append(r.learningFigures(), r.airFigures()...)
	summary, err := runfolder.ReadSummary(filepath.Join(f.dir, runfolder.SummaryName))
	plots, _ := folderPlots(f.dir, watch.ViewLearning) // those that are there
	switch {
	case err == nil:
		f.ended = true
		status.State, status.Text = watch.StateEnded, summary.Unusable
		figures = append(figures,
			watch.Figure{Key: "final_accuracy", View: watch.ViewLearning, Label: "test accuracy at the end", Value: number(float64(summary.TestAccuracy))},
			watch.Figure{Key: "final_loss", View: watch.ViewLearning, Label: "training loss at the end", Value: number(float64(summary.TrainLoss))},
			watch.Figure{Key: "seconds", View: watch.ViewLearning, Label: "time it took", Value: number(float64(summary.Seconds)), Unit: "s"})
	case time.Since(f.changed()) > time.Minute:
		status.State, status.Text = watch.StateStopped, "nothing was written for a minute"
	}
	if len(plots) == 0 {
		plots = f.history.plots(f.cfg.Heading(), f.cfg.OverWaveform())
	}
	f.scene.SetStatus(status)
	f.scene.SetFigures(figures)
	f.scene.SetTables([]watch.Table{roundsTable(f.history.last, f.hosts)})
	f.scene.SetPlots(plots)
}

// changed returns when metrics.csv was written last.
func (f *followed) changed() time.Time {
	info, err := os.Stat(filepath.Join(f.dir, runfolder.MetricsName))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// tellLog tells what log.jsonl has that is new.
func (f *followed) tellLog() {
	file, err := os.Open(filepath.Join(f.dir, runfolder.LogName))
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() <= f.logged {
		return
	}
	const most = 1 << 20 // of a long log the end is told
	from := max(f.logged, info.Size()-most)
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return
	}
	lines := bufio.NewReader(io.LimitReader(file, most))
	if from > f.logged {
		_, _ = lines.ReadString('\n') // it begins in the middle of a line
	}
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		from += int64(len(line))
		tellLine(f.scene, line)
	}
	f.logged = from
}

// tellLine tells a line of log.jsonl as an event.
func tellLine(s *watch.Scene, line string) {
	var all map[string]any
	if json.Unmarshal([]byte(line), &all) != nil {
		return
	}
	at, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(all["time"]))
	text, kind := fmt.Sprint(all["msg"]), watch.EventInfo
	if all["level"] != "INFO" {
		kind = watch.EventWarning
	}
	if text == "attempt void" {
		kind = watch.EventVoid
	}
	for _, key := range slices.Sorted(keysOf(all)) {
		if key != "time" && key != "msg" && key != "level" && fmt.Sprint(all[key]) != "" {
			text += fmt.Sprintf(", %s %v", key, all[key])
		}
	}
	s.EventAt(at, kind, text)
}

func keysOf(m map[string]any) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// folderPlots returns the SVG files of a folder as plots.
func folderPlots(dir string, view watch.View) ([]watch.Plot, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, intake.PathError(err)
	}
	var list []watch.Plot
	for _, e := range entries {
		name, isSVG := strings.CutSuffix(e.Name(), ".svg")
		if !isSVG || !e.Type().IsRegular() || !plain(name) || len(list) == mostPlots {
			continue
		}
		path := filepath.Join(dir, e.Name())
		title := titles[name]
		if title == "" {
			title = strings.ReplaceAll(name, "-", " ")
		}
		list = append(list, watch.Plot{Name: name, View: viewOfFile(name, view), Title: title, Draw: func(w io.Writer) error {
			text, err := intake.ReadFile(path, mostFile)
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}})
	}
	return list, nil
}

// viewOfFile returns where the plot of a file of a run's folder is shown.
func viewOfFile(name string, usual watch.View) watch.View {
	if usual != watch.ViewLearning {
		return usual
	}
	switch strings.TrimPrefix(name, "lost-") {
	case "loss", "accuracy", "decoded-noise", "decoded-noise-histogram", "message":
		return watch.ViewLearning
	case "gains":
		return watch.ViewBench
	}
	return watch.ViewAir
}

// plain reports whether a name can be one of a plot.
func plain(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}

// calibrationFolder shows a calibration's folder.
func calibrationFolder(b *watch.Board, dir string) error {
	s := still(b, watch.KindCalibration, filepath.Base(dir)+" – calibration")
	c, known := showConfig(s, dir)
	if known {
		s.SetTitle(filepath.Base(dir) + " – " + c.CalibrationHeading())
	}
	path := filepath.Join(dir, runfolder.CalibrationName)
	if there(dir, runfolder.CalibrationName) {
		f, err := calibration.Read(path)
		if err != nil {
			return intake.UserError(err)
		}
		s.SetTables([]watch.Table{calibratedTable(f)})
		for _, v := range f.Violations {
			s.EventAt(f.Created, watch.EventWarning, v)
		}
	} else {
		s.SetStatus(watch.Status{State: watch.StateStopped, Text: "the calibration has not come to its end", SecondsLeft: -1})
	}
	plots, err := folderPlots(dir, watch.ViewBench)
	if err != nil {
		return err
	}
	s.SetPlots(plots)
	if !known {
		return nil
	}
	return showRecordings(s, dir, c)
}

// calibratedTable has the links of a calibration.
func calibratedTable(f calibration.File) watch.Table {
	t := watch.Table{Name: "links", View: watch.ViewBench, Title: "Links", Columns: []watch.Column{
		{Label: "device", Numeric: true}, {Label: "mean gain μ", Numeric: true}, {Label: "second moment Ω", Numeric: true}, {Label: "deviation σ", Numeric: true}, {Label: "SNR", Unit: "dB", Numeric: true}, {Label: "delay", Unit: "samples", Numeric: true}, {Label: "carrier offset", Unit: "Hz", Numeric: true}},
		Note: "As calibration.toml has them."}
	for i, d := range f.Devices {
		t.Rows = append(t.Rows, append([]string{strconv.Itoa(i + 1)}, deviceCells(d)...))
	}
	return t
}

// curvesFolder shows a folder of curves.
func curvesFolder(b *watch.Board, dir string) error {
	text, err := intake.ReadFile(filepath.Join(dir, "curves.json"), mostFile)
	if err != nil {
		return intake.PathError(err)
	}
	var r curves.Result
	if err := json.Unmarshal(text, &r); err != nil {
		return intake.UserError(fmt.Errorf("%s: %w", filepath.Join(dir, "curves.json"), err))
	}
	s := still(b, watch.KindCurves, filepath.Base(dir)+" – success of the blind receiver")
	showConfig(s, dir)
	s.SetTables([]watch.Table{curvesTable(r.Points)})
	s.SetPlots(drawn(watch.ViewAir, curves.Pictures(r.Settings, r.Points), nil))
	return nil
}

// sweepFolder shows a sweep's folder: where it stands, and its report.
func sweepFolder(b *watch.Board, dir string) error {
	state, err := sweeps.Look(dir)
	if err != nil {
		return err
	}
	s := b.Add(watch.KindSweep, filepath.Base(dir)+" – "+state.Name)
	refresh := func() {
		state, err := sweeps.Look(dir)
		if err != nil {
			s.SetStatus(watch.Status{State: watch.StateFailed, Text: err.Error(), SecondsLeft: -1})
			return
		}
		status := watch.Status{State: watch.StateStopped, Text: state.Text(), Unit: "run", Done: state.Done + state.Aside, Of: state.Runs, Share: state.Share, SecondsLeft: -1}
		if status.Done == status.Of {
			status.State, status.Text = watch.StateEnded, ""
		}
		if state.Active {
			status.State, status.SecondsLeft = watch.StateRunning, state.SecondsLeft
			s.Touch()
		}
		s.SetStatus(status)
		s.SetTables([]watch.Table{workersTable(state.Workers), sweepRuns(dir)})
		if plots, err := folderPlots(filepath.Join(dir, sweeps.ReportName), watch.ViewMatrix); err == nil {
			s.SetPlots(plots)
		}
	}
	refresh()
	s.SetRefresh(refresh)
	return nil
}

// sweepRuns has the report's table of runs.
func sweepRuns(dir string) watch.Table {
	t := watch.Table{Name: "runs", View: watch.ViewMatrix, Title: "Runs", Note: "As runs.csv of the report has them."}
	text, err := intake.ReadFile(filepath.Join(dir, sweeps.ReportName, sweepreport.RunsName), mostFile)
	if err != nil {
		return t
	}
	for k, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		cells := strings.Split(line, ",")
		if k == 0 {
			for _, c := range cells {
				t.Columns = append(t.Columns, watch.Column{Label: c})
			}
		} else if len(cells) == len(t.Columns) && len(t.Rows) < 1000 {
			t.Rows = append(t.Rows, cells)
		}
	}
	return t
}

// reportFolder shows the paper's report.
func reportFolder(b *watch.Board, dir string) error {
	s := still(b, watch.KindReport, filepath.Base(dir)+" – the paper's report")
	plots, err := folderPlots(filepath.Join(dir, "plots"), watch.ViewMatrix)
	if err != nil {
		return err
	}
	s.SetPlots(plots)
	return nil
}

// showRecordings has the recordings of a folder be played, if there are some.
func showRecordings(s *watch.Scene, dir string, c config.Config) error {
	tracks, err := filepath.Glob(filepath.Join(dir, uplink.IQFolder, "*.sigmf-meta"))
	if err != nil || len(tracks) == 0 {
		return nil
	}
	slices.Sort(tracks)
	return playAll(s, dir, tracks, c)
}

// deviceCells has a device's link for the table.
func deviceCells(d calibration.Device) []string {
	var cells []string
	for _, v := range []calibration.Value{d.Mu, d.Omega, d.Sigma, d.SNRdB, d.DelaySamples, d.OffsetHz} {
		text := short(v.Value)
		if text != "" && v.Low == v.Low { // not NaN
			text += fmt.Sprintf(" (%s to %s)", short(v.Low), short(v.High))
		}
		cells = append(cells, text)
	}
	return cells
}
