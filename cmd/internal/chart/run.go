package chart

import (
	"maps"
	"math"
	"path/filepath"
	"slices"

	"ringwave/cmd/internal/runfolder"
)

const roundLabel = "round"

// NamedRun is one run of a comparison. Runs of the same label are one group:
// the same experiment with different seeds.
type NamedRun struct {
	Label string
	Rows  []runfolder.Row
}

// column takes one number out of a row; NaN where there is none.
type column func(runfolder.Row) float64

func trainLoss(r runfolder.Row) float64 { return r.TrainLoss }
func accuracy(r runfolder.Row) float64  { return 100 * r.TestAccuracy }

// messageError is how far the decoded message is from its noiseless value.
func messageError(r runfolder.Row) float64 { return math.Abs(r.M - r.MIdeal) }

// series gives a column against the rounds that have it.
func series(rows []runfolder.Row, c column) Series {
	var s Series
	for _, r := range rows {
		if v := c(r); !math.IsNaN(v) {
			s.X = append(s.X, float64(r.Round))
			s.Y = append(s.Y, v)
		}
	}
	return s
}

// picture is a figure that is not drawn yet, and its base name.
type picture struct {
	name   string
	figure Figure
}

// save writes the pictures into dir and gives the paths of their files.
func save(dir string, pictures []picture) ([]string, error) {
	var paths []string
	for _, p := range pictures {
		base := filepath.Join(dir, p.name)
		if err := p.figure.Save(base); err != nil {
			return paths, err
		}
		paths = append(paths, base+".svg", base+".png")
	}
	return paths, nil
}

// RunPlots draws one run into dir and gives the files written, SVG and PNG of
// each: loss (logarithmic if it spans more than two decades), accuracy, message
// (M and its noiseless value), decoded-noise (with bands of 1 and 6 predicted
// deviations where some are predicted), and, only where some are predicted,
// decoded-noise-histogram (in predicted deviations, against the standard
// normal). On an error it gives the files written so far.
func RunPlots(dir string, rows []runfolder.Row) ([]string, error) {
	pictures := []picture{
		{"loss", lossFigure([]Series{series(rows, trainLoss)})},
		{"accuracy", accuracyFigure([]Series{asEvaluated(series(rows, accuracy))})},
		{"decoded-noise", noiseFigure(rows)},
		{"message", messageFigure(rows)},
	}
	if noise := normalized(rows); len(noise) > 0 {
		pictures = append(pictures, picture{"decoded-noise-histogram", noiseHistogram(noise).figure()})
	}
	return save(dir, pictures)
}

func lossFigure(s []Series) Figure {
	return Figure{XLabel: roundLabel, YLabel: "training loss", LogY: spansDecades(s, 2), Series: s}
}

func accuracyFigure(s []Series) Figure {
	return Figure{XLabel: roundLabel, YLabel: "test accuracy (%)", Series: s}
}

// asEvaluated shows the points of a line that has few: between them nothing is
// known.
func asEvaluated(s Series) Series {
	if len(s.X) <= 60 {
		s.Style = LinePoints
	}
	return s
}

// spansDecades tells whether the series, none of which goes below zero, span
// more than so many decades.
func spansDecades(list []Series, decades float64) bool {
	var positive extent
	for _, s := range list {
		for _, v := range slices.Concat(s.Y, s.YLow, s.YHigh) {
			v, ok := drawable(v, false)
			if ok && v < 0 {
				return false
			}
			if ok && v > 0 {
				positive.add(v)
			}
		}
	}
	return positive.any && math.Log10(positive.hi)-math.Log10(positive.lo) > decades
}

func noiseFigure(rows []runfolder.Row) Figure {
	f := Figure{XLabel: roundLabel, YLabel: "decoded noise ε"}
	if slices.ContainsFunc(rows, func(r runfolder.Row) bool { return r.EpsStdPredicted > 0 }) {
		f.Series = append(f.Series,
			deviationBand("±6 predicted deviations", rows, 6, Sky),
			deviationBand("±1 predicted deviation", rows, 1, Blue))
	}
	points := series(rows, func(r runfolder.Row) float64 { return r.Eps })
	points.Name, points.Style, points.Color = "decoded noise", Points, Black
	f.Series = append(f.Series, points)
	return f
}

// deviationBand gives the band of k predicted deviations around zero.
func deviationBand(name string, rows []runfolder.Row, k float64, c Color) Series {
	s := series(rows, func(r runfolder.Row) float64 { return r.EpsStdPredicted })
	s.Name, s.Style, s.Color = name, Band, c
	for _, std := range s.Y {
		s.YLow = append(s.YLow, -k*std)
		s.YHigh = append(s.YHigh, k*std)
	}
	s.Y = nil
	return s
}

// normalized gives the decoded noise in predicted deviations, of the rounds
// that have both.
func normalized(rows []runfolder.Row) []float64 {
	var z []float64
	for _, r := range rows {
		if v := r.Eps / r.EpsStdPredicted; r.EpsStdPredicted > 0 && !math.IsNaN(v) {
			z = append(z, v)
		}
	}
	return z
}

// noiseHistogram shows what lies within 6 deviations, where all should: an
// outlier at 1e6 would press the rest into one bar. The legend counts the rest.
func noiseHistogram(z []float64) Histogram {
	reach := 4.0
	for _, v := range finite(z) {
		reach = max(reach, min(6, math.Ceil(math.Abs(v))))
	}
	return Histogram{
		XLabel: "decoded noise ε / predicted deviation", Name: "decoded noise", Values: z,
		Lo: -reach, Hi: reach, Reference: StandardNormal, ReferenceName: "standard normal",
	}
}

func messageFigure(rows []runfolder.Row) Figure {
	ideal := series(rows, func(r runfolder.Row) float64 { return r.MIdeal })
	ideal.Name, ideal.Color, ideal.Width = "noiseless value", Sky, 0.9
	decoded := series(rows, func(r runfolder.Row) float64 { return r.M })
	decoded.Name, decoded.Style, decoded.Color = "decoded message M", Points, Vermillion
	return Figure{XLabel: roundLabel, YLabel: "message M", Series: []Series{ideal, decoded}}
}

// ComparePlots draws several runs over each other into dir and gives the files
// written, SVG and PNG of each: compare-loss, compare-accuracy, compare-message
// (M against its noiseless value) and compare-message-error (|M - m_ideal|
// against the round, logarithmic). Groups come in the order
// in which their labels first do. A group of several runs is a line at the
// median, with a band between the quartiles (see Quantile), at each round over
// those of its runs that have a value there. On an error it gives the files
// written so far.
func ComparePlots(dir string, runs []NamedRun) ([]string, error) {
	groups := group(runs)
	var loss, acc, message, pairs []Series
	for i, g := range groups {
		pairs = append(pairs, g.messages(i))
		loss = append(loss, g.series(i, trainLoss)...)
		message = append(message, g.series(i, messageError)...)
		for _, s := range g.series(i, accuracy) {
			if s.Style == Line {
				s = asEvaluated(s)
			}
			acc = append(acc, s)
		}
	}
	return save(dir, []picture{
		{"compare-loss", lossFigure(loss)},
		{"compare-accuracy", accuracyFigure(acc)},
		{"compare-message", Figure{XLabel: "noiseless value of M", YLabel: "decoded message M", Series: pairs}},
		{"compare-message-error", Figure{XLabel: roundLabel, YLabel: "|decoded message − noiseless value|", LogY: true, Series: message}},
	})
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

// messages gives M against its noiseless value in all rounds of the group's
// runs.
func (g runGroup) messages(position int) Series {
	s := Series{Name: g.label, Style: Points, Color: Blue + Color(position%int(Black))}
	for _, rows := range g.runs {
		for _, r := range rows {
			if !math.IsNaN(r.M) && !math.IsNaN(r.MIdeal) {
				s.X, s.Y = append(s.X, r.MIdeal), append(s.Y, r.M)
			}
		}
	}
	return s
}

// series gives what is drawn of the group at the given position: a band if it
// has several runs, and a line.
func (g runGroup) series(position int, c column) []Series {
	color := Blue + Color(position%int(Black))
	dashed := position/int(Black)%2 == 1 // the palette has been used up once
	if len(g.runs) == 1 {
		s := series(g.runs[0], c)
		s.Name, s.Color, s.Dashed = g.label, color, dashed
		return []Series{s}
	}
	at := map[float64][]float64{}
	for _, rows := range g.runs {
		s := series(rows, c)
		for i, x := range s.X {
			at[x] = append(at[x], s.Y[i])
		}
	}
	band := Series{Style: Band, Color: color}
	line := Series{Name: g.label, Color: color, Dashed: dashed}
	for _, x := range slices.Sorted(maps.Keys(at)) {
		lower, median, upper := Quartiles(at[x])
		band.X, band.YLow, band.YHigh = append(band.X, x), append(band.YLow, lower), append(band.YHigh, upper)
		line.X, line.Y = append(line.X, x), append(line.Y, median)
	}
	return []Series{band, line}
}
