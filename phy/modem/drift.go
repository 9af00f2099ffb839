package modem

import "math"

// driftSteps is how many values of the pulse a sample has where instants drift: the nearest
// is at most 1/512 sample off.
const driftSteps = 256

// drifting is the pulse by fine steps, as a clock that runs apart from the receiver's needs
// it.
type drifting struct {
	sps    int
	centre float64   // of the first symbol
	half   float64   // of the pulse
	pulse  []float32 // from -half on
}

func newDrifting(p Pulse, sps int, centre Samples) *drifting {
	d := &drifting{sps: sps, centre: float64(centre), half: float64(p.half(sps))}
	for k := range int(2*math.Ceil(d.half)*driftSteps) + 1 {
		d.pulse = append(d.pulse, float32(p.at(Samples(float64(k)/driftSteps-math.Ceil(d.half)), sps)))
	}
	return d
}

// at returns what symbols add up to at an instant, in samples from the first symbol's
// period on.
func (d *drifting) at(symbols []int8, instant float64) (x float32) {
	from := instant - d.centre
	first := max(0, int(math.Ceil((from-d.half)/float64(d.sps))))
	last := min(len(symbols)-1, int(math.Floor((from+d.half)/float64(d.sps))))
	place := int(math.Round((from + math.Ceil(d.half) - float64(first*d.sps)) * driftSteps))
	for k := first; k <= last; k++ {
		if place >= 0 && place < len(d.pulse) {
			x += float32(symbols[k]) * d.pulse[place]
		}
		place -= d.sps * driftSteps
	}
	return x
}

// ModulateDrifting writes the samples of a whole frame of symbols at instants of another
// clock: dst[n] is what ModulateDigits of the frame, and Idle behind it, would have at the
// sample first + n step, at fractions of one as well as before and behind it. It does not
// touch the stream.
func (m *Modulator) ModulateDrifting(dst []complex64, symbols []int8, first, step float64) {
	if m.fine == nil {
		m.fine = newDrifting(m.form, m.sps, m.delay-m.advance)
	}
	for n := range dst {
		x := m.fine.at(symbols, first+float64(n)*step)
		dst[n] = complex(x*m.i, x*m.q)
	}
}
