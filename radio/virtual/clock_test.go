package virtual

import (
	"math"
	"math/cmplx"
	"testing"
)

// A tone that a clock runs past is the same tone at another frequency, however long it
// goes on and however it is cut.
func TestResampler(t *testing.T) {
	const cycles = 0.11
	for _, ppm := range []float64{-1000, -20, 20, 1000} {
		step := 1 + ppm*1e-6
		for _, sizes := range [][]int{{block}, {1, 7, block, 333}} {
			pull, push := newResampler(), newResampler()
			var in, pushed, out int
			tone := func(x []complex64, first int, cycles float64) {
				for k := range x {
					_, turns := math.Modf(cycles * float64(first+k))
					x[k] = complex64(cmplx.Rect(1, 2*math.Pi*turns))
				}
			}
			got := make([]complex64, block+clockSlack)
			want := make([]complex64, len(got))
			check := func(n, first int, way string) {
				// The first sample lies in the middle of the polynomial.
				tone(want[:n], first, cycles*step)
				turn := complex64(cmplx.Rect(1, -2*math.Pi*cycles*clockTaps/2))
				for k := range n {
					if first+k < 2*clockTaps {
						continue
					}
					if e := cmplx.Abs(complex128(got[k] - want[k]*turn)); e > 2e-3 {
						t.Fatalf("%v ppm, %s: sample %d is off by %.3g", ppm, way, first+k, e)
					}
				}
			}
			for k := 0; out < 500_000; k++ {
				n := sizes[k%len(sizes)]
				x := pull.put(pull.need(n, step))
				tone(x, in, cycles)
				in += len(x)
				if m := pull.take(got[:n], step); m != n {
					t.Fatalf("%v ppm: %d of %d samples", ppm, m, n)
				}
				check(n, out, "pulled")
				out += n
			}
			out = 0
			for k := 0; out < 500_000; k++ {
				x := push.put(sizes[k%len(sizes)])
				tone(x, pushed, cycles)
				pushed += len(x)
				n := push.take(got, step)
				check(n, out, "pushed")
				out += n
			}
			if far := float64(pushed) - float64(out)*step; math.Abs(far) > 2*clockTaps {
				t.Errorf("%v ppm: %d samples became %d", ppm, pushed, out)
			}
		}
	}
}
