// Package modem turns real symbols into complex baseband samples and, when many
// devices send at once, their superposed samples back into soft real symbols.
//
// It takes in symbols (a preamble of +-1 that all devices share, then small real
// numbers) and gives samples, full scale 1.0; it takes in samples and gives, for
// each symbol k, the soft value
//
//	y_k = sum_i h_i cos(phi_i - theta) d_{i,k} + noise,
//
// where device i sends d_{i,k} through a static channel h_i e^{j phi_i} and theta
// is the common phase, the argument of sum_i h_i e^{j phi_i}. Everything is found
// from the superposed preamble: no quantity of a single device is ever estimated.
// The package knows nothing of what symbols mean, of keys, of lattices of gains,
// or of radios.
//
// A Modulator shapes pulses, a Detector finds preambles and says when and at
// which phase and frequency the symbols come, a Demodulator gives the symbols.
// The two pulses are FlatTop, which tolerates delays between devices, and
// RootRaisedCosine, which wants them compensated (Drive.Advance).
//
// # Time
//
// An instant is a fractional index into the slice at hand: 2.5 lies midway
// between samples 2 and 3. A symbol's instant is the centre of its pulse.
//
// # Reproducible gains
//
// An error dtheta of the common phase turns the gain h_i cos(phi_i - theta) into
//
//	h_i cos(phi_i - theta) + h_i sin(phi_i - theta) dtheta - O(dtheta^2):
//
// it adds dtheta times the superposition's quadrature, so the error it makes lies
// 20 log10(dtheta) dB, times the ratio of quadrature to in-phase amplitude, under
// the symbols. Devices in phase (or in opposite phase) suffer only at second
// order. From a preamble of L symbols whose superposition has the signal-to-noise
// ratio S a symbol, theta comes out with the standard deviation
// 1/sqrt(2 L S): -64 dB for L = 127 at 40 dB.
//
// A frequency estimated from the preamble has, per symbol, the standard deviation
// sqrt(6/(S L^3)) radians (1.7e-5 for those figures) and is too coarse for long
// frames: the Demodulator tracks the rest (Follow).
package modem

import (
	"errors"
	"fmt"
	"math"
)

// Samples is a length or an instant in samples, of any fraction.
type Samples float64

// Symbols counts symbols.
type Symbols int

// CyclesPerSample is a frequency as a fraction of the sample rate.
type CyclesPerSample float64

// Radians is a phase.
type Radians float64

// Amplitude is a magnitude of samples or symbols, linear; 1 is full scale.
type Amplitude float64

// Power is a squared magnitude, linear.
type Power float64

// The bounds of Config.SamplesPerSymbol.
const (
	MinSamplesPerSymbol = 2
	MaxSamplesPerSymbol = 64
)

// Config is what transmitters and receiver agree on.
type Config struct {
	// SamplesPerSymbol is the symbol period, from 2 to 64 samples.
	SamplesPerSymbol int
	Pulse            Pulse
	Preamble         Preamble
}

func (c Config) validate() error {
	if c.SamplesPerSymbol < MinSamplesPerSymbol || c.SamplesPerSymbol > MaxSamplesPerSymbol {
		return fmt.Errorf("%d samples a symbol: allowed are %d to %d", c.SamplesPerSymbol, MinSamplesPerSymbol, MaxSamplesPerSymbol)
	}
	if c.Pulse == nil {
		return errors.New("the modem has no pulse")
	}
	if err := c.Pulse.validate(c.SamplesPerSymbol); err != nil {
		return err
	}
	return c.Preamble.validate()
}

// MaxOffset returns the largest frequency offset that is looked for: so many turns in a
// preamble, and of a short one no more than the few frequencies that can be tried at
// DefaultFalseAlarm. The configuration must be one that NewDetector
// takes.
func (c Config) MaxOffset() CyclesPerSample {
	length := float64(c.Preamble.Length)
	tried := DefaultFalseAlarm / 4 * math.Exp(mostThreshold/2*length)
	side := math.Floor((tried - 1) / 2)
	return CyclesPerSample(min(mostTurns, max(0, (side+0.5)/2)) / (length * float64(c.SamplesPerSymbol)))
}

// PreambleSymbols returns the symbols that begin every frame: the sequence of
// Config.Preamble with its cyclic guards before and after. The configuration must
// be one that NewDetector takes.
func (c Config) PreambleSymbols() []float32 {
	return c.Preamble.symbols(c.Pulse.guard(c.SamplesPerSymbol))
}
