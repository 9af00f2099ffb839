package phy

import (
	"fmt"
	"math"
	"math/cmplx"

	"ringwave/phy/modem"
)

// Alignment is what each device makes up for, as a calibration has found it. nil is
// nothing, of any of it.
type Alignment struct {
	// Trim is for its channel's mean, and Advance by how much earlier it sends, for its
	// delay.
	Trim    []Trim
	Advance []modem.Samples
	// Correction is for faults of its own hardware.
	Correction []modem.Correction
}

// validate checks it for so many devices.
func (a *Alignment) validate(devices int) error {
	for _, v := range []struct {
		what string
		n    int
		none bool
	}{
		{"advances", len(a.Advance), a.Advance == nil}, {"trims", len(a.Trim), a.Trim == nil}, {"corrections", len(a.Correction), a.Correction == nil},
	} {
		if !v.none && v.n != devices {
			return fmt.Errorf("a waveform link of %d devices with %d %s: it needs one a device, or none", devices, v.n, v.what)
		}
	}
	for i, t := range a.Trim {
		if size := cmplx.Abs(complex128(t)); !(size > 0 && size <= 1+1e-9) {
			return fmt.Errorf("the trim of device %d is %v: its magnitude must be above 0 and at most 1", i+1, t)
		}
	}
	for i, c := range a.Correction {
		if err := c.Validate(); err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
	}
	return nil
}

// Trim is what a device multiplies its samples by to make up for its own
// channel, at most 1 in magnitude.
type Trim complex128

// Align returns the trims that let devices of the given mean complex gains, as a
// calibration measures them, all arrive in phase and at one level. No device can
// send more than its full drive: the level is the magnitude of the weakest gain.
// Against it, device i then has the gain h_i/mu_i, whose mean is 1, and
// Delta f_i is sent as it is: the division by mu_i of Eq. 3 of the paper is done.
func Align(means []complex128) (trims []Trim, level float64, err error) {
	level = math.Inf(1)
	for i, m := range means {
		size := cmplx.Abs(m)
		if !(size > 0) || math.IsInf(size, 0) {
			return nil, 0, fmt.Errorf("device %d has the mean gain %v: there is nothing to align", i+1, m)
		}
		level = math.Min(level, size)
	}
	for _, m := range means {
		trims = append(trims, Trim(complex(level, 0)/m))
	}
	return trims, level, nil
}
