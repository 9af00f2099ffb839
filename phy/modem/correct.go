package modem

import (
	"fmt"
	"math"
	"math/cmplx"
)

// Correction is what a device does to its samples so that its own hardware's faults are
// undone on the air: those that a calibration has measured. The zero value does nothing.
type Correction struct {
	// Offset is by how much the carrier is too high, against what the devices have in
	// common: samples are turned the other way, by nothing at the transmitter's index
	// Since and continuously before and after it.
	Offset CyclesPerSample
	Since  int64
	// Image is the amplitude of the conjugate that the transmitter adds to what it
	// sends, per amplitude of that.
	Image complex128
	// Leakage is the constant that the transmitter adds to what it sends, in parts of
	// its full scale, as it arrives through the same gain.
	Leakage complex128
	// Clock is by how much the device's sample clock is faster than the receiver's, of
	// itself: symbols are sent later by that of the time since the transmission began. It
	// is the Modulator's business (ModulateDrifting), and not of Apply.
	Clock float64
	// Echoes are what the link has beside its first path: what is sent is such that these
	// take off each other's copies, and the first path alone arrives. Those of gain 0 are none.
	Echoes [MaxEchoes]Echo
}

// Echo is a path that is some samples later than the first, earlier if that is negative, with
// its gain against the first one's.
type Echo struct {
	Delay Samples
	Gain  complex128
}

// The most of an error of a clock, an image, a leakage and echoes, of which magnitudes add
// up, that a device corrects: beyond, hardware is broken and not out of adjustment.
const (
	MaxClock     = 1e-3
	MaxImage     = 0.5
	MaxLeakage   = 0.5
	MaxEchoes    = 8
	MaxEcho      = 0.5
	MaxEchoDelay = 64
)

// Validate refuses what is no number, or too much.
func (c Correction) Validate() error {
	switch {
	case !(math.Abs(float64(c.Offset)) <= 0.5):
		return fmt.Errorf("a correction by %v cycles a sample: allowed are -0.5 to 0.5", c.Offset)
	case !(math.Abs(c.Clock) <= MaxClock):
		return fmt.Errorf("a correction of a sample clock by %v of itself: allowed are -%v to %v", c.Clock, MaxClock, MaxClock)
	case !(cmplx.Abs(c.Image) <= MaxImage):
		return fmt.Errorf("a correction of the image %v: its magnitude must be at most %v", c.Image, MaxImage)
	case !(cmplx.Abs(c.Leakage) <= MaxLeakage):
		return fmt.Errorf("a correction of the leakage %v: its magnitude must be at most %v", c.Leakage, MaxLeakage)
	}
	return c.validateEchoes()
}

func (c Correction) validateEchoes() error {
	sum := 0.0
	for _, e := range c.Echoes {
		if !(math.Abs(float64(e.Delay)) <= MaxEchoDelay) {
			return fmt.Errorf("a correction of an echo %v samples late: allowed are -%v to %v", e.Delay, MaxEchoDelay, MaxEchoDelay)
		}
		sum += cmplx.Abs(e.Gain)
	}
	if !(sum <= MaxEcho) {
		return fmt.Errorf("a correction of echoes %v: their magnitudes add up to %v and must to at most %v", c.Echoes, sum, MaxEcho)
	}
	return nil
}

// Headroom returns the share of full scale that is left for a signal, so that no corrected
// sample exceeds it.
func (c Correction) Headroom() float64 {
	m := cmplx.Abs(c.Image)
	return (1 - cmplx.Abs(c.Rest())) * (1 - m*m) / (1 + m) / c.unechoed().most()
}

// Rest is the sample that is sent for none: minus the leakage, as far as the image of that
// lets it.
func (c Correction) Rest() complex128 {
	return -c.unimaged(c.Leakage)
}

// unimaged returns what becomes x once the transmitter adds its image: of
// u = (x - m x*)/(1 - |m|^2) it makes u + m u* = x.
func (c Correction) unimaged(x complex128) complex128 {
	if c.Image == 0 {
		return x
	}
	m := c.Image
	return (x - m*cmplx.Conj(x)) / complex(1-real(m)*real(m)-imag(m)*imag(m), 0)
}

// corrected is the number of samples over which a turn's phase is carried on before it is
// computed anew.
const corrected = 1024

// Apply corrects samples in place, of which the first has the transmitter's index at. Echoes
// take them for a whole transmission, with silence before. They are of what is on the air, and
// so undone between the carrier's turn and the transmitter's image and leakage, which act on
// what is sent.
func (c Correction) Apply(samples []complex64, at int64) {
	if c.Offset != 0 {
		c.turn(samples, at)
	}
	c.unecho(samples)
	if c.Image == 0 && c.Leakage == 0 {
		return
	}
	// u = a x + b x*, less the leakage's own.
	a, b, rest := c.unimaged(1), c.unimaged(1i), complex64(c.Rest())
	own, image := complex64((a-1i*b)/2), complex64((a+1i*b)/2)
	for n, x := range samples {
		samples[n] = own*x + image*complex(real(x), -imag(x)) + rest
	}
}

// turn turns samples by minus the offset.
func (c Correction) turn(samples []complex64, at int64) {
	step := cmplx.Rect(1, -2*math.Pi*float64(c.Offset))
	for n := 0; n < len(samples); n += corrected {
		cycles := float64(c.Offset) * float64(at+int64(n)-c.Since)
		rotor := cmplx.Rect(1, -2*math.Pi*math.Remainder(cycles, 1))
		for k := n; k < min(n+corrected, len(samples)); k++ {
			samples[k] *= complex64(rotor)
			rotor *= step
		}
	}
}
