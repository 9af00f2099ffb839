package chart

import (
	"fmt"
	"math"
	"math/cmplx"

	"github.com/mjibson/go-dsp/dsputils"
	"github.com/mjibson/go-dsp/fft"
	"github.com/mjibson/go-dsp/window"
	"gonum.org/v1/gonum/floats"

	"ringwave/phy/lattice"
	"ringwave/phy/modem"
)

// LinkView is one frame as a receiver had it. What is empty is not drawn.
type LinkView struct {
	// Frame says which frame it is, and Failure why it was not read, "" if it was.
	Frame, Failure string
	// Symbols are complex ones, of the scale of Soft, on the axis that devices have in
	// common; SNR is what the preamble says of them, in dB, NaN if nothing does.
	Symbols []complex64
	SNR     float64
	// Tracked is the phase as it was tracked, and Seen what the axis of some symbols shows
	// of it, in radians at Seconds from the payload on; empty or NaN where there is none.
	Seconds, Tracked, Seen []float64
	// Reference has the shares of the power of ideal symbols, in bins as
	// modem.Config.Spectrum has them, and Floor is the power a sample of what moves in the
	// silence around the frame; 0 if it is not known.
	Reference []float64
	Floor     float64
	// Density is what decides about the symbols.
	Density lattice.View
	// Samples are of the frame, SampleRate their number a second.
	Samples          []complex64
	SampleRate       float64
	SamplesPerSymbol int
	// Centre is the middle of some symbol in Samples, fractional, and Phase the
	// common phase in radians.
	Centre, Phase float64
	// Soft are superposed soft symbols, of which Alpha makes nearly integers.
	Soft  []float32
	Alpha float64
}

// FramePlots draws a frame into dir, in files whose names have a prefix, with a title that
// says what ran and which frame it is: spectrum, eye, scatter (symbols in the plane), phase
// (as it was tracked), constellation (symbols in their order), density (with the teeth that
// decide) and, where a scale is known, lattice-distance. It gives the files as LinkPlots
// does.
func FramePlots(dir, prefix, title string, v LinkView) ([]string, error) {
	title += " \u2013 " + v.Frame
	note := ""
	if v.Failure != "" {
		title += ", not read"
		note = "Not read: " + v.Failure + ". "
	}
	var pictures []Picture
	for _, p := range v.figures() {
		p.figure.Note = note + p.figure.Note
		pictures = append(pictures, picture(prefix+p.name, title, p.figure))
	}
	return save(dir, pictures)
}

// namedFigure is a figure, and its base name.
type namedFigure struct {
	name   string
	figure Figure
}

// figures returns what can be drawn of a frame.
func (v LinkView) figures() (list []namedFigure) {
	if len(v.Samples) >= SpectrumBins && v.SampleRate > 0 {
		list = append(list, namedFigure{"spectrum", v.spectrumFigure()})
	}
	if traces := v.eye(); len(traces) > 0 {
		list = append(list, namedFigure{"eye", Figure{
			XLabel: "time (symbols)", YLabel: "real part at the common phase", Series: traces,
			Note: fmt.Sprintf("%d stretches of two symbols of the frame; at 0 is the middle of a symbol.", len(traces)),
		}})
	}
	if len(v.Symbols) > 0 {
		list = append(list, namedFigure{"scatter", v.scatterFigure()})
	}
	if len(v.Seconds) > 0 {
		list = append(list, namedFigure{"phase", v.phaseFigure()})
	}
	if len(v.Soft) > 0 {
		list = append(list, namedFigure{"constellation", v.constellationFigure()})
	}
	if len(v.Density.Count) > 0 {
		list = append(list, namedFigure{"density", v.densityFigure()})
	}
	if len(v.Soft) > 0 && v.Alpha > 0 {
		list = append(list, namedFigure{"lattice-distance", v.distances().figure()})
	}
	return list
}

// SpectrumBins is the resolution of the spectrum, and of LinkView.Reference.
const SpectrumBins = 1024

// spectrumFigure is Welch's estimate: the mean over Hann-windowed periodograms
// that overlap by half. spectral.Pwelch takes real samples only.
func (v LinkView) spectrumFigure() Figure {
	taper := window.Hann(SpectrumBins)
	energy := floats.Dot(taper, taper)
	segments := v.segments()
	power, windowed := make([]float64, SpectrumBins), make([]complex128, SpectrumBins)
	for _, segment := range segments {
		for k, x := range segment { // segments share samples
			windowed[k] = x * complex(taper[k], 0)
		}
		for k, b := range fft.FFT(windowed) {
			power[k] += real(b)*real(b) + imag(b)*imag(b)
		}
	}
	for k := range power {
		power[k] /= float64(len(segments)) * energy // the mean power a sample, in a bin of 1
	}
	f := Figure{XLabel: "frequency (kHz)", YLabel: "power spectral density (dB/Hz)"}
	f.Series = append(f.Series, v.spectrumSeries(power, Series{Name: "received", Color: Blue, Width: 0.9}))
	if len(v.Reference) != SpectrumBins {
		return f
	}
	f.Series = append(f.Series, v.spectrumSeries(v.expected(power), Series{Name: "ideal symbols of this power, and the floor", Color: Vermillion, Width: 0.9, Dashed: true}))
	if v.Floor > 0 {
		floor := make([]float64, SpectrumBins)
		for k := range floor {
			floor[k] = v.Floor
		}
		f.Series = append(f.Series, v.spectrumSeries(floor, Series{Name: "floor in the silence around the frame", Color: Gray, Width: 0.9}))
	}
	f.Series = append(f.Series, v.bandSeries(power)...)
	return f
}

// expected returns the spectrum of ideal symbols of the power of a spectrum, over the floor.
func (v LinkView) expected(power []float64) []float64 {
	signal := floats.Sum(power)/SpectrumBins - v.Floor
	out := make([]float64, SpectrumBins)
	for k, share := range v.Reference {
		out[k] = share*SpectrumBins*math.Max(0, signal) + v.Floor
	}
	return out
}

// spectrumSeries lays powers of bins out over frequencies.
func (v LinkView) spectrumSeries(power []float64, s Series) Series {
	for k := -SpectrumBins / 2; k < SpectrumBins/2; k++ {
		s.X = append(s.X, float64(k)/SpectrumBins*v.SampleRate/1e3)
		s.Y = append(s.Y, 10*math.Log10(power[(k+SpectrumBins)%SpectrumBins]/v.SampleRate))
	}
	return s
}

// bandSeries are lines at the edges of the band that holds 99 % of a spectrum, as high as
// that is.
func (v LinkView) bandSeries(power []float64) []Series {
	above := make([]float64, len(power))
	for k, p := range power {
		above[k] = math.Max(0, p-v.Floor)
	}
	low, high := modem.OccupiedBand(above, 0.99)
	from, to := float64(low)*v.SampleRate/1e3, float64(high)*v.SampleRate/1e3
	bottom, top := 10*math.Log10(floats.Min(power)/v.SampleRate), 10*math.Log10(floats.Max(power)/v.SampleRate)
	edge := Series{Name: fmt.Sprintf("99 %% of the power within %.4g kHz", to-from), Color: Green, Width: 0.9, X: []float64{from, from}, Y: []float64{bottom, top}}
	other := edge
	other.Name, other.X = "", []float64{to, to}
	return []Series{edge, other}
}

// segments returns the stretches of SpectrumBins samples that overlap by half, as many as
// there are whole ones. dsputils.Segment is asked for a number of them and finds the
// length itself: it is given no sample more than they take.
func (v LinkView) segments() [][]complex128 {
	const half = SpectrumBins / 2
	n := len(v.Samples)/half - 1
	samples := make([]complex128, (n+1)*half)
	for k := range samples {
		samples[k] = complex128(v.Samples[k])
	}
	return dsputils.Segment(samples, n, 0.5)
}

// eyeTraces is how many stretches of two symbols an eye diagram has.
const eyeTraces = 200

// eye returns stretches of two symbols, their middle ones' centres at 0.
func (v LinkView) eye() []Series {
	var traces []Series
	turn := cmplx.Exp(complex(0, -v.Phase))
	period := float64(v.SamplesPerSymbol)
	for k := 0; k < eyeTraces && period > 0; k++ {
		centre := v.Centre + float64(k)*period
		if !(centre-period > -1 && centre+period < float64(len(v.Samples))) { // NaN, too
			break
		}
		first, last := int(math.Ceil(centre-period)), int(math.Floor(centre+period))
		s := Series{Color: Blue, Width: 0.25}
		for i := first; i <= last; i++ {
			s.X = append(s.X, (float64(i)-centre)/period)
			s.Y = append(s.Y, real(complex128(v.Samples[i])*turn))
		}
		traces = append(traces, s)
	}
	return traces
}

// constellationSymbols bounds the constellation: more would be a grey field.
const constellationSymbols = 4000

// scale returns alpha, or 1 where none is known, and what it makes of y.
func (v LinkView) scale() (alpha float64, label, note string) {
	if v.Alpha > 0 {
		return v.Alpha, "αy", latticeNote
	}
	return 1, "y", "y are received symbols, in units of the digit 1 of a device of gain 1: no scale is known for them."
}

// constellationFigure shows symbols in their order, and the integers as lines.
func (v LinkView) constellationFigure() Figure {
	alpha, label, note := v.scale()
	dots := Series{Name: "received symbols", Style: Points, Color: Blue}
	reach := 1.0
	for k, y := range v.Soft[:min(len(v.Soft), constellationSymbols)] {
		z := alpha * float64(y)
		if _, ok := drawable(z, false); ok {
			reach = math.Max(reach, math.Abs(z))
		}
		dots.X, dots.Y = append(dots.X, float64(k)), append(dots.Y, z)
	}
	f := Figure{XLabel: "symbol", YLabel: label, Note: note}
	if reach > mostLines/6 {
		f.Height = 2 * DefaultHeight // room for a line an integer
	}
	if v.Alpha > 0 {
		f.Series = latticeLines(reach, 0, float64(len(dots.X)))
	}
	f.Series = append(f.Series, dots)
	return f
}

// mostLines is how many lines show integers; beyond they would hide what is between.
const mostLines = 81

// latticeLines are lines at the integers up to a magnitude, or at some, evenly apart.
func latticeLines(reach, from, to float64) (lines []Series) {
	last := math.Round(math.Min(reach, lattice.MaxLevel))
	step := math.Ceil((2*last + 1) / mostLines)
	last = math.Floor(last/step) * step
	for i := -last; i <= last; i += step {
		line := Series{X: []float64{from, to}, Y: []float64{i, i}, Color: Orange, Width: 0.5}
		if i == 0 {
			line.Name = "lattice"
			if step > 1 {
				line.Name = fmt.Sprintf("lattice, each %.0fth", step)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// scatterFigure shows symbols in the plane: what they carry lies along the one axis, and
// what is beside it is error.
func (v LinkView) scatterFigure() Figure {
	alpha, label, note := v.scale()
	dots := Series{Style: Points, Color: Blue, Name: "received symbols"}
	for _, y := range v.Symbols[:min(len(v.Symbols), constellationSymbols)] {
		dots.X, dots.Y = append(dots.X, alpha*float64(real(y))), append(dots.Y, alpha*float64(imag(y)))
	}
	evm, along := v.errorVector()
	note += fmt.Sprintf(" The error vector, from %s, is %.2g %% of the symbols' root mean square", along, 100*evm)
	if evm > 0 {
		note += fmt.Sprintf(" (%.3g dB)", -20*math.Log10(evm))
	}
	if !math.IsNaN(v.SNR) {
		note += fmt.Sprintf("; the preamble's symbols are %.3g dB above noise and interference", v.SNR)
	}
	return Figure{XLabel: label + " along the common axis", YLabel: label + " beside it", Note: note + ".", Series: []Series{dots}}
}

// errorVector returns the root mean square of what symbols are off the lattice, or where
// no scale is known off the axis, over that of the symbols, and says from what it is.
func (v LinkView) errorVector() (evm float64, from string) {
	from = "the nearest point of the lattice"
	if !(v.Alpha > 0) {
		from = "the common axis"
	}
	off, all := 0.0, 0.0
	for _, y := range v.Symbols {
		x, beside := float64(real(y)), float64(imag(y))
		if math.IsNaN(x) || math.IsNaN(beside) {
			continue
		}
		all += x*x + beside*beside
		off += beside * beside
		if v.Alpha > 0 {
			d := x - math.Round(v.Alpha*x)/v.Alpha
			off += d * d
		}
	}
	if all == 0 {
		return 0, from
	}
	return math.Sqrt(off / all), from
}

// phaseFigure shows how the common phase moves along the frame.
func (v LinkView) phaseFigure() Figure {
	seen, tracked := Series{Name: "as the axis of symbols shows it", Style: Points, Color: Sky}, Series{Name: "as it was tracked", Color: Blue}
	for k, t := range v.Seconds {
		if k < len(v.Seen) {
			seen.X, seen.Y = append(seen.X, 1e3*t), append(seen.Y, v.Seen[k])
		}
		if k < len(v.Tracked) {
			tracked.X, tracked.Y = append(tracked.X, 1e3*t), append(tracked.Y, v.Tracked[k])
		}
	}
	if len(tracked.X) == 0 {
		tracked.Name += ": it was not, but held"
	}
	return Figure{XLabel: "time in the frame (ms)", YLabel: "common phase (rad)", Series: []Series{seen, tracked},
		Note: "The phase of all devices together beyond phase and frequency of the preamble. Devices' phases that differ move the axis by a constant."}
}

// densityFigure shows the density of a frame's first symbols, and the teeth by which they
// are read.
func (v LinkView) densityFigure() Figure {
	alpha, label, note := v.scale()
	d := v.Density
	f := Figure{XLabel: "|" + label + "|", YLabel: "symbols in a bin", Note: note}
	for i, t := range d.Teeth {
		top := tallest(d, t)
		band := Series{Style: Band, Color: [...]Color{Orange, Sky}[i%2], X: []float64{alpha * t.From, alpha * t.To}, YLow: []float64{0, 0}, YHigh: []float64{top, top}}
		if i < 2 {
			band.Name = "teeth"
			if i == 1 {
				band.Name = ""
			}
		}
		f.Series = append(f.Series, band)
	}
	counts := Series{Name: "symbols", Color: Black, Width: 0.5}
	for k, n := range d.Count {
		counts.X, counts.Y = append(counts.X, alpha*float64(k)*d.Width), append(counts.Y, n)
	}
	f.Series = append(f.Series, counts)
	f.Note += " " + v.decision()
	return f
}

// decision says what decides about the symbols.
func (v LinkView) decision() string {
	switch d := v.Density; {
	case v.Alpha == 0:
		return fmt.Sprintf("The density has %d teeth, and no scale makes them whole numbers that the check accepts.", len(d.Teeth))
	case d.Plain:
		return fmt.Sprintf("Of the %d teeth one lies too near to half a number (its margin is %.2g of one): each symbol is read as the whole number next to it.", len(d.Teeth), d.Margin)
	default:
		last := d.Teeth[len(d.Teeth)-1]
		return fmt.Sprintf("All symbols of a tooth are read as the whole number next to its middle, up to %d here; the worst tooth stays %.2g of one from being read as another.", last.Integer, d.Margin)
	}
}

// tallest returns the most symbols that a bin of a tooth has.
func tallest(d lattice.View, t lattice.Tooth) float64 {
	most := 0.0
	for k := max(0, int(t.From/d.Width)); k < len(d.Count) && float64(k)*d.Width <= t.To; k++ {
		most = math.Max(most, d.Count[k])
	}
	return most
}

// distances is the histogram of how far symbols lie from the lattice.
func (v LinkView) distances() Histogram {
	h := Histogram{XLabel: "αy − nearest integer", Note: latticeNote, Name: "received symbols", Lo: -0.5, Hi: 0.5}
	for _, y := range v.Soft {
		z := v.Alpha * float64(y)
		h.Values = append(h.Values, z-math.Round(z))
	}
	return h
}
