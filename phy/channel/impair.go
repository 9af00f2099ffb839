package channel

import (
	"fmt"
	"math"
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
	// PhaseLoop is the bandwidth of the loop that holds the phase noise back, in cycles a
	// sample; 0 for none.
	PhaseLoop float64
	// IQGainDB and IQPhaseRad are the mismatch of the quadrature branch against
	// the in-phase one; DC is the offset of both, against full scale 1.
	IQGainDB, IQPhaseRad float64
	DC                   complex64
	// ConverterBits is the resolution of each branch; 0 for none. Samples beyond
	// full scale, 1 in either branch, are clipped where a converter is present.
	ConverterBits int
	// SampleClock is the relative error of the sample clock: samples come faster by as
	// much. What it adds up to begins at 0 with each transmission, as boards begin at a
	// trigger or by a schedule.
	SampleClock float64
	// ClockJitter is the deviation of each sample's instant, in samples.
	ClockJitter float64
	// ClockRoom is how many samples clocks of the bench may run apart in a transmission,
	// either way. It delays every path by as much, so it must be the same for all devices;
	// 0 where all clocks are right.
	ClockRoom int
	// Filter is the corner of the board's low-pass filter, in cycles a sample; 0 for none.
	Filter float64
	// Amplifier is what a transmitter sends through.
	Amplifier Amplifier
	// HighPass is the corner of a receiver's DC block, in cycles a sample, and GainControl
	// the bandwidth of its automatic gain control; 0 for none.
	HighPass, GainControl float64
	// Interference is what a receiver hears beside the devices.
	Interference Interference
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
		{"bandwidth of the phase noise's loop in cycles a sample", m.PhaseLoop, 0, 0.5},
		{"IQ gain mismatch in dB", m.IQGainDB, -20, 20},
		{"IQ phase mismatch in radians", m.IQPhaseRad, -1, 1},
		{"DC offset", math.Hypot(float64(real(m.DC)), float64(imag(m.DC))), 0, 1},
		{"converter's resolution in bits", float64(m.ConverterBits), 0, 24},
		{"error of the sample clock", m.SampleClock, -MaxSampleClock, MaxSampleClock},
		{"jitter in samples", m.ClockJitter, 0, MaxJitter},
		{"room of the clocks in samples", float64(m.ClockRoom), 0, MaxDelaySamples},
		{"filter's corner in cycles a sample", m.Filter, 0, MaxFilter},
		{"amplifier's saturation", m.Amplifier.Saturation, 0, 1e3},
		{"amplifier's smoothness", m.Amplifier.Smoothness, 0, MaxSmoothness},
		{"amplifier's phase in radians", m.Amplifier.PhaseRad, -math.Pi, math.Pi},
		{"corner of the DC block in cycles a sample", m.HighPass, 0, MaxFilter},
		{"bandwidth of the gain control in cycles a sample", m.GainControl, 0, MaxFilter},
		{"distance of bursts in samples", float64(m.Interference.BurstEvery), 0, math.MaxInt32},
		{"length of bursts in samples", float64(m.Interference.BurstLength), 0, float64(m.Interference.BurstEvery)},
		{"deviation of bursts", m.Interference.BurstStd, 0, 1e6},
		{"tone in cycles a sample", m.Interference.Tone, -0.5, 0.5},
		{"tone's amplitude", m.Interference.ToneAmplitude, 0, 1e6},
	} {
		if !(q.value >= q.least && q.value <= q.most) {
			return fmt.Errorf("impairments: the %s is %v: allowed are %v to %v", q.name, q.value, q.least, q.most)
		}
	}
	return nil
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
