package scenes

import (
	"fmt"
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
	c := &Curves{Work: newWork(o, watch.KindCurves, "Success of the blind receiver", "point"), settings: s, points: append([]curves.Point(nil), points...)}
	c.scene.SetConfig(toml)
	c.scene.SetRefresh(c.refresh)
	return c
}

// Point takes in a point.
func (c *Curves) Point(p curves.Point) {
	c.mu.Lock()
	c.points = append(c.points, p)
	c.mu.Unlock()
	if p.Wrong > 0 {
		c.scene.Event(watch.EventWarning, fmt.Sprintf("N = %d, sigma = %v, %v dB: %s accepted that %s wrong: %s", p.Devices, p.Sigma, p.SNRdB, counted(p.Wrong, "block"), map[bool]string{true: "is", false: "are"}[p.Wrong == 1], p.FirstWrong))
	}
	c.scene.Touch()
}

func (c *Curves) refresh() {
	c.mu.Lock()
	points := c.points[:len(c.points):len(c.points)]
	c.mu.Unlock()
	c.scene.SetTables([]watch.Table{curvesTable(points)})
	if len(points) > 0 {
		c.scene.SetPlots(drawn(watch.ViewAir, curves.Pictures(c.settings, points), nil))
	}
}

// mostPoints is how many points a table has.
const mostPoints = 500

// curvesTable has the points, the newest first.
func curvesTable(points []curves.Point) watch.Table {
	t := watch.Table{Name: "points", View: watch.ViewAir, Title: "Points", Columns: []watch.Column{
		{Label: "devices N", Numeric: true}, {Label: "σ", Numeric: true}, {Label: "SNR", Unit: "dB", Numeric: true},
		{Label: "read at once", Unit: "%", Numeric: true}, {Label: "95 % interval", Unit: "%"}, {Label: "within all attempts", Unit: "%", Numeric: true}, {Label: "wrong", Numeric: true}, {Label: "median misfit", Numeric: true},
	}}
	for k := len(points) - 1; k >= 0 && len(t.Rows) < mostPoints; k-- {
		p := points[k]
		percent := func(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) }
		t.Rows = append(t.Rows, []string{strconv.Itoa(p.Devices), short(p.Sigma), short(p.SNRdB), percent(p.First), percent(p.FirstLow) + " to " + percent(p.FirstHigh), percent(p.Within), strconv.Itoa(p.Wrong), short(float64(p.Misfit))})
	}
	if n := len(points); n > mostPoints {
		t.Note = fmt.Sprintf("The last %d of %d.", mostPoints, n)
	}
	return t
}
