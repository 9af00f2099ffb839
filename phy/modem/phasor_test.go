package modem

import (
	"math"
	"math/cmplx"
	"testing"
)

// randomSymbols draws symbols, every seventh of which is erased.
func randomSymbols(n int) []complex64 {
	rnd := newRand(3)
	z := make([]complex64, n)
	for k := range z {
		if k%7 != 3 {
			z[k] = complex(float32(rnd.NormFloat64()), float32(rnd.NormFloat64()))
		}
	}
	return z
}

// near fails where symbols differ by more than float32's rounding.
func near(t *testing.T, what string, k int, got complex64, want complex128) {
	t.Helper()
	if d := cmplx.Abs(complex128(got) - want); !(d < 1e-6*(1+cmplx.Abs(want))) {
		t.Fatalf("%s, symbol %d: %v, want %v", what, k, got, want)
	}
}

func TestRotate(t *testing.T) {
	for _, step := range []float64{0, 0.3, -1e-3} {
		for _, n := range []int{0, 1, 2, 5, renew, renew + 1, 3*renew + 6} {
			before := randomSymbols(n)
			z := append([]complex64{}, before...)
			rotate(z, 0.7, step)
			for k, x := range before {
				near(t, "rotated", k, z[k], complex128(x)*cmplx.Rect(1, 0.7+step*float64(k)))
			}
		}
	}
}

// Both offsets are taken off every symbol as it was turned, and of erased ones nothing.
func TestOffsetsAreTakenOff(t *testing.T) {
	for _, n := range []int{1, 2, renew + 1, 2*renew + 8} {
		s := silence{receiver: complex(0.1, -0.2), carrier: complex(-0.05, 0.07)}
		w := way{sps: 8, payload: 40, lead: 2, theta: 0.4, reference: 30, step: 2e-3}
		tracked := tracker{slope: 5e-3}
		still, turning := complex(0.9, 0), complex(0.8, 0.1)
		before := randomSymbols(n)
		z := append([]complex64{}, before...)
		s.take(z, w, &tracked, still, turning, 0)
		for k, x := range before {
			want := complex128(0)
			if x != 0 {
				at := w.phase(float64(w.instant(k)))
				want = complex128(x) - s.receiver*still*cmplx.Rect(1, -at) - s.carrier*turning*cmplx.Rect(1, tracked.at(float64(k), w.symbol(w.reference)))
			}
			near(t, "without offsets", k, z[k], want)
		}
	}
}

// What flag says of samples is what a look at each alone does, wherever among others the
// damaged ones are.
func TestFlagLooksAtEverySample(t *testing.T) {
	const symbols, sps, clip = 41, 5, 3
	for at := range symbols * sps {
		samples := make([]complex64, symbols*sps)
		for k := range samples {
			samples[k] = complex(float32(k%3)-1, -2.9)
		}
		part := [...]complex64{complex(0, -clip), complex(clip, 0), complex(float32(math.NaN()), 0), complex(0, float32(math.Inf(-1)))}[at%4]
		samples[at] = part
		flags := make([]bool, symbols)
		d := comb{0, sps, sps}.flag(flags, samples, clip)
		if (d != damage{clipped: 1}) && (d != damage{invalid: 1}) || (d.clipped == 1) != (at%4 < 2) {
			t.Errorf("sample %d is %v: %+v", at, part, d)
		}
		for k, e := range flags {
			if e != (k == at/sps) {
				t.Errorf("sample %d is damaged: symbol %d flagged: %v", at, k, e)
			}
		}
	}
}
