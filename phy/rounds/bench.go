package rounds

import (
	"fmt"
	"math"

	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
)

// Phases says what the blind regime does with the devices' phases.
type Phases int

const (
	// PhasesKept leaves them as measured: static, untrimmed.
	PhasesKept Phases = iota
	// PhasesTrimmed has the devices turn them to 0, within the error of what is known.
	PhasesTrimmed
	// PhasesUnknown draws them for each round, over the whole circle.
	PhasesUnknown
)

// Device is what is known of one link.
type Device struct {
	// Gain is the distribution of the real effective gain, after the phase of the
	// mean: received per sent amplitude. MeanStd and StdStd are the standard errors
	// of its mean and of its deviation, 0 where they are taken as exact.
	Gain            channel.Fading
	MeanStd, StdStd float64
	// Phase is that of the mean, PhaseStd its standard error.
	Phase, PhaseStd modem.Radians
	// Delay is relative to the earliest device, DelayStd its standard error.
	Delay, DelayStd modem.Samples
	// ConverterBits is the transmitter's resolution of each branch; 0 for none.
	ConverterBits int
}

// Bench is what is known of a bench.
type Bench struct {
	Devices []Device
	// Noise is the variance of a complex sample, in units of the squared received
	// amplitude of a device of gain 1 that sends amplitude 1.
	Noise modem.Power
	// ReceiverBits is the resolution of each branch of the receiver, 0 for none, and
	// ReceiverFullScale the amplitude at which it clips; 0 for four deviations of
	// what a group sends.
	ReceiverBits      int
	ReceiverFullScale float64
	// Phases is what becomes of phases in the blind regime.
	Phases Phases
	// Compensated has every device send earlier by its delay: by whole samples with
	// flat-top pulses, which absorb fractions that a filter would make overshoot, else
	// exactly. Root-raised-cosine pulses always have it.
	Compensated bool
	// FreshOnRetry draws new gains for each attempt.
	FreshOnRetry bool
}

// maxDevices bounds N: what is simulated grows with it.
const maxDevices = 256

// Validate says what is wrong with the bench.
func (b Bench) Validate() error {
	if len(b.Devices) == 0 || len(b.Devices) > maxDevices {
		return fmt.Errorf("rounds on a bench of %d devices: allowed are 1 to %d", len(b.Devices), maxDevices)
	}
	for i, d := range b.Devices {
		if err := d.validate(); err != nil {
			return fmt.Errorf("device %d %w", i+1, err)
		}
	}
	switch {
	case !(b.Noise > 0) || math.IsInf(float64(b.Noise), 0):
		return fmt.Errorf("the noise of a sample has the variance %v: it must be positive", b.Noise)
	case b.ReceiverBits < 0 || b.ReceiverBits > 24 || !(b.ReceiverFullScale >= 0) || math.IsInf(b.ReceiverFullScale, 0):
		return fmt.Errorf("a receiver of %d bits with a full scale of %v: allowed are 1 to 24 bits, or 0 for none, and a full scale of 0 or more", b.ReceiverBits, b.ReceiverFullScale)
	}
	return nil
}

func (d Device) validate() error {
	if d.Gain == nil {
		return fmt.Errorf("has no distribution of gains")
	}
	mu, omega := d.Gain.Mean(), d.Gain.SecondMoment()
	if mu == 0 || math.IsNaN(mu) || math.IsInf(mu, 0) || !(omega >= mu*mu*(1-1e-9)) || math.IsInf(omega, 0) {
		return fmt.Errorf("has a gain of mean %v and second moment %v: the mean must not be 0, nor the second moment below its square", mu, omega)
	}
	for _, v := range []float64{d.MeanStd, d.StdStd, float64(d.PhaseStd), float64(d.DelayStd)} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("has a standard error of %v: it must be 0 or more, and finite", v)
		}
	}
	if !(d.Delay >= 0 && d.Delay <= channel.MaxDelaySamples) || math.IsNaN(float64(d.Phase)) || math.IsInf(float64(d.Phase), 0) {
		return fmt.Errorf("has the delay %v and the phase %v: the delay must be from 0 to %d samples, the phase finite", d.Delay, d.Phase, channel.MaxDelaySamples)
	}
	if d.ConverterBits < 0 || d.ConverterBits > 24 {
		return fmt.Errorf("has a converter of %d bits: allowed are 1 to 24, and 0 for none", d.ConverterBits)
	}
	return nil
}

// Links returns the moments of all devices' gains.
func (b Bench) Links() bench.Links {
	var l bench.Links
	for _, d := range b.Devices {
		l.Mu, l.Omega = append(l.Mu, d.Gain.Mean()), append(l.Omega, d.Gain.SecondMoment())
	}
	return l
}

// Amplitude returns the largest magnitude of a sample that devices send.
func (b Bench) Amplitude() modem.Amplitude {
	var bits []int
	for _, d := range b.Devices {
		bits = append(bits, d.ConverterBits)
	}
	return bench.Amplitude(bits...)
}
