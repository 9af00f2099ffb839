// Package air adds signals as they meet at an antenna, the same to the bit on all
// machines: the compiler multiplies complex64 in double precision, and might fuse a
// product with a sum, so both are written out. It knows nothing of boards and streams.
package air

// Add adds gain times src to dst, of the same length. Each product is rounded by itself.
func Add(dst, src []complex64, gain complex64) {
	src = src[:len(dst)]
	if gain == 1 {
		for k, x := range src {
			dst[k] += x
		}
		return
	}
	re, im := real(gain), imag(gain)
	if im == 0 {
		for k, x := range src {
			y := dst[k]
			dst[k] = complex(real(y)+float32(re*real(x)), imag(y)+float32(re*imag(x)))
		}
		return
	}
	for k, x := range src {
		y := dst[k]
		a := float32(re*real(x)) - float32(im*imag(x))
		b := float32(re*imag(x)) + float32(im*real(x))
		dst[k] = complex(real(y)+a, imag(y)+b)
	}
}

// Scale multiplies in place, rounding as Add does.
func Scale(x []complex64, gain complex64) {
	re, im := real(gain), imag(gain)
	for k, v := range x {
		x[k] = complex(float32(re*real(v))-float32(im*imag(v)), float32(re*imag(v))+float32(im*real(v)))
	}
}
