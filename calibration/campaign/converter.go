package campaign

import (
	"fmt"
	"math"
	"math/cmplx"

	"ringwave/calibration/moments"
	"ringwave/phy/bench"
)

// maxBits is the most that a converter may have, as in phy/channel.
const maxBits = 24

// Converters are those between what devices send and what is heard of it.
type Converters struct {
	// TransmitterBits has the resolution of each device's, 0 for none; their full scale
	// counts as 1. nil stands for none at all.
	TransmitterBits []int
	Receiver        Receiver
}

// Receiver is a receiver's converter.
type Receiver struct {
	Bits int // 0 for none
	// FullScale is the amplitude at which it clips, that of a device of gain 1 being 1;
	// 0 for what suits the gains of Links in Regime where Group of them share a slot.
	FullScale float64
	Links     bench.Links
	Regime    bench.Regime
	Group     int
}

func (c *Converters) validate(devices int) error {
	if n := len(c.TransmitterBits); n != 0 && n != devices {
		return fmt.Errorf("converters of %d transmitters for %d devices: there must be one a device, or none", n, devices)
	}
	for _, bits := range c.TransmitterBits {
		if err := validateBits(bits); err != nil {
			return err
		}
	}
	r := &c.Receiver
	switch {
	case r.Bits == 0:
		return nil
	case !(r.FullScale >= 0) || math.IsInf(r.FullScale, 0):
		return fmt.Errorf("a receiver's converter that clips at %v: it must be positive, or 0 for what suits the gains", r.FullScale)
	case r.FullScale == 0 && (r.Group < 1 || len(r.Links.Mu) != devices || len(r.Links.Omega) != devices):
		return fmt.Errorf("a receiver's converter that suits groups of %d, of %d means and %d second moments: groups must be of at least 1, and there must be %d of each moment, one a device", r.Group, len(r.Links.Mu), len(r.Links.Omega), devices)
	}
	return validateBits(r.Bits)
}

func validateBits(bits int) error {
	if bits < 0 || bits > maxBits {
		return fmt.Errorf("a converter of %d bits: allowed are 0 to %d", bits, maxBits)
	}
	return nil
}

// transmitter returns the converter of device i.
func (c *Converters) transmitter(i int) rounder {
	if len(c.TransmitterBits) == 0 {
		return rounder{}
	}
	return rounder{c.TransmitterBits[i], 1}
}

// under returns the converter beside noise of that power a complex sample.
func (r *Receiver) under(noise float64) rounder {
	switch {
	case r.Bits == 0:
		return rounder{}
	case r.FullScale > 0:
		return rounder{r.Bits, r.FullScale}
	}
	return rounder{r.Bits, r.Links.FullScale(r.Regime, r.Group, math.Sqrt(noise/2))}
}

// rounder is a converter: it rounds both branches to bits, 0 for not at all, and clips at full.
type rounder struct {
	bits int
	full float64
}

func (c rounder) step() float64 { return c.full * math.Ldexp(1, 1-c.bits) }

// rounding returns the power of the rounding of a complex sample: a twelfth of a squared
// step a branch.
func (c rounder) rounding() float64 {
	if c.bits == 0 {
		return 0
	}
	return c.step() * c.step() / 6
}

// following returns the power of the rounding that follows the signal, and so is the same
// whenever the signal is. Noise of a complex sample beyond half a step dithers it: what
// is left of the first harmonic of the rounding's sawtooth is the noise's characteristic
// function at one cycle a step, squared.
func (c rounder) following(noise float64) float64 {
	if c.bits == 0 {
		return 0
	}
	turns := math.Pi / c.step()
	return c.rounding() * math.Min(1, 4*math.Exp(-turns*turns*noise))
}

// leastDistortion is the power of what grows with the gain, against the signal's, that
// counts for nothing on any bench.
const leastDistortion = 1e-5

// allowRounding returns what of a sounding may be unexplained and grow with its gain, in
// parts of the signal, and widens the errors of gains. A transmitter's rounding is a
// part of what is sent; a receiver's, where it follows the signal, is the same in each
// period and look, so that it does not average.
func (c *Config) allowRounding(b moments.Bench) (distortion float64) {
	heard := c.receiverOf(b, c.Converters.Receiver)
	repetitions := c.Soundings.Sounding.Config().Repetitions
	distortion = leastDistortion
	for i, s := range b.Devices {
		power, noise := meanPower(s)
		follows := heard.following(noise)
		distortion = max(distortion, leastDistortion+2*c.Converters.transmitter(i).rounding()+2*follows/power)
		share := math.Min(1, follows/noise)
		if share < 1e-3 {
			continue
		}
		wider := 1 - share + share*float64(repetitions*c.Soundings.Looks)
		for n := range s.GainVar {
			s.GainVar[n] *= wider
		}
	}
	return distortion
}

// receiverOf returns a receiver's converter beside the noise that was measured.
func (c *Config) receiverOf(b moments.Bench, r Receiver) rounder {
	_, noise := meanPower(b.Devices[0])
	return r.under(noise)
}

// meanPower returns the means of a device's |g|^2 and noise, without what was missed.
func meanPower(s moments.Series) (power, noise float64) {
	n := 0.0
	for k, g := range s.Gain {
		if !cmplx.IsNaN(g) {
			power, noise, n = power+real(g)*real(g)+imag(g)*imag(g), noise+s.Noise[k], n+1
		}
	}
	return power / n, noise / n
}
