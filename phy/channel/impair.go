package channel

import (
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
)

// Impairments are what one radio's hardware and position do to its samples. The
// zero value does nothing.
type Impairments struct {
	// DelaySamples is the delay of the device's signal, from 0 on, fractions
	// included, beside the constant latency that all paths share.
	DelaySamples float64
	// CarrierOffset is the carrier's frequency error, in cycles a sample.
	CarrierOffset float64
	// PhaseRad is the carrier's phase.
	PhaseRad float64
	// PhaseNoiseStd is the deviation of the phase's step from one sample to the
	// next, in radians: a Wiener process.
	PhaseNoiseStd float64
	// IQGainDB and IQPhaseRad are the mismatch of the quadrature branch against
	// the in-phase one; DC is the offset of both, against full scale 1.
	IQGainDB, IQPhaseRad float64
	DC                   complex64
	// ConverterBits is the resolution of each branch; 0 for none. Samples beyond
	// full scale, 1 in either branch, are clipped where a converter is present.
	ConverterBits int
}

// The taps of the fractional-delay filter; its group delay, delayLatency, is
// part of every path, so that devices keep their alignment.
const (
	delayTaps    = 16
	delayLatency = delayTaps/2 - 1
)

// MaxDelaySamples bounds a path's delay.
const MaxDelaySamples = 4096

func (m Impairments) validate() error {
	for _, q := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"delay in samples", m.DelaySamples, 0, MaxDelaySamples},
		{"carrier offset in cycles a sample", m.CarrierOffset, -0.5, 0.5},
		{"phase in radians", m.PhaseRad, -1e6, 1e6},
		{"phase noise in radians a sample", m.PhaseNoiseStd, 0, 1},
		{"IQ gain mismatch in dB", m.IQGainDB, -20, 20},
		{"IQ phase mismatch in radians", m.IQPhaseRad, -1, 1},
		{"DC offset", math.Hypot(float64(real(m.DC)), float64(imag(m.DC))), 0, 1},
		{"converter's resolution in bits", float64(m.ConverterBits), 0, 24},
	} {
		if !(q.value >= q.least && q.value <= q.most) {
			return fmt.Errorf("impairments: the %s is %v: allowed are %v to %v", q.name, q.value, q.least, q.most)
		}
	}
	return nil
}

// Path is what lies between a transmitter's samples and the receiver's antenna:
// the transmitter's impairments, the gain of the current fading block and the
// delay. It is a stream: blocks must come in their order. It is for one
// goroutine and allocates nothing after NewPath, for blocks up to the largest
// that it has seen.
type Path struct {
	imp     Impairments
	front   frontEnd
	gain    float32
	taps    [delayTaps]float32
	whole   int         // integer part of the delay
	history []complex64 // the last whole + delayTaps - 1 samples
	work    []complex64
	rotor   rotor
}

// NewPath makes a path of gain 1. The seed is that of its phase noise.
func NewPath(imp Impairments, seed keystream.Seed) (*Path, error) {
	if err := imp.validate(); err != nil {
		return nil, err
	}
	whole := int(imp.DelaySamples)
	p := &Path{
		imp: imp, front: newFrontEnd(imp), gain: 1, whole: whole,
		taps:    fractionalDelay(imp.DelaySamples - float64(whole)),
		history: make([]complex64, whole+delayTaps-1),
		rotor:   newRotor(imp, seed),
	}
	return p, nil
}

// SetGain sets the real gain h of the samples that follow.
func (p *Path) SetGain(h float64) { p.gain = float32(h) }

// Latency returns the constant delay of every path, in samples: that of the
// fractional-delay filter.
func (p *Path) Latency() int { return delayLatency }

// Apply passes the next len(src) samples: dst, as long, gets them delayed by
// Latency and the path's own delay. The two may be the same slice.
func (p *Path) Apply(dst, src []complex64) {
	keep := len(p.history)
	if cap(p.work) < keep+len(src) {
		p.work = make([]complex64, keep+len(src))
	}
	w := p.work[:keep+len(src)]
	copy(w, p.history)
	copy(w[keep:], src)
	p.front.apply(w[keep:])
	copy(p.history, w[len(src):])
	p.filter(dst, w)
	p.rotor.apply(dst)
}

// filter sets each sample of dst to the gain times the filter's output whose newest
// input is delayTaps - 1 samples further on in w. Two outputs at once share the
// taps; each is summed in the same order alone.
func (p *Path) filter(dst, w []complex64) {
	if float64(p.whole) == p.imp.DelaySamples { // nothing to interpolate
		for n, x := range w[delayTaps-1-delayLatency:][:len(dst)] {
			dst[n] = complex(p.gain*real(x), p.gain*imag(x))
		}
		return
	}
	n := 0
	for ; n+2 <= len(dst); n += 2 {
		x := (*[delayTaps + 1]complex64)(w[n:])
		var re0, im0, re1, im1 float32
		newer := x[delayTaps]
		for i, t := range p.taps {
			older := x[delayTaps-1-i]
			re0 += t * real(older)
			im0 += t * imag(older)
			re1 += t * real(newer)
			im1 += t * imag(newer)
			newer = older
		}
		dst[n] = complex(p.gain*re0, p.gain*im0)
		dst[n+1] = complex(p.gain*re1, p.gain*im1)
	}
	for ; n < len(dst); n++ {
		x := (*[delayTaps]complex64)(w[n:])
		var re, im float32
		for i, t := range p.taps {
			re += t * real(x[delayTaps-1-i])
			im += t * imag(x[delayTaps-1-i])
		}
		dst[n] = complex(p.gain*re, p.gain*im)
	}
}

// fractionalDelay returns a filter that delays by delayLatency plus a fraction of
// a sample: a sinc under a Kaiser window (beta 8), of unit gain at 0 Hz. Up to
// 0.3 cycles a sample its error stays below -60 dB.
func fractionalDelay(fraction float64) (taps [delayTaps]float32) {
	var t [delayTaps]float64
	sum := 0.0
	for i := range t {
		x := float64(i-delayLatency) - fraction
		half := float64(delayTaps) / 2
		u := x / half
		if u*u >= 1 {
			continue
		}
		sinc := 1.0
		if x != 0 {
			sinc = math.Sin(math.Pi*x) / (math.Pi * x)
		}
		const beta = 8
		// e^beta scales I_0 back; the sum below takes it out again.
		t[i] = sinc * ScaledBesselI(0, beta*math.Sqrt(1-u*u)) * math.Exp(beta*math.Sqrt(1-u*u))
		sum += t[i]
	}
	for i := range t {
		taps[i] = float32(t[i] / sum)
	}
	return taps
}

// rotor turns samples by a phase that grows with the carrier offset and wanders
// with the phase noise.
type rotor struct {
	still     bool // nothing turns
	phase     float64
	step, std float64
	stream    *keystream.Stream
	normal    *rand.Rand
}

func newRotor(imp Impairments, seed keystream.Seed) rotor {
	r := rotor{phase: imp.PhaseRad, step: 2 * math.Pi * imp.CarrierOffset, std: imp.PhaseNoiseStd}
	r.still = imp.PhaseRad == 0 && imp.CarrierOffset == 0 && imp.PhaseNoiseStd == 0
	r.stream = seed.Derive("phase noise").Stream()
	r.normal = rand.New(r.stream)
	return r
}

func (r *rotor) apply(x []complex64) {
	if r.still {
		return
	}
	if r.std == 0 && r.step == 0 {
		turn := unit(r.phase)
		for n := range x {
			x[n] *= turn
		}
		return
	}
	for n := range x {
		x[n] *= unit(r.phase)
		r.phase += r.step
		if r.std > 0 {
			r.phase += r.std * r.normal.NormFloat64()
		}
	}
	r.phase = math.Remainder(r.phase, 2*math.Pi)
}

func unit(phase float64) complex64 {
	s, c := math.Sincos(phase)
	return complex(float32(c), float32(s))
}

// frontEnd is a radio's analog stage and converter: IQ mismatch, DC, rounding and
// clipping. It has no memory.
type frontEnd struct {
	ideal        bool
	cross, scale float32 // q' = scale q + cross i
	dc           complex64
	levels       float32 // 2^(bits-1); 0 without a converter
}

func newFrontEnd(imp Impairments) frontEnd {
	gain := math.Pow(10, imp.IQGainDB/20)
	f := frontEnd{
		scale: float32(gain * math.Cos(imp.IQPhaseRad)), cross: float32(gain * math.Sin(imp.IQPhaseRad)), dc: imp.DC,
	}
	if imp.ConverterBits > 0 {
		f.levels = float32(math.Ldexp(1, imp.ConverterBits-1))
	}
	f.ideal = f.scale == 1 && f.cross == 0 && f.dc == 0 && f.levels == 0
	return f
}

// apply changes x and gives the number of clipped samples.
func (f frontEnd) apply(x []complex64) (clipped int) {
	if f.ideal {
		return 0
	}
	for n, v := range x {
		i, q := real(v), imag(v)
		q = f.scale*q + f.cross*i
		i, q = i+real(f.dc), q+imag(f.dc)
		if f.levels > 0 {
			ri, ci := quantise(i, f.levels)
			rq, cq := quantise(q, f.levels)
			if ci || cq {
				clipped++
			}
			i, q = ri, rq
		}
		x[n] = complex(i, q)
	}
	return clipped
}

// quantise rounds to multiples of 1/levels in [-1, 1 - 1/levels].
func quantise(x, levels float32) (y float32, clipped bool) {
	r := float32(math.RoundToEven(float64(x * levels)))
	switch {
	case r > levels-1:
		return (levels - 1) / levels, r > levels
	case r < -levels:
		return -1, true
	}
	return r / levels, false
}

// Front is a receiver's own end: noise of a given deviation per branch, then IQ
// mismatch, DC and the converter of its impairments (whose delay, carrier and
// phase are those of the paths). It is a stream, for one goroutine.
type Front struct {
	front  frontEnd
	std    float64
	stream *keystream.Stream
	normal *rand.Rand
	// Gain scales the antenna's signal before the converter: full scale is 1.
	gain float32
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
	stream := seed.Derive("receiver noise").Stream()
	return &Front{front: newFrontEnd(imp), std: std, stream: stream, normal: rand.New(stream), gain: float32(gain)}, nil
}

// Start restarts the noise at the first sample of the given part of a round, so
// that what is received there does not depend on what came before.
func (f *Front) Start(round, part uint32) { f.stream.Start(round, part) }

// Apply changes the next samples in place and gives how many were clipped.
func (f *Front) Apply(x []complex64) (clipped int) {
	for n, v := range x {
		if f.std > 0 {
			v += complex(float32(f.std*f.normal.NormFloat64()), float32(f.std*f.normal.NormFloat64()))
		}
		x[n] = complex(f.gain*real(v), f.gain*imag(v))
	}
	return f.front.apply(x)
}
