package scenes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/calibration/sounder"
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
)

// Folder shows a folder: that of a run, a calibration, curves, a sweep or a report, or one
// that holds such; or a recording. It fails with a sentence where it is none of these.
// Folders that other processes write are looked at again while somebody looks.
func Folder(b *watch.Board, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return intake.PathError(err)
	}
	if !info.IsDir() {
		return recordingFile(b, path)
	}
	if show := shower(path); show != nil {
		return show(b, path)
	}
	dirs, err := foldersIn(path)
	if err != nil {
		return intake.PathError(err)
	}
	if len(dirs) == 0 {
		return intake.UserError(fmt.Errorf("%s is the folder of no run, calibration, curves, sweep or report, and holds none: it has none of %s, %s, %s, a sweep's %s and a report's plots", path, runfolder.MetricsName, experiment.SoundingsName, curves.JSONName, stateName))
	}
	for _, dir := range dirs[max(0, len(dirs)-mostFolders):] { // the newest, as folders are named
		if err := shower(dir)(b, dir); err != nil { // one that is damaged hides no other
			s := b.Add(watch.KindRun, filepath.Base(dir))
			s.SetStatus(watch.Status{State: watch.StateFailed, Text: err.Error(), SecondsLeft: -1})
		}
	}
	return nil
}

// foldersIn returns the folders in one that can be shown, and those in its folders, as of
// several seeds.
func foldersIn(path string) (dirs []string, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		dir := filepath.Join(path, e.Name())
		if shower(dir) != nil {
			dirs = append(dirs, dir)
			continue
		}
		below, err := os.ReadDir(dir)
		if err != nil {
			continue // a file, or somebody else's
		}
		for _, d := range below {
			if deep := filepath.Join(dir, d.Name()); shower(deep) != nil {
				dirs = append(dirs, deep)
			}
		}
	}
	return dirs, nil
}

// there reports whether a folder has a file of a name: a pipe is none, which would wait.
func there(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

func hasFolder(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.IsDir()
}

// stateName is the file that a sweep's folder is known by.
const stateName = "state.json"

// shower returns what shows a folder; nil of one that this program has not written.
func shower(dir string) func(b *watch.Board, dir string) error {
	switch {
	case there(dir, runfolder.MetricsName):
		return runFolder
	case there(dir, experiment.SoundingsName):
		return calibrationFolder
	case there(dir, curves.JSONName):
		return curvesFolder
	case there(dir, stateName):
		return sweepFolder
	case hasFolder(dir, "plots") && (hasFolder(dir, "cache") || there(dir, "report.html")):
		return reportFolder
	}
	return nil
}

// showConfig shows the folder's config.toml, if it can be read, and returns it.
func showConfig(s *watch.Scene, dir string) (config.Config, bool) {
	if !there(dir, runfolder.ConfigName) {
		return config.Config{}, false
	}
	path := filepath.Join(dir, runfolder.ConfigName)
	text, err := intake.ReadFile(path, mostFile)
	if err != nil {
		return config.Config{}, false
	}
	s.SetConfig(string(text))
	c, err := config.LoadUnpermitted(path, nil)
	return c, err == nil
}

// stateOf is the state of work in a folder that is at its end or not.
func stateOf(dir string, over bool) watch.State {
	switch {
	case runfolder.Held(dir):
		return watch.StateRunning
	case over:
		return watch.StateEnded
	}
	return watch.StateStopped
}

// calibrationFolder shows a calibration's folder, and blocks as they come.
func calibrationFolder(b *watch.Board, dir string) error {
	path := filepath.Join(dir, runfolder.ConfigName)
	c, err := config.LoadUnpermitted(path, nil)
	if err != nil {
		return intake.UserError(err)
	}
	f := &calibrating{dir: dir, cfg: c, scene: b.Add(watch.KindCalibration, filepath.Base(dir)+" – "+c.CalibrationHeading())}
	showConfig(f.scene, dir)
	if err := f.look(); err != nil {
		b.Remove(f.scene)
		return err
	}
	f.scene.SetRefresh(func() {
		if err := f.look(); err != nil {
			f.scene.SetStatus(watch.Status{State: watch.StateFailed, Text: err.Error(), SecondsLeft: -1})
		}
	})
	return showRecordings(f.scene, dir, c)
}

// calibrating is the folder of a calibration that another process may be at.
type calibrating struct {
	scene *watch.Scene
	dir   string
	cfg   config.Config

	mu     sync.Mutex
	size   int64     // of the soundings when they were read
	rested time.Time // when they may be read again
	blocks int
	heard  []heard
	told   bool // the result
}

// look looks at the folder again.
func (f *calibrating) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told {
		return nil
	}
	if err := f.read(); err != nil {
		return err
	}
	done, of := f.blocks, f.cfg.Calibration.Blocks
	status := watch.Status{State: stateOf(f.dir, there(f.dir, runfolder.CalibrationName)), Unit: "block", Done: done, Of: of, Share: share(done, of), SecondsLeft: -1}
	tables := withRows(heardTable(f.heard))
	if status.State != watch.StateEnded {
		f.scene.SetStatus(status)
		f.scene.SetTables(tables)
		f.scene.Touch() // another process writes without a word
		return nil
	}
	file, err := calibration.Read(filepath.Join(f.dir, runfolder.CalibrationName))
	if err != nil {
		return intake.UserError(err)
	}
	f.told = true
	for _, v := range file.Violations {
		f.scene.EventAt(file.Created, watch.EventWarning, v)
	}
	f.scene.SetStatus(status)
	f.scene.SetTables(append(campaignTables(campaign.FileTables(file), "As calibration.toml has them."), tables...))
	f.scene.SetPlots(svgPlots(f.dir, watch.ViewBench))
	return nil
}

// read reads the soundings where there are more, which takes a small part of a core.
func (f *calibrating) read() error {
	path := filepath.Join(f.dir, experiment.SoundingsName)
	info, err := os.Stat(path)
	if err != nil {
		return intake.PathError(err)
	}
	if info.Size() == f.size || time.Now().Before(f.rested) {
		return nil
	}
	began := time.Now()
	file, err := os.Open(path)
	if err != nil {
		return intake.PathError(err)
	}
	defer file.Close()
	n := f.cfg.Devices.Count
	blocks, _, err := sounder.ReadTable(file, f.cfg.Calibration.Blocks, f.cfg.Calibration.Looks, n)
	if err != nil {
		return intake.UserError(fmt.Errorf("%s: %w", path, err))
	}
	f.blocks, f.size, f.heard = len(blocks), info.Size(), make([]heard, n)
	for _, b := range blocks {
		for k, r := range b.Records {
			f.heard[k%n].add(r)
		}
	}
	f.rested = time.Now().Add(20 * time.Since(began))
	return nil
}

// curvesFolder shows a folder of curves, and points as they come.
func curvesFolder(b *watch.Board, dir string) error {
	r, err := curves.Read(dir)
	if err != nil {
		return err
	}
	s := b.Add(watch.KindCurves, filepath.Base(dir)+" – "+r.Settings.Heading())
	showConfig(s, dir)
	points := -1
	refresh := func() {
		if now, err := curves.Read(dir); err == nil { // else it is being replaced
			r = now
		}
		of := len(r.Settings.Grid())
		status := watch.Status{State: stateOf(dir, r.Complete), Unit: "point", Done: len(r.Points), Of: of, Share: share(len(r.Points), of), SecondsLeft: -1}
		s.SetStatus(status)
		if len(r.Points) != points {
			points = len(r.Points)
			s.SetTables(withRows(pointTable(r.Points)))
			s.SetPlots(curvePlots(r.Settings, r.Points))
		}
		if !r.Complete {
			s.Touch() // another process writes without a word
		}
	}
	refresh()
	s.SetRefresh(oneAtATime(refresh))
	return nil
}

// oneAtATime returns f for several viewers.
func oneAtATime(f func()) func() {
	var mu sync.Mutex
	return func() {
		mu.Lock()
		defer mu.Unlock()
		f()
	}
}

// sweepFolder shows a sweep's folder: where it stands, its runs, and its report.
func sweepFolder(b *watch.Board, dir string) error {
	state, err := sweeps.Look(dir)
	if err != nil {
		return err
	}
	f := &sweeping{dir: dir, scene: b.Add(watch.KindSweep, filepath.Base(dir)+" – "+state.Name), unusable: map[string]bool{}}
	f.look()
	f.scene.SetRefresh(oneAtATime(f.look))
	return nil
}

// sweeping is the folder of a sweep that another process may be at.
type sweeping struct {
	scene    *watch.Scene
	dir      string
	unusable map[string]bool // runs whose summaries were read
}

// look looks at the folder again.
func (f *sweeping) look() {
	state, err := sweeps.Look(f.dir)
	if err != nil {
		f.scene.SetStatus(watch.Status{State: watch.StateFailed, Text: err.Error(), SecondsLeft: -1})
		return
	}
	status := watch.Status{State: watch.StateStopped, Unit: "run", Done: state.Done + state.Aside, Of: state.Runs, Share: state.Share, SecondsLeft: -1}
	switch {
	case state.Active:
		status.State, status.SecondsLeft, status.Text = watch.StateRunning, state.SecondsLeft, state.Text()
		f.scene.Touch()
	case status.Done == status.Of:
		status.State = watch.StateEnded
	}
	f.scene.SetStatus(status)
	f.scene.SetFigures(sweepFigures(state))
	f.scene.SetTables(withRows(f.runs(), workersTable(state.Workers, time.Now())))
	f.scene.SetMatrix(f.matrix(state.Runs))
	f.scene.SetPlots(svgPlots(filepath.Join(f.dir, sweeps.ReportName), watch.ViewLearning))
}

// matrix puts the runs that have ended, as their folders are named, in rows of one combination
// of values and columns of one seed.
func (f *sweeping) matrix(of int) watch.Matrix {
	m, rows, columns := watch.Matrix{Rows: []watch.MatrixRow{}}, map[string]int{}, map[string]int{}
	var cells []map[int]byte
	n := 0
	for _, sub := range []string{"runs", "failed"} {
		entries, err := os.ReadDir(filepath.Join(f.dir, sub))
		if err != nil {
			continue // there are none
		}
		for _, e := range entries[:min(len(entries), mostCells)] {
			label, column := runName(e.Name())
			k, ok := rows[label]
			if !ok && len(rows) == mostGridRows {
				continue
			} else if !ok {
				k = len(cells)
				rows[label], cells, m.Rows = k, append(cells, map[int]byte{}), append(m.Rows, watch.MatrixRow{Label: clipped(label)})
			}
			at, ok := columns[column]
			if !ok && len(columns) == mostGridColumns {
				continue
			} else if !ok {
				at = len(columns)
				columns[column], m.Columns = at, append(m.Columns, column)
			}
			cells[k][at] = f.letter(sub, e.Name())
			n++
		}
	}
	for k := range cells {
		states := make([]byte, len(m.Columns))
		for i := range states {
			if states[i] = cells[k][i]; states[i] == 0 {
				states[i] = watch.MatrixNone
			}
		}
		m.Rows[k].States = string(states)
	}
	if n < of {
		m.Note = fmt.Sprintf("Of %d runs these %d have ended and are shown.", of, n)
	}
	return m
}

// runName takes the name of a run's folder apart: what its values and its seed are, before what
// it is computed from.
func runName(name string) (values, seed string) {
	if k := strings.LastIndexByte(name, '-'); k > 0 {
		name = name[:k]
	}
	if k := strings.LastIndex(name, "seed="); k >= 0 {
		return strings.TrimSuffix(name[:k], ","), "seed " + name[k+len("seed="):]
	}
	return name, "run"
}

// letter is how a run has ended.
func (f *sweeping) letter(sub, name string) byte {
	if sub == "failed" {
		return watch.MatrixAside
	}
	unusable, ok := f.unusable[name]
	if dir := filepath.Join(f.dir, sub, name); !ok && there(dir, runfolder.SummaryName) {
		sum, err := runfolder.ReadSummary(filepath.Join(dir, runfolder.SummaryName))
		unusable = err != nil || sum.Unusable != ""
		f.unusable[name] = unusable
	}
	if unusable {
		return watch.MatrixUnusable
	}
	return watch.MatrixDone
}

// runs has the report's table of runs.
func (f *sweeping) runs() watch.Table {
	t := watch.Table{Name: "runs", View: watch.ViewLearning, Title: "Runs", Note: "As runs.csv of the report has them."}
	dir := filepath.Join(f.dir, sweeps.ReportName)
	if !there(dir, sweepreport.RunsName) {
		return t
	}
	text, err := intake.ReadFile(filepath.Join(dir, sweepreport.RunsName), mostFile)
	if err != nil {
		t.Note = err.Error()
		return t
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		if len(t.Columns) == 0 {
			for _, c := range cells[:min(len(cells), mostColumns)] {
				t.Columns = append(t.Columns, watch.Column{Label: c})
			}
		} else if n++; len(cells) == len(t.Columns) && len(t.Rows) < mostTableRows {
			t.Rows = append(t.Rows, cells)
		}
	}
	if n > len(t.Rows) {
		t.Note += fmt.Sprintf(" The first %d of %d are shown.", len(t.Rows), n)
	}
	return t
}

// mostColumns bounds the columns of a file that is shown.
const mostColumns = 100

// reportFolder shows the paper's report.
func reportFolder(b *watch.Board, dir string) error {
	s := b.Add(watch.KindReport, filepath.Base(dir)+" – the paper's report")
	refresh := func() {
		status := watch.Status{State: watch.StateStopped, Text: "the report is not whole: the same command goes on", SecondsLeft: -1}
		switch {
		case runfolder.Held(filepath.Join(dir, "queue")):
			status.State, status.Text = watch.StateRunning, ""
			s.Touch()
		case there(dir, "report.html"):
			status.State, status.Text, status.Share = watch.StateEnded, "", 1
		}
		s.SetStatus(status)
		kept := 0
		entries, err := os.ReadDir(filepath.Join(dir, "cache"))
		for _, e := range entries {
			if err == nil && strings.HasSuffix(e.Name(), ".json") {
				kept++
			}
		}
		s.SetFigures([]watch.Figure{{Key: "results", View: watch.ViewLearning, Label: "results of runs", Value: strconv.Itoa(kept), Note: "that are kept"}})
		s.SetPlots(svgPlots(filepath.Join(dir, "plots"), watch.ViewLearning))
	}
	refresh()
	s.SetRefresh(oneAtATime(refresh))
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
