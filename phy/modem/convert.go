package modem

// Full scale of the converters: a component of +-1.0 is +-fullScale8 or
// +-fullScale16, and the code below the negative one is never sent.
const (
	fullScale8  = 1<<7 - 1
	fullScale16 = 1<<15 - 1
)

// Rail8 and Rail16 are amplitudes that only components at the ends of the
// converter's range reach: for Receive.Clip after Dequantise8 and Dequantise16.
const (
	Rail8  Amplitude = (fullScale8 - 0.5) / fullScale8
	Rail16 Amplitude = (fullScale16 - 0.5) / fullScale16
)

// Quantise8 rounds samples, full scale 1.0, to interleaved 8-bit I and Q. It gives
// the number of samples that had a component beyond full scale, which is set to
// full scale, or not a number, which is set to 0. dst has two elements a sample.
func Quantise8(dst []int8, src []complex64) (clipped int) {
	return quantise(dst, src, fullScale8)
}

// Quantise16 is Quantise8 to 16 bits.
func Quantise16(dst []int16, src []complex64) (clipped int) {
	return quantise(dst, src, fullScale16)
}

func quantise[T int8 | int16](dst []T, src []complex64, fullScale float32) (clipped int) {
	dst = dst[:2*len(src)]
	for n, x := range src {
		i, okI := quantiseOne(real(x), fullScale)
		q, okQ := quantiseOne(imag(x), fullScale)
		if !okI || !okQ {
			clipped++
		}
		dst[2*n], dst[2*n+1] = T(i), T(q)
	}
	return clipped
}

func quantiseOne(x, fullScale float32) (code int32, ok bool) {
	v := x * fullScale
	switch limit := fullScale + 0.5; {
	case v > -limit && v < limit:
		// Conversion truncates: round by shifting to positive numbers first. The
		// sum may itself round up to one too many.
		shift := int32(fullScale) + 1
		return min(int32(v+float32(shift)+0.5)-shift, int32(fullScale)), true
	case v >= limit:
		return int32(fullScale), false
	case v <= -limit:
		return -int32(fullScale), false
	}
	return 0, false
}

// Dequantise8 turns interleaved 8-bit I and Q, two elements a sample, into
// samples. It gives the number of samples with a component at an end of the range:
// a converter that clips shows itself there.
func Dequantise8(dst []complex64, src []int8) (atRail int) {
	return dequantise(dst, src, fullScale8)
}

// Dequantise16 is Dequantise8 from 16 bits.
func Dequantise16(dst []complex64, src []int16) (atRail int) {
	return dequantise(dst, src, fullScale16)
}

func dequantise[T int8 | int16](dst []complex64, src []T, fullScale T) (atRail int) {
	scale := 1 / float32(fullScale)
	src = src[:2*len(dst)]
	for n := range dst {
		i, q := src[2*n], src[2*n+1]
		if i >= fullScale || i <= -fullScale || q >= fullScale || q <= -fullScale {
			atRail++
		}
		dst[n] = complex(float32(i)*scale, float32(q)*scale)
	}
	return atRail
}
