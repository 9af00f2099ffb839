package chart

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panel is one of several plots side by side.
type panel struct {
	title  string
	series []Series
	// open are points drawn as open diamonds over all else, a colour each: values
	// from elsewhere, to compare with.
	open []Series
}

// panels are plots of one kind that share their axes and one legend. Names of the
// legend are those of all series, each told once; those of open are told by one
// name.
type panels struct {
	title, note    string // as in Figure
	xLabel, yLabel string
	logX, logY     bool
	xTicks         []float64 // where x has few values: the axis is labelled at these
	ySpan          []float64 // values that the y axis holds besides
	wholeY         bool      // as in Figure
	openName       string
	list           []panel

	own     bool     // each panel has axes of its own
	square  bool     // x and y have one scale, as a plane's; with own
	columns int      // beside each other; 0 means panelsInRow
	tile    vg.Point // the size of a panel; 0 means panelWidth and panelHeight
}

// The size of a panel, and how many stand beside each other.
const (
	panelWidth  = 6.4 * vg.Centimeter
	panelHeight = 6 * vg.Centimeter
	panelGap    = vg.Length(12)
	panelsInRow = 3
)

// save writes the panels to base.svg and base.png, as Figure.Save does.
func (p panels) save(base string) error { return savePicture(base, p.sheet) }

func (p panels) sheet() (sheet, error) {
	for _, s := range p.all() {
		if err := s.check(); err != nil {
			return sheet{}, err
		}
	}
	p.setDefaults()
	columns, rows := p.grid()
	w, h := p.measure()
	return sheet{w, h, func(c draw.Canvas) error {
		p.draw(c, columns, rows)
		return nil
	}}, nil
}

func (p *panels) setDefaults() {
	if p.columns == 0 {
		p.columns = panelsInRow
	}
	if p.tile == (vg.Point{}) {
		p.tile = vg.Point{X: panelWidth, Y: panelHeight}
	}
}

func (p panels) grid() (columns, rows int) {
	columns = min(len(p.list), p.columns)
	return columns, (len(p.list) + columns - 1) / columns
}

// measure returns the size of the picture.
func (p panels) measure() (w, h vg.Length) {
	p.setDefaults()
	columns, rows := p.grid()
	w = vg.Length(columns)*p.tile.X + yLabelRoom + 2*outerMargin
	inner := w - outerMargin - rightMargin
	head, foot := texts(p.title, p.note, inner)
	legend := vg.Length(max(3, len(p.legendRows(inner)))) * rowHeight
	return w, vg.Length(rows)*p.tile.Y + xLabelRoom + legend + head.height() + foot.height() + 2*outerMargin
}

// bound leaves out panels beyond the most, and says so.
func (p *panels) bound(what string) {
	if all := len(p.list); all > mostPanels {
		p.list = p.list[:mostPanels]
		p.note = strings.TrimSpace(fmt.Sprintf("%s The first %d of %d %s are drawn.", p.note, mostPanels, all, what))
	}
}

// all returns every series of every panel.
func (p panels) all() []Series {
	var all []Series
	for _, l := range p.list {
		all = append(append(all, l.series...), l.open...)
	}
	return all
}

func (p panels) draw(c draw.Canvas, columns, rows int) {
	c = draw.Crop(c, outerMargin, -rightMargin, outerMargin, -outerMargin)
	c = drawTexts(c, p.title, p.note)
	c.Max.Y -= p.drawLegend(c)
	x, y := p.axes(p.all())
	outer := c.Min
	c = draw.Crop(c, yLabelRoom, 0, xLabelRoom, 0)
	inset := p.inset(c)
	size := c.Size()
	width := (size.X - vg.Length(columns-1)*panelGap) / vg.Length(columns)
	height := (size.Y - vg.Length(rows-1)*panelGap) / vg.Length(rows)
	for i, l := range p.list {
		column, row := i%columns, i/columns
		left := c.Min.X + vg.Length(column)*(width+panelGap)
		top := c.Max.Y - vg.Length(row)*(height+panelGap)
		tile := c
		tile.Min, tile.Max = vg.Point{X: left, Y: top - height}, vg.Point{X: left + width, Y: top}
		// A row that is not full leaves the panels above it as its bottom.
		labels := frame{corner: vg.Point{X: outer.X, Y: tile.Min.Y - xLabelRoom}}
		if column == 0 {
			labels.y = plain(p.yLabel)
		}
		if i+columns >= len(p.list) {
			labels.x = plain(p.xLabel)
		}
		if p.own {
			x, y = p.axes(slices.Concat(l.series, l.open))
			tile.Min.X += max(0, inset-labelWidth(tile, x, y))
		}
		p.drawPanel(tile, l, labels, x, y)
	}
}

// inset returns the width of the widest tick labels of panels that have axes of their own
// and stand one below the other, in two columns at most: their boxes begin at one line.
func (p panels) inset(c draw.Canvas) vg.Length {
	widest := vg.Length(0)
	if !p.own || p.columns > 2 {
		return widest
	}
	for _, l := range p.list {
		x, y := p.axes(slices.Concat(l.series, l.open))
		widest = max(widest, labelWidth(c, x, y))
	}
	return widest
}

// labelWidth returns how far the box of a plot with these axes is from c's left side.
func labelWidth(c draw.Canvas, x, y axis) vg.Length {
	out := plot.New()
	setAxis(&out.X, x)
	setAxis(&out.Y, y)
	return out.DataCanvas(c).Min.X - c.Min.X
}

// drawPanel draws one panel and its title.
func (p panels) drawPanel(c draw.Canvas, l panel, labels frame, x, y axis) {
	style := textStyle(labelSize, text.XCenter, text.YTop)
	if p.own { // a label that several share cannot say what one's ticks leave out
		l.title = offsetText("x", x) + offsetText("y", y) + l.title
		l.title = fitted(&style, l.title, p.tile.X-panelGap)
	}
	c.FillText(style, vg.Point{X: c.Center().X, Y: c.Max.Y}, plain(l.title))
	c.Max.Y -= style.Height(l.title) + 5

	out := plot.New()
	out.BackgroundColor = nil
	setAxis(&out.X, x)
	setAxis(&out.Y, y)
	if p.square {
		x, y = squared(x, y, out.DataCanvas(c).Size())
		setAxis(&out.X, x)
		setAxis(&out.Y, y)
	}
	traces := p.traces(l.series)
	empty := !slices.ContainsFunc(traces, func(t colored) bool { return len(t.x) > 0 })
	out.Add(backdrop{x, y, empty})
	for _, bands := range []bool{true, false} {
		for _, t := range traces {
			if (t.Style == Band) == bands {
				out.Add(mark{t.thinned(x), x, y})
			}
		}
	}
	for _, t := range p.traces(l.open) {
		out.Add(diamonds{mark{t, x, y}})
	}
	out.Add(labels)
	out.Draw(c)
}

// offsetText names what an axis has less what its tick labels leave out, if anything.
func offsetText(name string, a axis) string {
	if a.offset == 0 {
		return ""
	}
	return "[" + a.label(name) + "] "
}

func (p panels) traces(list []Series) []colored {
	var traces []colored
	for i, s := range list {
		traces = append(traces, colored{s.clean(p.logX, p.logY), s.Color.rgb(i)})
	}
	return traces
}

// squared widens one of two linear axes so that both have one scale on a plane of the
// given size.
func squared(x, y axis, size vg.Point) (axis, axis) {
	scale := max((x.hi-x.lo)/float64(size.X), (y.hi-y.lo)/float64(size.Y))
	widen := func(a axis, length, room vg.Length) axis {
		middle, half := a.lo/2+a.hi/2, scale*float64(length)/2
		a.lo, a.hi = middle-half, middle+half
		a.offset = offsetFor(a.lo, a.hi)
		a.ticks = linearTicks(a.lo, a.hi, a.offset, count(length, room), false)
		return a
	}
	return widen(x, size.X, 1.05*vg.Centimeter), widen(y, size.Y, 0.95*vg.Centimeter)
}

// axes returns axes that hold the points of all series.
func (p panels) axes(all []Series) (x, y axis) {
	var ex, ey extent
	for _, t := range p.traces(all) {
		for j := range t.x {
			ex.add(t.x[j])
			ey.add(t.high[j])
			if !p.logY || t.low[j] > 0 {
				ey.add(t.low[j])
			}
		}
	}
	for _, v := range p.ySpan {
		ey.add(v)
	}
	ey.integer = ey.integer && p.wholeY
	const margin = 0.04 // the outermost marks are seen whole
	x = makeAxis(p.logX, ex, margin, count(p.tile.X, 1.1*vg.Centimeter))
	const fewest = 5 // of the ticks of a low panel
	y = makeAxis(p.logY, ey, 0.05, max(fewest, count(p.tile.Y, 0.95*vg.Centimeter)))
	if !ex.any {
		x.ticks, y.ticks = nil, nil
	}
	if len(p.xTicks) == 0 || !ex.any {
		return x, y
	}
	x.offset, x.ticks = 0, nil
	for _, v := range p.xTicks {
		if v >= x.lo && v <= x.hi {
			x.ticks = append(x.ticks, plot.Tick{Value: v, Label: plainNumber(v)})
		}
	}
	return x, y
}

// diamonds draws the points of a mark as open diamonds.
type diamonds struct{ mark }

// Plot implements plot.Plotter.
func (d diamonds) Plot(c draw.Canvas, _ *plot.Plot) {
	for _, p := range d.points(c, d.high) {
		drawDiamond(c, p, d.color)
	}
}

func drawDiamond(c draw.Canvas, at vg.Point, colour color.Color) {
	const radius = vg.Length(3.6)
	outline := []vg.Point{{X: at.X - radius, Y: at.Y}, {X: at.X, Y: at.Y + radius}, {X: at.X + radius, Y: at.Y}, {X: at.X, Y: at.Y - radius}, {X: at.X - radius, Y: at.Y}}
	c.FillPolygon(color.White, outline)
	c.StrokeLines(draw.LineStyle{Color: colour, Width: 1.1}, outline)
}

// mostLegendRows bounds the legend of panels: more names than fit are counted.
const mostLegendRows = 8

// legendRows lays out each name once, in rows of at most the given width.
func (p panels) legendRows(width vg.Length) [][]entry {
	var named []Series
	for _, l := range p.list {
		for _, s := range l.series {
			if s.Name != "" && !slices.ContainsFunc(named, func(n Series) bool { return n.Name == s.Name }) {
				named = append(named, s)
			}
		}
	}
	if p.openName != "" {
		named = append(named, Series{Name: p.openName, Style: Points, Color: Black})
	}
	return legendRows(p.traces(named), width, mostLegendRows)
}

// drawLegend draws each name once, in rows along the top of c, and gives the
// height taken.
func (p panels) drawLegend(c draw.Canvas) vg.Length {
	rows := p.legendRows(c.Size().X)
	style := textStyle(legendSize, text.XLeft, text.YCenter)
	y := c.Max.Y - rowHeight/2
	for _, row := range rows {
		end := row[len(row)-1]
		left := c.Center().X - (end.at+entryWidth(style, end.text))/2
		for _, e := range row {
			at := vg.Point{X: left + e.at, Y: y}
			if e.Name == p.openName && !e.count {
				drawDiamond(c, vg.Point{X: at.X + sampleWidth/2, Y: y - 1}, e.color)
			} else {
				e.sample(c, vg.Point{X: at.X, Y: y - 1})
			}
			c.FillText(style, vg.Point{X: at.X + sampleWidth + sampleGap, Y: y}, e.text)
		}
		y -= rowHeight
	}
	if len(rows) == 0 {
		return 0
	}
	return vg.Length(len(rows))*rowHeight + legendGap
}
