package main

import (
	"math"
	"math/cmplx"

	"ringwave/calibration/moments"
	"ringwave/learner/experiment/config"
	"ringwave/radio/sigmf"
)

// rounder is a converter: it rounds both branches to bits, 0 for not at all, and clips at full.
type rounder struct {
	bits int
	full float64
}

// boardBits is the resolution of the coarsest radios that there are drivers for.
const boardBits = 8

func (c rounder) step() float64 { return c.full * math.Ldexp(1, 1-c.bits) }

// rounding gives the power of the rounding of a complex sample: a twelfth of a squared
// step a branch.
func (c rounder) rounding() float64 {
	if c.bits == 0 {
		return 0
	}
	return c.step() * c.step() / 6
}

// following gives the power of the rounding that follows the signal, and so is the same
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

// configuredConverter gives the bits of the receiver's converter, 0 for none, and the
// amplitude at which it is told to clip, 0 for what suits the gains. The format of a
// recording is one, too.
func configuredConverter(c config.Config) (bits int, given float64) {
	bits, given = c.Link.ReceiverConverterBits, c.Link.ReceiverFullScale
	if codes := largestCode(sigmf.Datatype(c.Link.Record)); bits == 0 && codes > 0 {
		bits, given = 1+int(math.Round(math.Log2(codes+1))), c.Link.RecordFullScale
	}
	return bits, given
}

// receiverConverter gives the converter that soundings were heard through.
func (k *calibrator) receiverConverter(b moments.Bench) (rounder, error) {
	c := k.cfg
	if c.OverRadios() {
		return rounder{boardBits, 1}, nil
	}
	bits, given := configuredConverter(c)
	if bits == 0 {
		return rounder{}, nil
	}
	ch, err := newChannel(c, k.root)
	if err != nil {
		return rounder{}, err
	}
	_, noise := meanPower(b.Devices[0])
	return rounder{bits, fullScale(c, given, ch, groupSize(c), math.Sqrt(noise/2))}, nil
}

// senderConverter gives the converter that device i's soundings were sent through, whose
// full scale counts as 1.
func (k *calibrator) senderConverter(i int) rounder {
	if k.cfg.OverRadios() {
		return rounder{boardBits, 1}
	}
	return rounder{k.cfg.Transmitter(i).ConverterBits, 1}
}

// leastDistortion is the power of what grows with the gain, against the signal's, that
// counts for nothing on any bench.
const leastDistortion = 1e-5

// allowRounding gives what of a sounding may be unexplained and grow with its gain, in
// parts of the signal, and widens the errors of gains. A transmitter's rounding is a
// part of what is sent; a receiver's, where it follows the signal, is the same in each
// period and look, so that it does not average.
func (k *calibrator) allowRounding(b moments.Bench) (distortion float64, err error) {
	heard, err := k.receiverConverter(b)
	if err != nil {
		return 0, err
	}
	distortion = leastDistortion
	for i, s := range b.Devices {
		power, noise := meanPower(s)
		follows := heard.following(noise)
		distortion = max(distortion, leastDistortion+2*k.senderConverter(i).rounding()+2*follows/power)
		share := math.Min(1, follows/noise)
		if share < 1e-3 {
			continue
		}
		wider := 1 - share + share*float64(k.cfg.Calibration.Repetitions*k.cfg.Calibration.Looks)
		for n := range s.GainVar {
			s.GainVar[n] *= wider
		}
	}
	return distortion, nil
}

// meanPower gives the means of a device's |g|^2 and noise, without what was missed.
func meanPower(s moments.Series) (power, noise float64) {
	n := 0.0
	for k, g := range s.Gain {
		if !cmplx.IsNaN(g) {
			power, noise, n = power+real(g)*real(g)+imag(g)*imag(g), noise+s.Noise[k], n+1
		}
	}
	return power / n, noise / n
}

// fillNoise gives bursts without noise the mean of the others': a converter that rounds
// all of a weak one to 0 hides its noise, and does not end it.
func fillNoise(s moments.Series) {
	noise, variance, n := 0.0, 0.0, 0.0
	for k, v := range s.Noise {
		if v > 0 && s.GainVar[k] > 0 {
			noise, variance, n = noise+v, variance+s.GainVar[k], n+1
		}
	}
	for k, v := range s.Noise {
		if v == 0 || s.GainVar[k] == 0 {
			s.Noise[k], s.GainVar[k] = noise/n, variance/n
		}
	}
}
