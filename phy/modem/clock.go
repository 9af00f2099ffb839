package modem

import (
	"math"
	"math/cmplx"
)

// clock finds by how much the symbols of a frame come apart from where the receiver's
// clock has them. Superposed pulses have less power where symbols meet: the phase of the
// power's line at the symbol rate is the symbols' timing (Oerder and Meyr).
type clock struct {
	sps    int
	energy []float64
	line   [clockParts]complex128
}

const (
	clockParts   = 16  // parts of a frame whose timing is compared
	clockSymbols = 512 // of each
)

func newClock(sps int) clock { return clock{sps: sps, energy: make([]float64, sps)} }

// measure returns what the clocks are apart in a frame of n symbols from the payload on,
// in samples a sample; 0 if that is not beyond chance, or does not move a symbol by a
// tenth of a sample, or if there are too few samples to see it.
func (c *clock) measure(samples []complex64, payload Samples, n int) float64 {
	const least, certain, most = 0.1, 5, 1e-3
	if c.sps < 3 || n < 2*clockParts*clockSymbols || !placed(payload, n*c.sps) {
		return 0
	}
	first := int(math.Round(float64(payload))) - c.sps/2
	apart := (n - clockSymbols) / (clockParts - 1) * c.sps
	for p := range c.line {
		if !c.look(samples, first+p*apart, p) {
			return 0
		}
	}
	slope, deviation := c.slope()
	// A later symbol turns the line back.
	drift := -slope * float64(c.sps) / (2 * math.Pi) / float64(apart)
	if math.Abs(slope) < certain*deviation || math.Abs(drift)*float64(n*c.sps) < least || math.Abs(drift) > most {
		return 0
	}
	return drift
}

// look measures the line in a part, and reports whether all its samples are there.
func (c *clock) look(samples []complex64, first, part int) bool {
	if first < 0 || first+clockSymbols*c.sps > len(samples) {
		return false
	}
	clear(c.energy)
	for k := range clockSymbols {
		for j, x := range samples[first+k*c.sps:][:c.sps] {
			re, im := float64(real(x)), float64(imag(x))
			c.energy[j] += re*re + im*im
		}
	}
	var line complex128
	for j, e := range c.energy {
		if !finite(e) || e > limit*limit {
			return false
		}
		line += cmplx.Rect(e, -2*math.Pi*float64(j)/float64(c.sps))
	}
	c.line[part] = line
	return true
}

// slope returns the advance of the line's phase from part to part, and its deviation.
func (c *clock) slope() (slope, deviation float64) {
	var phase [clockParts]float64
	for p := 1; p < clockParts; p++ {
		phase[p] = phase[p-1] + cmplx.Phase(c.line[p]*cmplx.Conj(c.line[p-1]))
	}
	const n = float64(clockParts)
	var mean, x, xx float64
	for p, v := range phase {
		u := float64(p) - (n-1)/2
		mean += v / n
		x += u * v
		xx += u * u
	}
	slope = x / xx
	rest := 0.0
	for p, v := range phase {
		d := v - mean - slope*(float64(p)-(n-1)/2)
		rest += d * d
	}
	return slope, math.Sqrt(rest / (n - 2) / xx)
}
