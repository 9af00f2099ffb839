package channel

import (
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/phy/kernel"
)

// Echo is a copy of a device's signal that arrives later than the first, with the gain
// and phase given against that.
type Echo struct {
	DelaySamples, Gain, PhaseRad float64
}

// Air is what lies between two antennas beside a gain and a delay. The zero value does
// nothing.
type Air struct {
	Echoes []Echo
	// KFactor is the power of an echo's constant part against that of a part which is
	// drawn for each block of fading; 0 for echoes that stay.
	KFactor float64
	// DrawPhases adds a phase to each echo, uniform and the same in all rounds.
	DrawPhases bool
	// Seed is that of the echoes' phases and parts: paths of the same have the same ones.
	// Phases is that of the phases alone, unless it is zero.
	Seed, Phases keystream.Seed
	// Doppler is the largest Doppler shift in cycles a sample, by which the gain, of law
	// Gain, fades within a round; 0 for one that stays.
	Doppler float64
	Gain    Fading
}

// echoes adds copies of a signal.
type echoes struct {
	cfg    []Echo // with the phases drawn
	k      float64
	taps   []tap
	gains  []complex64 // of the current block
	work   []complex64 // an echo before its gain
	stream *keystream.Stream
	normal *rand.Rand
}

// newEchoes makes the echoes of a signal whose first copy has a delay; nil for none.
func newEchoes(first float64, air Air) *echoes {
	if len(air.Echoes) == 0 {
		return nil
	}
	e := &echoes{k: air.KFactor, gains: make([]complex64, len(air.Echoes))}
	if air.Phases == (keystream.Seed{}) {
		air.Phases = air.Seed
	}
	phases := rand.New(air.Phases.Derive("phases").Stream())
	for _, one := range air.Echoes {
		if air.DrawPhases {
			one.PhaseRad += 2 * math.Pi * phases.Float64()
		}
		e.cfg = append(e.cfg, one)
		e.taps = append(e.taps, newTap(first+one.DelaySamples))
	}
	e.stream = air.Seed.Derive("scatter").Stream()
	e.normal = rand.New(e.stream)
	e.start(Moment{})
	return e
}

// start draws the echoes of a block.
func (e *echoes) start(m Moment) {
	if e == nil {
		return
	}
	e.stream.Start(m.Round, m.Block)
	constant, scatter := 1.0, 0.0
	if e.k > 0 {
		constant, scatter = math.Sqrt(e.k/(e.k+1)), math.Sqrt(1/(2*(e.k+1)))
	}
	for i, one := range e.cfg {
		sin, cos := math.Sincos(one.PhaseRad)
		re, im := constant*cos, constant*sin
		if scatter > 0 {
			re += scatter * e.normal.NormFloat64()
			im += scatter * e.normal.NormFloat64()
		}
		e.gains[i] = complex(float32(one.Gain*re), float32(one.Gain*im))
	}
}

// reach returns the largest whole delay.
func (e *echoes) reach() int {
	if e == nil {
		return 0
	}
	most := 0
	for _, t := range e.taps {
		most = max(most, t.whole)
	}
	return most
}

// room returns the memory of n samples.
func (e *echoes) room(n int) []complex64 {
	if cap(e.work) < n {
		e.work = make([]complex64, n)
	}
	return e.work[:n]
}

// add adds the echoes to dst: w has the samples from reach before the first on.
func (e *echoes) add(k kernel.Kernel, dst, w []complex64, reach int, gain float32) {
	if e == nil {
		return
	}
	for i := range e.taps {
		t, from := &e.taps[i], w[reach-e.taps[i].whole:]
		g := e.gains[i] * complex(gain, 0)
		copied := e.room(len(dst))
		t.filter(k, copied, from, 1)
		for n, x := range copied {
			dst[n] += g * x
		}
	}
}
