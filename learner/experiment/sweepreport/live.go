package sweepreport

import (
	"fmt"
	"math"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
)

// Live is the curves over rounds of a sweep's report, of those runs that have ended so far.
// It keeps of each as much as is drawn, and of some runs nothing, so that it takes little
// whatever the sweep has. It is for one goroutine.
type Live struct {
	w      *writer
	kept   map[int][][]runfolder.Row // of combinations that are drawn
	ended  int
	stride int // rounds that are drawn as one
}

const (
	// liveRows is how many rounds of a run are kept, and liveSeeds how many runs of a
	// combination of values.
	liveRows  = 256
	liveSeeds = 10
)

// NewLive returns the curves of a plan that was loaded, none of whose runs has ended.
func NewLive(p sweep.Plan) *Live {
	w := &writer{stopped: func() error { return nil }, plan: p}
	w.combos = make([]combo, combinations(p))
	for _, point := range p.Points {
		w.rounds = max(w.rounds, point.Config.Optimizer.Rounds)
	}
	w.lines = w.layout(none)
	return &Live{w: w, kept: map[int][][]runfolder.Row{}, stride: max(1, (w.rounds+liveRows-1)/liveRows)}
}

// Wants reports whether the rounds of a run, by its place in the plan, would be drawn.
func (l *Live) Wants(run int) bool {
	i := run / max(1, len(l.w.plan.Seeds))
	_, drawn := l.w.lines.spots[i]
	return drawn && len(l.kept[i]) < liveSeeds
}

// Add takes in the rounds of a run that has ended.
func (l *Live) Add(run int, rows []runfolder.Row) {
	if !l.Wants(run) {
		return
	}
	i := run / len(l.w.plan.Seeds)
	spot := l.w.lines.spots[i]
	l.ended++
	l.kept[i] = append(l.kept[i], thinned(rows, l.stride))
	c := &l.w.combos[i].curves
	c.loss, c.accuracy = chart.GroupCurves(spot.label, spot.position, l.window(), spot.faint, l.kept[i])
}

// window is how many of the rounds that are kept losses are smoothed over.
func (l *Live) window() int { return chart.Window(l.w.rounds / l.stride) }

// LivePlot is a figure that is not drawn yet.
type LivePlot struct {
	chart.Picture
	Caption string
}

// Plots returns loss and accuracy over rounds as they are known now, as far as there are any.
func (l *Live) Plots() (list []LivePlot) {
	note := fmt.Sprintf("Of %d runs that have ended.", l.ended)
	if n := len(l.w.plan.Seeds); n > liveSeeds {
		note += fmt.Sprintf(" Of %d seeds of a combination the first %d that ended are drawn.", n, liveSeeds)
	}
	if l.stride > 1 {
		note += fmt.Sprintf(" %d rounds are drawn as one, with their mean loss and their last accuracy.", l.stride)
	}
	for _, c := range l.w.curveFigures(l.window()) {
		list = append(list, LivePlot{c.plots.Picture(figurePrefix + c.name), sentences(note, c.caption)})
	}
	return list
}

// thinned makes one row of so many: the last of them, with their mean loss and their last
// accuracy.
func thinned(rows []runfolder.Row, stride int) (out []runfolder.Row) {
	for first := 0; first < len(rows); first += stride {
		group := rows[first:min(first+stride, len(rows))]
		row := runfolder.Row{Round: group[len(group)-1].Round, TestAccuracy: math.NaN()}
		for _, r := range group {
			row.TrainLoss += r.TrainLoss / float64(len(group))
			if !math.IsNaN(r.TestAccuracy) {
				row.TestAccuracy = r.TestAccuracy
			}
		}
		out = append(out, row)
	}
	return out
}
