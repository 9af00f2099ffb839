package cu8

import "ringwave/radio"

// amplitude has what each byte stands for.
var amplitude = func() (t [256]float32) {
	for u := range t {
		t[u] = (float32(u) - 127.5) / 128
	}
	return t
}()

// Convert makes samples of 2 len(dst) bytes or more, and gives the number of those
// that have I or Q at the converter's limits, 0 and 255.
func Convert(dst []complex64, src []byte) (clipped radio.SampleCount) {
	src = src[:2*len(dst)]
	for k := range dst {
		i, q := src[2*k], src[2*k+1]
		dst[k] = complex(amplitude[i], amplitude[q])
		// Adding 1 makes the two limits 0 and 1.
		if i+1 <= 1 || q+1 <= 1 {
			clipped++
		}
	}
	return clipped
}
