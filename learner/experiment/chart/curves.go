package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// CurvePoint is what was measured of a blind receiver at one number of devices N,
// one standard deviation sigma of their gains and one SNR. Shares are from 0 to 1;
// what there is not is NaN.
type CurvePoint struct {
	Devices      int
	Sigma, SNRdB float64
	// First is the share read at the first attempt and Within that read within all
	// attempts, with intervals.
	First, FirstLow, FirstHigh    float64
	Within, WithinLow, WithinHigh float64
	// Misfit is the median of the largest |H_i/alpha - h_i|/|h_i|.
	Misfit float64
	// Reference is a share at the first attempt from elsewhere.
	Reference float64
}

// CurvePlots draws success curves into dir, with a title that says what was measured, and
// gives the files written, SVG and PNG
// of each: success-snr (the first attempt's share against the SNR: a panel a sigma,
// a line an N), success-retry (all attempts' share beside it, where there are
// several), success-devices (against N) and success-sigma, each at up to five SNRs
// that tell something, and misfit-snr. References, named referenceName, are open
// diamonds. On an error it gives the files written so far.
func CurvePlots(dir, title string, points []CurvePoint, attempts int, referenceName string) ([]string, error) {
	return save(dir, CurvePictures(title, points, attempts, referenceName))
}

// CurvePictures returns what CurvePlots draws.
func CurvePictures(title string, points []CurvePoint, attempts int, referenceName string) []Picture {
	c := curves{points: points, attempts: attempts}
	if slices.ContainsFunc(points, func(p CurvePoint) bool { return !math.IsNaN(p.Reference) }) {
		c.reference = referenceName
	}
	list := []namedPanels{{"success-snr", c.againstSNR()}}
	if attempts > 1 {
		list = append(list, namedPanels{"success-retry", c.retry()})
	}
	list = append(list, namedPanels{"success-devices", c.againstDevices()}, namedPanels{"success-sigma", c.againstSigma()}, namedPanels{"misfit-snr", c.misfit()})
	for i := range list {
		list[i].bound("values")
		list[i].note = strings.TrimSpace(curvesNote + " " + list[i].note)
	}
	return pictures(title, list)
}

// pictures returns panels under a title as pictures, but for those without any.
func pictures(title string, list []namedPanels) (out []Picture) {
	for _, p := range list {
		if len(p.list) == 0 {
			continue
		}
		p.title = title
		out = append(out, Picture{p.name, p.sheet})
	}
	return out
}

type namedPanels struct {
	name string
	panels
}

// The axes of curves, and what a coordinate is called in titles and legends.
const (
	snrLabel     = "SNR of a device (dB)"
	successLabel = "read at the first attempt (%)"
)

// wholeSpan is that of shares in per cent.
var wholeSpan = []float64{0, 100}

func devicesName(n float64) string { return "N = " + plainNumber(n) }
func sigmaName(s float64) string   { return "σ = " + plainNumber(s) }
func snrName(s float64) string     { return plainNumber(s) + " dB" }

func plainNumber(v float64) string { return minus(strconv.FormatFloat(v, 'g', 6, 64)) }

// curves are points to be drawn.
type curves struct {
	points    []CurvePoint
	attempts  int
	reference string
}

// coordinate is one of a point's three.
type coordinate func(CurvePoint) float64

func byDevices(p CurvePoint) float64 { return float64(p.Devices) }
func bySigma(p CurvePoint) float64   { return p.Sigma }
func bySNR(p CurvePoint) float64     { return p.SNRdB }

// values returns the different values of a coordinate, ascending.
func (c curves) values(of coordinate) []float64 {
	var values []float64
	for _, p := range c.points {
		values = append(values, of(p))
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// where returns the points at which two coordinates have given values, by the third.
func (c curves) where(a coordinate, at float64, b coordinate, bt float64, along coordinate) []CurvePoint {
	var found []CurvePoint
	for _, p := range c.points {
		if a(p) == at && b(p) == bt {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(p, q CurvePoint) int { return cmp.Compare(along(p), along(q)) })
	return found
}

func paletteAt(i int) Color { return Blue + Color(i%int(Black)) }

// shares returns a share with its band, in per cent.
func shares(points []CurvePoint, along coordinate, name string, color Color, of func(CurvePoint) (share, low, high float64)) (line, band Series) {
	line, band = Series{Name: name, Style: LinePoints, Color: color}, Series{Style: Band, Color: color}
	for _, p := range points {
		share, low, high := of(p)
		line.X, line.Y = append(line.X, along(p)), append(line.Y, 100*share)
		band.X, band.YLow, band.YHigh = append(band.X, along(p)), append(band.YLow, 100*low), append(band.YHigh, 100*high)
	}
	return line, band
}

func firstShare(p CurvePoint) (share, low, high float64)  { return p.First, p.FirstLow, p.FirstHigh }
func withinShare(p CurvePoint) (share, low, high float64) { return p.Within, p.WithinLow, p.WithinHigh }

// references returns what is known from elsewhere.
func references(points []CurvePoint, along coordinate, color Color) Series {
	s := Series{Style: Points, Color: color}
	for _, p := range points {
		s.X, s.Y = append(s.X, along(p)), append(s.Y, 100*p.Reference)
	}
	return s
}

// success draws the first attempt's share along a coordinate, a panel for each
// value of another and a line for each of a third.
func (c curves) success(along, across coordinate, title func(float64) string, of coordinate, name func(float64) string, lines []float64) panels {
	p := panels{yLabel: successLabel, ySpan: wholeSpan, openName: c.reference, note: intervalNote}
	for _, a := range c.values(across) {
		l := panel{title: title(a)}
		for i, v := range lines {
			points := c.where(across, a, of, v, along)
			line, band := shares(points, along, name(v), paletteAt(i), firstShare)
			l.series = append(l.series, band, line)
			l.open = append(l.open, references(points, along, paletteAt(i)))
		}
		p.list = append(p.list, l)
	}
	return p
}

func (c curves) againstSNR() panels {
	p := c.success(bySNR, bySigma, sigmaName, byDevices, devicesName, c.values(byDevices))
	p.xLabel = snrLabel
	return p
}

func (c curves) againstDevices() panels {
	p := c.success(byDevices, bySigma, sigmaName, bySNR, snrName, c.tellingSNRs())
	p.xLabel, p.xTicks = "devices N", c.fewTicks(byDevices)
	return p
}

func (c curves) againstSigma() panels {
	p := c.success(bySigma, byDevices, devicesName, bySNR, snrName, c.tellingSNRs())
	p.xLabel, p.xTicks = "deviation σ of the gains", c.fewTicks(bySigma)
	values := c.values(bySigma)
	p.logX = len(values) > 2 && values[0] > 0 && values[len(values)-1]/values[0] >= 5
	return p
}

// fewTicks returns the values of a coordinate if they are few enough to label an axis
// with, and else nil.
func (c curves) fewTicks(of coordinate) []float64 {
	const most = 6
	if v := c.values(of); len(v) <= most {
		return v
	}
	return nil
}

// tellingSNRs gives up to five SNRs at which not all points are read nearly always
// or nearly never, or, if there are none, up to five of all.
func (c curves) tellingSNRs() []float64 {
	const most = 5
	var telling []float64
	all := c.values(bySNR)
	for _, s := range all {
		if slices.ContainsFunc(c.points, func(p CurvePoint) bool { return p.SNRdB == s && p.First > 0.03 && p.First < 0.97 }) {
			telling = append(telling, s)
		}
	}
	if len(telling) == 0 {
		telling = all
	}
	if len(telling) <= most {
		return telling
	}
	var thinned []float64
	for i := range most {
		thinned = append(thinned, telling[i*(len(telling)-1)/(most-1)])
	}
	return thinned
}

// retry draws the share of all attempts beside that of the first.
func (c curves) retry() panels {
	p := panels{xLabel: snrLabel, yLabel: "read (%)", ySpan: wholeSpan, note: intervalNote}
	// What lines are is told in black, which N in colour.
	legend := []Series{
		{Name: fmt.Sprintf("within %d attempts", c.attempts), Color: Black},
		{Name: "at the first attempt", Color: Black, Dashed: true},
	}
	for _, sigma := range c.values(bySigma) {
		l := panel{title: sigmaName(sigma)}
		for i, n := range c.values(byDevices) {
			points := c.where(bySigma, sigma, byDevices, n, bySNR)
			first, _ := shares(points, bySNR, "", paletteAt(i), firstShare)
			first.Style, first.Dashed, first.Width = Line, true, 0.9
			within, band := shares(points, bySNR, devicesName(n), paletteAt(i), withinShare)
			within.Width = 1.4
			l.series = append(l.series, band, first, within)
		}
		l.series = append(l.series, legend...)
		p.list = append(p.list, l)
	}
	return p
}

// misfit draws how well the integers weigh the devices.
func (c curves) misfit() panels {
	p := panels{xLabel: snrLabel, yLabel: "median of the largest misfit (%)", logY: true, note: "The misfit of a device is |H_i/α − h_i|/|h_i|: how far the whole number H_i that it is counted with, by the scale α, is from its gain h_i."}
	for _, sigma := range c.values(bySigma) {
		l := panel{title: sigmaName(sigma)}
		for i, n := range c.values(byDevices) {
			s := Series{Name: devicesName(n), Style: LinePoints, Color: paletteAt(i)}
			for _, q := range c.where(bySigma, sigma, byDevices, n, bySNR) {
				s.X, s.Y = append(s.X, q.SNRdB), append(s.Y, 100*q.Misfit)
			}
			l.series = append(l.series, s)
		}
		p.list = append(p.list, l)
	}
	return p
}

// intervalNote says what bands are.
const intervalNote = "Bands are 95 % intervals."

// curvesNote says what symbols in titles and legends stand for.
const curvesNote = "N devices share the resource; their gains are N(1, σ²). The SNR is that of a device of gain 1."
