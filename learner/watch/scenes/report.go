package scenes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringwave/learner/hosts/jobs"
	"ringwave/learner/paper"
	"ringwave/learner/watch"
)

// Report is the scene of the paper's report.
type Report struct {
	*Work
	dir  string
	jobs func() jobs.Status

	mu       sync.Mutex
	chapter  string
	done, of int // chapters
	rows     []reportRow
	seeds    []int64
}

// reportRow is the runs of one configuration, with their seeds.
type reportRow struct {
	chapter, what string
	states        map[int64]byte
	rounds        map[int64][2]int // of those on their way: done, and all
}

// NewReport begins the scene of a report that is made in a folder, by jobs that may be asked
// for at any time.
func NewReport(o WorkOptions, dir string, jobs func() jobs.Status) *Report {
	r := &Report{Work: newWork(o, watch.KindReport, "The paper's report: "+filepath.Base(dir), "chapter"), dir: dir, jobs: jobs}
	r.scene.SetRefresh(r.refresh)
	return r
}

// Observer returns what hears of the report for the scene.
func (r *Report) Observer() paper.Observer {
	return paper.Observer{
		Chapter: func(name string, k, of int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.chapter, r.done, r.of = name, k-1, of
			r.far("chapter "+name, 0)
		},
		Planned: func(runs []paper.Run) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, run := range runs {
				r.set(run, watch.MatrixWaiting)
			}
		},
		Running: func(run paper.Run, round, rounds int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if round == 0 { // it was asked for, and waits for a worker
				r.set(run, watch.MatrixWaiting)
				return
			}
			if row := r.set(run, watch.MatrixRunning); row != nil {
				row.rounds[run.Seed] = [2]int{round, rounds}
			}
		},
		Ended: func(run paper.Run) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if row := r.set(run, watch.MatrixDone); row != nil {
				delete(row.rounds, run.Seed)
			}
			r.Say(fmt.Sprintf("done: %s, %s, seed %d", run.Chapter, run.What, run.Seed))
		},
		Progress: func(chapter string, ended, runs int, share, left float64) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.far(fmt.Sprintf("chapter %s: %d of %d runs, about %v left in it", chapter, ended, runs, time.Duration(left)*time.Second), share)
		},
	}
}

// far says how far the report is: chapters that are done, and of the one at hand a share. The
// caller holds mu.
func (r *Report) far(text string, within float64) {
	r.Doing(text)
	r.Progress("chapter", r.done, r.of, (float64(r.done)+within)/float64(max(1, r.of)))
}

// set sets the letter of a run, and returns its row; nil beyond what there is room for. The
// caller holds mu.
func (r *Report) set(run paper.Run, letter byte) *reportRow {
	k := slices.IndexFunc(r.rows, func(row reportRow) bool { return row.chapter == run.Chapter && row.what == run.What })
	if k < 0 && len(r.rows) == mostGridRows {
		return nil
	}
	if !slices.Contains(r.seeds, run.Seed) {
		if len(r.seeds) == mostGridColumns {
			return nil
		}
		r.seeds = append(r.seeds, run.Seed)
		slices.Sort(r.seeds)
	}
	if k < 0 {
		k = len(r.rows)
		r.rows = append(r.rows, reportRow{run.Chapter, run.What, map[int64]byte{}, map[int64][2]int{}})
	}
	r.rows[k].states[run.Seed] = letter
	return &r.rows[k]
}

// Write takes in lines of progress: io.Writer. Packages write whole lines.
func (r *Report) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, " left") { // which the status says
			r.Say(line)
		}
	}
	return len(text), nil
}

// refresh sets what somebody looks at.
func (r *Report) refresh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := watch.Matrix{Rows: []watch.MatrixRow{}}
	for _, s := range r.seeds {
		m.Columns = append(m.Columns, fmt.Sprintf("seed %d", s))
	}
	running := watch.Table{Name: "running", View: watch.ViewMatrix, Title: "Runs on their way", Columns: append([]watch.Column{{Label: "chapter"}, {Label: "run"}}, numeric("seed", "round", "rounds")...)}
	for _, row := range r.rows {
		states := make([]byte, len(r.seeds))
		for i, s := range r.seeds {
			if states[i] = row.states[s]; states[i] == 0 {
				states[i] = watch.MatrixNone
			}
			if at, ok := row.rounds[s]; ok && len(running.Rows) < mostTableRows {
				running.Rows = append(running.Rows, []string{row.chapter, row.what, strconv.FormatInt(s, 10), strconv.Itoa(at[0]), strconv.Itoa(at[1])})
			}
		}
		m.Rows = append(m.Rows, watch.MatrixRow{Label: clipped(row.chapter + ": " + row.what), States: string(states)})
	}
	r.scene.SetMatrix(m)
	r.scene.SetTables(withRows(running, workersTable(r.jobs().Workers, time.Now())))
	r.scene.SetPlots(svgPlots(filepath.Join(r.dir, "plots"), watch.ViewLearning))
}
