//go:build !purego

package kernel

import "ringwave/crypto/vector"

// The functions here do the beginning of what the exported ones do, and return how much.

// lanes is the number of samples in a vector.
func (k Kernel) lanes() int {
	if k.path == vector.AVX512 {
		return 8
	}
	return 4
}

func (k Kernel) convolve(dst, src []complex64, taps []float32, gain float32) (n int) {
	if k.path == vector.Portable {
		for ; n+2 <= len(dst); n += 2 {
			convolveTwo((*[2]complex64)(dst[n:]), src[n:n+len(taps)+1], taps, gain)
		}
		return n
	}
	many, one := convolve4AVX2, convolve1AVX2
	if k.path == vector.AVX512 {
		many, one = convolve4AVX512, convolve1AVX512
	}
	vector, count := k.lanes(), len(taps)
	src = src[:len(dst)+count-1]
	if blocks := len(dst) / (4 * vector); blocks > 0 {
		many(&dst[0], &src[0], &taps[0], count, gain, blocks)
		n = blocks * 4 * vector
	}
	if blocks := (len(dst) - n) / vector; blocks > 0 {
		one(&dst[n], &src[n], &taps[0], count, gain, blocks)
		n += blocks * vector
	}
	return n
}

func (k Kernel) correlate(dst, src []complex64, taps []float32, stride int) (n int) {
	if k.path == vector.Portable || len(dst) == 0 || len(taps) == 0 {
		return 0
	}
	src = src[:(len(dst)-1)*stride+len(taps)]
	fours, rest := len(taps)/4, len(taps)%4
	if groups := len(dst) / 4; groups > 0 {
		correlate4(&dst[0], &src[0], &taps[0], fours, rest, 8*stride, groups)
		n = 4 * groups
	}
	if n < len(dst) {
		correlate1(&dst[n], &src[n*stride], &taps[0], fours, rest, 8*stride, len(dst)-n)
	}
	return len(dst)
}

func (k Kernel) turn(x []complex64, by complex64) int {
	re, im := float64(real(by)), float64(imag(by))
	switch {
	case k.path == vector.AVX512 && len(x) >= 4:
		turnAVX512(&x[0], re, im, len(x)/4)
		return len(x) / 4 * 4
	case k.path == vector.AVX2 && len(x) >= 2:
		turnAVX2(&x[0], re, im, len(x)/2)
		return len(x) / 2 * 2
	}
	return 0
}

func (k Kernel) addNoise(dst []complex64, random []byte, std float32) int {
	each := 2 * k.lanes()
	count := len(dst) / each
	switch {
	case k.path == vector.Portable || count == 0:
		return 0
	case k.path == vector.AVX512:
		addNoiseAVX512(&dst[0], &random[0], std, &noise[0], count)
	default:
		addNoiseAVX2(&dst[0], &random[0], std, &noise[0], count)
	}
	return count * each
}

// shape does what Shape does, and reports whether it has done so.
func (s *Shaper) shape(dst []complex64, line []float32, symbols int) bool {
	const four = 4 // samples a vector
	if s.kernel.path == vector.Portable || s.period%four != 0 {
		return false
	}
	var factors [2 * four]float32
	for n := range four {
		factors[2*n], factors[2*n+1] = real(s.factor), imag(s.factor)
	}
	shape(&dst[0], &line[0], &s.pairs[0], s.count, s.period/four, &factors, symbols)
	return true
}
