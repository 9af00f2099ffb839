package modem

import (
	"math"
	"testing"
)

// A timing off by a sample, as chance leaves it, is made good by the frame's own symbols.
func TestPlacementFindsTheMiddle(t *testing.T) {
	const n = 20000
	cfg := flatTop(8, FlatTop{Edge: 2, Tolerance: 1})
	s := newScene(cfg, 1, n, 3, device{gain: 1}, device{gain: 0.8, delay: 0.5}, device{gain: 1.3, delay: 1})
	s.noise = 3e-4
	samples, _ := s.capture(t)
	sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
	for _, off := range []Samples{-2, -1, 0, 1, 2} {
		moved := sync
		moved.Payload += off
		y, r := demodulate(t, cfg, Receive{Tracking: Follow}, samples, moved, n)
		if e := evm(y, s.want(0)); e > -36 {
			t.Errorf("timing off by %v: error %.1f dB, windows %v later", off, e, r.Late)
		}
	}
}

// Where clocks of devices run apart, windows that have no longer three samples in common
// are narrowed.
func TestClocksApart(t *testing.T) {
	const n, apart = 72000, 2.8e-6
	cfg := flatTop(8, FlatTop{Edge: 2, Tolerance: 1})
	s := newScene(cfg, 1, n, 3, device{gain: 1}, device{gain: 1.1}, device{gain: 1.2})
	var samples []complex64
	for i, dev := range s.devices {
		alone := newScene(cfg, 1, n, 3, dev)
		alone.symbols[0] = s.symbols[i]
		x, _ := alone.capture(t)
		if samples == nil {
			samples = make([]complex64, len(x))
		}
		for k := range samples {
			at := float64(k) * (1 + apart*float64(i-1))
			from := min(int(at), len(x)-2)
			u := float32(min(1, at-float64(from)))
			samples[k] += complex(1-u, 0)*x[from] + complex(u, 0)*x[from+1]
		}
	}
	for k := range samples {
		samples[k] += complex64(s.normal(3e-4))
	}
	sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
	y, _ := demodulate(t, cfg, Receive{Tracking: Follow}, samples, sync, n)
	want := s.want(0)
	for _, from := range []int{0, n / 2, n - n/8} {
		if e := evm(y[from:from+n/8], want[from:from+n/8]); e > -30 {
			t.Errorf("symbols from %d on: error %.1f dB", from, e)
		}
	}
}

// A window of two samples that are flat is better than one of three that are not, and one
// sample better than two that are not.
func TestBestShare(t *testing.T) {
	const noise = 3e-4
	spread := func(edges [5]float64) (v [len(shares)]float64) {
		for c, s := range shares {
			var sum, sum2 float64
			for _, e := range edges[1+s.first:][:s.taken] {
				sum += e
				sum2 += e * e
			}
			n := float64(s.taken)
			v[c] = (sum2-sum*sum/n)/n + noise*(n-1)/n
		}
		return v
	}
	for _, c := range []struct {
		edges [5]float64 // by how much each sample is off
		want  share
	}{
		{[5]float64{0.3, 0, 0, 0, 0.3}, share{0, 3}},
		{[5]float64{0.3, 0.2, 0, 0, 0.3}, share{1, 2}},
		{[5]float64{0.3, 0, 0, 0.2, 0.4}, share{0, 2}},
		{[5]float64{0, 0, 0.2, 0.4, 0.6}, share{-1, 2}},
		{[5]float64{0.6, 0.2, 0, 0.3, 0.6}, share{1, 1}},
	} {
		v := spread(c.edges)
		if got := best(&v, noise*2/3, noise); got != c.want {
			t.Errorf("samples off by %v: %+v taken, want %+v", c.edges, got, c.want)
		}
	}
}

// Pulses that a band limits ring where they were flat. Taken between samples, where the
// pulses' own lie, they leave the same gains all along the frame.
func TestRingingStaysTheSame(t *testing.T) {
	const n, apart = 40000, 20e-6
	cfg := flatTop(8, FlatTop{Edge: 2, Tolerance: 1})
	s := newScene(cfg, 1, n, 3, device{gain: 1}, device{gain: 0.8, delay: 0.5}, device{gain: 1.3, delay: 1})
	exact, _ := s.capture(t)
	samples := make([]complex64, len(exact))
	const reach = 24
	for k := range samples {
		at := float64(k) * (1 + apart)
		from := int(at)
		var sum complex64
		for i := max(0, from-reach+1); i <= min(from+reach, len(exact)-1); i++ {
			x := at - float64(i)
			sum += exact[i] * complex(float32(sinc(x)*(0.5+0.5*math.Cos(math.Pi*x/reach))), 0)
		}
		samples[k] = sum
	}
	sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
	y, _ := demodulate(t, cfg, Receive{Tracking: Follow}, samples, sync, n)
	if e := evm(y, s.want(0)); e > -50 {
		t.Errorf("error %.1f dB", e)
	}
}
