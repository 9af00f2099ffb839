// Package aggregate says what a system of over-the-air aggregation gives for the values
// that the devices send in a round.
//
// Every system sends P >= 1 values a device, one behind the other: Delta f along each of
// P directions, or the P = d components of a gradient. It gives one value for each of
// them, that of all devices together. What all devices get back is an Outcome; what only
// a simulation of the channel knows of it is a Truth, and apart. The package knows
// nothing of how a system encrypts, or of what the values are for.
package aggregate

import "fmt"

// Outcome is what one round of aggregation gave.
type Outcome struct {
	// M has one value for each of a device's: of Delta f it is M_k (Eq. 17 of the
	// paper), sum_i (h_{i,k}/mu_i) Delta f_{i,k} + epsilon_k. The next round may write
	// over it. It means nothing if the round was skipped.
	M []float64
	// Attempts is how often the round was sent, at least 1.
	Attempts int
	// Skipped says that every attempt failed: a round succeeds or fails whole.
	Skipped bool
	// Clipped is the number of values, over all devices, that were out of range and were
	// cut to it.
	Clipped int
}

// Truth is what only the harness that simulates the gains knows of a round. No device
// and no server knows it.
type Truth struct {
	// Ideal is M without error, value by value; empty where it is not known. The next
	// round may write over it.
	Ideal []float64
	// EpsStd is the predicted standard deviation of M - Ideal, the same for each value,
	// given the gains.
	EpsStd float64
}

// Gains is where systems without rings have their channel from.
type Gains interface {
	// Gains returns h_{i,k} of all devices i in round k, k >= 1: the same values
	// whenever it is asked for the same round. The slice may be reused by the next call.
	Gains(round int) (h []float64)
}

// Width returns how many values each device has, values[i] being those of device i, or
// an error unless all have as many, at least one.
func Width(values [][]float64) (int, error) {
	if len(values) == 0 {
		return 0, fmt.Errorf("values of 0 devices: there must be at least one")
	}
	p := len(values[0])
	if p == 0 {
		return 0, fmt.Errorf("device 1 has no value: there must be at least one")
	}
	for i, v := range values {
		if len(v) != p {
			return 0, fmt.Errorf("device %d has %d values and device 1 has %d: all must have as many", i+1, len(v), p)
		}
	}
	return p, nil
}
