package diagnosis

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"

	"ringwave/phy"
	"ringwave/phy/modem"
)

// pulse measures how symbols come, and how strong they are, along a frame.
func (s *Sight) pulse(o phy.Observation, sps int) {
	samples := o.Samples[max(0, min(len(o.Samples), int(o.Sync.Payload))):]
	samples = samples[:min(len(samples), s.Symbols*sps)]
	size := len(samples) / parts / sps * sps
	nan := math.NaN()
	s.Slip, s.Timed, s.Fade, s.Struck = nan, nan, nan, nan
	if size < 16*sps || sps < 2 {
		return
	}
	s.Slip = 0
	var lines []complex128
	var energies []float64
	for b := range parts {
		part := samples[b*size : (b+1)*size]
		var sum complex128
		energy := 0.0
		for k, x := range part {
			if p := power(x); p < unreal {
				sum += complex(p, 0) * cmplx.Rect(1, -2*math.Pi*float64(k%sps)/float64(sps))
				energy += p
			}
		}
		lines, energies = append(lines, sum/complex(max(energy, math.SmallestNonzeroFloat64), 0)), append(energies, energy)
	}
	for b := 1; b < parts; b++ {
		s.Slip -= cmplx.Phase(lines[b]*cmplx.Conj(lines[b-1])) / (2 * math.Pi)
	}
	const few = parts / 8
	s.Timed = size8(lines[parts-few:]) / max(size8(lines[:few]), math.SmallestNonzeroFloat64)
	slices.Sort(energies)
	s.Fade = energies[parts-1-few] / max(energies[few], math.SmallestNonzeroFloat64)
	s.Struck = struck(samples, 4*sps)
}

// size8 returns the mean magnitude.
func size8(lines []complex128) float64 {
	sum := 0.0
	for _, x := range lines {
		sum += cmplx.Abs(x)
	}
	return sum / float64(len(lines))
}

// struck returns the share of stretches of so many samples whose power stands out.
func struck(samples []complex64, length int) float64 {
	var energies []float64
	for from := 0; from+length <= len(samples); from += length {
		energy := 0.0
		for _, x := range samples[from : from+length] {
			energy += min(power(x), unreal)
		}
		energies = append(energies, energy)
	}
	slices.Sort(energies)
	// Symbols of few devices are often 0 for some: what is usual is above the middle.
	const outstanding = 8
	limit := outstanding * energies[len(energies)/2]
	at, _ := slices.BinarySearch(energies, limit)
	return 1 - float64(at)/float64(len(energies))
}

// quiet looks into the silence before and behind the frame.
func (s *Sight) quiet(o phy.Observation, bandwidth float64) {
	half := o.Guard / 2
	s.Quiet = math.NaN()
	if half < 32 || len(o.Samples) < 2*half {
		return
	}
	_, before := moving(o.Samples[:half])
	_, after := moving(o.Samples[len(o.Samples)-half:])
	a := float64(o.Sync.Amplitude)
	s.Quiet = decibels(a * a / max((before+after)/4*bandwidth, math.SmallestNonzeroFloat64))
	s.Tone = tone(o.Samples[:half])
}

// tone returns the frequency that most of what moves in a silence is at, 0 for none.
func tone(samples []complex64) modem.CyclesPerSample {
	n := len(samples)
	still := complex128(0)
	for _, x := range samples {
		still += complex128(x) / complex(float64(n), 0)
	}
	moves := make([]complex128, n)
	for k, x := range samples {
		moves[k] = complex128(x) - still
	}
	powers := make([]float64, n)
	all := 0.0
	for k, x := range fourier.NewCmplxFFT(n).Coefficients(nil, moves) {
		powers[k] = cmplx.Abs(x) * cmplx.Abs(x)
		all += powers[k]
	}
	best := 0
	for k := range powers {
		if powers[k] > powers[best] {
			best = k
		}
	}
	const most = 0.7 // of the power within a bin to either side
	if around := powers[best] + powers[(best+1)%n] + powers[(best+n-1)%n]; !(around > most*all) {
		return 0
	}
	f := float64(best) / float64(n)
	if f >= 0.5 {
		f--
	}
	return modem.CyclesPerSample(f)
}

func decibels(ratio float64) float64 { return 10 * math.Log10(ratio) }
