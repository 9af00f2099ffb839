package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Attack is what one attack recovered of one target, and what the honest control beside
// it did: the shares of values that are exact, 0 to 1, and their correlations with the
// truth, -1 to 1.
type Attack struct {
	Name, Target                    string
	Exact, ControlExact             float64
	Correlation, ControlCorrelation float64
}

// AttackPlot draws attacks into dir, under a title, a line each in the order given, and
// gives the files written, attacks.svg and attacks.png.
func AttackPlot(dir, title string, list []Attack) ([]string, error) {
	a := attacks{title: title, list: list}
	w, h := a.size()
	return save(dir, []Picture{{"attacks", func() (sheet, error) { return sheet{w, h, a.draw}, nil }}})
}

// attacks is a picture of a line an attack.
type attacks struct {
	title string
	list  []Attack
}

// Sizes of a picture of attacks.
const (
	attackRow    = vg.Length(17)
	attackNames  = 12.5 * vg.Centimeter // the widest column of names
	attackColumn = 5.6 * vg.Centimeter  // of a quantity
	attackGap    = vg.Length(20)
	attackScale  = vg.Length(40) // for ticks and label below
)

const attacksNote = "A dot is what the attack recovered, a diamond what the honest control beside it did; what each is, and what the control should do, is in the table that is printed. Exact are values to the last digit or, where the honest receiver has noise of its own, to within it."

// names returns the lines' names, cut to their column, and the width of the widest.
func (a attacks) names() (list []string, width vg.Length) {
	style := textStyle(legendSize, text.XRight, text.YCenter)
	for _, r := range a.list {
		name := shorten(plain(r.Name+": "+r.Target), attackNames, style)
		list, width = append(list, name), max(width, style.Width(name))
	}
	return list, width
}

func (a attacks) size() (w, h vg.Length) {
	_, names := a.names()
	w = names + 2*(attackColumn+attackGap) + 2*outerMargin
	head, foot := texts(a.title, attacksNote, w-2*outerMargin)
	return w, head.height() + foot.height() + 2*rowHeight + vg.Length(max(1, len(a.list)))*attackRow + attackScale + 2*outerMargin
}

func (a attacks) draw(c draw.Canvas) error {
	c = draw.Crop(c, outerMargin, -outerMargin, outerMargin, -outerMargin)
	c = drawTexts(c, a.title, attacksNote)
	a.drawLegend(c)
	c = draw.Crop(c, 0, 0, attackScale, -2*rowHeight)
	names, width := a.names()
	style := textStyle(legendSize, text.XRight, text.YCenter)
	for k, name := range names {
		c.FillText(style, vg.Point{X: c.Min.X + width, Y: rowAt(c, k, len(names))}, name)
	}
	left := c.Min.X + width + attackGap
	for _, q := range []struct {
		label string
		scale axis
		of    func(Attack) (attack, control float64)
	}{
		{"recovered exactly (%)", axis{lo: -4, hi: 104, ticks: linearTicks(0, 100, 0, 5, true)}, func(r Attack) (float64, float64) { return 100 * r.Exact, 100 * r.ControlExact }},
		{"correlation with the truth", axis{lo: -1.08, hi: 1.08, ticks: linearTicks(-1, 1, 0, 4, false)}, func(r Attack) (float64, float64) { return r.Correlation, r.ControlCorrelation }},
	} {
		column := c
		column.Min.X, column.Max.X = left, left+attackColumn
		a.drawColumn(column, q.label, q.scale, q.of)
		left += attackColumn + attackGap
	}
	return nil
}

// rowAt returns the height of the k-th of n lines.
func rowAt(c draw.Canvas, k, n int) vg.Length {
	return c.Max.Y - (vg.Length(k)+0.5)*c.Size().Y/vg.Length(n)
}

// drawColumn draws one quantity of all attacks, with its scale below.
func (a attacks) drawColumn(c draw.Canvas, label string, scale axis, of func(Attack) (attack, control float64)) {
	x := func(v float64) vg.Length { return c.X(scale.position(v)) }
	pen := draw.LineStyle{Color: color.Gray{Y: 0xdd}, Width: gridWidth}
	style := textStyle(tickSize, text.XCenter, text.YTop)
	for _, t := range scale.ticks {
		c.StrokeLine2(pen, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
		c.FillText(style, vg.Point{X: x(t.Value), Y: c.Min.Y - 3}, t.Label)
	}
	c.FillText(textStyle(labelSize, text.XCenter, text.YTop), vg.Point{X: c.Center().X, Y: c.Min.Y - 18}, label)
	for k, r := range a.list {
		y := rowAt(c, k, len(a.list))
		c.StrokeLine2(pen, c.Min.X, y, c.Max.X, y)
		attack, control := of(r)
		if v, ok := drawable(control, false); ok {
			drawDiamond(c, vg.Point{X: x(v), Y: y}, Blue.rgb(0))
		}
		if v, ok := drawable(attack, false); ok {
			drawDots(c, []vg.Point{{X: x(v), Y: y}}, Vermillion.rgb(0))
		}
	}
	frame{}.Plot(c, (*plot.Plot)(nil))
}

// drawLegend draws what dot and diamond are, in a row at the top of c.
func (a attacks) drawLegend(c draw.Canvas) {
	style := textStyle(legendSize, text.XLeft, text.YCenter)
	y := c.Max.Y - rowHeight/2
	const attack, control = "attack", "control"
	x := c.Center().X - (style.Width(attack)+style.Width(control)+2*sampleWidth+entryGap)/2
	drawDots(c, []vg.Point{{X: x + sampleWidth/2, Y: y - 1}}, Vermillion.rgb(0))
	c.FillText(style, vg.Point{X: x + sampleWidth, Y: y}, attack)
	x += sampleWidth + style.Width(attack) + entryGap
	drawDiamond(c, vg.Point{X: x + sampleWidth/2, Y: y - 1}, Blue.rgb(0))
	c.FillText(style, vg.Point{X: x + sampleWidth, Y: y}, control)
}
