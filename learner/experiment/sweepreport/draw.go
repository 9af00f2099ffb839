package sweepreport

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/compare"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
)

// draw draws all figures, and returns the sections that they are in.
func (w *writer) draw() (sections []report.Section, err error) {
	for _, part := range []struct {
		title string
		draw  func() ([]report.Block, error)
	}{{"Curves over rounds", w.drawCurves}, {"Against each key", w.drawAgainst}, {"Heat maps", w.drawMaps}} {
		blocks, err := part.draw()
		if err != nil {
			return nil, fmt.Errorf("drawing the sweep: %w", err)
		}
		if len(blocks) > 0 {
			sections = append(sections, report.Section{Title: part.title, Blocks: blocks})
		}
	}
	return sections, nil
}

// saver is a figure that is not drawn yet.
type saver interface{ Save(base string) error }

// save draws a figure, and returns its block in the report.
func (w *writer) save(name, caption string, s saver) (report.Figure, error) {
	if err := w.stopped(); err != nil {
		return report.Figure{}, err
	}
	name = figurePrefix + name
	w.report.Figures = append(w.report.Figures, name)
	return report.Figure{Base: name, Caption: caption}, s.Save(filepath.Join(w.dir, name))
}

// drawCurves draws loss and accuracy over rounds.
func (w *writer) drawCurves() ([]report.Block, error) {
	var blocks []report.Block
	for _, c := range w.curveFigures(chart.Window(w.rounds)) {
		figure, err := w.save(c.name, c.caption, c.plots)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, figure)
	}
	return blocks, nil
}

// curveFigure is curves over rounds.
type curveFigure struct {
	name, caption string
	plots         chart.Multiples
}

// curveFigures returns those of loss and of accuracy, as far as there are any. Losses were
// smoothed over a window.
func (w *writer) curveFigures(window int) (list []curveFigure) {
	smoothed := ""
	if window > 1 {
		smoothed = fmt.Sprintf("Losses are smoothed in each run by the running median over %d rounds.", window)
	}
	for _, f := range []struct {
		name, label, says, note string
		of                      func(curves) []chart.Series
	}{
		{"loss", "training loss", "Training loss of a round's batches", smoothed, func(c curves) []chart.Series { return c.loss }},
		{"accuracy", "test accuracy (%)", "Test accuracy", "", func(c curves) []chart.Series { return c.accuracy }},
	} {
		m := chart.Multiples{Title: w.title(), Note: sentences(f.note, w.lines.note), XLabel: "round", YLabel: f.label}
		var all []chart.Series
		for panel := range w.lines.panels {
			p := chart.Panel{Title: w.panelName(w.lines, none, panel)}
			for position := range w.lines.places {
				p.Groups = append(p.Groups, f.of(w.combos[w.index(w.lines.at(panel, position))].curves))
			}
			m.List, all = append(m.List, p), append(all, slices.Concat(p.Groups...)...)
		}
		if len(all) == 0 {
			continue
		}
		m.LogY = f.name == "loss" && chart.SpansDecades(all, 1)
		list = append(list, curveFigure{f.name, sentences(f.says+".", w.bands(), m.Note), m})
	}
	return list
}

// bands says what lines and bands are.
func (w *writer) bands() string {
	if len(w.plan.Seeds) > 2 {
		return "Lines are medians over seeds; bands reach from quartile to quartile."
	}
	return "Each line is a run."
}

func sentences(texts ...string) string { return strings.TrimSpace(strings.Join(texts, " ")) }

// title says what all figures are of.
func (w *writer) title() string {
	if w.heading != "" {
		return w.heading
	}
	seeds := report.Counted(len(w.plan.Seeds), "seed")
	w.heading = sentences(fmt.Sprintf("%s: %s, %s", w.plan.Name, strings.Join(w.shared(), ", "), seeds))
	return w.heading
}

// shared are what all runs have in common, as the title of a run has it.
func (w *writer) shared() (traits []string) {
	traits = w.plan.Points[0].Config.Traits()
	for i := 0; i < len(w.plan.Points); i += len(w.plan.Seeds) {
		own := w.plan.Points[i].Config.Traits()
		traits = slices.DeleteFunc(traits, func(t string) bool { return !slices.Contains(own, t) })
	}
	return traits
}

// measure is a number that combinations have, with its quartiles.
type measure struct {
	name, label, says string
	of                func(r compare.Results) (low, median, high float64)
	text              func(r compare.Results) string // in a cell of a heat map
	counted           bool                           // whole numbers, on a logarithmic axis where they span a decade
	note              string                         // on a plot with bands
}

func (w *writer) accuracyMeasure() measure {
	return measure{
		"accuracy", "test accuracy (%)", "Test accuracy at the end",
		func(r compare.Results) (low, median, high float64) {
			return 100 * float64(r.AccuracyLow), 100 * float64(r.Accuracy), 100 * float64(r.AccuracyHigh)
		},
		func(r compare.Results) string {
			if math.IsNaN(float64(r.Accuracy)) {
				return "no result"
			}
			return fmt.Sprintf("%.2f", 100*float64(r.Accuracy))
		},
		false, "",
	}
}

// roundsMeasure returns the rounds to the highest accuracy that the median run reached in
// half of the combinations or more; ok is false where these rounds tell nothing.
func (w *writer) roundsMeasure() (m measure, ok bool) {
	for i := len(w.report.Accuracies) - 1; i >= 0; i-- {
		var rounds []float64
		for _, l := range w.report.Table {
			if r := float64(l.Reached[i].Rounds); l.Runs > 0 && !math.IsInf(r, 0) {
				rounds = append(rounds, r)
			}
		}
		if 2*len(rounds) < len(w.report.Table) || slices.Max(rounds) == slices.Min(rounds) {
			continue
		}
		a := compare.AccuracyName(w.report.Accuracies[i])
		return measure{
			"rounds", "rounds to " + a, "Rounds to a test accuracy of " + a,
			func(r compare.Results) (low, median, high float64) {
				return float64(r.Reached[i].RoundsLow), float64(r.Reached[i].Rounds), float64(r.Reached[i].RoundsHigh)
			},
			func(r compare.Results) string {
				switch rounds := float64(r.Reached[i].Rounds); {
				case r.Runs == 0:
					return "no result"
				case math.IsInf(rounds, 0):
					return fmt.Sprintf("over %d", r.Rounds)
				default:
					return fmt.Sprintf("%.6g", rounds)
				}
			},
			true, "Where a quarter of the runs never got there, the band ends at their last round.",
		}, true
	}
	return m, false
}

// measures are those that figures show.
func (w *writer) measures() []measure {
	all := []measure{w.accuracyMeasure()}
	if m, ok := w.roundsMeasure(); ok {
		all = append(all, m)
	}
	return all
}

// drawAgainst draws the measures against every numeric key.
func (w *writer) drawAgainst() (blocks []report.Block, err error) {
	if len(w.report.Without) == len(w.dirs) {
		return nil, nil
	}
	for k := range w.plan.Axes {
		key, x, ok := w.numeric(k)
		if !ok {
			continue
		}
		for _, m := range w.measures() {
			figure, err := w.drawMeasure(k, key, x, m)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, figure)
		}
	}
	return blocks, nil
}

func (w *writer) drawMeasure(k int, key string, x []float64, m measure) (report.Figure, error) {
	l := w.layout(k)
	plot := chart.Multiples{Title: w.title(), Note: l.note, XLabel: labelOf(key), YLabel: m.label, LogX: decade(x), XTicks: x}
	for _, other := range w.plan.Axes[k].Keys {
		if other != key {
			plot.Note = sentences(plot.Note, fmt.Sprintf("With %s, %s goes along.", key, other))
		}
	}
	left := 0
	var all []chart.Series
	for panel := range l.panels {
		p := chart.Panel{Title: w.panelName(l, k, panel)}
		for position := range l.places {
			series, out := w.against(k, x, l, panel, position, m)
			p.Groups, left = append(p.Groups, series), left+out
		}
		plot.List, all = append(plot.List, p), append(all, slices.Concat(p.Groups...)...)
	}
	plot.WholeY, plot.LogY = m.counted, m.counted && chart.SpansDecades(all, 1)
	if left > 0 {
		plot.Note = sentences(plot.Note, fmt.Sprintf("%s without a point: no result, or not within the rounds of the run in the median.", combinationsOf(left)))
	}
	if len(w.plan.Seeds) > 1 {
		plot.Note = sentences(plot.Note, m.note)
	}
	says := fmt.Sprintf("%s against %s: the median over seeds, and bands from quartile to quartile.", m.says, key)
	name := fmt.Sprintf("%s-against-%s", m.name, strings.ReplaceAll(column(key), "_", "-"))
	return w.save(name, sentences(says, plot.Note), plot)
}

func combinationsOf(n int) string {
	if n == 1 {
		return "One combination is"
	}
	return fmt.Sprintf("%d combinations are", n)
}

// against returns a curve of a measure along an axis, and how many of its points there are
// not.
func (w *writer) against(k int, x []float64, l lines, panel, position int, m measure) (series []chart.Series, out int) {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, x[a]-x[b])) })
	var xs, low, median, high []float64
	at := l.at(panel, position)
	for _, place := range order {
		at[k] = place
		lo, mid, hi := m.of(w.combos[w.index(at)].line.Results)
		if math.IsNaN(mid) || math.IsInf(mid, 0) {
			out++
		}
		if math.IsInf(hi, 0) { // of runs that never got there: after their last round
			hi = float64(w.combos[w.index(at)].line.Rounds)
		}
		xs, low, median, high = append(xs, x[place]), append(low, lo), append(median, mid), append(high, hi)
	}
	return chart.SpreadCurve(w.curveName(l, position), position, len(l.places) >= manyBands, xs, low, median, high), out
}

// decade reports whether numbers are above 0 and span a decade or more.
func decade(x []float64) bool { return slices.Min(x) > 0 && slices.Max(x) >= 10*slices.Min(x) }

// mostMaps bounds the heat maps of one measure, and mostMapValues the values along an axis.
const (
	mostMaps      = 6
	mostMapValues = 100
)

// drawMaps draws the measures over the two axes with the most values.
func (w *writer) drawMaps() (blocks []report.Block, err error) {
	x, y := w.mapAxes()
	if y == none || len(w.report.Without) == len(w.dirs) {
		return nil, nil
	}
	others := w.otherPlaces(x, y)
	if len(others) > 1 {
		text := fmt.Sprintf("The maps are over %s and %s, which have the most values: one each for the values of the other keys", w.axisName(x), w.axisName(y))
		if len(others) > mostMaps {
			text += fmt.Sprintf(", of which the first %d of %d", mostMaps, len(others))
			others = others[:mostMaps]
		}
		blocks = append(blocks, report.Paragraph(text+"."))
	}
	for _, k := range []int{x, y} {
		if n := len(w.plan.Axes[k].Values); n > mostMapValues {
			blocks = append(blocks, report.Paragraph(fmt.Sprintf("Of %d values of %s the maps have %d.", n, w.axisName(k), mostMapValues)))
		}
	}
	for _, m := range w.measures() {
		low, high := w.between(m)
		for i, at := range others {
			h, own := w.heatMap(x, y, at, m)
			h.Low, h.High = low, high
			name := "map-" + m.name
			if len(others) > 1 {
				name += fmt.Sprintf("-%d", i+1)
			}
			figure, err := w.save(name, fmt.Sprintf("%s in the median over seeds, against %s and %s%s.", m.says, w.axisName(x), w.axisName(y), own), h)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, figure)
		}
	}
	return blocks, nil
}

// mapAxes returns the two axes with the most values, the one with more along x; none where
// there are no two with several.
func (w *writer) mapAxes() (x, y int) {
	var axes []int
	for k, a := range w.plan.Axes {
		if len(a.Values) > 1 {
			axes = append(axes, k)
		}
	}
	if len(axes) < 2 {
		return none, none
	}
	slices.SortStableFunc(axes, func(a, b int) int { return len(w.plan.Axes[b].Values) - len(w.plan.Axes[a].Values) })
	return axes[0], axes[1]
}

// otherPlaces returns every combination of the places of the other axes.
func (w *writer) otherPlaces(x, y int) (list [][]int) {
	for i := range w.combos {
		if at := w.combos[i].at; at[x] == 0 && at[y] == 0 {
			list = append(list, at)
		}
	}
	return list
}

// between returns between what numbers a measure lies.
func (w *writer) between(m measure) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, l := range w.report.Table {
		if _, v, _ := m.of(l.Results); !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	return low, high
}

// heatMap returns the map at some places of the other axes, and which these are, where there
// are others.
func (w *writer) heatMap(x, y int, at []int, m measure) (h chart.HeatMap, with string) {
	xs, ys := some(w.ordered(x)), some(w.ordered(y))
	h = chart.HeatMap{Title: w.title(), XLabel: w.axisLabel(x), YLabel: w.axisLabel(y), Label: m.label, X: w.valuesOf(x, xs), Y: w.valuesOf(y, ys)}
	var own []string
	for k, a := range w.plan.Axes {
		if k != x && k != y && len(a.Values) > 1 {
			own = append(own, w.placeName(k, at[k]))
		}
	}
	if len(own) > 0 {
		with = ", with " + strings.Join(own, ", ")
		h.Title += with
	}
	here := slices.Clone(at)
	for _, here[y] = range ys {
		var row []chart.Cell
		for _, here[x] = range xs {
			results := w.combos[w.index(here)].line.Results
			_, v, _ := m.of(results)
			row = append(row, chart.Cell{Value: v, Text: m.text(results)})
		}
		h.Cells = append(h.Cells, row)
	}
	return h, with
}

// ordered returns the places of an axis, rising where its values are numbers.
func (w *writer) ordered(k int) []int {
	places := spread(len(w.plan.Axes[k].Values), len(w.plan.Axes[k].Values))
	if _, x, ok := w.numeric(k); ok {
		slices.SortFunc(places, func(a, b int) int { return int(math.Copysign(1, x[a]-x[b])) })
	}
	return places
}

// some returns as many of some places as a map has room for, evenly.
func some(places []int) (list []int) {
	for _, i := range spread(len(places), mostMapValues) {
		list = append(list, places[i])
	}
	return list
}

// axisLabel returns the label of an axis of a heat map.
func (w *writer) axisLabel(k int) string {
	var labels []string
	for _, key := range w.plan.Axes[k].Keys {
		labels = append(labels, labelOf(key))
	}
	return strings.Join(labels, " / ")
}

func (w *writer) valuesOf(k int, places []int) (texts []string) {
	for _, place := range places {
		var parts []string
		for _, v := range w.plan.Axes[k].Values[place] {
			parts = append(parts, shown(v))
		}
		texts = append(texts, strings.Join(parts, " / "))
	}
	return texts
}

// spreadText writes a median with its quartiles, or the only value.
func spreadText(runs int, low, median, high runfolder.Float, write func(float64) string) string {
	if runs == 1 || math.IsNaN(float64(median)) {
		return write(float64(median))
	}
	return fmt.Sprintf("%s (%s to %s)", write(float64(median)), write(float64(low)), write(float64(high)))
}
