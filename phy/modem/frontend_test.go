package modem

import (
	"math"
	"math/cmplx"
	"testing"
)

// What ordinary front ends do to a long frame is found, and what is left of it lies below
// the noise, that of soft symbols at 44.5 dB.
func TestFrontEndsAreUndone(t *testing.T) {
	const n, clean = 66000, -44.5
	cfg := pulses["flat wide"]
	header := make([]float32, 128)
	rnd := newRand(3)
	for k := range header {
		header[k] = float32(1 - 2*rnd.IntN(2))
	}
	for _, c := range []struct {
		name  string
		harm  func(x []complex64)
		worse float64 // dB that may be lost
		found func(r Report) (got, want, within float64)
	}{
		{"nothing", func([]complex64) {}, 0.3, func(r Report) (float64, float64, float64) { return r.Echo + r.Strength + math.Abs(r.Clock), 0, 0 }},
		{"offsets", func(x []complex64) {
			for k := range x {
				x[k] += complex64(0.05 + 0.03i + 0.06*cmplx.Rect(1, 2*math.Pi*3e-6*float64(k)))
			}
		}, 0.5, func(r Report) (float64, float64, float64) { return cmplx.Abs(r.Receiver - (0.05 + 0.03i)), 0, 4e-3 }},
		{"an echo", func(x []complex64) {
			for k := len(x) - 1; k >= 11; k-- {
				x[k] += complex64(cmplx.Rect(0.15, 1)) * x[k-11]
			}
		}, 0.5, func(r Report) (float64, float64, float64) { return r.Echo, 0.04, 0.01 }},
		{"a tone", func(x []complex64) {
			for k := range x {
				x[k] += complex64(cmplx.Rect(0.2, 2*math.Pi*0.0371*float64(k)+1))
			}
		}, 1, func(r Report) (float64, float64, float64) { return r.Strength, 0.2, 0.01 }},
	} {
		s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 0.1}, device{gain: 0.8, phase: -0.1}, device{gain: 1.3})
		for i := range s.symbols {
			for k, h := range header {
				s.symbols[i][k] = int8(h)
			}
		}
		s.lead, s.offset = 200, 3e-6
		samples, _ := s.capture(t)
		samples = append(samples, make([]complex64, 200)...)
		c.harm(samples)
		for k := range samples {
			samples[k] += complex64(s.normal(3e-4))
		}
		sync := mustFind(t, mustDetector(t, cfg, Search{MaxOffset: 4e-3}), samples)
		y, erased := make([]float32, n), make([]bool, n)
		d := mustDemodulator(t, cfg, Receive{Tracking: Follow})
		r := d.Demodulate(y, erased, Frame{Samples: samples, Sync: sync, Known: header, Before: 150, After: 150})
		theta, _ := s.common()
		want := s.want(theta)
		e := evm(y, scaledBy(want, gainOf(y, want)))
		got, value, within := c.found(r)
		t.Logf("%s: error %.1f dB, %v found where %v is", c.name, e, got, value)
		if e > clean+c.worse || math.Abs(got-value) > within {
			t.Errorf("%s: error %.1f dB, %v found where %v is", c.name, e, got, value)
		}
	}
}

// gainOf returns the gain that y has over want.
func gainOf(y []float32, want []float64) float64 {
	var num, den float64
	for k, w := range want {
		num += w * float64(y[k])
		den += w * w
	}
	return num / den
}

func scaledBy(x []float64, by float64) []float64 {
	out := make([]float64, len(x))
	for k, v := range x {
		out[k] = by * v
	}
	return out
}

// Symbols that come by another clock are followed: 20 ppm move them by 11 samples in a
// frame.
func TestClockIsFollowed(t *testing.T) {
	const n, apart = 66000, 20e-6
	cfg := flatTop(8, FlatTop{Edge: 2, Tolerance: 1})
	s := newScene(cfg, 1, n, 3, device{gain: 1}, device{gain: 0.8}, device{gain: 1.3})
	exact, _ := s.capture(t)
	samples := make([]complex64, len(exact)+20)
	for k := range samples { // linear between samples of a pulse that is flat where it counts
		at := float64(k) / (1 + apart)
		i := int(at)
		if i+1 < len(exact) {
			u := float32(at - float64(i))
			samples[k] = complex(1-u, 0)*exact[i] + complex(u, 0)*exact[i+1]
		}
	}
	for k := range samples {
		samples[k] += complex64(s.normal(3e-4))
	}
	sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
	y, report := demodulate(t, cfg, Receive{Tracking: Follow}, samples, sync, n)
	if e := evm(y, s.want(0)); e > -41 || math.Abs(report.Clock-apart) > 1e-6 {
		t.Errorf("error %.1f dB, clocks apart by %.2f ppm", e, report.Clock*1e6)
	}
}
