package scenes

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"ringwave/learner/experiment/curves"
	"ringwave/learner/watch"
)

// Curves is the scene of curves that are measured.
type Curves struct {
	*Work
	settings curves.Settings

	mu     sync.Mutex
	points []curves.Point
}

// NewCurves begins the scene of curves, of which some points are there.
func NewCurves(o WorkOptions, s curves.Settings, points []curves.Point, toml string) *Curves {
	c := &Curves{Work: newWork(o, watch.KindCurves, s.Heading(), "point"), settings: s, points: slices.Clone(points)}
	c.scene.SetConfig(toml)
	c.scene.SetRefresh(c.refresh)
	return c
}

// Point takes in a point.
func (c *Curves) Point(p curves.Point) {
	c.mu.Lock()
	c.points = append(c.points, p)
	c.mu.Unlock()
	c.Say(fmt.Sprintf("N = %d, σ = %v, %v dB: %.1f %% read at the first attempt", p.Devices, p.Sigma, p.SNRdB, 100*p.First))
	if p.Wrong > 0 {
		c.scene.Event(watch.EventWarning, fmt.Sprintf("%s accepted what is not true; the first: %s", counted(p.Wrong, "trial"), p.FirstWrong))
	}
	c.scene.Touch()
}

func (c *Curves) refresh() {
	c.mu.Lock()
	points := c.points[:len(c.points):len(c.points)]
	c.mu.Unlock()
	c.scene.SetTables(withRows(pointTable(points)))
	c.scene.SetPlots(curvePlots(c.settings, points))
}

func curvePlots(s curves.Settings, points []curves.Point) []watch.Plot {
	if len(points) == 0 {
		return nil
	}
	return drawn(watch.ViewLearning, curves.Pictures(s, points), nil)
}

// pointTable has the newest points, the newest first.
func pointTable(points []curves.Point) watch.Table {
	t := watch.Table{Name: "points", View: watch.ViewLearning, Title: "Points, as curves.csv has them", Note: "Shares are of blocks, or of rounds, with the ends of their 95 % intervals.", Columns: numeric(
		"devices", "sigma", "snr_db", "blocks", "first_share", "first_low", "first_high", "within_share", "within_low", "within_high", "wrong", "median_misfit")}
	for i := len(points) - 1; i >= max(0, len(points)-mostTableRows); i-- {
		p := points[i]
		t.Rows = append(t.Rows, []string{strconv.Itoa(p.Devices), number(p.Sigma), number(p.SNRdB), strconv.Itoa(p.Blocks), number(p.First), number(p.FirstLow), number(p.FirstHigh),
			number(p.Within), number(p.WithinLow), number(p.WithinHigh), strconv.Itoa(p.Wrong), number(float64(p.Misfit))})
	}
	t.Note = only(t.Note, len(t.Rows), len(points))
	return t
}

// mostTableRows bounds a table.
const mostTableRows = 200

// only adds to a note that of some things not all are shown.
func only(note string, shown, of int) string {
	if shown < of {
		note += fmt.Sprintf(" The newest %d of %d are shown.", shown, of)
	}
	return note
}

// numeric returns columns of numbers.
func numeric(labels ...string) (columns []watch.Column) {
	for _, l := range labels {
		columns = append(columns, watch.Column{Label: l, Numeric: true})
	}
	return columns
}
