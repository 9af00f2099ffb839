package chart

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/learner/experiment/runfolder"
)

const roundLabel = "round"

// column takes one number out of a row; NaN where there is none.
type column func(runfolder.Row) float64

func trainLoss(r runfolder.Row) float64 { return r.TrainLoss }
func accuracy(r runfolder.Row) float64  { return 100 * r.TestAccuracy }

// series returns a column against the rounds that have it.
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

// picture returns a figure under a title as a picture.
func picture(name, title string, f Figure) Picture {
	f.Title = title
	return f.Picture(name)
}

// RunPlots draws one run into dir, with a title that says what ran, and gives the files
// written, SVG and PNG of each: loss (logarithmic if it spans more than two decades, and
// with a running median if it has many rounds), accuracy, message
// (M and its noiseless value), decoded-noise (with bands of 1 and 6 predicted
// deviations where some are predicted), and, only where some are predicted,
// decoded-noise-histogram (in predicted deviations, against the standard
// normal). On an error it gives the files written so far.
func RunPlots(dir, title string, rows []runfolder.Row) ([]string, error) {
	return save(dir, RunPictures(title, rows))
}

// RunPictures returns what RunPlots draws.
func RunPictures(title string, rows []runfolder.Row) []Picture {
	pictures := []Picture{
		picture("loss", title, runLossFigure(rows)),
		picture("accuracy", title, accuracyFigure([]Series{asEvaluated(series(rows, accuracy))})),
		picture("decoded-noise", title, noiseFigure(rows)),
		picture("message", title, messageFigure(rows)),
	}
	if noise := normalized(rows); len(noise) > 0 {
		pictures = append(pictures, picture("decoded-noise-histogram", title, noiseHistogram(noise).figure()))
	}
	return pictures
}

// manyRounds is from how many on the losses of single batches hide their course.
const manyRounds = 200

// runLossFigure draws the loss of each round, and of many rounds the running median, too.
func runLossFigure(rows []runfolder.Row) Figure {
	each := series(rows, trainLoss)
	f := lossFigure([]Series{each})
	f.Note = "The loss is the mean over the round's batches, before the model moves." + leftOut(rows, trainLoss, "loss")
	if len(rows) > 0 && rows[0].Present > 0 {
		f.Note = "Devices on other hosts keep their losses to themselves: ringwave compare --logs puts in what they have written down."
	}
	if len(each.X) < manyRounds {
		return f
	}
	window := smoothing(len(each.X))
	median := Series{Name: smoothedLabel("", window), Color: Vermillion, X: each.X, Y: runningMedian(each.Y, window)}
	each.Name, each.Color, each.Width = "each round", Sky, singleWidth
	f.Series = []Series{each, median}
	return f
}

// smoothedLabel says on an axis or in a legend how what is there was smoothed.
func smoothedLabel(text string, window int) string {
	if window <= 1 {
		return text
	}
	smoothed := fmt.Sprintf("running median over %d rounds", window)
	if text == "" {
		return smoothed
	}
	return text + ", " + smoothed
}

// leftOut says of how many rounds a column is not drawn, and why; nothing where all are.
func leftOut(rows []runfolder.Row, c column, name string) string {
	skipped, odd := 0, 0
	for _, r := range rows {
		if _, ok := drawable(c(r), false); ok {
			continue
		}
		if math.IsNaN(c(r)) && r.Skipped {
			skipped++
		} else {
			odd++
		}
	}
	text := ""
	if skipped > 0 {
		text += fmt.Sprintf(" %d of %d rounds were not read and have no %s.", skipped, len(rows), name)
	}
	if odd > 0 {
		text += fmt.Sprintf(" %d of %d rounds have no finite %s and are not drawn.", odd, len(rows), name)
	}
	return text
}

// What symbols in labels stand for.
const (
	messageNote   = "M is what the server decodes of a round: the sum of the devices' scaled loss differences Δf_i/μ_i, each times its gain h_i, and noise; the noiseless value is without."
	noiseNote     = "ε is the decoded message M less its noiseless value."
	deviationNote = " A predicted deviation is that of ε by the noise budget."
)

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

// spansDecades reports whether the series, none of which goes below zero, span
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
	f.Note = noiseNote
	if len(f.Series) > 1 {
		f.Note += deviationNote
	}
	f.Note += leftOut(rows, func(r runfolder.Row) float64 { return r.Eps }, "ε")
	return f
}

// deviationBand returns the band of k predicted deviations around zero.
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

// normalized returns the decoded noise in predicted deviations, of the rounds
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
		XLabel: "decoded noise ε / predicted deviation", Note: noiseNote + deviationNote, Name: "decoded noise", Values: z,
		Lo: -reach, Hi: reach, Reference: distuv.UnitNormal.Prob, ReferenceName: "standard normal",
	}
}

func messageFigure(rows []runfolder.Row) Figure {
	ideal := series(rows, func(r runfolder.Row) float64 { return r.MIdeal })
	ideal.Name, ideal.Color, ideal.Width = "noiseless value", Sky, 0.9
	decoded := series(rows, func(r runfolder.Row) float64 { return r.M })
	decoded.Name, decoded.Style, decoded.Color = "decoded message M", Points, Vermillion
	note := messageNote + leftOut(rows, func(r runfolder.Row) float64 { return r.M }, "M")
	return Figure{XLabel: roundLabel, YLabel: "message M", Note: note, Series: []Series{ideal, decoded}}
}
