package modem

import (
	"math"
	"math/cmplx"
	"testing"
)

func TestQuantise(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	src := []complex64{0, 1, -1, complex(0.5/127, -0.49/127), complex(1.01, 0), complex(0, -3), complex(nan, 1), complex(inf, -inf), 1e30}
	want := []int8{0, 0, 127, 0, -127, 0, 1, 0, 127, 0, 0, -127, 0, 127, 127, -127, 127, 0}
	dst := make([]int8, len(want))
	if n := Quantise8(dst, src); n != 5 {
		t.Errorf("%d samples clipped, want 5", n)
	}
	for k := range want {
		if dst[k] != want[k] {
			t.Errorf("element %d is %d, want %d", k, dst[k], want[k])
		}
	}
	back := make([]complex64, len(src))
	if n := Dequantise8(back, dst); n != 7 {
		t.Errorf("%d samples at a rail, want 7", n)
	}
	if back[1] != 1 || back[2] != -1 || back[3] != complex(1.0/127, 0) {
		t.Errorf("back come %v", back)
	}
	if n := Dequantise8(back[:1], []int8{-128, 0}); n != 1 {
		t.Error("the code below full scale is no rail")
	}
}

// Every code survives the way out and back; rounding is to the nearest, over the
// whole range of 16 bits.
func TestQuantiseEveryCode(t *testing.T) {
	src, codes, again := make([]complex64, 1), make([]int16, 2), make([]int16, 2)
	for c := -fullScale16; c <= fullScale16; c++ {
		codes[0], codes[1] = int16(c), int16(-c)
		Dequantise16(src, codes)
		if Quantise16(again, src) != 0 || again[0] != codes[0] || again[1] != codes[1] {
			t.Fatalf("%v became %v", codes, again)
		}
	}
	rnd := newRand(4)
	for range 100000 {
		x := float32(2.1*rnd.Float64() - 1.05)
		src[0] = complex(x, 0)
		Quantise16(again, src)
		exact := max(-1, min(1, float64(x))) * fullScale16
		if math.Abs(float64(again[0])-exact) > 0.5+0.005 {
			t.Fatalf("%v became %d", exact, again[0])
		}
	}
}

// A full-scale tone comes through 8 bits with 6.02 b + 1.76 dB, less 20 log10 of
// 128/127 for the code that is not used.
func TestQuantisationNoiseOfATone(t *testing.T) {
	const n = 1 << 16
	x, back, codes := make([]complex64, n), make([]complex64, n), make([]int8, 2*n)
	for k := range x {
		x[k] = complex64(cmplx.Rect(1, 2*math.Pi*math.Mod(0.1234567891*float64(k), 1)))
	}
	Quantise8(codes, x)
	Dequantise8(back, codes)
	e := 0.0
	for k := range x {
		e += power(complex128(x[k] - back[k]))
	}
	got, want := -10*math.Log10(e/n), 6.02*8+1.76-20*math.Log10(128.0/127)
	// The formula takes errors for uniform; a tone dwells at its peaks, which here
	// are codes.
	if math.Abs(got-want) > 0.3 {
		t.Errorf("%.2f dB, want %.2f", got, want)
	}
	t.Logf("%.2f dB, predicted %.2f", got, want)
}
