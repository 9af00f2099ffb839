package paper

import (
	"fmt"
	"math"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/report"
)

// cifarFigures draws, for each sigma, smoothed training loss and test accuracy.
func (r *reproduction) cifarFigures(s *report.Section, runs []cifarRun, base, caption string) error {
	for _, sigma := range []float64{10, 1} {
		var losses, accuracy []chart.Series
		window, color := 1, chart.Blue
		for _, run := range runs {
			if run.sigma != sigma {
				continue
			}
			for _, c := range run.curves() {
				window = max(window, smoothing(c.results))
				losses = append(losses, c.smoothLoss(run.perSample(), color)...)
				accuracy = append(accuracy, c.accuracy(color)...)
				color++
			}
		}
		if len(losses) == 0 {
			continue
		}
		name := fmt.Sprintf("%s-sigma-%v", base, sigma)
		f, err := r.figure(name, fmt.Sprintf("%s, sigma = %v: training loss of a sample, smoothed by the running median over %d rounds. Median over seeds; bands, where there are several, are quartiles. What is above %d, of runs that blow up, is not drawn.", caption, sigma, window, mostLoss),
			chart.Figure{XLabel: "round k", YLabel: fmt.Sprintf("training loss, running median over %d rounds", window), Series: losses})
		if err != nil {
			return err
		}
		g, err := r.figure(name+"-accuracy", fmt.Sprintf("%s, sigma = %v: test accuracy. Median over seeds; bands, where there are several, are quartiles.", caption, sigma),
			chart.Figure{XLabel: "round k", YLabel: "test accuracy, %", Series: accuracy})
		if err != nil {
			return err
		}
		s.Blocks = append(s.Blocks, f, g)
	}
	return nil
}

// curve is a line of a figure.
type curve struct {
	name    string
	results []cellResult
	dashed  bool
}

// curves names what of a run is drawn. Encrypted runs are dashed: they lie on the
// unencrypted ones.
func (run cifarRun) curves() []curve {
	label := fmt.Sprintf("%s, eta0 = %v", run.name, run.eta0)
	if run.full == cifarStated()[0].rounds && run.eta0 == cifarStated()[0].eta0 {
		label = "batch " + run.loss
	}
	out := []curve{{label + ", no encryption", run.plain, false}}
	if run.encrypted != nil {
		out = append(out, curve{label + ", encrypted", run.encrypted, true})
	}
	if run.noisy != nil {
		out = append(out, curve{label + ", no encryption, sigma_n = 1", run.noisy, false})
	}
	return out
}

// mostLoss is the largest loss of a sample that is drawn: guessing costs ln 2, and runs
// that blow up would leave nothing of the others to be seen.
const mostLoss = 3

// smoothing is the odd number of rounds over which a loss is smoothed.
func smoothing(results []cellResult) int {
	rounds := 0
	for _, c := range results {
		rounds = max(rounds, c.rounds())
	}
	return min(51, rounds/10*2+1)
}

// runningMedian returns the median of the window around each value, which is narrower at
// the ends.
func runningMedian(values []float64, window int) []float64 {
	out := make([]float64, len(values))
	for k := range values {
		half := min(window/2, k, len(values)-1-k)
		_, out[k], _ = chart.Quartiles(values[k-half : k+half+1])
	}
	return out
}

// smoothLoss draws the loss of a sample.
func (c curve) smoothLoss(perSample float64, color chart.Color) []chart.Series {
	window := smoothing(c.results)
	var rows [][]float64
	for _, res := range c.results {
		var losses []float64
		for _, l := range res.Loss {
			losses = append(losses, float64(l)/perSample)
		}
		losses = runningMedian(losses, window)
		for k, l := range losses {
			if l > mostLoss {
				losses[k] = math.Inf(1)
			}
		}
		rows = append(rows, losses)
	}
	return spreadCurve(c.name, rows, func(k int) float64 { return float64(k + 1) }, color, c.dashed)
}

// accuracy draws the test accuracy at every evaluation.
func (c curve) accuracy(color chart.Color) []chart.Series {
	var rows [][]float64
	var rounds []int
	for _, res := range c.results {
		var at []float64
		for _, a := range res.Accuracies {
			at = append(at, 100*a)
		}
		rows = append(rows, at)
		if len(res.Evaluated) > len(rounds) {
			rounds = res.Evaluated
		}
	}
	return spreadCurve(c.name, rows, func(k int) float64 { return float64(rounds[k]) }, color, c.dashed)
}

// spreadCurve draws the median over rows, and a band of their quartiles where there are
// several, at the places x(0), x(1), ...
func spreadCurve(name string, rows [][]float64, x func(k int) float64, color chart.Color, dashed bool) []chart.Series {
	length := 0
	for _, row := range rows {
		length = max(length, len(row))
	}
	line, band := chart.Series{Name: name, Color: color, Dashed: dashed}, chart.Series{Style: chart.Band, Color: color}
	for k := range length {
		var at []float64
		for _, row := range rows {
			if k < len(row) {
				at = append(at, row[k])
			}
		}
		sp := quartilesOf(at)
		line.X, line.Y = append(line.X, x(k)), append(line.Y, sp.median)
		band.X, band.YLow, band.YHigh = append(band.X, x(k)), append(band.YLow, sp.low), append(band.YHigh, sp.high)
	}
	if len(rows) < 2 {
		return []chart.Series{line}
	}
	return []chart.Series{band, line}
}
