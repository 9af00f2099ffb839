package chart

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"ringwave/learner/experiment/runfolder"
)

// NamedRun is one run of a comparison. Runs of the same label are one group:
// the same experiment with different seeds.
type NamedRun struct {
	Label string
	Rows  []runfolder.Row
}

// Plot is a figure that was drawn. Name is that of its two files, name.svg and
// name.png; Caption says in sentences what is seen, and how it was smoothed or thinned.
type Plot struct{ Name, Caption string }

// Sizes of a comparison.
const (
	// singles is the most runs of a group that are drawn as lines of their own; of more
	// there are quartiles worth the name.
	singles = 2
	// widestWindow bounds the rounds over which a running median is taken.
	widestWindow = 51
	// cells is how finely either axis is divided where points are thinned.
	cells = 64

	singleWidth = vg.Length(0.8)
	diagonal    = vg.Length(0.6)
)

// messageError is how far the decoded message is from its noiseless value.
func messageError(r runfolder.Row) float64 { return math.Abs(r.M - r.MIdeal) }

// ComparePlots draws several runs over each other into dir, with a title that says what
// they have in common, and gives the figures drawn: compare-loss, compare-accuracy, compare-message (M against its noiseless
// value, a panel a group) and compare-message-error (|M - m_ideal| against the round,
// logarithmic). Groups come in the order in which their labels first do. A group of
// more than two runs is a line at the median, with a band between the quartiles (see
// Quantile), at each round over those of its runs that have a value there; of fewer,
// each run is a thin line. Loss and message error are those of a batch and a round:
// of each run the running median is shown, over as many rounds as the caption says. On
// an error it gives the figures drawn so far.
func ComparePlots(dir, title string, runs []NamedRun) ([]Plot, error) {
	c := comparison{title: title, groups: group(runs), window: 1}
	for _, r := range runs {
		c.window = max(c.window, smoothing(len(r.Rows)))
	}
	var drawn []Plot
	for _, draw := range []func(dir string) (Plot, error){c.loss, c.accuracy, c.messages, c.messageErrors} {
		p, err := draw(dir)
		if err != nil {
			return drawn, err
		}
		drawn = append(drawn, p)
	}
	return drawn, nil
}

// comparison is groups to be drawn, and the odd number of rounds of running medians.
type comparison struct {
	title  string
	groups []runGroup
	window int
}

// runGroup is the runs of one label.
type runGroup struct {
	label string
	runs  [][]runfolder.Row
}

func group(runs []NamedRun) []runGroup {
	var groups []runGroup
	for _, r := range runs {
		i := slices.IndexFunc(groups, func(g runGroup) bool { return g.label == r.Label })
		if i < 0 {
			i, groups = len(groups), append(groups, runGroup{label: r.Label})
		}
		groups[i].runs = append(groups[i].runs, r.Rows)
	}
	return groups
}

func (c comparison) loss(dir string) (Plot, error) {
	lists := c.lists(trainLoss, c.window)
	f := lossFigure(nil)
	f.LogX, f.LogY = c.manyLengths(), spansDecades(slices.Concat(lists...), 1)
	lists = told(lists, f.LogY)
	f.Series = slices.Concat(lists...)
	f.Title, f.YLabel = c.title, smoothedLabel("loss", c.window)
	return Plot{"compare-loss", "Training loss of a round's batches" + c.caption(true, lists)}.of(f, dir)
}

func (c comparison) accuracy(dir string) (Plot, error) {
	lists := c.lists(accuracy, 1)
	lists = told(lists, false)
	var all []Series
	for _, s := range slices.Concat(lists...) {
		if s.Style == Line {
			s = asEvaluated(s)
		}
		all = append(all, s)
	}
	f := accuracyFigure(all)
	f.Title, f.LogX = c.title, c.manyLengths()
	return Plot{"compare-accuracy", "Test accuracy" + c.caption(false, lists)}.of(f, dir)
}

func (c comparison) messageErrors(dir string) (Plot, error) {
	lists := c.lists(messageError, c.window)
	lists = told(lists, true)
	f := Figure{Title: c.title, Note: messageNote, XLabel: roundLabel, YLabel: smoothedLabel("|M − noiseless|", c.window), LogX: c.manyLengths(), LogY: true, Series: slices.Concat(lists...)}
	return Plot{"compare-message-error", "How far the decoded message M is from its noiseless value" + c.caption(true, lists)}.of(f, dir)
}

// manyLengths reports whether some runs are so much longer than others that on a linear
// axis these would be slivers.
func (c comparison) manyLengths() bool {
	const ratio = 10
	shortest, longest := math.MaxInt, 0
	for _, g := range c.groups {
		for _, rows := range g.runs {
			shortest, longest = min(shortest, len(rows)), max(longest, len(rows))
		}
	}
	return longest > 0 && longest/ratio >= max(shortest, 1)
}

// of draws the figure.
func (p Plot) of(f Figure, dir string) (Plot, error) { return p, f.Save(filepath.Join(dir, p.Name)) }

// caption says how the lines came about. It goes on behind a noun.
func (c comparison) caption(smoothed bool, lists [][]Series) string {
	text := ""
	if smoothed && c.window > 1 {
		text += fmt.Sprintf(", smoothed in each run by the running median over %d rounds", c.window)
	}
	text += "."
	many := func(g runGroup) bool { return len(g.runs) > singles }
	one := func(g runGroup) bool { return !many(g) }
	if slices.ContainsFunc(c.groups, many) {
		text += " Lines are medians over seeds; bands reach from quartile to quartile."
	}
	if slices.ContainsFunc(c.groups, many) && slices.ContainsFunc(c.groups, one) {
		text += " Thin lines are single runs."
	} else if slices.ContainsFunc(c.groups, one) {
		text += " Each line is a single run."
	}
	if slices.ContainsFunc(slices.Concat(lists...), func(s Series) bool { return s.Width > lineWidth }) {
		text += " Lines that coincide are drawn one inside the other, and of bands that do there is one."
	}
	return text
}

// lists returns what is drawn of each group.
func (c comparison) lists(of column, window int) [][]Series {
	const few = 4 // bands that can lie over each other and be told apart
	var lists [][]Series
	for i, g := range c.groups {
		lists = append(lists, g.series(i, of, window, len(c.groups) > few))
	}
	return lists
}

// series returns what is drawn of the group at the given position: a band and a line if
// it has more than two runs, else a line a run, of which the first is named. Of each run
// it takes the running median over a window.
func (g runGroup) series(position int, c column, window int, faint bool) []Series {
	look := Series{Color: colorAt(position), Dashed: position/int(Black)%2 == 1} // the palette has been used up once
	var curves []Series
	for _, rows := range g.runs {
		s := series(rows, c)
		s.Y = runningMedian(s.Y, window)
		s.Color, s.Dashed, s.Width = look.Color, look.Dashed, singleWidth
		curves = append(curves, s)
	}
	if len(curves) <= singles {
		curves[0].Name = g.label
		return curves
	}
	at := map[float64][]float64{}
	for _, s := range curves {
		for i, x := range s.X {
			at[x] = append(at[x], s.Y[i])
		}
	}
	band := Series{Style: Band, Color: look.Color, Faint: faint}
	line := look
	line.Name = g.label
	for _, x := range slices.Sorted(maps.Keys(at)) {
		lower, median, upper := Quartiles(at[x])
		band.X, band.YLow, band.YHigh = append(band.X, x), append(band.YLow, lower), append(band.YHigh, upper)
		line.X, line.Y = append(line.X, x), append(line.Y, median)
	}
	return []Series{band, line}
}

func colorAt(position int) Color { return Blue + Color(position%int(Black)) }

// smoothing is the odd number of rounds over which a run of so many is smoothed.
func smoothing(rounds int) int { return min(widestWindow, rounds/10*2+1) }

// runningMedian returns the median of the window around each value, which is narrower at
// the ends.
func runningMedian(values []float64, window int) []float64 {
	out := make([]float64, len(values))
	for k := range values {
		half := min(window/2, k, len(values)-1-k)
		_, out[k], _ = Quartiles(values[k-half : k+half+1])
	}
	return out
}

// told makes lines that others will cover wider than these: of runs that differ in
// what does not matter, as encryption, all are seen. Of their bands, where these are one,
// too, only the first stays: two would mix into a colour that no group has.
func told(lists [][]Series, logarithmic bool) [][]Series {
	const step, most = vg.Length(1.6), 3
	var e extent
	for _, s := range slices.Concat(lists...) {
		for _, y := range s.Y {
			if y, ok := scaled(y, logarithmic); ok {
				e.add(y)
			}
		}
	}
	over := make([]int, len(lists))
	below := make([]bool, len(lists))
	for i := range lists {
		for k := i + 1; k < len(lists); k++ {
			if !coincide(ofBands(lists[i], false), ofBands(lists[k], false), logarithmic, e.hi-e.lo) {
				continue
			}
			over[i]++
			if coincide(ofBands(lists[i], true), ofBands(lists[k], true), logarithmic, e.hi-e.lo) {
				below[k] = true
			}
		}
	}
	out := make([][]Series, len(lists))
	for i, list := range lists {
		for _, s := range list {
			if s.Style == Band && below[i] {
				continue
			}
			if s.Style != Band && over[i] > 0 {
				s.Width = lineWidth + step*vg.Length(min(over[i], most))
			}
			out[i] = append(out[i], s)
		}
	}
	return out
}

// ofBands returns the bands of a list, or what are none.
func ofBands(list []Series, bands bool) []Series {
	return slices.DeleteFunc(slices.Clone(list), func(s Series) bool { return (s.Style == Band) != bands })
}

// scaled returns y as an axis has it.
func scaled(y float64, logarithmic bool) (float64, bool) {
	y, ok := drawable(y, logarithmic)
	if ok && logarithmic {
		y = math.Log10(y)
	}
	return y, ok
}

// coincide reports whether the lines or bands of one group lie on those of another, as far
// as a reader can tell, in nearly all places.
func coincide(a, b []Series, logarithmic bool, span float64) bool {
	const near, share = 0.005, 0.9 // of the axis; of the points
	if len(a) != len(b) {
		return false
	}
	compared, close := 0, 0
	for k := range a {
		if a[k].Style != b[k].Style || !slices.Equal(a[k].X, b[k].X) {
			return false
		}
		ys, zs := slices.Concat(a[k].Y, a[k].YLow, a[k].YHigh), slices.Concat(b[k].Y, b[k].YLow, b[k].YHigh)
		for i := range ys {
			y, okY := scaled(ys[i], logarithmic)
			z, okZ := scaled(zs[i], logarithmic)
			if !okY && !okZ {
				continue
			}
			compared++
			if okY && okZ && math.Abs(y-z) <= near*span {
				close++
			}
		}
	}
	return compared > 0 && float64(close) >= share*float64(compared)
}

// messages draws M against its noiseless value, a panel a group: over each other they
// would all lie on the diagonal.
func (c comparison) messages(dir string) (Plot, error) {
	p := panels{title: c.title, note: messageNote, xLabel: "noiseless value of M", yLabel: "decoded message M"}
	groups := c.groups[:min(len(c.groups), mostPanels)]
	p.columns, p.tile = panelGrid(len(groups))
	var clouds []cloud
	for i, g := range groups {
		clouds = append(clouds, newCloud(g.messages(i)))
	}
	p.own = unlike(clouds)
	if !p.own {
		share(clouds)
	}
	drawn, all := 0, 0
	for i, g := range groups {
		points := clouds[i].thinned()
		drawn, all = drawn+len(points.X), all+len(clouds[i].X)
		l := panel{series: append([]Series{points}, clouds[i].noiseless()...)}
		if len(c.groups) > 1 {
			l.title = shorten(plain(g.label), p.tile.X-yLabelRoom, textStyle(labelSize, text.XLeft, text.YTop))
		}
		p.list = append(p.list, l)
	}
	if len(p.list) == 0 {
		p.list = append(p.list, panel{})
	}
	plot := Plot{"compare-message", "The decoded message M of each round against its noiseless value; on the dashed line they are equal."}
	if p.own {
		plot.Caption += " Panels have axes of their own."
	}
	if len(groups) < len(c.groups) {
		plot.Caption += fmt.Sprintf(" Only the first %d of %d groups are drawn.", len(groups), len(c.groups))
	}
	if drawn < all {
		plot.Caption += fmt.Sprintf(" Of points that share a field of a grid of %d by %d only one is drawn: %d of %d.", cells, cells, drawn, all)
	}
	return plot, p.save(filepath.Join(dir, plot.Name))
}

// panelGrid returns how many panels stand beside each other, and their size: few are
// larger.
func panelGrid(n int) (columns int, tile vg.Point) {
	switch {
	case n <= 1:
		return 1, vg.Point{X: 12 * vg.Centimeter, Y: 9 * vg.Centimeter}
	case n == 2 || n == 4:
		return 2, vg.Point{X: 8 * vg.Centimeter, Y: 7 * vg.Centimeter}
	}
	return panelsInRow, vg.Point{X: panelWidth, Y: panelHeight}
}

// messages returns M against its noiseless value in all rounds of the group's runs.
func (g runGroup) messages(position int) Series {
	s := Series{Style: Points, Color: colorAt(position)}
	for _, rows := range g.runs {
		for _, r := range rows {
			s.X, s.Y = append(s.X, r.MIdeal), append(s.Y, r.M)
		}
	}
	return s
}

// cloud is points that can be drawn, and the extents that their axes hold.
type cloud struct {
	Series
	x, y extent
}

func newCloud(s Series) cloud {
	t := s.clean(false, false)
	c := cloud{Series: s}
	c.X, c.Y = t.x, t.high
	for i := range c.X {
		c.x.add(c.X[i])
		c.y.add(c.Y[i])
	}
	return c
}

// share gives all clouds the extents that hold them all.
func share(clouds []cloud) {
	var x, y extent
	for _, c := range clouds {
		if c.x.any {
			x.add(c.x.lo)
			x.add(c.x.hi)
			y.add(c.y.lo)
			y.add(c.y.hi)
		}
	}
	for i := range clouds {
		clouds[i].x, clouds[i].y = x, y
	}
}

// unlike reports whether clouds differ so much in size that on common axes some would
// show nothing.
func unlike(clouds []cloud) bool {
	const ratio = 20
	low, high := math.Inf(1), 0.0
	for _, c := range clouds {
		if size := max(-c.y.lo, c.y.hi, -c.x.lo, c.x.hi); c.x.any && size > 0 {
			low, high = min(low, size), max(high, size)
		}
	}
	return high > ratio*low
}

// thinned returns one point of those in a field of the grid that divides either axis into
// cells: the first. What is alone stays: an outlier is never lost.
func (c cloud) thinned() Series {
	field := func(v float64, e extent) int {
		if e.hi <= e.lo {
			return 0
		}
		return int((v - e.lo) / (e.hi - e.lo) * cells)
	}
	thin := c.Series
	thin.X, thin.Y = nil, nil
	taken := map[[2]int]bool{}
	for i := range c.X {
		at := [2]int{field(c.X[i], c.x), field(c.Y[i], c.y)}
		if taken[at] {
			continue
		}
		taken[at] = true
		thin.X, thin.Y = append(thin.X, c.X[i]), append(thin.Y, c.Y[i])
	}
	return thin
}

// noiseless returns the line on which points have no noise, as far as noiseless values go.
func (c cloud) noiseless() []Series {
	if len(c.X) == 0 {
		return nil
	}
	ends := []float64{c.x.lo, c.x.hi}
	return []Series{{X: ends, Y: ends, Color: Black, Dashed: true, Width: diagonal}}
}

// Files returns the paths of the plot's files in dir.
func (p Plot) Files(dir string) []string {
	base := filepath.Join(dir, p.Name)
	return []string{base + ".svg", base + ".png"}
}
