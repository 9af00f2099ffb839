package hackrf

import (
	"math"
	"testing"
)

// Every byte comes back as it was sent, but -128, which is sent as -127.
func TestConvertRoundTrip(t *testing.T) {
	src := make([]byte, 2*256*256)
	for i := range 256 * 256 {
		src[2*i], src[2*i+1] = byte(i), byte(i>>8)
	}
	x := make([]complex64, len(src)/2)
	if got, want := decode(x, src), 256*256-253*253; got != want {
		t.Errorf("%d at the limit, want %d", got, want)
	}
	back := make([]byte, len(src))
	clipped := encode(back, x)
	if want := 256*256 - 255*255; clipped != want {
		t.Errorf("%d clipped, want %d", clipped, want)
	}
	for i, b := range src {
		if b == 0x80 {
			b = 0x81
		}
		if back[i] != b {
			t.Fatalf("byte %d: %02x came back as %02x", i, src[i], back[i])
		}
	}
}

// Against math.RoundToEven, at and around each step and far out.
func TestQuantise(t *testing.T) {
	inf := float32(math.Inf(1))
	values := []float32{0, 1, -1, 2, -2, 1e30, -1e30, inf, -inf, math.MaxFloat32, math.SmallestNonzeroFloat32}
	for k := -260; k <= 260; k++ {
		v := float32(k) / 2 / fullScale
		values = append(values, v, math.Nextafter32(v, inf), math.Nextafter32(v, -inf))
	}
	for _, v := range values {
		r := math.RoundToEven(float64(v * fullScale))
		want := max(-fullScale, min(fullScale, r))
		var code [2]byte
		clipped := encode(code[:], []complex64{complex(v, 0)})
		got := code[0]
		// Half a step beyond the limit rounds to even, which is outside.
		if float64(int8(got)) != want || (clipped == 1) != (r != want) {
			t.Errorf("%v: %d clipped %d, want %v", v, int8(got), clipped, want)
		}
	}
	code := []byte{1, 1}
	if clipped := encode(code, []complex64{complex(float32(math.NaN()), 2)}); clipped != 1 || code[0] != 0 || code[1] != fullScale {
		t.Errorf("NaN: %v clipped %d", code, clipped)
	}
}

func BenchmarkDecode(b *testing.B) {
	src, dst := make([]byte, 1<<18), make([]complex64, 1<<17)
	for i := range src {
		src[i] = byte(i * 7)
	}
	b.SetBytes(int64(len(dst)))
	for range b.N {
		decode(dst, src)
	}
}

func BenchmarkEncode(b *testing.B) {
	src, dst := make([]complex64, 1<<17), make([]byte, 1<<18)
	for i := range src {
		src[i] = complex(float32(i%251)/251-0.5, float32(i%127)/127-0.5)
	}
	b.SetBytes(int64(len(src)))
	for range b.N {
		encode(dst, src)
	}
}
