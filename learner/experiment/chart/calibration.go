package chart

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/plot/vg"
)

// CalibrationView is what a calibration measured, as plain numbers. What is empty is not
// drawn.
type CalibrationView struct {
	Title   string // what was calibrated
	Devices []LinkSeries
	// RoundSeconds is how long a round of the protocol lasts, 0 if not known.
	RoundSeconds float64
}

// LinkSeries is one device's link. Numbers that are missing are NaN.
type LinkSeries struct {
	Name string // as "device 1"

	// Gain are complex gains in the order of time, Seconds when each was measured and
	// Session in which session of streams; no Session stands for a single one.
	Gain    []complex128
	Seconds []float64
	Session []int
	// Delay, in samples, and Offset, in hertz, are of Gain's length or empty.
	Delay, Offset []float64

	// Effective are real effective gains, of any number, Mu and Sigma their mean and
	// deviation, and Density the one fitted to them, nil for none, named Model.
	Effective []float64
	Mu, Sigma float64
	Density   func(float64) float64
	Model     string

	// Autocorrelation of the gain is at Lags in seconds; between Low and High, of the
	// same length, it cannot be told from that of white noise.
	Lags, Autocorrelation, Low, High []float64

	// PhaseDeviation, in radians, and GainDeviation, relative, are Allan's.
	PhaseDeviation, GainDeviation Deviation

	// PhaseNoise is L(f) in dBc/Hz, GainNoise the gain's density in dB/Hz.
	PhaseNoise, GainNoise Noise
}

// Noise is a density in decibels at offsets in hertz, with the ends of its interval, which
// may be left out, and the density that the measurement itself has, NaN if not known.
// All slices are of one length.
type Noise struct {
	Offset, Value, Low, High []float64
	Floor                    float64
}

// Deviation is an Allan deviation at averaging times in seconds, with intervals, which
// may be left out. All slices are of one length.
type Deviation struct {
	Tau, Value, Low, High []float64
}

// mostPanels bounds the devices that are drawn in panels of their own.
const mostPanels = 12

// CalibrationPlots draws a calibration into dir and gives the files written, SVG and PNG
// of each: gain-clouds (the complex plane, a panel a device, each session with its mean
// and its ellipse of one deviation), gain-histogram (real effective gains with the
// density fitted), gain-time and phase-time, delay-time and offset-time where they were
// measured, autocorrelation, allan and noise (spectra of phase and gain). Panels are of
// the first twelve devices; where all share one, those beyond have one colour and name.
// On an error it gives the files written so far.
func CalibrationPlots(dir string, v CalibrationView) ([]string, error) {
	return save(dir, CalibrationPictures(v))
}

// CalibrationPictures returns what CalibrationPlots draws.
func CalibrationPictures(v CalibrationView) []Picture {
	list := pictures(v.Title, []namedPanels{
		{"gain-clouds", v.clouds()},
		{"gain-histogram", v.histograms()},
		{"gain-time", v.strips("|gain|", magnitudes)},
		{"phase-time", v.strips("phase (rad)", phases)},
		{"delay-time", v.strips("delay (samples)", func(d LinkSeries) []float64 { return d.Delay })},
		{"offset-time", v.strips("offset (Hz)", func(d LinkSeries) []float64 { return d.Offset })},
		{"allan", v.allan()},
		{"noise", v.noise()},
	})
	if f := v.autocorrelation(); len(f.Series) > 0 {
		list = append(list, picture("autocorrelation", v.Title, f))
	}
	return list
}

// byDevice returns panels of the devices for which panelOf has anything to draw.
func (v CalibrationView) byDevice(p panels, panelOf func(LinkSeries) panel) panels {
	for _, d := range v.Devices {
		if l := panelOf(d); len(l.series) > 0 {
			p.list = append(p.list, l)
		}
	}
	p.bound("devices")
	if len(p.list) == 1 { // alone, a panel may be as large as a figure
		p.tile = vg.Point{X: 13 * vg.Centimeter, Y: 9 * vg.Centimeter}
	}
	return p
}

// stretch is the part of a device's gains that one session holds.
type stretch struct {
	session  int
	from, to int
}

func (d LinkSeries) stretches() []stretch {
	if len(d.Session) != len(d.Gain) {
		return []stretch{{0, 0, len(d.Gain)}}
	}
	var all []stretch
	for k, s := range d.Session {
		if k == 0 || s != d.Session[k-1] {
			all = append(all, stretch{session: s, from: k})
		}
		all[len(all)-1].to = k + 1
	}
	return all
}

// sessionName is for legends; one session needs none.
func sessionName(i, of int) string {
	if of == 1 {
		return "gains"
	}
	return fmt.Sprintf("session %d", i+1)
}

func (v CalibrationView) clouds() panels {
	p := panels{xLabel: "real part of the gain", yLabel: "imaginary part", own: true, square: true, openName: "mean"}
	return v.byDevice(p, func(d LinkSeries) panel {
		l := panel{title: d.Name}
		all := d.stretches()
		var ellipses []Series // over the dots of all sessions
		for i, s := range all {
			cloud := finiteGains(d.Gain[s.from:s.to])
			if len(cloud) == 0 {
				continue
			}
			dots := Series{Name: sessionName(i, len(all)), Style: Points, Color: paletteAt(i)}
			for _, g := range cloud {
				dots.X, dots.Y = append(dots.X, real(g)), append(dots.Y, imag(g))
			}
			mean, ellipse := spread(cloud)
			ellipse.Name, ellipse.Color, ellipse.Width = "one deviation", Black, 0.9
			l.series, ellipses = append(l.series, dots), append(ellipses, ellipse)
			l.open = append(l.open, Series{Style: Points, Color: Black, X: []float64{real(mean)}, Y: []float64{imag(mean)}})
		}
		l.series = append(l.series, ellipses...)
		return l
	})
}

func finiteGains(gains []complex128) []complex128 {
	return slices.DeleteFunc(slices.Clone(gains), func(g complex128) bool { return cmplx.IsNaN(g) || cmplx.IsInf(g) })
}

// spread returns the mean of a cloud and the ellipse on which a Gaussian of its covariance
// is one deviation off in every direction.
func spread(cloud []complex128) (mean complex128, ellipse Series) {
	n := complex(float64(len(cloud)), 0)
	for _, g := range cloud {
		mean += g / n
	}
	var xx, xy, yy float64
	for _, g := range cloud {
		x, y := real(g-mean), imag(g-mean)
		xx, xy, yy = xx+x*x/real(n), xy+x*y/real(n), yy+y*y/real(n)
	}
	// Half lengths and turn of its axes are the eigenvalues' roots and eigenvectors.
	middle, reach := (xx+yy)/2, math.Hypot((xx-yy)/2, xy)
	long, short := math.Sqrt(middle+reach), math.Sqrt(math.Max(0, middle-reach))
	turn := cmplx.Rect(1, math.Atan2(2*xy, xx-yy)/2)
	const corners = 90
	for k := range corners + 1 {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / corners)
		e := mean + turn*complex(long*cos, short*sin)
		ellipse.X, ellipse.Y = append(ellipse.X, real(e)), append(ellipse.Y, imag(e))
	}
	return mean, ellipse
}

func (v CalibrationView) histograms() panels {
	p := panels{xLabel: "real effective gain", yLabel: "probability density", own: true, note: "μ is the mean and σ the deviation of the real effective gain, the real part of a gain whose long-term phase is turned to zero."}
	return v.byDevice(p, func(d LinkSeries) panel {
		if len(finite(d.Effective)) == 0 {
			return panel{}
		}
		h := Histogram{Name: "measured", Values: d.Effective, Reference: d.Density, ReferenceName: d.Model}
		return panel{title: fmt.Sprintf("%s: μ = %s, σ = %s", d.Name, short(d.Mu), short(d.Sigma)), series: h.figure().Series}
	})
}

// short writes a number with three digits.
func short(v float64) string { return minus(fmt.Sprintf("%.3g", v)) }

func magnitudes(d LinkSeries) []float64 {
	var m []float64
	for _, g := range d.Gain {
		m = append(m, cmplx.Abs(g))
	}
	return m
}

// phases returns each gain's phase within half a turn of the first session's mean, so that
// one that is steady near half a turn does not jump by a whole one.
func phases(d LinkSeries) []float64 {
	var mean complex128
	if all := d.stretches(); len(all) > 0 {
		for _, g := range finiteGains(d.Gain[:all[0].to]) {
			mean += g
		}
	}
	middle := cmplx.Phase(mean)
	var p []float64
	for _, g := range d.Gain {
		p = append(p, middle+cmplx.Phase(g*cmplx.Rect(1, -middle)))
	}
	return p
}

// fewStrips is how many stand one below the other; more take two columns.
const fewStrips = 6

// strips draws a quantity over time: a strip a device, one below the other, each with a
// scale of its own, so that the steadiest device's wander is seen, too.
func (v CalibrationView) strips(yLabel string, of func(LinkSeries) []float64) panels {
	p := panels{xLabel: "time (s)", yLabel: yLabel, own: true, columns: 1, tile: vg.Point{X: 15 * vg.Centimeter, Y: 3.4 * vg.Centimeter}}
	if len(v.Devices) > fewStrips {
		p.columns, p.tile.X = 2, 12*vg.Centimeter
	}
	return v.byDevice(p, func(d LinkSeries) panel {
		l := panel{title: d.Name}
		y := of(d)
		if len(finite(y)) == 0 || len(y) != len(d.Seconds) {
			return panel{}
		}
		all := d.stretches()
		for i, s := range all {
			from, to := min(s.from, len(y)), min(s.to, len(y))
			l.series = append(l.series, Series{Name: sessionName(i, len(all)), Style: Points, Color: paletteAt(i), X: d.Seconds[from:to], Y: y[from:to]})
		}
		return l
	})
}

// autocorrelation draws all devices in one figure.
func (v CalibrationView) autocorrelation() Figure {
	f := Figure{XLabel: "lag (s)", YLabel: "autocorrelation of the gain"}
	var band Series
	var last extent
	for i, d := range v.Devices {
		if len(d.Lags) == 0 {
			continue
		}
		band.widen(d)
		for _, x := range d.Lags {
			last.add(x)
		}
		f.Series = append(f.Series, v.deviceLine(i, d.Lags, d.Autocorrelation))
	}
	othersBehind(f.Series)
	if len(f.Series) == 0 {
		return f
	}
	if len(band.X) > 0 {
		f.Series = append(f.Series, band)
	}
	// Far beyond the lags a line would press them together.
	switch t := v.RoundSeconds; {
	case t > 0 && t <= 1.5*last.hi:
		f.Series = append(f.Series, Series{Name: "a round's duration", Color: Black, Dashed: true, X: []float64{t, t}, Y: []float64{0, 1}})
	case t > 0:
		f.XLabel += fmt.Sprintf(" – a round lasts %s s, beyond this range", short(t))
	}
	return f
}

// widen has a band be of a device, too: where it says more than that of others, theirs.
func (s *Series) widen(d LinkSeries) {
	if len(d.Low) != len(d.Lags) || len(d.High) != len(d.Lags) {
		return
	}
	if len(s.X) < len(d.Lags) {
		d.Low, d.High, s.YLow, s.YHigh = s.YLow, s.YHigh, slices.Clone(d.Low), slices.Clone(d.High)
		s.Name, s.Style, s.Color, s.X = "no correlation from a lag on, 95 %", Band, Black, d.Lags
	}
	for k := range d.Low {
		s.YLow[k], s.YHigh[k] = min(s.YLow[k], d.Low[k]), max(s.YHigh[k], d.High[k])
	}
}

// deviceLine returns a line in the colour of a device's position; dashed where the palette
// has been used up once, and gray where readers could not tell it from others any more.
func (v CalibrationView) deviceLine(position int, x, y []float64) Series {
	if others := len(v.Devices) - mostPanels; others > 0 && position >= mostPanels {
		return Series{Name: fmt.Sprintf("%d others", others), X: x, Y: y, Color: Gray, Width: otherWidth}
	}
	s := Series{Name: v.Devices[position].Name, X: x, Y: y, Color: paletteAt(position), Dashed: position/int(Black)%2 == 1}
	if !s.Dashed && len(x) <= 60 {
		s.Style = LinePoints
	}
	return s
}

// otherWidth is that of lines of devices that are not told apart.
const otherWidth = 0.4

// othersBehind puts gray lines first, below those that are told apart, and leaves but one
// of them its name.
func othersBehind(list []Series) {
	slices.SortStableFunc(list, func(a, b Series) int { return behind(a) - behind(b) })
	for i := range list {
		if i > 0 && list[i].Color == Gray && list[i-1].Color == Gray {
			list[i].Name = ""
		}
	}
}

func behind(s Series) int {
	if s.Color == Gray {
		return 0
	}
	return 1
}

// fewLinks is how many devices at most have their intervals drawn: few enough to tell
// whose one is.
const fewLinks = 4

// allan draws the Allan deviations of phase and of gain, with bars for their intervals.
func (v CalibrationView) allan() panels {
	p := panels{note: allanNote, xLabel: "averaging time (s)", yLabel: "Allan deviation", logX: true, logY: true, own: true, tile: pairTile}
	for _, q := range []struct {
		title string
		of    func(LinkSeries) Deviation
	}{
		{"phase (rad/s)", func(d LinkSeries) Deviation { return d.PhaseDeviation }},
		{"gain (relative)", func(d LinkSeries) Deviation { return d.GainDeviation }},
	} {
		p.add(q.title, v.Devices, func(i int, d LinkSeries) []Series {
			a := q.of(d)
			if len(a.Tau) == 0 {
				return nil
			}
			line := []Series{v.deviceLine(i, a.Tau, a.Value)}
			if len(v.Devices) > fewLinks {
				return line
			}
			return append(line, a.bars(paletteAt(i))...)
		})
	}
	return p
}

const allanNote = "The Allan deviation is that between means over neighbouring stretches of the averaging time; bars, of few devices, are its 95 % intervals."

// pairTile is the size of two panels that stand beside each other alone.
var pairTile = vg.Point{X: 8.5 * vg.Centimeter, Y: 8 * vg.Centimeter}

// add adds a panel of all devices, if there is anything in it.
func (p *panels) add(title string, devices []LinkSeries, of func(i int, d LinkSeries) []Series) {
	l := panel{title: title}
	for i, d := range devices {
		l.series = append(l.series, of(i, d)...)
	}
	othersBehind(l.series)
	if len(l.series) > 0 {
		p.list = append(p.list, l)
	}
}

// noise draws the spectra of phase and of gain over the offset from the carrier, with
// bands for their intervals, and lines at what the measurement itself has.
func (v CalibrationView) noise() panels {
	p := panels{note: "L(f) is the phase's density in one sideband, against the carrier.", xLabel: "offset from the carrier (Hz)", yLabel: "density", logX: true, own: true, tile: pairTile}
	for _, q := range []struct {
		title string
		of    func(LinkSeries) Noise
	}{
		{"phase noise L(f) (dBc/Hz)", func(d LinkSeries) Noise { return d.PhaseNoise }},
		{"gain, relative (dB/Hz)", func(d LinkSeries) Noise { return d.GainNoise }},
	} {
		p.add(q.title, v.Devices, func(i int, d LinkSeries) []Series {
			n := q.of(d)
			if len(n.Offset) == 0 {
				return nil
			}
			return n.series(v.deviceLine(i, n.Offset, n.Value), len(v.Devices) <= fewLinks)
		})
	}
	if n := len(p.list); n > 0 { // in the legend once, in no device's colour
		p.list[n-1].series = append(p.list[n-1].series, Series{Name: "noise of the soundings", Width: floorWidth, Color: Black})
	}
	return p
}

// series returns the line of a device with its interval and its floor.
func (n Noise) series(line Series, interval bool) []Series {
	color, out := line.Color, []Series{line}
	if interval && len(n.Low) == len(n.Offset) && len(n.High) == len(n.Offset) {
		out = append(out, Series{Style: Band, Faint: true, Color: color, X: n.Offset, YLow: n.Low, YHigh: n.High})
	}
	ends := []float64{n.Offset[0], n.Offset[len(n.Offset)-1]}
	return append(out, Series{Width: floorWidth, Color: color, X: ends, Y: []float64{n.Floor, n.Floor}})
}

// floorWidth is that of the lines at what a measurement itself has.
const floorWidth = 0.6

// bars returns a line from low to high at every point that has both.
func (a Deviation) bars(color Color) []Series {
	if len(a.Low) != len(a.Tau) || len(a.High) != len(a.Tau) {
		return nil
	}
	var bars []Series
	for k, tau := range a.Tau {
		bars = append(bars, Series{Color: color, Width: 0.7, X: []float64{tau, tau}, Y: []float64{a.Low[k], a.High[k]}})
	}
	return bars
}
