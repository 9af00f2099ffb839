package modem

import (
	"math"
	"math/cmplx"
	"testing"
)

// A receiver's image is found and taken off where carriers turn against the receiver: what
// is left lies below what the noise of its estimate is.
func TestImageIsTakenOff(t *testing.T) {
	const n = 60000
	cfg := pulses["flat wide"]
	for _, offset := range []CyclesPerSample{1e-5, 3e-3} {
		s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 0.1}, device{gain: 0.8, phase: -0.1}, device{gain: 1.3})
		s.offset, s.noise = offset, 1e-5
		samples, _ := s.capture(t)
		gain, phase := math.Pow(10, 0.5/20), 0.02
		for k, x := range samples {
			q := gain*math.Cos(phase)*float64(imag(x)) + gain*math.Sin(phase)*float64(real(x))
			samples[k] = complex(real(x), float32(q))
		}
		sync := mustFind(t, mustDetector(t, cfg, Search{MaxOffset: 4e-3}), samples)
		y, report := demodulate(t, cfg, Receive{Tracking: Follow}, samples, sync, n)
		theta, _ := s.common()
		// The gain is that of the two branches' mean.
		mean := cmplx.Abs(complex(1, 0)+complex(gain, 0)*cmplx.Rect(1, -phase)) / 2
		want := s.want(theta)
		for k := range want {
			want[k] *= mean
		}
		e := evm(y, want)
		t.Logf("offset %v: error %.1f dB, image %.4f, offset found %v", offset, e, report.Image, report.Offset)
		if e > -42 {
			t.Errorf("offset %v: error %.1f dB", offset, e)
		}
	}
}
