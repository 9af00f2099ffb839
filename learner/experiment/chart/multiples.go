package chart

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"ringwave/learner/experiment/runfolder"
)

// Panel is one of several plots that stand side by side. Its groups are what is drawn of one
// thing each, a line with its band: lines that others would cover are drawn wider.
type Panel struct {
	Title  string
	Groups [][]Series
}

// Multiples are plots of one kind on the same axes with one legend, or a single one.
type Multiples struct {
	Title, Note    string // as in Figure
	XLabel, YLabel string
	LogX, LogY     bool
	WholeY         bool      // as in Figure
	XTicks         []float64 // where x has few values: the axis is labelled at these
	List           []Panel   // at most MostPanels are drawn
}

// MostPanels is how many plots there may be side by side.
const MostPanels = mostPanels

// Curves is how many lines of a plot can be told apart by their colour.
const Curves = int(Black)

// Save writes the plots to base.svg and base.png, as Figure.Save does.
func (m Multiples) Save(base string) error { return savePicture(base, m.sheet) }

func (m Multiples) sheet() (sheet, error) {
	p := panels{title: m.Title, note: m.Note, xLabel: m.XLabel, yLabel: m.YLabel, logX: m.LogX, logY: m.LogY, wholeY: m.WholeY}
	p.columns, p.tile = panelGrid(len(m.List))
	for _, l := range m.List {
		title := shorten(plain(l.Title), p.tile.X-yLabelRoom, textStyle(labelSize, text.XLeft, text.YTop))
		p.list = append(p.list, panel{title: title, series: slices.Concat(told(l.Groups, m.LogY)...)})
	}
	if slices.ContainsFunc(p.all(), func(s Series) bool { return s.Width > lineWidth }) {
		p.note = strings.TrimSpace(p.note + " Lines that coincide are drawn one inside the other, and of bands that do there is one.")
	}
	if len(p.list) == 0 {
		p.list = []panel{{}}
	}
	p.sayEmpty()
	p.bound("panels")
	if p.xTicks = m.XTicks; !p.roomForTicks() {
		p.xTicks = nil
	}
	return p.sheet()
}

// sayEmpty says in the legend which names have no point in any panel.
func (p panels) sayEmpty() {
	drawn := map[string]bool{}
	for _, s := range p.all() {
		drawn[s.Name] = drawn[s.Name] || len(s.clean(p.logX, p.logY).x) > 0
	}
	for _, l := range p.list {
		for i, s := range l.series {
			if s.Name != "" && !drawn[s.Name] {
				l.series[i].Name += " (no points)"
			}
		}
	}
}

// roomForTicks reports whether labels at all of xTicks stand clear of each other.
func (p panels) roomForTicks() bool {
	x, _ := p.axes(p.all())
	style := textStyle(tickSize, text.XLeft, text.YTop)
	end := -p.tile.X
	for _, v := range slices.Sorted(slices.Values(p.xTicks)) {
		at, half := vg.Length(x.position(v))*(p.tile.X-2*yLabelRoom), style.Width(plainNumber(v))/2
		if at-half < end+tickGap {
			return false
		}
		end = at + half
	}
	return true
}

// GroupCurves returns what is drawn of the runs of one configuration with different seeds,
// in the colour of a position: of more than two a line at the median and a band between
// the quartiles, of fewer each run as a line. Losses, which are those of a batch, are
// smoothed in each run by the running median over a window, an odd number of rounds. Faint
// bands are for many in one plot.
func GroupCurves(label string, position, window int, faint bool, runs [][]runfolder.Row) (loss, accuracies []Series) {
	g := runGroup{label, runs}
	loss, accuracies = g.series(position, trainLoss, window, faint), g.series(position, accuracy, 1, faint)
	for i, s := range accuracies {
		if s.Style == Line {
			accuracies[i] = asEvaluated(s)
		}
	}
	return loss, accuracies
}

// Window is the odd number of rounds over which losses of a run of so many are smoothed.
func Window(rounds int) int { return smoothing(rounds) }

// SpreadCurve returns a line through medians, with a band between quartiles where these
// differ, in the colour of a position. Both end where a median is NaN or infinite, and go on
// behind it: what is there must not look like what lies between its neighbours.
func SpreadCurve(label string, position int, faint bool, x, low, median, high []float64) (all []Series) {
	for from := 0; from < len(x); {
		to := from
		for to < len(x) && !math.IsNaN(median[to]) && !math.IsInf(median[to], 0) {
			to++
		}
		if to > from {
			all = append(all, bandedLine(label, position, faint, x[from:to], low[from:to], median[from:to], high[from:to])...)
			label = "" // named once
		}
		from = to + 1
	}
	if len(all) == 0 {
		return bandedLine(label, position, faint, nil, nil, nil, nil)
	}
	return all
}

func bandedLine(label string, position int, faint bool, x, low, median, high []float64) []Series {
	line := Series{Name: label, Style: LinePoints, X: x, Y: median, Color: colorAt(position), Dashed: position/Curves%2 == 1}
	if slices.Equal(low, high) {
		return []Series{line}
	}
	return []Series{{Style: Band, X: x, YLow: low, YHigh: high, Color: line.Color, Faint: faint}, line}
}

// SpansDecades reports whether the numbers of series are at least 0 and those above reach
// over more than so many decades: a logarithmic axis shows more of them.
func SpansDecades(list []Series, decades float64) bool { return spansDecades(list, decades) }
