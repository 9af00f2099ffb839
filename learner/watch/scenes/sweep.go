package scenes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/hosts/jobs"
	"ringwave/learner/hosts/sweeps"
	"ringwave/learner/watch"
)

const (
	// mostRuns is how many runs curves are drawn of: the last that have ended.
	mostRuns = 60
	// mostCells is how many runs the matrix has.
	mostCells = 20_000
)

// Sweep is the scene of a sweep.
type Sweep struct {
	*Work
	plan   sweep.Plan
	states func() []sweeps.RunState

	mu      sync.Mutex
	workers []jobs.WorkerStatus
	seen    map[int]bool // runs whose curves were read
	ended   []chart.NamedRun
}

// NewSweep begins the scene of a sweep, whose runs' states may be asked for at any time.
func NewSweep(o WorkOptions, p sweep.Plan, states func() []sweeps.RunState) *Sweep {
	s := &Sweep{Work: newWork(o, watch.KindSweep, p.Name, "run"), plan: p, states: states, seen: map[int]bool{}}
	if len(p.Points) > 0 {
		if text, err := p.Points[0].Config.Encode(); err == nil { // else its run says so
			s.scene.SetConfig("# of the first run\n" + string(text))
		}
	}
	s.scene.SetRefresh(s.refresh)
	return s
}

// Tell takes in where the sweep stands.
func (s *Sweep) Tell(st sweeps.State) {
	s.mu.Lock()
	s.workers = st.Workers
	s.mu.Unlock()
	s.Progress("run", st.Done+st.Aside, st.Runs, st.Share)
}

// refresh looks where each run is.
func (s *Sweep) refresh() {
	states := s.states()
	s.scene.SetMatrix(matrixOf(s.plan.Keys, states))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scene.SetTables([]watch.Table{workersTable(s.workers), runningTable(s.plan.Keys, states)})
	s.read(states)
	if len(s.ended) == 0 {
		return
	}
	pictures, captions := chart.ComparePictures(s.plan.Name, s.ended)
	for k := range captions {
		captions[k] += fmt.Sprintf(" Of the %d runs that have ended last.", len(s.ended))
	}
	s.scene.SetPlots(drawn(watch.ViewMatrix, pictures, captions))
}

// read reads the rounds of runs that have ended since the last time, a few at a time.
func (s *Sweep) read(states []sweeps.RunState) {
	const most = 20
	n := 0
	for i, st := range states {
		if !st.Done || s.seen[i] {
			continue
		}
		s.seen[i] = true
		rows, err := runfolder.ReadMetrics(filepath.Join(st.Dir, runfolder.MetricsName), s.plan.Points[i].Config.Optimizer.Rounds)
		if err != nil { // the report says so
			continue
		}
		label := strings.Join(st.Values, ", ")
		if len(s.ended) == mostRuns {
			s.ended = slices.Delete(s.ended, 0, 1)
		}
		s.ended = append(s.ended, chart.NamedRun{Label: label, Rows: rows})
		if n++; n == most {
			s.scene.Touch() // and go on the next time
			return
		}
	}
}

// letter is how a run stands in a matrix.
func letter(done, running, aside bool) byte {
	switch {
	case aside:
		return watch.MatrixAside
	case done:
		return watch.MatrixDone
	case running:
		return watch.MatrixRunning
	}
	return watch.MatrixWaiting
}

// matrixOf puts runs into rows of one combination of values and columns of one seed.
func matrixOf(keys []string, states []sweeps.RunState) watch.Matrix {
	var m watch.Matrix
	columns, rows := map[int64]int{}, map[string]int{}
	var cells [][]byte
	if len(states) > mostCells {
		m.Note = fmt.Sprintf("The first %d of %d runs are shown.", mostCells, len(states))
		states = states[:mostCells]
	}
	for _, st := range states {
		if _, ok := columns[st.Seed]; !ok {
			columns[st.Seed] = len(m.Columns)
			m.Columns = append(m.Columns, "seed "+strconv.FormatInt(st.Seed, 10))
		}
	}
	for _, st := range states {
		label := valuesText(keys, st.Values)
		r, ok := rows[label]
		if !ok {
			r = len(cells)
			rows[label] = r
			m.Rows = append(m.Rows, watch.MatrixRow{Label: label})
			cells = append(cells, []byte(strings.Repeat(string(watch.MatrixNone), len(m.Columns))))
		}
		cells[r][columns[st.Seed]] = letter(st.Done, st.Running, st.Aside)
	}
	for r := range cells {
		m.Rows[r].States = string(cells[r])
	}
	return m
}

// valuesText names a combination of values.
func valuesText(keys, values []string) string {
	var parts []string
	for i, v := range values {
		if i < len(keys) {
			parts = append(parts, keys[i][strings.IndexByte(keys[i], '.')+1:]+" = "+v)
		}
	}
	if len(parts) == 0 {
		return "all runs"
	}
	return strings.Join(parts, ", ")
}

// runningTable has the runs that are being computed.
func runningTable(keys []string, states []sweeps.RunState) watch.Table {
	t := watch.Table{Name: "running", View: watch.ViewMatrix, Title: "Runs that are being computed", Columns: []watch.Column{{Label: "run"}, {Label: "seed", Numeric: true}, {Label: "done", Unit: "%", Numeric: true}}}
	for _, st := range states {
		if st.Running && len(t.Rows) < 100 {
			t.Rows = append(t.Rows, []string{valuesText(keys, st.Values), strconv.FormatInt(st.Seed, 10), strconv.FormatFloat(100*st.Share, 'f', 0, 64)})
		}
	}
	return t
}

// workersTable says who computes.
func workersTable(list []jobs.WorkerStatus) watch.Table {
	t := watch.Table{Name: "workers", View: watch.ViewBench, Title: "Workers", Columns: []watch.Column{{Label: "worker"}, {Label: "at a time", Numeric: true}, {Label: "computing", Numeric: true}, {Label: "done", Numeric: true}, {Label: "last heard"}}}
	for _, w := range list {
		t.Rows = append(t.Rows, []string{w.Name, strconv.Itoa(w.Slots), strconv.Itoa(w.Jobs), strconv.Itoa(w.Done), w.Heard.UTC().Format("15:04:05 UTC")})
	}
	return t
}

// Report is the scene of the paper's report: of its cells, which are jobs.
type Report struct {
	*Work
	dir  string
	jobs func() ([]jobs.JobStatus, jobs.Status)
}

// NewReport begins the scene of a report that is made in a folder, whose jobs may be asked for
// at any time.
func NewReport(o WorkOptions, dir string, list func() ([]jobs.JobStatus, jobs.Status)) *Report {
	r := &Report{Work: newWork(o, watch.KindReport, "The paper's report", "run"), dir: dir, jobs: list}
	r.scene.SetRefresh(r.refresh)
	return r
}

// Write takes in lines of progress: io.Writer.
func (r *Report) Write(text []byte) (int, error) {
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			r.Say(line)
		}
	}
	list, status := r.jobs()
	r.Progress("run", status.Ended, len(list), status.Share)
	return len(text), nil
}

func (r *Report) refresh() {
	list, status := r.jobs()
	r.scene.SetMatrix(jobsMatrix(list))
	r.scene.SetTables([]watch.Table{workersTable(status.Workers)})
	plots, err := folderPlots(filepath.Join(r.dir, "plots"), watch.ViewMatrix)
	if err == nil && len(plots) > 0 {
		r.scene.SetPlots(plots)
	}
	if status.Running > 0 { // it moves without a word
		r.scene.Touch()
	}
}

// jobsMatrix puts jobs of the same title but for its seed into a row.
func jobsMatrix(list []jobs.JobStatus) watch.Matrix {
	m := watch.Matrix{Note: "Runs that were there before, and those that wait for others, are not in it."}
	rows, columns := map[string][]jobs.JobStatus{}, 0
	var order []string
	for _, j := range list[:min(len(list), mostCells)] {
		label := j.Title
		if k := strings.LastIndex(label, ", seed "); k >= 0 {
			label = label[:k]
		}
		if rows[label] == nil {
			order = append(order, label)
		}
		rows[label] = append(rows[label], j)
		columns = max(columns, len(rows[label]))
	}
	slices.Sort(order)
	for _, label := range order {
		states := []byte(strings.Repeat(string(watch.MatrixNone), columns))
		for k, j := range rows[label] {
			states[k] = letter(!j.Waiting && !j.Running && !j.Aside, j.Running, j.Aside)
		}
		m.Rows = append(m.Rows, watch.MatrixRow{Label: label, States: string(states)})
	}
	for k := range columns {
		m.Columns = append(m.Columns, strconv.Itoa(k+1))
	}
	return m
}
