package moments

import (
	"math"

	"github.com/mjibson/go-dsp/spectral"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Spectrum is a one-sided power spectral density of fluctuations, at offsets from the
// carrier. Blocks are what it samples: what moves faster than half a cycle a block is
// folded into it.
type Spectrum struct {
	// Hertz are the offsets and Density the values at them: rad^2/Hz of a phase, 1/Hz of
	// a gain relative to its root mean square.
	Hertz, Density []float64
	// Low and High times a density are the ends of its interval.
	Low, High float64
	// Floor is the density that the noise of the estimates alone has.
	Floor float64
	// Segments is the number of periodograms that it is the mean of.
	Segments int
}

// PhaseNoise returns the single-sideband phase noise L(f) in dBc/Hz, which is half of the
// one-sided density (IEEE Std 1139), of a density in rad^2/Hz.
func PhaseNoise(density float64) float64 { return 10 * math.Log10(density/2) }

// RMS returns the root of the power within the band of the offsets: of a phase its jitter
// in radians.
func (s Spectrum) RMS() float64 {
	if len(s.Hertz) < 2 {
		return math.NaN()
	}
	sum := 0.0
	for _, d := range s.Density {
		sum += d
	}
	return math.Sqrt(sum * (s.Hertz[1] - s.Hertz[0]))
}

// spectra returns the densities of phase and gain, each empty where there are too few
// blocks in a row.
func (l *link) spectra(p sample, level float64) (phase, gain Spectrum) {
	phases, gains := l.tracks(p)
	var ofPhase, ofGain, readable, n float64
	for k := range l.x {
		if math.IsNaN(l.x[k]) {
			continue
		}
		ofGain, n = ofGain+l.w[k], n+1
		if l.readable(k) {
			ofPhase, readable = ofPhase+l.w[k]/(l.x[k]*l.x[k]), readable+1
		}
	}
	root := l.rms(p)
	phase = welch(phases, l.bench.BlockSeconds, level)
	phase.Floor = 2 * l.bench.BlockSeconds * ofPhase / readable
	gain = welch(gains, l.bench.BlockSeconds, level)
	gain.Floor = 2 * l.bench.BlockSeconds * ofGain / n / (root * root)
	return phase, gain
}

const (
	// leastSegment is the least length of a segment, shortestRecord what must be there
	// for longer ones: four segments, seven with those that overlap them by half.
	leastSegment   = 16
	shortestRecord = 4
	// firstBin is the first that is reported: what is below it went with the line that is
	// taken off each segment, or leaks under the window.
	firstBin = 3
)

// welch returns the mean periodogram of segments that overlap by half, under a Hann
// window. From each segment goes its regression line, which is an offset or drift of the
// carrier and no noise; segments in which a value is missing are left out. A density that
// falls as 1/f^2 comes out 0.5 dB too high at the first offset, which is the window's
// leakage, and 0.1 dB at twice that.
//
// spectral.Pwelch gets one segment at a time. Of a whole record it would take the mean
// with the noise, spread one missing value over all offsets, and fill a record that is too
// short with zeros, without correcting the density for them.
func welch(parts [][]float64, seconds, level float64) Spectrum {
	longest := 0
	for _, part := range parts {
		longest = max(longest, len(part))
	}
	size := leastSegment
	for 2*size*shortestRecord <= longest {
		size *= 2
	}
	s := Spectrum{Density: make([]float64, size/2-firstBin)}
	at := make([]float64, size)
	for k := range at {
		at[k] = float64(k)
	}
	for _, part := range parts {
		for _, segment := range spectral.Segment(part, size, size/2) { // copies
			if math.IsNaN(stat.Mean(segment, nil)) {
				continue
			}
			s.Segments++
			start, slope := stat.LinearRegression(at, segment, nil, false)
			for k := range segment {
				segment[k] -= start + slope*at[k]
			}
			// What is at half the sampling rate stands for both sidebands already: it is
			// left out.
			density, _ := spectral.Pwelch(segment, 1/seconds, &spectral.PwelchOptions{NFFT: size})
			for k := range s.Density {
				s.Density[k] += density[firstBin+k]
			}
		}
	}
	if s.Segments < 2 {
		return Spectrum{}
	}
	for k := range s.Density {
		s.Density[k] /= float64(s.Segments)
		s.Hertz = append(s.Hertz, float64(firstBin+k)/(float64(size)*seconds))
	}
	chi := distuv.ChiSquared{K: welchFreedom(s.Segments)}
	s.Low, s.High = chi.K/chi.Quantile((1+level)/2), chi.K/chi.Quantile((1-level)/2)
	return s
}

// welchFreedom returns the degrees of freedom of the mean of so many periodograms of which
// neighbours overlap by half under a Hann window: their correlation is 1/36 (P. D. Welch,
// IEEE Transactions on Audio and Electroacoustics 15(2), 1967).
func welchFreedom(segments int) float64 {
	k := float64(segments)
	return 2 * k / (1 + 2*(k-1)/k/36)
}
