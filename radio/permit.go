package radio

import (
	"errors"
	"fmt"
	"math"
)

// ErrNotPermitted: the TransmitPermit does not allow what was asked for.
var ErrNotPermitted = errors.New("this is not permitted")

// TransmitPermit is what the user has confirmed that a device may send. Drivers
// hold on to it below their callers: a stream, a retune and a gain outside it
// fail with ErrNotPermitted, and so does power for an amplifier at the antenna. The zero
// value permits nothing.
type TransmitPermit struct {
	band  Span[Hertz]
	width Hertz
	most  Decibels
	bias  bool
}

// NewTransmitPermit permits carriers whose signal, width wide around the carrier
// (0 or more), lies within band, and gains of at most most, which is the sum over
// the transmit stages of a device on the device's own scale.
func NewTransmitPermit(band Span[Hertz], width Hertz, most Decibels) (TransmitPermit, error) {
	switch {
	case !(band.Min > 0 && band.Max > band.Min && band.Max <= math.MaxFloat64):
		return TransmitPermit{}, fmt.Errorf("a permit to transmit from %v to %v; allowed is a band above 0 Hz that ends above where it begins", band.Min, band.Max)
	case !(width >= 0 && width <= band.Max-band.Min):
		return TransmitPermit{}, fmt.Errorf("a permit to transmit a signal %v wide; allowed is 0 Hz to the width of the band, %v", width, band.Max-band.Min)
	case math.IsNaN(float64(most)) || math.IsInf(float64(most), 0):
		return TransmitPermit{}, fmt.Errorf("a permit to transmit with a gain of %v; allowed is a number", most)
	}
	return TransmitPermit{band: Span[Hertz]{Min: band.Min, Max: band.Max}, width: width, most: most}, nil
}

// WithBias returns p with power at antennas' ports permitted, too, which no receiver puts out
// without it: it destroys what is not made for it.
func (p TransmitPermit) WithBias() TransmitPermit {
	p.bias = true
	return p
}

// Bias fails where power at antennas' ports is not permitted.
func (p TransmitPermit) Bias() error {
	if p.bias {
		return nil
	}
	return fmt.Errorf("%w: power at the antenna's port, which destroys what is not made for it; allowed is bias=off, until the user has confirmed it by radio.bias_tee = true", ErrNotPermitted)
}

// Allowed reports whether anything may be sent at all.
func (p TransmitPermit) Allowed() bool { return p.band.Max > 0 }

// Frequency fails where a carrier at f is not permitted.
func (p TransmitPermit) Frequency(f Hertz) error {
	if !p.Allowed() {
		return p.nothing()
	}
	if low, high := p.band.Min+p.width/2, p.band.Max-p.width/2; !(f >= low && f <= high) {
		return fmt.Errorf("%w: the carrier is %v; allowed is %v to %v", ErrNotPermitted, f, low, high)
	}
	return nil
}

// Gain fails where the sum total of a device's transmit gains is not permitted.
func (p TransmitPermit) Gain(total Decibels) error {
	if !p.Allowed() {
		return p.nothing()
	}
	if !(total <= p.most) {
		return fmt.Errorf("%w: the transmit gains add up to %v; allowed is at most %v", ErrNotPermitted, total, p.most)
	}
	return nil
}

func (p TransmitPermit) nothing() error {
	return fmt.Errorf("%w: nothing may be sent until the user has confirmed band and gain", ErrNotPermitted)
}

// String returns the permit in one line.
func (p TransmitPermit) String() string {
	s := "nothing may be sent"
	if p.Allowed() {
		s = fmt.Sprintf("%v to %v, signals %v wide, gains up to %v in all", p.band.Min, p.band.Max, p.width, p.most)
	}
	if p.bias {
		s += ", and power at antennas' ports"
	}
	return s
}
