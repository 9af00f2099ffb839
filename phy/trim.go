package phy

import (
	"fmt"
	"math"
	"math/cmplx"
)

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
