package modem

import (
	"math"
	"testing"
)

// With gains of both signs the preamble's timing may lie on edges; settled, the
// window is flat for all devices, and phase and amplitude are those of the sum.
func TestSettleWithGainsOfBothSigns(t *testing.T) {
	const n, seeds = 600, 150
	moved := 0
	for name, cfg := range map[string]Config{
		"a tolerance below the edge": flatTop(8, FlatTop{Edge: 2, Tolerance: 1}),
		"flat wide":                  pulses["flat wide"],
		"overlapped wide":            pulses["overlapped wide"],
		"at 16":                      flatTop(16, FlatTop{Edge: 3}),
	} {
		detector := mustDetector(t, cfg, Search{})
		tried := 0
		for seed := range uint64(seeds) {
			rnd := newRand(seed)
			devices := randomDevices(rnd, 2+rnd.IntN(9), cfg.Pulse.(FlatTop).tolerance())
			for i := range devices {
				if rnd.IntN(2) == 0 {
					devices[i].gain *= -1
				}
			}
			s := newScene(cfg, 300+seed, n, 5, devices...)
			s.noise = 1e-7
			theta, g := s.common()
			if g < 0.3 {
				continue // hardly a preamble
			}
			tried++
			samples, _ := s.capture(t)
			found := mustFind(t, detector, samples)
			sync := detector.Settle(samples, found, n)
			if sync.Payload != found.Payload {
				moved++
			}
			if sync.Payload-sync.Start != found.Payload-found.Start {
				t.Errorf("%s, seed %d: the preamble's length changed", name, seed)
			}
			y, _ := demodulate(t, cfg, Receive{}, samples, sync, n)
			if e := evm(y, s.want(sync.Theta)); e > -60 {
				t.Errorf("%s, seed %d: error %.1f dB, want -60 or less", name, seed, e)
			}
			if math.Abs(float64(wrap(float64(sync.Theta-theta)))) > 2e-3 || math.Abs(float64(sync.Amplitude)/g-1) > 2e-3 {
				t.Errorf("%s, seed %d: phase %v, amplitude %v, want %v, %v", name, seed, sync.Theta, sync.Amplitude, theta, g)
			}
		}
		if tried < seeds/2 {
			t.Errorf("%s: only %d preambles", name, tried)
		}
	}
	t.Logf("%d timings of preambles were off", moved)
	if moved == 0 {
		t.Error("no timing was off: the test shows nothing")
	}
}

// What is flat is not moved by chance: of 1000 frames in noise none is, where a
// difference of four deviations has a chance of 6e-5 in each of eight windows and
// must come to a quarter of the noise, too.
func TestSettleKeepsWhatIsFlat(t *testing.T) {
	const n = 250
	cfg := flatTop(8, FlatTop{Edge: 2, Tolerance: 1})
	detector := mustDetector(t, cfg, Search{})
	for seed := range uint64(1000) {
		s := newScene(cfg, seed, n, 3, randomDevices(newRand(seed), 3, 0.5)...)
		s.noise = math.Pow(10, -1-0.003*float64(seed)) // 10 to 40 dB a sample
		samples, payload := s.capture(t)
		// Nine windows of three samples begin within a symbol; in the middle of the
		// delays all is flat with room to either side.
		sync := Sync{Payload: payload + 0.25}
		if got := detector.Settle(samples, sync, n); got != sync {
			t.Errorf("seed %d: moved by %v samples", seed, got.Payload-sync.Payload)
		}
	}
}

// Where there is nothing to see, nothing changes.
func TestSettleWithoutSymbols(t *testing.T) {
	flat, narrow := flatTop(8, FlatTop{Edge: 2, Tolerance: 1}), flatTop(4, FlatTop{Edge: 1})
	s := newScene(flat, 1, 300, 3, device{gain: 1})
	samples, payload := s.capture(t)
	lost := make([]complex64, len(samples))
	MarkLost(lost)
	for name, c := range map[string]struct {
		cfg     Config
		samples []complex64
		at      Samples
	}{
		"root-raised cosines":    {rootRaised(8), samples, payload + 2},
		"a window of one sample": {narrow, samples, payload + 2},
		"lost samples":           {flat, lost, payload + 2},
		"silence":                {flat, make([]complex64, 5000), 2000},
		"no samples":             {flat, nil, 0},
		"an end before":          {flat, samples[:int(payload)-8], payload + 2},
		"no instant":             {flat, samples, Samples(math.NaN())},
		"far away":               {flat, samples, 1e30},
	} {
		sync := Sync{Payload: c.at}
		got := mustDetector(t, c.cfg, Search{}).Settle(c.samples, sync, 300)
		if got.Payload != sync.Payload && got.Payload == got.Payload {
			t.Errorf("%s: moved from %v to %v", name, sync.Payload, got.Payload)
		}
	}
	// A third of the samples lost, the others show it: three windows are flat.
	MarkLost(samples[int(payload)+100*8 : int(payload)+200*8])
	if got := mustDetector(t, flat, Search{}).Settle(samples, Sync{Payload: payload + 2}, 300); math.Abs(float64(got.Payload-payload)) > 1 {
		t.Errorf("with lost samples it moved from 2 to %v", got.Payload-payload)
	}
}
