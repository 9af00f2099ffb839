package chart

import (
	"fmt"
	"math"
	"math/cmplx"

	"github.com/mjibson/go-dsp/dsputils"
	"github.com/mjibson/go-dsp/fft"
	"github.com/mjibson/go-dsp/window"
	"gonum.org/v1/gonum/floats"

	"ringwave/learner/experiment/runfolder"
)

// LinkView is one frame as a receiver had it. What is empty is not drawn.
type LinkView struct {
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

// LinkPlots draws what a radio engineer wants to see of a run into dir, with a title that
// says what ran, and gives the files written, SVG and PNG of each: quality (of the lattice, over rounds)
// and retries (attempts and frames sent again), of one frame its spectrum and eye,
// and, where its scale is known, constellation (its symbols, with the lattice)
// and lattice-distance. On an error it gives the files written so far.
func LinkPlots(dir, title string, rows []runfolder.Row, v LinkView) ([]string, error) {
	pictures := []picture{{"quality", qualityFigure(rows)}, {"retries", retriesFigure(rows)}}
	if len(v.Samples) >= spectrumBins && v.SampleRate > 0 {
		pictures = append(pictures, picture{"spectrum", v.spectrumFigure()})
	}
	if traces := v.eye(); len(traces) > 0 {
		pictures = append(pictures, picture{"eye", Figure{
			XLabel: "time (symbols)", YLabel: "real part at the common phase", Series: traces,
			Note: fmt.Sprintf("%d stretches of two symbols of the last round's frame that is kept; at 0 is the middle of a symbol.", len(traces)),
		}})
	}
	if len(v.Soft) > 0 && v.Alpha > 0 {
		pictures = append(pictures, picture{"constellation", v.constellationFigure()}, picture{"lattice-distance", v.distances().figure()})
	}
	return save(dir, title, pictures)
}

// latticeNote says what αy is.
const latticeNote = "y are received symbols, and α the scale found for them, at which the superposition of all devices is whole numbers but for noise."

func qualityFigure(rows []runfolder.Row) Figure {
	s := series(rows, func(r runfolder.Row) float64 {
		if r.Link == nil {
			return math.NaN()
		}
		return r.Link.Quality
	})
	s.Style = Points
	return Figure{XLabel: roundLabel, YLabel: "worst transmission's mean cos 2παy", Note: latticeNote + " The mean cosine is 1 where all symbols are whole, and about 0 where they lie anywhere.", Series: []Series{s}}
}

func retriesFigure(rows []runfolder.Row) Figure {
	repeated := series(rows, func(r runfolder.Row) float64 {
		if r.Link == nil {
			return math.NaN()
		}
		return r.Link.FramesRepeated
	})
	repeated.Name, repeated.Style, repeated.Color = "frames sent again", Points, Vermillion
	attempts := series(rows, func(r runfolder.Row) float64 { return float64(r.Attempts) })
	attempts.Name, attempts.Color = "attempts", Sky
	return Figure{XLabel: roundLabel, YLabel: "number in a round", WholeY: true, Note: "An attempt is a round's transmissions, all of them; a frame that was not read may be sent again within one.", Series: []Series{attempts, repeated}}
}

// spectrumBins is the resolution of the spectrum.
const spectrumBins = 1024

// spectrumFigure is Welch's estimate: the mean over Hann-windowed periodograms
// that overlap by half. spectral.Pwelch takes real samples only.
func (v LinkView) spectrumFigure() Figure {
	taper := window.Hann(spectrumBins)
	energy := floats.Dot(taper, taper)
	segments := v.segments()
	power, windowed := make([]float64, spectrumBins), make([]complex128, spectrumBins)
	for _, segment := range segments {
		for k, x := range segment { // segments share samples
			windowed[k] = x * complex(taper[k], 0)
		}
		for k, b := range fft.FFT(windowed) {
			power[k] += real(b)*real(b) + imag(b)*imag(b)
		}
	}
	s := Series{Color: Blue, Width: 0.9}
	for k := -spectrumBins / 2; k < spectrumBins/2; k++ {
		bin := (k + spectrumBins) % spectrumBins
		s.X = append(s.X, float64(k)/spectrumBins*v.SampleRate/1e3)
		s.Y = append(s.Y, 10*math.Log10(power[bin]/(float64(len(segments))*energy*v.SampleRate)))
	}
	return Figure{XLabel: "frequency (kHz)", YLabel: "power spectral density (dB/Hz)", Series: []Series{s}}
}

// segments returns the stretches of spectrumBins samples that overlap by half, as many as
// there are whole ones. dsputils.Segment is asked for a number of them and finds the
// length itself: it is given no sample more than they take.
func (v LinkView) segments() [][]complex128 {
	const half = spectrumBins / 2
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

// Bounds of the constellation: more would be a grey field.
const (
	constellationSymbols = 4000
	constellationReach   = 40
)

// constellationFigure shows symbols in their order, and the integers as lines.
func (v LinkView) constellationFigure() Figure {
	dots := Series{Style: Points, Color: Blue}
	reach, beyond := 1.0, 0
	soft := v.Soft[:min(len(v.Soft), constellationSymbols)]
	for k, y := range soft {
		z := v.Alpha * float64(y)
		if math.Abs(z) > constellationReach+0.5 {
			beyond++
			continue
		}
		reach = math.Max(reach, math.Abs(z))
		dots.X, dots.Y = append(dots.X, float64(k)), append(dots.Y, z)
	}
	dots.Name = "received symbols"
	if beyond > 0 {
		dots.Name += fmt.Sprintf(" (%d of %d beyond this range)", beyond, len(soft))
	}
	f := Figure{XLabel: "symbol", YLabel: "αy", Note: latticeNote}
	if reach > constellationReach/3 {
		f.Height = 2 * DefaultHeight // room for a line an integer
	}
	for i := -math.Round(reach); i <= math.Round(reach); i++ {
		line := Series{X: []float64{0, float64(len(soft))}, Y: []float64{i, i}, Color: Orange, Width: 0.5}
		if i == 0 {
			line.Name = "lattice"
		}
		f.Series = append(f.Series, line)
	}
	f.Series = append(f.Series, dots)
	return f
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
