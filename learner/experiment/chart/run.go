package chart

import (
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/learner/experiment/runfolder"
)

const roundLabel = "round"

// column takes one number out of a row; NaN where there is none.
type column func(runfolder.Row) float64

func trainLoss(r runfolder.Row) float64 { return r.TrainLoss }
func accuracy(r runfolder.Row) float64  { return 100 * r.TestAccuracy }

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
		Lo: -reach, Hi: reach, Reference: distuv.UnitNormal.Prob, ReferenceName: "standard normal",
	}
}

func messageFigure(rows []runfolder.Row) Figure {
	ideal := series(rows, func(r runfolder.Row) float64 { return r.MIdeal })
	ideal.Name, ideal.Color, ideal.Width = "noiseless value", Sky, 0.9
	decoded := series(rows, func(r runfolder.Row) float64 { return r.M })
	decoded.Name, decoded.Style, decoded.Color = "decoded message M", Points, Vermillion
	return Figure{XLabel: roundLabel, YLabel: "message M", Series: []Series{ideal, decoded}}
}
