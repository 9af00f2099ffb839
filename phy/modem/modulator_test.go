package modem

import (
	"math"
	"math/cmplx"
	"testing"
)

// No sequence of symbols exceeds the amplitude: not random ones, and not those
// that are worst for an output sample, which have the signs of its taps. The scale
// is within 1 % of the largest possible, and the same for every advance.
func TestFullScaleIsNeverExceeded(t *testing.T) {
	for name, cfg := range pulses {
		scale, highest := Amplitude(0), 0.0
		for advance := Samples(-8); advance <= 8; advance += 0.31 {
			m := mustModulator(t, cfg, Drive{Peak: 7, Amplitude: 0.5, Phase: 1, Advance: advance})
			if scale != 0 && m.Scale() != scale {
				t.Fatalf("%s: scale %v at an advance of %v, %v elsewhere", name, m.Scale(), advance, scale)
			}
			scale = m.Scale()
			x := make([]complex64, m.perPhase*m.sps)
			for j := range m.sps {
				worst := make([]float32, m.perPhase)
				for i, tap := range m.taps[j*m.perPhase:][:m.perPhase] {
					worst[i] = float32(math.Copysign(7, float64(tap)))
				}
				m.Reset()
				m.Modulate(x, worst)
				m.Idle(x, Symbols(m.perPhase)) // what the lag held back
				for _, v := range x {
					highest = max(highest, cmplx.Abs(complex128(v)))
				}
				m.Reset()
				m.Modulate(x, worst)
				for _, v := range x {
					highest = max(highest, cmplx.Abs(complex128(v)))
				}
			}
		}
		if highest > 0.5 || highest < 0.495 {
			t.Errorf("%s: the largest sample is %v, allowed is 0.5", name, highest)
		}
	}
}

// A stream is the same however it is cut, and starts again after Reset.
func TestStreamIsSeamless(t *testing.T) {
	rnd := newRand(1)
	for name, cfg := range pulses {
		m := mustModulator(t, cfg, Drive{Peak: 3, Advance: -0.4})
		const n = 1500
		d := randomDigits(rnd, n, 7)
		clear(d[700:800])
		whole := make([]complex64, n*m.sps)
		m.ModulateDigits(whole, d)
		m.Reset()
		pieces := make([]complex64, n*m.sps)
		for k := 0; k < n; {
			if k == 700 {
				m.Idle(pieces[k*m.sps:], 100)
				k += 100
				continue
			}
			end := min(k+1+rnd.IntN(30), n)
			if k < 700 {
				end = min(end, 700)
			}
			f := make([]float32, end-k)
			for i := range f {
				f[i] = float32(d[k+i])
			}
			m.Modulate(pieces[k*m.sps:end*m.sps], f)
			k = end
		}
		for i := range whole {
			if cmplx.Abs(complex128(whole[i]-pieces[i])) > 1e-6 {
				t.Fatalf("%s: sample %d is %v in one go, %v in pieces", name, i, whole[i], pieces[i])
			}
		}
	}
}

// The samples are the pulse itself at the advanced instants, and Tail symbols
// bring out all of it.
func TestSamplesAreThePulse(t *testing.T) {
	for name, cfg := range pulses {
		for _, advance := range []Samples{-8, -3.3, 0, 0.01, 0.5, 7.99, 8} {
			m := mustModulator(t, cfg, Drive{Peak: 1, Advance: advance})
			x := make([]complex64, (1+int(m.Tail()))*m.sps)
			m.Modulate(x, []float32{1})
			m.Idle(x[m.sps:], m.Tail())
			for n, v := range x {
				want := float64(m.Scale()) * cfg.Pulse.at(Samples(n)-m.Delay()+advance, m.sps)
				if math.Abs(float64(real(v))-want) > 1e-6 || imag(v) != 0 {
					t.Fatalf("%s, advance %v: sample %d is %v, want %v", name, advance, n, v, want)
				}
			}
			m.Idle(x, 1)
			for _, v := range x[:m.sps] {
				if v != 0 {
					t.Fatalf("%s, advance %v: %v after the tail", name, advance, v)
				}
			}
		}
	}
}

func TestNothingAllocated(t *testing.T) {
	for name, cfg := range pulses {
		m := mustModulator(t, cfg, Drive{Peak: 1})
		d := randomDigits(newRand(1), 1000, 3)
		x := make([]complex64, 1000*m.sps)
		if n := testing.AllocsPerRun(10, func() { m.ModulateDigits(x, d) }); n != 0 {
			t.Errorf("%s: %v allocations to send", name, n)
		}
		y, erased := make([]float32, 900), make([]bool, 900)
		for _, tracking := range []Tracking{Hold, Follow} {
			demod := mustDemodulator(t, cfg, Receive{Tracking: tracking, Block: 64})
			sync := Sync{Payload: 200.3}
			if n := testing.AllocsPerRun(10, func() { demod.Demodulate(y, erased, Frame{Samples: x, Sync: sync}) }); n != 0 {
				t.Errorf("%s, tracking %d: %v allocations to receive", name, tracking, n)
			}
		}
		detector, off := mustDetector(t, cfg, Search{}), Sync{Payload: 202}
		if n := testing.AllocsPerRun(10, func() { detector.Settle(x, off, 500) }); n != 0 {
			t.Errorf("%s: %v allocations to settle", name, n)
		}
	}
}

func TestBadConfigurations(t *testing.T) {
	good := rootRaised(8)
	for name, change := range map[string]func(c *Config, d *Drive, s *Search, r *Receive){
		"1 sample a symbol":   func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.SamplesPerSymbol = 1 },
		"65 samples a symbol": func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.SamplesPerSymbol = 65 },
		"no pulse":            func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Pulse = nil },
		"no flat middle":      func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Pulse = FlatTop{Edge: 3} },
		"edge not a number":   func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Pulse = FlatTop{Edge: Samples(math.NaN())} },
		"endless edge":        func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Pulse = FlatTop{Edge: Samples(math.Inf(1))} },
		"roll-off 0":          func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Pulse = RootRaisedCosine{Span: 16} },
		"span 2":              func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Pulse = RootRaisedCosine{RollOff: 0.2, Span: 2} },
		"preamble of 100":     func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Preamble.Length = 100 },
		"preamble of 15":      func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Preamble.Length = 15 },
		"negative level":      func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Preamble.Level = -1 },
		"no peak":             func(_ *Config, d *Drive, _ *Search, _ *Receive) { d.Peak = 0 },
		"amplitude 1.1":       func(_ *Config, d *Drive, _ *Search, _ *Receive) { d.Amplitude = 1.1 },
		"advance of 9":        func(_ *Config, d *Drive, _ *Search, _ *Receive) { d.Advance = 9 },
		"phase not a number":  func(_ *Config, d *Drive, _ *Search, _ *Receive) { d.Phase = Radians(math.NaN()) },
		"false alarm 1":       func(_ *Config, _ *Drive, s *Search, _ *Receive) { s.FalseAlarm = 1 },
		"offset of 0.02":      func(_ *Config, _ *Drive, s *Search, _ *Receive) { s.MaxOffset = 0.02 },
		"31 symbols at 1e-9":  func(c *Config, _ *Drive, _ *Search, _ *Receive) { c.Preamble.Length = 31 },
		"blocks of 3":         func(_ *Config, _ *Drive, _ *Search, r *Receive) { r.Block = 3 },
		"tracking 7":          func(_ *Config, _ *Drive, _ *Search, r *Receive) { r.Tracking = 7 },
		"clip not a number":   func(_ *Config, _ *Drive, _ *Search, r *Receive) { r.Clip = Amplitude(math.NaN()) },
	} {
		c, d, s, r := good, Drive{Peak: 1}, Search{}, Receive{}
		change(&c, &d, &s, &r)
		_, e1 := NewModulator(c, d)
		_, e2 := NewDetector(c, s)
		_, e3 := NewDemodulator(c, r)
		if e1 == nil && e2 == nil && e3 == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// The periodic correlation of every sequence is L at lag 0 and -1 elsewhere, and
// its sum -1; the guards continue it cyclically.
func TestPreambleSequences(t *testing.T) {
	for order := minOrder; order <= maxOrder; order++ {
		p := Preamble{Length: 1<<order - 1, Level: 2}
		seq := p.sequence()
		sum := float32(0)
		for _, x := range seq {
			sum += x
		}
		if sum != -1 {
			t.Errorf("L = %d: the sum is %v", p.Length, sum)
		}
		for lag := 1; lag < len(seq); lag++ {
			c := float32(0)
			for k := range seq {
				c += seq[k] * seq[(k+lag)%len(seq)]
			}
			if c != -1 {
				t.Fatalf("L = %d: the correlation at lag %d is %v", p.Length, lag, c)
			}
		}
		const guard = 9
		for k, x := range p.symbols(guard) {
			if x != 2*seq[(k-guard+len(seq))%len(seq)] {
				t.Fatalf("L = %d: symbol %d is %v", p.Length, k, x)
			}
		}
	}
}
