//go:build !amd64 || purego

package kernel

func (k Kernel) convolve(dst, src []complex64, taps []float32, gain float32) (n int) {
	for ; n+2 <= len(dst); n += 2 {
		convolveTwo((*[2]complex64)(dst[n:]), src[n:n+len(taps)+1], taps, gain)
	}
	return n
}

func (k Kernel) correlate([]complex64, []complex64, []float32, int) int { return 0 }

func (k Kernel) turn([]complex64, complex64) int { return 0 }

func (k Kernel) addNoise([]complex64, []byte, float32) int { return 0 }

func (s *Shaper) shape([]complex64, []float32, int) bool { return false }
