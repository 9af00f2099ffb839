package scenes

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/experiment/sweepreport"
	"ringwave/learner/hosts/jobs"
	"ringwave/learner/hosts/sweeps"
	"ringwave/learner/watch"
)

// Sweep is the scene of a sweep.
type Sweep struct {
	*Work
	plan   sweep.Plan
	grid   grid
	states func() []sweeps.RunState

	mu    sync.Mutex
	state sweeps.State
	told  []byte // the letters of the runs when events were told last

	reading sync.Mutex // held by who refreshes; what follows is of it
	live    *sweepreport.Live
	results []result // of the runs that were read
	order   []int    // of them, the newest last
}

// result is what came of a run.
type result struct {
	read     bool
	unusable bool
	accuracy float64
	loss     float64
	rounds   int
}

// NewSweep begins the scene of a sweep, whose runs' states may be asked for at any time.
func NewSweep(o WorkOptions, p sweep.Plan, states func() []sweeps.RunState) *Sweep {
	s := &Sweep{Work: newWork(o, watch.KindSweep, p.Name, "run"), plan: p, grid: gridOf(p), states: states, live: sweepreport.NewLive(p), results: make([]result, len(p.Points))}
	s.told = lettersOf(states())
	if len(p.Points) > 0 {
		if text, err := p.Points[0].Config.Encode(); err == nil { // else its run says so
			s.scene.SetConfig("# of the first run\n" + string(text))
		}
	}
	s.scene.SetRefresh(s.refresh)
	return s
}

// lettersOf returns the letters of runs for a matrix.
func lettersOf(list []sweeps.RunState) []byte {
	letters := make([]byte, len(list))
	for i, r := range list {
		letters[i] = letter(r.Done, r.Running, r.Aside)
	}
	return letters
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

// Tell takes in where the sweep stands.
func (s *Sweep) Tell(st sweeps.State) {
	s.mu.Lock()
	changed := st.Done != s.state.Done || st.Aside != s.state.Aside
	s.state = st
	s.mu.Unlock()
	if changed {
		s.tellEnded(s.states())
	}
	s.Doing(st.Text())
	s.Progress("run", st.Done+st.Aside, st.Runs, st.Share)
}

// tellEnded tells of the runs that have ended since.
func (s *Sweep) tellEnded(list []sweeps.RunState) {
	letters := lettersOf(list)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range list {
		switch {
		case i < len(s.told) && s.told[i] == letters[i]:
		case r.Aside:
			s.scene.Event(watch.EventWarning, "set aside: "+r.Title+": "+r.Why)
		case r.Done:
			s.Say("done: " + r.Title)
		}
	}
	s.told = letters
}

// readFor is how long results are read at a time, so that viewers are not kept waiting.
const readFor = 100 * time.Millisecond

// refresh sets what somebody looks at.
func (s *Sweep) refresh() {
	if !s.reading.TryLock() {
		s.scene.Touch() // another viewer's refresh is at it
		return
	}
	defer s.reading.Unlock()
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	list := s.states()
	s.read(list)
	letters := lettersOf(list)
	s.scene.SetMatrix(s.grid.matrix(func(run int) byte {
		if letters[run] == watch.MatrixDone && s.results[run].unusable {
			return watch.MatrixUnusable
		}
		return letters[run]
	}))
	s.scene.SetFigures(sweepFigures(state))
	s.scene.SetTables(withRows(s.resultsTable(list), runningTable(list), workersTable(state.Workers, time.Now()), asideTable(list)))
	var plots []watch.Plot
	for _, p := range s.live.Plots() {
		plots = append(plots, watch.Plot{Name: p.Name, View: watch.ViewLearning, Title: titleOf(p.Name), Caption: p.Caption, Draw: p.WriteSVG})
	}
	s.scene.SetPlots(plots)
}

// read takes in the results of some runs that have ended.
func (s *Sweep) read(list []sweeps.RunState) {
	began := time.Now()
	for i, r := range list {
		if !r.Done || i >= len(s.results) || s.results[i].read {
			continue
		}
		if time.Since(began) > readFor {
			s.scene.Touch() // the others later
			return
		}
		if err := s.readRun(i, r.Dir); err != nil {
			s.scene.Event(watch.EventWarning, "the result of "+r.Title+" cannot be read: "+err.Error())
		}
	}
}

// readRun takes in the result of a run, once.
func (s *Sweep) readRun(i int, dir string) error {
	s.results[i].read = true
	sum, err := runfolder.ReadSummary(filepath.Join(dir, runfolder.SummaryName))
	if err != nil {
		return err
	}
	s.results[i] = result{true, sum.Unusable != "", float64(sum.TestAccuracy), float64(sum.TrainLoss), sum.RoundsCompleted}
	s.order = append(s.order, i)
	if !s.live.Wants(i) {
		return nil
	}
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), s.plan.Points[i].Config.Optimizer.Rounds)
	if err == nil {
		s.live.Add(i, rows)
	}
	return err
}

func sweepFigures(state sweeps.State) []watch.Figure {
	return []watch.Figure{
		{Key: "runs_done", View: watch.ViewMatrix, Label: "runs done", Value: strconv.Itoa(state.Done), Note: fmt.Sprintf("of %d", state.Runs)},
		{Key: "runs_running", View: watch.ViewMatrix, Label: "running", Value: strconv.Itoa(state.Running)},
		{Key: "runs_aside", View: watch.ViewMatrix, Label: "set aside", Value: strconv.Itoa(state.Aside), Note: "they failed again and again", Alarm: state.Aside > 0},
		{Key: "workers", View: watch.ViewMatrix, Label: "workers", Value: strconv.Itoa(len(state.Workers))},
	}
}

// withRows leaves out tables without rows.
func withRows(tables ...watch.Table) (list []watch.Table) {
	for _, t := range tables {
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	return list
}

// resultsTable has the runs that have ended, the newest first.
func (s *Sweep) resultsTable(list []sweeps.RunState) watch.Table {
	t := watch.Table{Name: "results", View: watch.ViewLearning, Title: "Runs that have ended, as their summary.json has them", Columns: append([]watch.Column{{Label: "run"}, {Label: "usable"}}, numeric("rounds", "test_accuracy", "train_loss")...)}
	for k := len(s.order) - 1; k >= max(0, len(s.order)-mostTableRows); k-- {
		i := s.order[k]
		r := s.results[i]
		t.Rows = append(t.Rows, []string{list[i].Title, map[bool]string{true: "no", false: "yes"}[r.unusable], strconv.Itoa(r.rounds), number(r.accuracy), number(r.loss)})
	}
	t.Note = only("", len(t.Rows), len(s.order))
	return t
}

// runningTable has the runs that workers have.
func runningTable(list []sweeps.RunState) watch.Table {
	t := watch.Table{Name: "running", View: watch.ViewMatrix, Title: "Runs on their way", Columns: []watch.Column{{Label: "run"}, {Label: "worker"}, {Label: "done", Unit: "%", Numeric: true}}}
	n := 0
	for _, r := range list {
		if !r.Running {
			continue
		}
		if n++; n <= mostTableRows {
			t.Rows = append(t.Rows, []string{r.Title, r.Worker, strconv.FormatFloat(100*r.Share, 'f', 1, 64)})
		}
	}
	if n > mostTableRows {
		t.Note = fmt.Sprintf("The first %d of %d are shown.", mostTableRows, n)
	}
	return t
}

// workersTable has the workers that were heard lately.
func workersTable(list []jobs.WorkerStatus, now time.Time) watch.Table {
	t := watch.Table{Name: "workers", View: watch.ViewBench, Title: "Workers", Note: "Done is what a worker has done in this sitting.", Columns: []watch.Column{{Label: "worker"}, {Label: "at a time", Numeric: true}, {Label: "has", Numeric: true}, {Label: "done", Numeric: true}, {Label: "last heard", Unit: "s ago", Numeric: true}}}
	for _, w := range list[:min(len(list), mostTableRows)] {
		t.Rows = append(t.Rows, []string{w.Name, strconv.Itoa(w.Slots), strconv.Itoa(w.Jobs), strconv.Itoa(w.Done), strconv.FormatFloat(max(0, now.Sub(w.Heard).Seconds()), 'f', 0, 64)})
	}
	return t
}

// asideTable has the runs that were set aside, and why.
func asideTable(list []sweeps.RunState) watch.Table {
	t := watch.Table{Name: "aside", View: watch.ViewMatrix, Title: "Runs that were set aside", Note: "--retry takes them up again.", Columns: []watch.Column{{Label: "run"}, {Label: "why"}}}
	n := 0
	for _, r := range list {
		if !r.Aside {
			continue
		}
		if n++; n <= mostTableRows {
			t.Rows = append(t.Rows, []string{r.Title, r.Why})
		}
	}
	if n > mostTableRows {
		t.Note += fmt.Sprintf(" The first %d of %d are shown.", mostTableRows, n)
	}
	return t
}
