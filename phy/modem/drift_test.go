package modem

import (
	"math"
	"math/rand/v2"
	"testing"
)

// At instants that do not drift, samples are those of a modulator without; at instants that
// do, those of the pulses' sum at them, within what 1/512 sample is of the steepest edge.
func TestModulateDrifting(t *testing.T) {
	for name, c := range map[string]struct {
		pulse Pulse
		close float64 // of the drifting instants, of full scale
	}{
		"flat-top":           {FlatTop{Edge: 2, Tolerance: 1}, 2e-3},
		"root-raised-cosine": {RootRaisedCosine{RollOff: 0.35, Span: 16}, 2e-3},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{SamplesPerSymbol: 8, Pulse: c.pulse, Preamble: Preamble{Length: 127}}
			m, err := NewModulator(cfg, Drive{Peak: 1, Advance: 1.25, Phase: 0.3})
			if err != nil {
				t.Fatal(err)
			}
			rnd := rand.New(rand.NewPCG(15, 5))
			symbols := make([]int8, 300)
			for k := range symbols {
				symbols[k] = int8(rnd.IntN(3) - 1)
			}
			n := (len(symbols) + int(m.Tail())) * 8
			want, got := make([]complex64, n), make([]complex64, n)
			m.ModulateDigits(want[:len(symbols)*8], symbols)
			m.Idle(want[len(symbols)*8:], m.Tail())
			m.ModulateDrifting(got, symbols, 0, 1)
			if e := furthest(got, want); e > 1e-6 {
				t.Errorf("instants that do not drift are %v off", e)
			}
			const first, step = -5.4, 1 + 1e-4
			m.ModulateDrifting(got, symbols, first, step)
			for k := range want {
				sum, at := 0.0, first+float64(k)*step
				for l, d := range symbols {
					if s := Samples(at) - m.Delay() + 1.25 - Samples(8*l); math.Abs(float64(s)) <= float64(c.pulse.half(8)) {
						sum += float64(d) * c.pulse.at(s, 8)
					}
				}
				want[k] = complex(m.i*float32(sum), m.q*float32(sum))
			}
			if e := furthest(got, want); e > c.close {
				t.Errorf("instants that drift are %v off", e)
			}
		})
	}
}

func furthest(a, b []complex64) (most float64) {
	for k := range a {
		d := a[k] - b[k]
		most = max(most, math.Hypot(float64(real(d)), float64(imag(d))))
	}
	return most
}
