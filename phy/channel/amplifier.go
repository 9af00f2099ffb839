package channel

import "math"

// MaxSmoothness is the largest p of Rapp's model, at which the amplifier is linear up to
// its saturation, but for a rounded corner.
const MaxSmoothness = 20

// Amplifier is a power amplifier by Rapp's model: an amplitude r, 1 being full drive, comes
// out as r (1 + (r/Saturation)^(2 p))^(-1/(2 p)), p being Smoothness, turned by
// PhaseRad r^2. It has no memory. The zero value is linear.
type Amplifier struct {
	Saturation, Smoothness, PhaseRad float64
}

// usualSmoothness is p where none is given.
const usualSmoothness = 2

func (a Amplifier) apply(x []complex64) {
	if a.Saturation == 0 && a.PhaseRad == 0 {
		return
	}
	p := a.Smoothness
	if p == 0 {
		p = usualSmoothness
	}
	for n, v := range x {
		re, im := float64(real(v)), float64(imag(v))
		power := re*re + im*im
		gain := 1.0
		if a.Saturation > 0 {
			gain = math.Pow(1+math.Pow(power/(a.Saturation*a.Saturation), p), -1/(2*p))
		}
		if a.PhaseRad == 0 {
			x[n] = complex(float32(gain*re), float32(gain*im))
			continue
		}
		sin, cos := math.Sincos(a.PhaseRad * power)
		sin, cos = gain*sin, gain*cos
		x[n] = complex(float32(re*cos-im*sin), float32(re*sin+im*cos))
	}
}
