package modem

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A burst of ten symbols is flagged whole, and nothing else is, whatever the devices'
// phases and a delay in the tolerance leave: at 40 dB and without noise.
func TestBurstsAreFlagged(t *testing.T) {
	const n, at, length = 6000, 3000, 80
	for name, cfg := range pulses {
		for _, noise := range []float64{0.01, 0} {
			s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 0.1}, device{gain: 0.7, phase: -0.1}, device{gain: 1.3})
			s.noise = noise
			samples, payload := s.capture(t)
			sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
			y, erased := make([]float32, n), make([]bool, n)
			demod := mustDemodulator(t, cfg, Receive{})
			if r := demod.Demodulate(y, erased, Frame{Samples: samples, Sync: sync}); r.Erased != 0 {
				t.Errorf("%s, noise %v: %d symbols flagged without a burst", name, noise, r.Erased)
			}
			first := int(payload) + cfg.SamplesPerSymbol*at - cfg.SamplesPerSymbol/2
			rnd := rand.New(rand.NewPCG(41, 41))
			for k := range length {
				samples[first+k] += complex(float32(7*rnd.NormFloat64()), float32(7*rnd.NormFloat64()))
			}
			last := at + length/cfg.SamplesPerSymbol
			reach := int(math.Ceil(float64(cfg.Pulse.half(cfg.SamplesPerSymbol))/float64(cfg.SamplesPerSymbol))) + 2
			demod.Demodulate(y, erased, Frame{Samples: samples, Sync: sync})
			for k, e := range erased {
				switch {
				case e && (k < at-reach || k > last+reach):
					t.Errorf("%s, noise %v: symbol %d is flagged, the burst is from %d to %d", name, noise, k, at, last)
				case !e && k >= at && k < last:
					t.Errorf("%s, noise %v: symbol %d of the burst is not flagged", name, noise, k)
				case e && y[k] != 0:
					t.Errorf("%s, noise %v: symbol %d is flagged and %v", name, noise, k, y[k])
				}
			}
		}
	}
}

// Noise alone is hardly ever taken for a burst.
func TestNoiseIsNoBurst(t *testing.T) {
	const n = 1 << 20
	rnd := rand.New(rand.NewPCG(42, 42))
	samples := make([]complex64, 8*burstChunk+8)
	z, erased := make([]complex64, burstChunk), make([]bool, burstChunk)
	for _, window := range []int{1, 2, 3, 8} {
		b, r := newBursts(), newIntegrator(8, window)
		flagged := 0
		for range n / burstChunk {
			for k := range samples {
				samples[k] = complex(float32(1+0.1*rnd.NormFloat64()), float32(0.1*rnd.NormFloat64()))
			}
			r.filter(z, samples)
			clear(erased)
			if window > 1 {
				b.markWindows(z, erased, samples, r, 8)
			} else {
				b.markAxis(z, erased)
			}
			for _, e := range erased {
				if e {
					flagged++
				}
			}
		}
		if flagged > 0 {
			t.Errorf("windows of %d samples: %d of %d symbols flagged", window, flagged, n)
		}
	}
}

// A window of which all samples are clipped in the same direction is told from one of which
// some are.
func TestSaturated(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		window      []complex64
		whole, part bool
	}{
		{[]complex64{0.5, 0.7, -0.2}, false, false},
		{[]complex64{1, 0.7, 0.9}, false, true},
		{[]complex64{1, 1 + 0.1i, 1 - 0.2i}, true, false},
		{[]complex64{-1, -1, -1}, true, false},
		{[]complex64{0.3 + 1i, 1i, 1i}, true, false},
		{[]complex64{1, -1, 1}, false, true},
		{[]complex64{1, 1, complex(nan, 1)}, false, false},
	} {
		if whole, part := saturated(c.window, 0.99); whole != c.whole || part != c.part {
			t.Errorf("%v: %v, %v, want %v, %v", c.window, whole, part, c.whole, c.part)
		}
	}
}
