package channel

import (
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/phy/kernel"
)

// rotor turns samples by a phase that grows with the carrier offset and wanders
// with the phase noise.
type rotor struct {
	still  bool    // nothing turns
	static float64 // the phase at time 0
	offset float64 // cycles a sample
	std    float64 // of a step of the noise
	keep   float64 // how much of the noise is there a sample later
	origin float64 // where the phase began, in cycles
	n      int64   // samples since then
	walk   float64
	// far is the walk at the beginning of the attempts of a number, passed.
	far    float64
	passed uint32
	stream *keystream.Stream
	normal *rand.Rand
}

func newRotor(imp Impairments, seed keystream.Seed) rotor {
	r := rotor{static: imp.PhaseRad, offset: imp.CarrierOffset, std: imp.PhaseNoiseStd, keep: math.Exp(-2 * math.Pi * imp.PhaseLoop)}
	r.still = r.static == 0 && r.offset == 0 && r.std == 0
	r.stream = seed.Derive("phase noise").Stream()
	r.normal = rand.New(r.stream)
	return r
}

// start begins an attempt: its phase is a function of the attempt's time alone.
func (r *rotor) start(m Moment) {
	if r.still {
		return
	}
	r.origin, r.n, r.walk = turns(r.offset*m.Time), 0, r.farWalk(m)
	r.stream.Start(m.Round, m.Attempt)
}

// farWalk returns where noise that nothing bounds has walked by an attempt's nominal time:
// a step for each attempt's length, by name, so that a resumed run meets the same.
func (r *rotor) farWalk(m Moment) float64 {
	if r.std == 0 || r.keep < 1 || !(m.Every > 0) {
		return 0
	}
	number := m.Round + m.Attempt
	if number < r.passed {
		r.far, r.passed = 0, 0
	}
	for ; r.passed < number; r.passed++ {
		r.stream.Start(r.passed, math.MaxUint32)
		r.far += r.std * math.Sqrt(m.Every) * r.normal.NormFloat64()
	}
	return r.far
}

func (r *rotor) apply(k kernel.Kernel, x []complex64) {
	if r.still {
		return
	}
	if r.std == 0 && r.offset == 0 {
		k.Turn(x, unit(r.static))
		return
	}
	for n := range x {
		// By the sample's number, so that blocks change no bit.
		x[n] *= unit(r.static + 2*math.Pi*turns(r.origin+r.offset*float64(r.n)) + r.walk)
		r.n++
		if r.std > 0 {
			r.walk = r.keep*r.walk + r.std*r.normal.NormFloat64()
		}
	}
}

// turns returns a number of cycles without the whole ones.
func turns(cycles float64) float64 { return cycles - math.Round(cycles) }

func unit(phase float64) complex64 {
	s, c := math.Sincos(phase)
	return complex(float32(c), float32(s))
}
