package experimenttest

import (
	"math"

	"ringwave/radio"
)

type ReceivingBoard struct{}

// ClipLevel lends itself to the receiver.
func (ReceivingBoard) ClipLevel() radio.Amplitude { return 126.5 / 127 }

// Convert is loopback.Converter.
func (ReceivingBoard) Convert(dst []complex64, _ int64) (clipped int) {
	code := func(x float32) (float32, bool) {
		c := math.Trunc(float64(x*128 + float32(math.Copysign(0.5, float64(x)))))
		c = max(-128, min(127, c))
		return float32(c) / 127, c >= 127 || c <= -127
	}
	for k, x := range dst {
		re, a := code(real(x))
		im, b := code(imag(x))
		dst[k] = complex(re, im)
		if a || b {
			clipped++
		}
	}
	return clipped
}

// Claims are the optional interfaces of a receiver.
type Claims struct{ bounded, Ranged, asked bool }

func ClaimsOf(r radio.Receiver) (c Claims) {
	_, c.bounded = r.(radio.Bounded)
	_, c.Ranged = r.(radio.Ranged)
	_, c.asked = r.(radio.LossChecker)
	return c
}
