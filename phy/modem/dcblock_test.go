package modem

import (
	"math"
	"testing"
)

// blocked passes samples through y[n] = a (y[n-1] + x[n] - x[n-1]).
func blocked(x []complex64, corner float64) []complex64 {
	a := math.Exp(-2 * math.Pi * corner)
	out := make([]complex64, len(x))
	var y, last complex128
	for n, v := range x {
		y = complex(a, 0) * (y + complex128(v) - last)
		last = complex128(v)
		out[n] = complex64(y)
	}
	return out
}

// The corner of a DC block is found in the symbols, within four deviations of what so many
// bins of its notch tell, and undone: what is left lies below the error that the corner's
// leaves. Where there is none, none is found.
func TestDCBlockIsUndone(t *testing.T) {
	const n = 66000
	cfg := pulses["flat wide"]
	for _, corner := range []float64{0, 3e-5, 1e-4, 4e-4} {
		s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 0.1}, device{gain: 0.8, phase: -0.1}, device{gain: 1.3})
		s.lead, s.noise, s.offset = 200, 1e-5, 2e-6
		samples, payload := s.capture(t)
		samples = append(samples, make([]complex64, 200)...)
		if corner > 0 {
			samples = blocked(samples, corner)
		}
		sync := mustFind(t, mustDetector(t, cfg, Search{MaxOffset: 4e-3}), samples)
		y, erased := make([]float32, n), make([]bool, n)
		d := mustDemodulator(t, cfg, Receive{Tracking: Follow})
		f := Frame{Samples: samples, Sync: sync, Before: 150, After: 150}
		report := d.Demodulate(y, erased, f)
		if f.Block = report.Likely; f.Block != 0 { // not certain
			report = d.Demodulate(y, erased, f)
		}
		theta, _ := s.common()
		e := evm(y, s.want(theta))
		t.Logf("corner %v: found %v, error %.1f dB, at %v, not %v", corner, report.Block, e, sync.Payload, payload)
		if corner == 0 != (report.Block == 0) || e > -42 {
			t.Errorf("corner %v: found %v, error %.1f dB", corner, report.Block, e)
		}
	}
}

// A low corner is likely in some frames, and certain in few. Tried, it leaves a smaller
// error in most of them, and it is tried in few frames that have passed none.
func TestLikelyDCBlock(t *testing.T) {
	const n, frames = 70000, 24
	cfg := pulses["flat wide"]
	for _, corner := range []float64{0, 1e-5} {
		likely, certain, better := 0, 0, 0
		for seed := range uint64(frames) {
			s := newScene(cfg, seed, n, 3, device{gain: 1, phase: 0.1}, device{gain: 0.8, phase: -0.1}, device{gain: 1.3})
			s.lead, s.noise = 200, 1e-5
			samples, _ := s.capture(t)
			samples = append(samples, make([]complex64, 200)...)
			if corner > 0 {
				samples = blocked(samples, corner)
			}
			sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
			y, erased := make([]float32, n), make([]bool, n)
			d := mustDemodulator(t, cfg, Receive{Tracking: Follow})
			f := Frame{Samples: samples, Sync: sync, Before: 150, After: 150}
			first := d.Demodulate(y, erased, f)
			if first.Block != 0 {
				certain++
			}
			if first.Likely == 0 {
				continue
			}
			likely++
			theta, _ := s.common()
			as := evm(y, s.want(theta))
			f.Block = first.Likely
			d.Demodulate(y, erased, f)
			if evm(y, s.want(theta)) < as {
				better++
			}
		}
		t.Logf("corner %v: certain in %d of %d frames, likely in %d, of which trying bettered %d", corner, certain, frames, likely, better)
		if corner == 0 && (certain > 0 || likely > 2) || corner > 0 && (likely < frames/3 || better < likely*3/4) {
			t.Errorf("corner %v: certain in %d of %d frames, likely in %d, of which trying bettered %d", corner, certain, frames, likely, better)
		}
	}
}
