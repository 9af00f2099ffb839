// Package kernel computes on complex samples, many at a time.
//
// It takes in samples, taps and random words, and gives filtered, correlated, turned and
// noisy samples. It knows nothing of pulses, of channels, or of where samples come from.
//
// All is float32, each product and each sum rounded by itself, in the order that the
// portable form of each function has: all paths give the same bits.
package kernel

import (
	"encoding/binary"
	"math"

	"ringwave/crypto/vector"
)

// Kernel computes on one path. The zero value is portable.
type Kernel struct{ path vector.Path }

// New returns the kernel of a path, which must lack nothing that the processor has not.
func New(path vector.Path) Kernel { return Kernel{path} }

// Convolve sets dst[n] to gain times the sum over i of taps[i] src[n+len(taps)-1-i], in
// the order of i. It reads len(dst)+len(taps)-1 samples of src, and needs one tap at least.
// The two may be the same memory where they begin at the same sample.
func (k Kernel) Convolve(dst, src []complex64, taps []float32, gain float32) {
	n := k.convolve(dst, src, taps, gain)
	for ; n < len(dst); n++ {
		dst[n] = convolved(src[n:n+len(taps)], taps, gain)
	}
}

// convolved returns one sample of Convolve.
func convolved(x []complex64, taps []float32, gain float32) complex64 {
	var re, im float32
	newest := len(taps) - 1
	for i, t := range taps {
		re += float32(t * real(x[newest-i]))
		im += float32(t * imag(x[newest-i]))
	}
	return complex(gain*re, gain*im)
}

// convolveTwo writes two neighbours, which share the taps: it is the portable form for most.
func convolveTwo(dst *[2]complex64, x []complex64, taps []float32, gain float32) {
	var re0, im0, re1, im1 float32
	newest := len(taps)
	newer := x[newest]
	for i, t := range taps {
		older := x[newest-1-i]
		re0 += float32(t * real(older))
		im0 += float32(t * imag(older))
		re1 += float32(t * real(newer))
		im1 += float32(t * imag(newer))
		newer = older
	}
	dst[0], dst[1] = complex(gain*re0, gain*im0), complex(gain*re1, gain*im1)
}

// Correlate sets dst[k] to the sum over n of src[k stride+n] taps[n]. It has four partial
// sums, by n modulo 4, and what is left after the last four is added to the first.
func (k Kernel) Correlate(dst, src []complex64, taps []float32, stride int) {
	n := k.correlate(dst, src, taps, stride)
	for ; n < len(dst); n++ {
		dst[n] = dot(src[n*stride:n*stride+len(taps)], taps)
	}
}

// dot returns one sample of Correlate. Four partial sums keep the additions from waiting
// for each other.
func dot(x []complex64, taps []float32) complex64 {
	var re0, re1, re2, re3, im0, im1, im2, im3 float32
	x = x[:len(taps)]
	for len(taps) >= 4 && len(x) >= 4 {
		y, t := (*[4]complex64)(x), (*[4]float32)(taps)
		re0 += float32(real(y[0]) * t[0])
		im0 += float32(imag(y[0]) * t[0])
		re1 += float32(real(y[1]) * t[1])
		im1 += float32(imag(y[1]) * t[1])
		re2 += float32(real(y[2]) * t[2])
		im2 += float32(imag(y[2]) * t[2])
		re3 += float32(real(y[3]) * t[3])
		im3 += float32(imag(y[3]) * t[3])
		x, taps = x[4:], taps[4:]
	}
	for n, t := range taps {
		re0 += float32(real(x[n]) * t)
		im0 += float32(imag(x[n]) * t)
	}
	return complex((re0+re1)+(re2+re3), (im0+im1)+(im2+im3))
}

// Turn multiplies the samples by a number, in double precision.
func (k Kernel) Turn(x []complex64, by complex64) {
	n := k.turn(x, by)
	re, im := float64(real(by)), float64(imag(by))
	for i := n; i < len(x); i++ {
		a, b := float64(real(x[i])), float64(imag(x[i]))
		// Products of float32 are exact, joined with the sum or not.
		x[i] = complex(float32(re*a-im*b), float32(re*b+im*a))
	}
}

// AddNoise adds to each sample std times two independent normal numbers, of mean 0 and
// variance 1, one to each part. Both are made of eight bytes for the sample, which are
// uniform. They are no larger than 6.56.
func (k Kernel) AddNoise(dst []complex64, random []byte, std float32) {
	random = random[:8*len(dst)]
	for n := k.addNoise(dst, random, std); n < len(dst); n++ {
		re, im := normals(binary.LittleEndian.Uint64(random[8*n:]), std)
		dst[n] = complex(real(dst[n])+re, imag(dst[n])+im)
	}
}

// Shaper makes samples of symbols: sample j of the period of symbol k is factor times the sum
// over m of line[k+m] taps[j count+m], in the order of m, real and imaginary part each.
type Shaper struct {
	kernel Kernel
	period int // samples of a symbol
	count  int
	taps   []float32
	pairs  []float32 // by m, for each sample its tap twice
	factor complex64
}

// NewShaper returns a shaper of so many samples a symbol; taps has a whole number, at least
// one, for each.
func (k Kernel) NewShaper(taps []float32, period int, factor complex64) *Shaper {
	s := &Shaper{kernel: k, period: period, count: len(taps) / period, taps: taps, factor: factor}
	s.pairs = make([]float32, 2*len(taps))
	for j := range period {
		for m := range s.count {
			at := 2 * (m*period + j)
			s.pairs[at], s.pairs[at+1] = taps[j*s.count+m], taps[j*s.count+m]
		}
	}
	return s
}

// Shape sets dst to the samples of as many symbols as it has room for. It reads as many of
// the line, and as many behind them as a sample depends on, but one.
func (s *Shaper) Shape(dst []complex64, line []float32) {
	symbols := len(dst) / s.period
	line = line[:symbols+s.count-1]
	if symbols == 0 || s.shape(dst[:symbols*s.period], line, symbols) {
		return
	}
	k := 0
	for ; k+4 <= symbols; k += 4 {
		s.four(dst[k*s.period:][:4*s.period], line[k:][:s.count+3])
	}
	for ; k < symbols; k++ {
		for j := range s.period {
			taps := s.taps[j*s.count:][:s.count]
			x := float32(line[k] * taps[0])
			for m, t := range taps[1:] {
				x += float32(line[k+1+m] * t)
			}
			dst[k*s.period+j] = complex(x*real(s.factor), x*imag(s.factor))
		}
	}
}

// four takes four symbols at once, so that each tap is loaded once for four products.
func (s *Shaper) four(out []complex64, line []float32) {
	re, im := real(s.factor), imag(s.factor)
	for j := range s.period {
		taps := s.taps[j*s.count:][:s.count]
		l := line[:len(taps)+3]
		t := taps[0]
		x0, x1, x2, x3 := float32(l[0]*t), float32(l[1]*t), float32(l[2]*t), float32(l[3]*t)
		d0, d1, d2 := l[1], l[2], l[3]
		for i := 1; i < len(taps); i++ {
			t, d3 := taps[i], l[i+3]
			x0 += float32(d0 * t)
			x1 += float32(d1 * t)
			x2 += float32(d2 * t)
			x3 += float32(d3 * t)
			d0, d1, d2 = d1, d2, d3
		}
		out[j] = complex(x0*re, x0*im)
		out[j+s.period] = complex(x1*re, x1*im)
		out[j+2*s.period] = complex(x2*re, x2*im)
		out[j+3*s.period] = complex(x3*re, x3*im)
	}
}

// noise are the constants of AddNoise: the coefficients of logarithm, sine and cosine are
// those of Moshier's Cephes library, in single precision.
var noise = [...]uint32{
	1, math.Float32bits(math.Sqrt2 / 2), 0, math.Float32bits(1),
	math.Float32bits(7.0376836292e-2), math.Float32bits(-1.1514610310e-1), math.Float32bits(1.1676998740e-1),
	math.Float32bits(-1.2420140846e-1), math.Float32bits(1.4249322787e-1), math.Float32bits(-1.6668057665e-1),
	math.Float32bits(2.0000714765e-1), math.Float32bits(-2.4999993993e-1), math.Float32bits(3.3333331174e-1),
	math.Float32bits(-2.12194440e-4), math.Float32bits(0.5), math.Float32bits(0.693359375), math.Float32bits(31), math.Float32bits(-2),
	1<<30 - 1, 1 << 29, math.Float32bits(math.Pi / 2 / (1 << 30)),
	math.Float32bits(-1.9515295891e-4), math.Float32bits(8.3321608736e-3), math.Float32bits(-1.6666654611e-1),
	math.Float32bits(2.443315711809948e-5), math.Float32bits(-1.388731625493765e-3), math.Float32bits(4.166664568298827e-2),
	1 << 31,
}

// normals returns std times the two numbers of a word, by Box and Muller: the upper half
// gives the magnitude, the lower one the angle.
func normals(word uint64, std float32) (re, im float32) {
	r := float32(math.Sqrt(float64(-2*logarithm(uint32(word>>32))))) * std
	sin, cos := sincos(uint32(word))
	return float32(r * cos), float32(r * sin)
}

// logarithm returns ln(x / 2^31) of the odd number x that u's upper 31 bits make: Cephes's
// logf.
func logarithm(u uint32) float32 {
	bits := math.Float32bits(float32(int32(u>>1 | 1)))
	exponent := int32(bits-noise[1]) >> 23
	g := math.Float32frombits(bits-uint32(exponent)<<23) - 1 // sqrt(1/2) - 1 to sqrt(2) - 1
	e := float32(exponent) - 31
	z := float32(g * g)
	y := math.Float32frombits(noise[4])
	for _, c := range noise[5:13] {
		y = float32(y*g) + math.Float32frombits(c)
	}
	y = float32(float32(y*g) * z)
	y += float32(e * math.Float32frombits(noise[13]))
	y -= float32(z * 0.5)
	y = g + y
	return y + float32(e*math.Float32frombits(noise[15]))
}

// sincos returns sine and cosine of an angle: the upper two bits say which quarter turn,
// and what is left goes from -pi/4 to pi/4. Cephes's sinf and cosf.
func sincos(v uint32) (sin, cos float32) {
	t := float32(float32(int32(v&noise[18])-int32(noise[19])) * math.Float32frombits(noise[20]))
	q := float32(t * t)
	sin, cos = math.Float32frombits(noise[21]), math.Float32frombits(noise[24])
	for i := 1; i < 3; i++ {
		sin = float32(sin*q) + math.Float32frombits(noise[21+i])
		cos = float32(cos*q) + math.Float32frombits(noise[24+i])
	}
	sin = float32(float32(sin*q)*t) + t
	cos = float32(float32(cos*q)*q) - float32(q*0.5) + 1
	switch v >> 30 {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	}
	return sin, cos
}
