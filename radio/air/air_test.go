package air_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/radio/air"
)

// product is gain times x in four products and two sums, each rounded to single
// precision by way of double precision, in which products are exact.
func product(gain, x complex64) (re, im float32) {
	times := func(a, b float32) float64 { return float64(float32(float64(a) * float64(b))) }
	re = float32(times(real(gain), real(x)) - times(imag(gain), imag(x)))
	im = float32(times(real(gain), imag(x)) + times(imag(gain), real(x)))
	return re, im
}

// The shorter ways of gains that are 1 or real give the same bits.
func TestBits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	draw := func() float32 {
		if rnd.IntN(8) == 0 {
			return 0
		}
		return float32(math.Ldexp(rnd.Float64()*2-1, rnd.IntN(20)-10))
	}
	src, sum, scaled := make([]complex64, 1000), make([]complex64, 1000), make([]complex64, 1000)
	for _, gain := range []complex64{0, 1, -1, 0.3, -0.7, 1i, complex(0.6, -0.8), complex(draw(), draw())} {
		for k := range src {
			src[k], sum[k] = complex(draw(), draw()), complex(draw(), draw())
		}
		before := append([]complex64(nil), sum...)
		copy(scaled, src)
		air.Add(sum, src, gain)
		air.Scale(scaled, gain)
		for k, x := range src {
			re, im := product(gain, x)
			if !same(scaled[k], re, im) {
				t.Fatalf("%v times %v is %v", gain, x, scaled[k])
			}
			if re, im := real(before[k])+re, imag(before[k])+im; !same(sum[k], re, im) {
				t.Fatalf("%v and %v times %v is %v", before[k], gain, x, sum[k])
			}
		}
	}
}

// same reports whether x has these bits.
func same(x complex64, re, im float32) bool {
	return math.Float32bits(real(x)) == math.Float32bits(re) && math.Float32bits(imag(x)) == math.Float32bits(im)
}
