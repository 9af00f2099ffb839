package chart

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of what is drawn, in points unless said otherwise.
const (
	titleSize  = vg.Length(11)
	labelSize  = vg.Length(11)
	tickSize   = vg.Length(9.5)
	legendSize = vg.Length(9.5)
	noteSize   = vg.Length(8.5)

	outerMargin = vg.Length(7)
	rightMargin = outerMargin + 4 // half of the last tick label
	lineWidth   = vg.Length(1.2)
	gridWidth   = vg.Length(0.4)
	frameWidth  = vg.Length(0.6)
	xLabelRoom  = labelSize + 4 // for the label of an axis
	yLabelRoom  = labelSize + 10
)

// rgb returns the colour of the series at the given position.
func (c Color) rgb(position int) color.NRGBA {
	if c <= Auto || c > Gray {
		c = Blue + Color(position%int(Black))
	}
	return [...]color.NRGBA{
		Blue:       {R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
		Vermillion: {R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
		Green:      {R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
		Purple:     {R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
		Orange:     {R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
		Sky:        {R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
		Black:      {A: 0xff},
		Gray:       {R: 0xb0, G: 0xb0, B: 0xb0, A: 0xff},
	}[c]
}

func pale(c color.NRGBA, faint bool) color.NRGBA {
	c.A = 0x40
	if faint {
		c.A = 0x20
	}
	return c
}

// draw draws the whole figure, whose series are sound, on c.
func (f Figure) draw(c draw.Canvas) error {
	c = draw.Crop(c, outerMargin, -rightMargin, outerMargin, -outerMargin)

	c = drawTexts(c, f.Title, f.Note)
	traces, x, y := f.traces(c.Size())
	c.Max.Y -= drawLegend(c, traces)

	labels := frame{x: plain(x.label(f.XLabel)), y: plain(y.label(f.YLabel)), corner: c.Min}
	c = draw.Crop(c, yLabelRoom, 0, xLabelRoom, 0)
	p := plot.New()
	p.BackgroundColor = nil
	setAxis(&p.X, x)
	setAxis(&p.Y, y)
	p.Add(backdrop{x, y, !slices.ContainsFunc(traces, func(t colored) bool { return len(t.x) > 0 })})
	for _, bands := range []bool{true, false} {
		for _, t := range traces {
			if (t.Style == Band) == bands {
				p.Add(mark{t.thinned(x), x, y})
			}
		}
	}
	p.Add(labels)
	p.Draw(c)
	return nil
}

// traces returns what is to be drawn and the axes that hold it on a canvas of the
// given size. Of a series without a point only the name is drawn, and why.
func (f Figure) traces(size vg.Point) (traces []colored, x, y axis) {
	var ex, ey extent
	var dots bool
	for i, s := range f.Series {
		t := s.clean(f.LogX, f.LogY)
		if len(t.x) == 0 && t.Name != "" {
			t.Name += t.absence()
		}
		traces = append(traces, colored{t, s.Color.rgb(i)})
		dots = dots || s.Style == Points || s.Style == LinePoints
		for j := range t.x {
			ex.add(t.x[j])
			ey.add(t.high[j])
			if !f.LogY || t.low[j] > 0 {
				ey.add(t.low[j])
			}
		}
	}
	marginX := 0.0
	if dots {
		marginX = 0.015 // the outermost dots are seen whole
	}
	ey.integer = ey.integer && f.WholeY // values of y happen to be whole; rounds are
	x = makeAxis(f.LogX, ex, marginX, count(size.X, 1.7*vg.Centimeter))
	y = makeAxis(f.LogY, ey, 0.05, count(size.Y, 0.95*vg.Centimeter))
	if !ex.any { // numbers along nothing would be read as a range
		x.ticks, y.ticks = nil, nil
	}
	return traces, x, y
}

// count returns how many tick labels fit on a length, one in each room.
func count(length, room vg.Length) int { return max(3, int(length/room)) }

func makeAxis(logarithmic bool, e extent, margin float64, n int) axis {
	if logarithmic {
		return logAxis(e, margin, n)
	}
	return linearAxis(e, margin, n)
}

func textStyle(size vg.Length, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color:   color.Black,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		XAlign:  x,
		YAlign:  y,
		Handler: text.Plain{Fonts: font.DefaultCache},
	}
}

// setAxis makes a plot's axis draw a, without its label.
func setAxis(to *plot.Axis, a axis) {
	to.Min, to.Max = a.lo, a.hi
	to.Scale, to.Tick.Marker = a, a
	to.Padding = 0
	to.Width = 0 // the frame is drawn by frame
	to.Tick.Label.Font = textStyle(tickSize, 0, 0).Font
	to.Tick.Label.Handler = exponents{text.Plain{Fonts: font.DefaultCache}}
	to.Tick.Length = 4
	to.Tick.Width = frameWidth
}

// colored is a trace with the colour that its series got.
type colored struct {
	trace
	color color.NRGBA
}

func (c colored) thinned(x axis) colored { return colored{c.trace.thinned(x), c.color} }

func (c colored) line() draw.LineStyle {
	style := draw.LineStyle{Color: c.color, Width: c.Width}
	if style.Width <= 0 {
		style.Width = lineWidth
	}
	if c.Dashed {
		style.Dashes = []vg.Length{5, 2.5}
	}
	return style
}

// backdrop is the grid, and a word where there is nothing to draw.
type backdrop struct {
	x, y  axis
	empty bool
}

// Plot implements plot.Plotter.
func (b backdrop) Plot(c draw.Canvas, _ *plot.Plot) {
	style := draw.LineStyle{Color: color.Gray{Y: 0xdd}, Width: gridWidth}
	if b.empty {
		c.FillText(textStyle(labelSize, text.XCenter, text.YCenter), c.Center(), "no data")
		return
	}
	for _, t := range b.x.ticks {
		if !t.IsMinor() {
			at := c.X(b.x.position(t.Value))
			c.StrokeLine2(style, at, c.Min.Y, at, c.Max.Y)
		}
	}
	for _, t := range b.y.ticks {
		if !t.IsMinor() {
			at := c.Y(b.y.position(t.Value))
			c.StrokeLine2(style, c.Min.X, at, c.Max.X, at)
		}
	}
}

// frame is the box around the data, above all of it, and the axes' labels along
// the sides that meet in corner. Package plot takes the label of a logarithmic
// axis to be far from its middle, and makes room for it there.
type frame struct {
	x, y   string
	corner vg.Point
}

// Plot implements plot.Plotter.
func (f frame) Plot(c draw.Canvas, _ *plot.Plot) {
	c.SetLineStyle(draw.LineStyle{Color: color.Black, Width: frameWidth})
	c.Stroke(c.Rectangle.Path())
	style := textStyle(labelSize, text.XCenter, text.YTop)
	descent := style.FontExtents().Descent
	along := style
	label := fitted(&along, f.x, c.Size().X+yLabelRoom)
	c.FillText(along, vg.Point{X: c.Center().X, Y: f.corner.Y + labelSize + descent}, label)
	style.Rotation = math.Pi / 2
	label = fitted(&style, f.y, c.Size().Y+xLabelRoom)
	c.FillText(style, vg.Point{X: f.corner.X, Y: c.Center().Y}, label)
}

// fitted makes a style's font as small as a text on a length needs, down to that of notes,
// and returns the text, cut where that is still too long.
func fitted(style *text.Style, txt string, length vg.Length) string {
	if w := style.Width(txt); w > length {
		style.Font.Size = max(noteSize, style.Font.Size*length/w)
	}
	return shorten(txt, length*1.001, *style)
}

// mark draws one trace.
type mark struct {
	colored
	xAxis, yAxis axis
}

// Plot implements plot.Plotter.
func (m mark) Plot(c draw.Canvas, _ *plot.Plot) {
	if len(m.x) == 0 {
		return
	}
	high := m.points(c, m.high)
	if m.Style == Band {
		low := m.points(c, m.low)
		if len(high) == 1 { // an area of no width would not be seen
			const half = vg.Length(12)
			low = []vg.Point{{X: low[0].X - half, Y: low[0].Y}, {X: low[0].X + half, Y: low[0].Y}}
			high = []vg.Point{{X: high[0].X - half, Y: high[0].Y}, {X: high[0].X + half, Y: high[0].Y}}
		}
		for i := len(low) - 1; i >= 0; i-- {
			high = append(high, low[i])
		}
		c.FillPolygon(pale(m.color, m.Faint), high)
		return
	}
	if m.Style != Points {
		strokeLine(c, m.line(), high)
	}
	// A line through a single point has no length to be seen by.
	if m.Style != Line || len(high) == 1 {
		drawDots(c, high, m.color)
	}
}

// strokeLine draws a line in pieces that share their ends: the time that the rasteriser
// takes grows with the square of a piece's length where it goes up and down, and one of
// 10,000 rounds would take a minute.
func strokeLine(c draw.Canvas, style draw.LineStyle, points []vg.Point) {
	const piece = 64
	if len(style.Dashes) > 0 { // which begin anew with every piece
		c.StrokeLines(style, points)
		return
	}
	for from := 0; ; from += piece {
		if len(points)-from <= piece+1 {
			c.StrokeLines(style, points[from:])
			return
		}
		c.StrokeLines(style, points[from:from+piece+1])
	}
}

// points returns the trace's points on the canvas, at the heights of y.
func (m mark) points(c draw.Canvas, y []float64) []vg.Point {
	points := make([]vg.Point, len(y))
	for i := range y {
		// Below the axis lies only the lower edge of a band on a logarithmic one.
		points[i] = vg.Point{X: c.X(m.xAxis.position(m.x[i])), Y: c.Y(m.yAxis.position(max(y[i], m.yAxis.lo)))}
	}
	return points
}

// drawDots draws points: smaller the more there are, and as short strokes, which take the
// fewest bytes, if there are very many. Some at a time make a path, as in strokeLine.
func drawDots(c draw.Canvas, points []vg.Point, colour color.Color) {
	const few, many, piece = 100, 2000, 64
	const side = vg.Length(1.1)
	radius := vg.Length(1.2)
	if len(points) <= few {
		radius = 1.8
	}
	c.SetLineStyle(draw.LineStyle{Color: colour, Width: side})
	for some := range slices.Chunk(points, piece) {
		var path vg.Path
		for _, p := range some {
			if len(points) > many {
				path.Move(vg.Point{X: p.X - side/2, Y: p.Y})
				path.Line(vg.Point{X: p.X + side/2, Y: p.Y})
				continue
			}
			path.Move(vg.Point{X: p.X + radius, Y: p.Y})
			path.Arc(p, radius, 0, 2*math.Pi)
			path.Close()
		}
		if len(points) > many {
			c.Stroke(path)
		} else {
			c.Fill(path)
		}
	}
}

// entry is one name in the legend, placed relative to the row's left end.
type entry struct {
	colored
	text  string
	at    vg.Length
	count bool // not a name but how many there are besides
}

// Sizes within the legend.
const (
	sampleWidth = vg.Length(20)
	sampleGap   = vg.Length(4)
	entryGap    = vg.Length(16)
	rowHeight   = legendSize * 1.4
	legendGap   = vg.Length(5)

	// legendShare is how much of a figure's height the legend may take.
	legendShare = 0.4
)

// drawLegend draws the names of the traces in rows along the top of c, where no
// data can be, and gives the height taken. A single name needs no legend: the
// axis says what it is.
func drawLegend(c draw.Canvas, traces []colored) vg.Length {
	rows := legendRows(traces, c.Size().X, max(1, int(legendShare*c.Size().Y/rowHeight)))
	if len(rows) == 0 {
		return 0
	}
	style := textStyle(legendSize, text.XLeft, text.YCenter)
	y := c.Max.Y - rowHeight/2
	widest := listWidth(rows, style)
	for _, row := range rows {
		end := row[len(row)-1]
		left := c.Center().X - max(widest, end.at+entryWidth(style, end.text))/2
		for _, e := range row {
			at := vg.Point{X: left + e.at, Y: y}
			e.sample(c, vg.Point{X: at.X, Y: y - 1}) // at half the height of small letters
			c.FillText(style, vg.Point{X: at.X + sampleWidth + sampleGap, Y: y}, e.text)
		}
		y -= rowHeight
	}
	return vg.Length(len(rows))*rowHeight + legendGap
}

func entryWidth(style text.Style, name string) vg.Length {
	return sampleWidth + sampleGap + style.Width(name)
}

// listWidth returns the width of the widest row where each has one name, and 0 else: a list
// begins at one line.
func listWidth(rows [][]entry, style text.Style) vg.Length {
	widest := vg.Length(0)
	for _, row := range rows {
		if len(row) > 1 {
			return 0
		}
		widest = max(widest, entryWidth(style, row[0].text))
	}
	return widest
}

// legendRows lays out the names in rows of at most the given width. Names that
// do not fit are cut; rows that do not fit are counted in the last entry.
func legendRows(traces []colored, width vg.Length, most int) [][]entry {
	style := textStyle(legendSize, text.XLeft, text.YCenter)
	var named []colored
	for _, t := range traces {
		if t.Name != "" {
			named = append(named, t)
		}
	}
	if len(named) < 2 {
		return nil
	}
	rows := [][]entry{nil}
	var at vg.Length
	for i, t := range named {
		name := shorten(plain(t.Name), width-sampleWidth-sampleGap, style)
		w := entryWidth(style, name)
		if row := len(rows) - 1; len(rows[row]) > 0 && at+w > width {
			if len(rows) == most {
				last := &rows[row][len(rows[row])-1]
				last.text, last.count = fmt.Sprintf("and %d more", len(named)-i+1), true
				return rows
			}
			rows, at = append(rows, nil), 0
		}
		row := len(rows) - 1
		rows[row] = append(rows[row], entry{colored: t, text: name, at: at})
		at += w + entryGap
	}
	return rows
}

// shorten cuts name to a width.
func shorten(name string, width vg.Length, style text.Style) string {
	if style.Width(name) <= width {
		return name
	}
	runes := []rune(name)
	for len(runes) > 0 && style.Width(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// sample draws how the trace looks, from at to the right.
func (e entry) sample(c draw.Canvas, at vg.Point) {
	if e.count {
		return
	}
	end := vg.Point{X: at.X + sampleWidth, Y: at.Y}
	switch e.Style {
	case Band:
		const half = rowHeight * 0.3
		c.FillPolygon(pale(e.color, e.Faint), []vg.Point{
			{X: at.X, Y: at.Y - half}, {X: end.X, Y: at.Y - half},
			{X: end.X, Y: at.Y + half}, {X: at.X, Y: at.Y + half},
		})
		return
	case Points:
	default:
		c.StrokeLines(e.line(), []vg.Point{at, end})
	}
	if e.Style != Line {
		drawDots(c, []vg.Point{{X: (at.X + end.X) / 2, Y: at.Y}}, e.color)
	}
}
