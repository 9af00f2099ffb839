package bringup

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"

	"ringwave/radio"
)

// bins is the resolution of spectra, and lobe how many bins to either side a line fills,
// by the window of Blackman and Harris.
const (
	bins = 4096
	lobe = 4
)

// Spectrum is the power of received samples over frequency, a full-scale tone being 0 dB.
type Spectrum struct {
	Name   string
	Rate   radio.Hertz
	Centre radio.Hertz // what the receiver was tuned to
	// Power has 4096 bins from -Rate/2 on, each the power of a line in its middle.
	Power []float64
	// Lines are those that are of interest.
	Lines []Line
	// Levels counts samples by the larger magnitude of I and Q, in 64 steps of full scale.
	Levels [64]int
}

// Line is a line of a spectrum.
type Line struct {
	Name      string
	Frequency radio.Hertz // from the receiver's carrier
	Power     radio.Power
}

// newSpectrum averages spectra of half-overlapping stretches; len(x) is bins or more.
func newSpectrum(name string, x []complex64, rate, centre radio.Hertz) *Spectrum {
	s := &Spectrum{Name: name, Rate: rate, Centre: centre, Power: make([]float64, bins)}
	window, gain := make([]float64, bins), 0.0
	for k := range window {
		a := 2 * math.Pi * float64(k) / bins
		window[k] = 0.35875 - 0.48829*math.Cos(a) + 0.14128*math.Cos(2*a) - 0.01168*math.Cos(3*a)
		gain += window[k]
	}
	fft, in, out, count := fourier.NewCmplxFFT(bins), make([]complex128, bins), make([]complex128, bins), 0
	for first := 0; first+bins <= len(x); first += bins / 2 {
		for k := range in {
			in[k] = complex128(x[first+k]) * complex(window[k]/gain, 0)
		}
		for k, v := range fft.Coefficients(out, in) {
			s.Power[(k+bins/2)%bins] += real(v)*real(v) + imag(v)*imag(v)
		}
		count++
	}
	for k := range s.Power {
		s.Power[k] /= float64(max(count, 1))
	}
	for _, v := range x {
		level := max(math.Abs(float64(real(v))), math.Abs(float64(imag(v))))
		s.Levels[min(len(s.Levels)-1, int(level*float64(len(s.Levels))))]++
	}
	return s
}

// Frequency returns that of a bin, from the receiver's carrier.
func (s *Spectrum) Frequency(bin int) radio.Hertz {
	return radio.Hertz(bin-bins/2) * s.Rate / bins
}

// bin returns the one that a frequency falls into, which is folded into the band.
func (s *Spectrum) bin(f radio.Hertz) int {
	k := int(math.Round(float64(f/s.Rate)*bins)) + bins/2
	return ((k % bins) + bins) % bins
}

// floor returns the power of noise in a bin: the median of all.
func (s *Spectrum) floor() float64 {
	sorted := slices.Sorted(slices.Values(s.Power))
	return sorted[len(sorted)/2]
}

// peak returns the largest bin within reach bins of a frequency.
func (s *Spectrum) peak(f radio.Hertz, reach int) (bin int) {
	centre := s.bin(f)
	bin = centre
	for k := -reach; k <= reach; k++ {
		if at := ((centre+k)%bins + bins) % bins; s.Power[at] > s.Power[bin] {
			bin = at
		}
	}
	return bin
}

// line returns the power of a line near a frequency, noise taken off, and remembers it.
func (s *Spectrum) line(name string, f radio.Hertz) radio.Power {
	at := s.peak(f, lobe)
	s.Lines = append(s.Lines, Line{name, s.Frequency(at), radio.Power(s.Power[at])})
	return radio.Power(max(0, s.Power[at]-s.floor()))
}

// over returns by how much a bin stands out of the noise.
func (s *Spectrum) over(bin int) radio.Decibels {
	return radio.Power(s.Power[bin] / max(s.floor(), 1e-20)).Decibels()
}

// loudest returns the largest bin from low to high that stands out of another spectrum,
// nil for none.
func (s *Spectrum) loudest(low, high radio.Hertz, than *Spectrum) (bin int) {
	best := -1.0
	for k := s.bin(low); k <= s.bin(high); k++ {
		p := s.Power[k]
		if than != nil {
			p -= than.Power[k]
		}
		if p > best {
			bin, best = k, p
		}
	}
	return bin
}

// refine returns frequency and amplitude of a line of which the bin is known, by how its phase
// turns. Samples that were lost within do little to either.
func refine(x []complex64, rate, near radio.Hertz) (radio.Hertz, radio.Amplitude) {
	near, _ = turns(x, rate, near, bins/2)
	return turns(x, rate, near, len(x)/16)
}

// turns returns the frequency and amplitude of a line that is known to half a turn in a
// stretch of so many samples: the medians over all stretches.
func turns(x []complex64, rate, near radio.Hertz, stretch int) (radio.Hertz, radio.Amplitude) {
	step := -2 * math.Pi * float64(near/rate)
	var phases, sizes []float64
	last := complex128(0)
	for first := 0; first+stretch <= len(x); first += stretch {
		sum := complex128(0)
		for k := range stretch {
			sum += complex128(x[first+k]) * cmplx.Rect(1, math.Mod(step*float64(first+k), 2*math.Pi))
		}
		if first > 0 {
			phases = append(phases, cmplx.Phase(sum*cmplx.Conj(last)))
		}
		sizes = append(sizes, cmplx.Abs(sum)/float64(stretch))
		last = sum
	}
	slices.Sort(phases)
	slices.Sort(sizes)
	return near + radio.Hertz(phases[len(phases)/2]/(2*math.Pi*float64(stretch)))*rate, radio.Amplitude(sizes[len(sizes)/2])
}
