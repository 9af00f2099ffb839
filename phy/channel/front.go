package channel

import (
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/vector"
	"ringwave/phy/kernel"
)

// Front is a receiver's own end. In their order the antenna's samples meet interference,
// noise of a given deviation a branch, the phase of the receiver's carrier, the filter, the
// DC block, the gain control, a fixed gain, the sample clock, IQ mismatch and DC, and the
// converter. Of the impairments a delay is none of a receiver's. It is a stream, for one
// goroutine.
type Front struct {
	interference *interferer
	std          float64
	stream       *keystream.Stream
	random       [8 * noiseBlock]byte
	kernel       kernel.Kernel
	rotor        rotor
	filter       *lowPass
	block        *highPass
	control      *gainControl
	clock        *resampler
	front        frontEnd
	// gain scales the antenna's signal before the converter: full scale is 1.
	gain float32
	now  *Moment
}

// NewFront makes a receiver's end with noise of deviation std per branch at the
// antenna and a gain before its converter.
func NewFront(imp Impairments, std, gain float64, seed keystream.Seed) (*Front, error) {
	if err := imp.validate(); err != nil {
		return nil, err
	}
	if !(std >= 0) || math.IsInf(std, 0) || !(gain > 0) || math.IsInf(gain, 0) {
		return nil, fmt.Errorf("a receiver with noise of deviation %v and gain %v: the first must be 0 or more, the second positive", std, gain)
	}
	f := &Front{
		interference: newInterferer(imp.Interference, seed), std: std, stream: seed.Derive("receiver noise").Stream(), kernel: kernel.New(vector.Fastest()),
		rotor:  newRotor(imp.againstSignals(), seed),
		filter: newLowPass(imp.Filter), block: newHighPass(imp.HighPass), control: newGainControl(imp.GainControl, 1/gain),
		front: newFrontEnd(imp), gain: float32(gain),
	}
	if imp.SampleClock != 0 || imp.ClockJitter != 0 {
		// Samples that come faster are of earlier instants.
		f.clock = newResampler(1/(1+imp.SampleClock)-1, imp.ClockJitter, imp.ClockRoom, seed)
	}
	return f, nil
}

// againstSignals returns the impairments of a receiver with its carrier's as signals meet
// it: one that is too high makes them too low.
func (m Impairments) againstSignals() Impairments {
	m.PhaseRad, m.CarrierOffset = -m.PhaseRad, -m.CarrierOffset
	return m
}

// Begin begins the transmission of a moment with the next sample: its bursts, and the
// sample clock's error at 0. With the first of an attempt the carrier's phase and the tone's
// become those of the moment, and all that has a memory begins at rest.
func (f *Front) Begin(m Moment) {
	fresh := f.now == nil || !f.now.attempt(m)
	f.interference.start(m, fresh)
	if fresh || !m.Running {
		f.clock.start(m)
	}
	if !fresh {
		return
	}
	f.now = &m
	f.rotor.start(m)
	f.filter.rest()
	f.block.rest()
	f.control.rest()
	f.clock.rest()
}

// Start restarts the noise at the first sample of the given part of a round, so
// that what is received there does not depend on what came before.
func (f *Front) Start(round, part uint32) { f.stream.Start(round, part) }

// Latency returns the delay of what is received, in samples.
func (f *Front) Latency() int { return f.clock.latency() }

// noiseBlock is how many samples' noise is made at a time.
const noiseBlock = 512

// addNoise takes eight bytes of the stream for each sample, so that blocks change no bit.
func (f *Front) addNoise(x []complex64) {
	if f.std == 0 {
		return
	}
	for len(x) > 0 {
		n := min(len(x), noiseBlock)
		random := f.random[:8*n]
		f.stream.Fill(random)
		f.kernel.AddNoise(x[:n], random, float32(f.std))
		x = x[n:]
	}
}

// Apply changes the next samples in place and gives how many were clipped.
func (f *Front) Apply(x []complex64) (clipped int) {
	f.interference.add(x)
	f.addNoise(x)
	f.rotor.apply(f.kernel, x)
	f.filter.apply(x)
	f.block.apply(x)
	f.control.apply(x)
	for n, v := range x {
		x[n] = complex(f.gain*real(v), f.gain*imag(v))
	}
	f.clock.apply(x)
	return f.front.apply(x)
}
