package chart

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HeatMap is a number for every pair of two keys' values, as a field of coloured cells with
// the number in each, and a bar that says what colours mean. Colours get lighter with the
// number, so that they are read without colour, too. Texts are as in Figure.
type HeatMap struct {
	Title, Note    string
	XLabel, YLabel string
	X, Y           []string // the values along x from the left, and along y from below
	Label          string   // what the numbers are, along the bar
	// Cells are rows from below, of as many as X has.
	Cells [][]Cell
	// Low and High are what the bar reaches over at least; both 0 for the numbers' own range.
	Low, High float64
}

// Cell is a field of a heat map. One whose value is NaN or infinite has no colour: Text says
// why.
type Cell struct {
	Value float64
	Text  string
}

// Sizes of a heat map.
const (
	cellGap      = vg.Length(6) // from a text to the sides of its cell
	leastCell    = vg.Length(26)
	mapWidth     = 11 * vg.Centimeter
	mapHeight    = 7 * vg.Centimeter
	barWidth     = vg.Length(12)
	barGap       = vg.Length(14)
	mostTickRoom = 4 * vg.Centimeter // for a value along an axis
	mostCells    = 1000              // along an axis
	tickGap      = vg.Length(5)
)

// Save writes the map to base.svg and base.png, as Figure.Save does. It is an error if the
// cells are not as many as the values ask for.
func (h HeatMap) Save(base string) error { return savePicture(base, h.sheet) }

func (h HeatMap) sheet() (sheet, error) {
	if err := h.check(); err != nil {
		return sheet{}, err
	}
	p, err := h.plan()
	if err != nil {
		return sheet{}, err
	}
	return sheet{p.width, p.height, func(c draw.Canvas) error { return p.draw(c) }}, nil
}

func (h HeatMap) check() error {
	if n := max(len(h.X), len(h.Y)); n > mostCells {
		return fmt.Errorf("a heat map of %d values along an axis: it must have at most %d", n, mostCells)
	}
	if len(h.X) == 0 || len(h.Y) == 0 || len(h.Cells) != len(h.Y) {
		return fmt.Errorf("a heat map of %d rows of cells for %d and %d values: it must have as many as values, and one or more", len(h.Cells), len(h.Y), len(h.X))
	}
	for _, row := range h.Cells {
		if len(row) != len(h.X) {
			return fmt.Errorf("a heat map with %d cells in a row for %d values: it must have as many", len(row), len(h.X))
		}
	}
	return nil
}

// mapPlan is a heat map with its sizes.
type mapPlan struct {
	HeatMap
	bar              axis
	colours          palette.ColorMap
	cell             vg.Point
	xRoom, yRoom     vg.Length // for the values along x, below, and along y, beside
	turned           bool      // the values along x are upright
	width, height    vg.Length
	barLabelRoom     vg.Length
	everyX, everyY   int // which values are written
	cellText, ticksS text.Style
}

// plan lays the map out.
func (h HeatMap) plan() (*mapPlan, error) {
	colours, err := lightening()
	if err != nil {
		return nil, err
	}
	p := &mapPlan{HeatMap: h, bar: h.scale(), colours: colours}
	h.X, h.Y = slices.Clone(h.X), slices.Clone(h.Y)
	p.X, p.Y = h.X, h.Y
	p.colours.SetMin(0)
	p.colours.SetMax(1)
	p.cellText, p.ticksS = textStyle(tickSize, text.XCenter, text.YCenter), textStyle(tickSize, text.XCenter, text.YCenter)
	widest := leastCell
	for _, row := range h.Cells {
		for _, cell := range row {
			widest = max(widest, p.cellText.Width(plain(cell.Text))+cellGap)
		}
	}
	roomX, roomY := largest-16*vg.Centimeter, largest-24*vg.Centimeter
	p.cell.X = side(mapWidth, widest, roomX, len(h.X))
	p.cell.Y = side(mapHeight, leastCell*0.8, roomY, len(h.Y))
	for k := range h.X {
		h.X[k] = shorten(plain(h.X[k]), mostTickRoom, p.ticksS)
		p.xRoom = max(p.xRoom, p.ticksS.Width(h.X[k]))
	}
	for k := range h.Y {
		h.Y[k] = shorten(plain(h.Y[k]), mostTickRoom, p.ticksS)
		p.yRoom = max(p.yRoom, p.ticksS.Width(h.Y[k]))
	}
	if p.turned = p.xRoom > p.cell.X-tickGap; !p.turned {
		p.xRoom = tickSize
	}
	p.everyX, p.everyY = 1+int(tickSize*1.2/p.cell.X), 1+int(tickSize*1.2/p.cell.Y)
	for _, t := range p.bar.ticks {
		p.barLabelRoom = max(p.barLabelRoom, p.ticksS.Width(t.Label)) // with its raise, which is wider than what is drawn
	}
	if !p.roomy() {
		p.Note = strings.TrimSpace(p.Note + " There are too many cells for their numbers.")
		h.Note = p.Note
	}
	p.width = 2*outerMargin + 4 + p.left() + p.field().X + p.right()
	p.height = 2*outerMargin + p.below() + p.field().Y + tickSize
	head, foot := texts(h.Title, h.Note, p.width-outerMargin-rightMargin)
	p.height += head.height() + foot.height()
	return p, nil
}

// lightening returns colours of which each is lighter than those before it: those of
// Matplotlib's viridis, which readers with any kind of colour vision can tell apart.
func lightening() (palette.ColorMap, error) {
	return moreland.NewLuminance([]color.Color{
		color.NRGBA{R: 0x44, G: 0x01, B: 0x54, A: 0xff}, color.NRGBA{R: 0x3b, G: 0x52, B: 0x8b, A: 0xff}, color.NRGBA{R: 0x21, G: 0x91, B: 0x8c, A: 0xff},
		color.NRGBA{R: 0x5e, G: 0xc9, B: 0x62, A: 0xff}, color.NRGBA{R: 0xfd, G: 0xe7, B: 0x25, A: 0xff},
	})
}

// side returns the side of n cells that would best be all of length, at least least, and
// with all of them no more than most.
func side(all, least, most vg.Length, n int) vg.Length {
	return min(max(all/vg.Length(max(n, 3)), least), most/vg.Length(n))
}

// roomy reports whether cells have room for their texts.
func (p *mapPlan) roomy() bool { return p.cell.Y >= tickSize && p.cell.X >= leastCell*0.8 }

func (p *mapPlan) field() vg.Point {
	return vg.Point{X: vg.Length(len(p.X)) * p.cell.X, Y: vg.Length(len(p.Y)) * p.cell.Y}
}

func (p *mapPlan) left() vg.Length  { return yLabelRoom + p.yRoom + tickGap }
func (p *mapPlan) below() vg.Length { return xLabelRoom + p.xRoom + 2*tickGap }

func (p *mapPlan) right() vg.Length {
	return barGap + barWidth + tickGap + p.barLabelRoom + tickGap + yLabelRoom
}

// scale returns the axis of the bar.
func (h HeatMap) scale() axis {
	var e extent
	if h.High > h.Low {
		e.add(h.Low)
		e.add(h.High)
	}
	for _, row := range h.Cells {
		for _, cell := range row {
			if v, ok := drawable(cell.Value, false); ok {
				e.add(v)
			}
		}
	}
	const ticks = 6
	a := linearAxis(e, 0, ticks)
	a.offset = 0 // cells have their numbers, and a bar no room to say what its ticks leave out
	a.ticks = linearTicks(a.lo, a.hi, 0, ticks, e.integer)
	if !e.any {
		a.ticks = nil
	}
	return a
}

func (p *mapPlan) draw(c draw.Canvas) error {
	c = draw.Crop(c, outerMargin, -rightMargin, outerMargin, -outerMargin)
	c = drawTexts(c, p.Title, p.Note)
	field := c
	field.Min = vg.Point{X: c.Min.X + p.left(), Y: c.Min.Y + p.below()}
	field.Max = field.Min.Add(p.field())
	if err := p.drawCells(field); err != nil {
		return err
	}
	p.drawValues(field)
	frame{x: plain(p.XLabel), y: plain(p.YLabel), corner: c.Min}.Plot(field, nil)
	return p.drawBar(field)
}

func (p *mapPlan) drawCells(c draw.Canvas) error {
	for row := range p.Cells {
		for column, cell := range p.Cells[row] {
			at := c
			at.Min = vg.Point{X: c.Min.X + vg.Length(column)*p.cell.X, Y: c.Min.Y + vg.Length(row)*p.cell.Y}
			at.Max = at.Min.Add(p.cell)
			if err := p.drawCell(at, cell); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawCell fills a cell, and writes its text where there is room.
func (p *mapPlan) drawCell(c draw.Canvas, cell Cell) error {
	style := p.cellText
	if v, ok := drawable(cell.Value, false); ok {
		fill, err := p.colour(p.bar.position(v))
		if err != nil {
			return err
		}
		c.FillPolygon(fill, corners(c))
		if dark(fill) {
			style.Color = color.White
		}
	} else { // a line from corner to corner, which no number has
		c.StrokeLine2(draw.LineStyle{Color: color.Gray{Y: 0xc0}, Width: gridWidth}, c.Min.X, c.Min.Y, c.Max.X, c.Max.Y)
	}
	c.StrokeLines(draw.LineStyle{Color: color.Gray{Y: 0xa0}, Width: gridWidth}, append(corners(c), c.Min))
	txt := plain(cell.Text)
	if !p.roomy() {
		return nil
	}
	txt = fitted(&style, txt, p.cell.X-cellGap/2)
	if _, ok := drawable(cell.Value, false); !ok { // on white, so that the line does not cross it
		half := vg.Point{X: style.Width(txt)/2 + 1, Y: style.Font.Size / 2}
		under := c
		under.Min, under.Max = c.Center().Sub(half), c.Center().Add(half)
		c.FillPolygon(color.White, corners(under))
	}
	c.FillText(style, c.Center(), txt)
	return nil
}

func corners(c draw.Canvas) []vg.Point {
	return []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}}
}

// colour returns that of a place on the bar, 0 to 1.
func (p *mapPlan) colour(at float64) (color.Color, error) {
	c, err := p.colours.At(math.Min(1, math.Max(0, at)))
	if err != nil {
		return nil, errors.New("a colour for no number") // which is never asked for
	}
	return c, nil
}

// dark reports whether white is read better on a colour than black, by the luminance of
// ITU-R BT.709 without its gamma.
func dark(c color.Color) bool {
	r, g, b, _ := c.RGBA()
	return 0.2126*float64(r)+0.7152*float64(g)+0.0722*float64(b) < 0.5*0xffff
}

// drawValues writes the values along both axes.
func (p *mapPlan) drawValues(c draw.Canvas) {
	style := p.ticksS
	for k := 0; k < len(p.X); k += p.everyX {
		at := vg.Point{X: c.Min.X + (vg.Length(k)+0.5)*p.cell.X, Y: c.Min.Y - tickGap}
		style.XAlign, style.YAlign, style.Rotation = text.XCenter, text.YTop, 0
		if p.turned {
			style.XAlign, style.YAlign, style.Rotation = text.XRight, text.YCenter, math.Pi/2
		}
		c.FillText(style, at, p.X[k])
	}
	style.XAlign, style.YAlign, style.Rotation = text.XRight, text.YCenter, 0
	for k := 0; k < len(p.Y); k += p.everyY {
		c.FillText(style, vg.Point{X: c.Min.X - tickGap, Y: c.Min.Y + (vg.Length(k)+0.5)*p.cell.Y}, p.Y[k])
	}
}

// drawBar draws what the colours mean, beside the field.
func (p *mapPlan) drawBar(field draw.Canvas) error {
	const steps = 128
	c := field
	c.Min.X = field.Max.X + barGap
	c.Max.X = c.Min.X + barWidth
	height := c.Size().Y
	for k := range steps {
		part := c
		part.Min.Y = c.Min.Y + height*vg.Length(k)/steps
		part.Max.Y = min(c.Max.Y, part.Min.Y+1.5*height/steps) // under the next: no seam
		fill, err := p.colour((float64(k) + 0.5) / steps)
		if err != nil {
			return err
		}
		c.FillPolygon(fill, corners(part))
	}
	style := p.ticksS
	style.XAlign, style.Handler = text.XLeft, exponents{text.Plain{Fonts: p.ticksS.Handler.(text.Plain).Fonts}}
	for _, t := range p.bar.ticks {
		y := c.Min.Y + height*vg.Length(p.bar.position(t.Value))
		c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: frameWidth}, c.Max.X, y, c.Max.X+3, y)
		c.FillText(style, vg.Point{X: c.Max.X + tickGap, Y: y}, t.Label)
	}
	frame{y: plain(p.Label), corner: vg.Point{X: c.Max.X + tickGap + p.barLabelRoom + tickGap, Y: c.Min.Y}}.Plot(c, nil)
	return nil
}
