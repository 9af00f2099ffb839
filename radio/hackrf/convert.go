package hackrf

import (
	"math"

	"ringwave/radio"
)

// fullScale is the integer that stands for an amplitude of 1.
const fullScale = 127

// sampleBytes is the length of a sample: I and Q of 8 bits, signed.
const sampleBytes = 2

// clipLevel is the amplitude that only integers at the limit reach.
const clipLevel radio.Amplitude = (fullScale - 0.5) / fullScale

// components are the 256 values of I or Q.
var components = func() (t [256]float32) {
	for b := range t {
		t[b] = float32(int8(b)) / fullScale
	}
	return t
}()

// limits are 1 for the bytes at the converter's limits.
var limits = [256]uint8{fullScale: 1, 0x80: 1, 0x81: 1}

// decode reads len(dst) samples from src, which has two bytes each, and counts
// those at the converter's limit.
func decode(dst []complex64, src []byte) (clipped int) {
	src = src[:sampleBytes*len(dst)]
	for k := range dst {
		i, q := src[sampleBytes*k], src[sampleBytes*k+1]
		dst[k] = complex(components[i], components[q])
		clipped += int(limits[i] | limits[q])
	}
	return clipped
}

// encode writes the samples of src to dst, which has two bytes each, and counts
// those that were limited. What is not a number becomes 0 and counts, too.
func encode(dst []byte, src []complex64) (clipped int) {
	dst = dst[:sampleBytes*len(src)]
	for k, x := range src {
		i, q := real(x)*fullScale, imag(x)*fullScale
		if !(i < beyond && i > -beyond && q < beyond && q > -beyond) {
			clipped++
			i, q = limit(i), limit(q)
		}
		dst[sampleBytes*k] = byte(math.Float32bits(i + roundingBias))
		dst[sampleBytes*k+1] = byte(math.Float32bits(q + roundingBias))
	}
	return clipped
}

// beyond is the least that does not round to fullScale.
const beyond = fullScale + 0.5

// roundingBias makes the lowest bits of a float32 those of the number rounded to
// the nearest integer, ties to even: at 1.5 * 2^23 their step is 1.
const roundingBias = 3 << 22

// limit gives v within the limits, 0 for what is no number.
func limit(v float32) float32 {
	switch {
	case v > fullScale:
		return fullScale
	case v < -fullScale:
		return -fullScale
	case v != v:
		return 0
	}
	return v
}
