package scenes_test

import (
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/hosts/jobs"
	"ringwave/learner/paper"
	"ringwave/learner/watch"
	"ringwave/learner/watch/scenes"
)

// The scene of a report has its runs by chapter and seed, and its plots as they are written.
func TestReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	b := newBoard()
	r := scenes.NewReport(scenes.WorkOptions{Board: b}, dir, func() jobs.Status { return jobs.Status{} })
	opt, err := paper.Options{Out: dir, Seeds: 1, CIFARSeeds: 1, Rounds: 2, Quick: true, Only: []string{"parameters", "equalisation"}, Observer: r.Observer()}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := paper.Reproduce(t.Context(), opt, r); err != nil {
		t.Fatal(err)
	}
	p := open(t, b)
	p.look(0)
	p.until("the runs", func() bool { return p.parts[watch.PartMatrix] != nil && len(p.events) > 6 })
	var m watch.Matrix
	p.part(watch.PartMatrix, &m)
	if len(m.Columns) != 1 || m.Columns[0] != "seed 1" || len(m.Rows) != 6 || m.Rows[0].States != "d" || !strings.HasPrefix(m.Rows[0].Label, "equalisation: Fig. 4, zf, ") {
		t.Errorf("%+v", m)
	}
	if s := p.status(); s.State != watch.StateRunning || s.Of != 2 || s.Done != 1 || s.Share != 1 {
		t.Errorf("%+v", s)
	}
	if !p.has(watch.EventInfo, "parameters: done in") || !p.has(watch.EventInfo, "done: equalisation, Fig. 4, zf") {
		t.Errorf("%+v", p.events)
	}
	plots := p.plots()
	if len(plots) == 0 {
		t.Fatal("no plots")
	}
	if name := plots[0].Name; p.svg(name) != string(experimenttest.ReadFile(t, dir, "plots", name+".svg")) {
		t.Errorf("the plot %s is another", name)
	}
	_ = r.End(nil)
	p.until("the end", func() bool { return p.status().State == watch.StateEnded && p.status().Share == 1 })
}

// A run that was asked for waits until a worker is at its first round.
func TestReportRunsWait(t *testing.T) {
	b := newBoard()
	r := scenes.NewReport(scenes.WorkOptions{Board: b}, t.TempDir(), func() jobs.Status { return jobs.Status{} })
	o, run := r.Observer(), paper.Run{Chapter: "c", What: "w", Seed: 9}
	p := open(t, b)
	p.look(0)
	for _, c := range []struct {
		round int
		want  string
	}{{0, "."}, {1, "r"}} {
		o.Running(run, c.round, 5)
		o.Progress("c", 0, 1, 0, 1) // as it does behind each
		p.until("the run's letter", func() bool {
			if p.parts[watch.PartMatrix] == nil {
				return false
			}
			var m watch.Matrix
			p.part(watch.PartMatrix, &m)
			return len(m.Rows) == 1 && m.Rows[0].States == c.want
		})
	}
}
