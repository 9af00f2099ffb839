package modem

import (
	"math"
	"math/cmplx"
	"slices"
	"testing"
)

// What is short for speed gives what its definition does.

func TestNth(t *testing.T) {
	rnd := newRand(1)
	for n := 1; n < 40; n++ {
		x := make([]float64, n)
		for k := range x {
			x[k] = float64(rnd.IntN(n))
		}
		sorted := slices.Sorted(slices.Values(x))
		for k := range x {
			if got := nth(slices.Clone(x), k); got != sorted[k] {
				t.Fatalf("number %d of %v: %v", k, x, got)
			}
		}
	}
}

func TestTurnBy(t *testing.T) {
	for _, step := range []float64{0, 1e-9, -1e-4, 0.0099, -0.01, 0.0101, 3} {
		if got, want := turnBy(step), cmplx.Rect(1, step); cmplx.Abs(got-want) > 1e-15 {
			t.Errorf("by %v: %v, want %v", step, got, want)
		}
	}
}

// Damage that is looked for some symbols at a time is what it is at once, and no symbol is
// settled before all its samples were looked at.
func TestFlaggerGoesByParts(t *testing.T) {
	const symbols, sps, clip = 300, 4, 0.9
	rnd := newRand(2)
	for _, c := range []comb{{0, 3, sps}, {5, 6, sps}, {-3, 30, sps}} {
		samples := make([]complex64, symbols*sps)
		for range 12 {
			samples[rnd.IntN(len(samples))] = []complex64{complex(0, -clip), complex(float32(math.NaN()), 0)}[rnd.IntN(2)]
		}
		whole := make([]bool, symbols)
		want := c.flag(whole, samples, clip)
		parts := make([]bool, symbols)
		f := c.flagger(parts, samples, clip)
		for at := 0; at < symbols; {
			at = min(symbols, at+1+rnd.IntN(40))
			f.until(at)
			if !slices.Equal(parts[:at], whole[:at]) {
				t.Fatalf("%+v: the first %d symbols differ", c, at)
			}
		}
		if f.damage != want || want.clipped+want.invalid == 0 {
			t.Errorf("%+v: %+v, at once %+v", c, f.damage, want)
		}
	}
}

// Frames longer than what is filtered at a time have no seams: a damaged sample erases
// the symbols that it is part of, and all others are what they were.
func TestLongFramesHaveNoSeams(t *testing.T) {
	const n, clip = 2*burstChunk + 300, 100
	for name, cfg := range pulses {
		s := newScene(cfg, 1, n, 3, device{gain: 1}, device{gain: -0.7})
		s.noise = 1e-3
		samples, _ := s.capture(t)
		sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
		lead := len(mustDemodulator(t, cfg, Receive{}).preamble)
		whole, _ := demodulate(t, cfg, Receive{Clip: clip}, samples, sync, n)
		for _, k := range []int{burstChunk - lead - 1, burstChunk - lead, 2*burstChunk - lead, n - 40} {
			hit := slices.Clone(samples)
			at := int(math.Round(float64(sync.Payload))) + k*cfg.SamplesPerSymbol
			MarkLost(hit[at : at+1])
			y, erased := make([]float32, n), make([]bool, n)
			r := mustDemodulator(t, cfg, Receive{Clip: clip}).Demodulate(y, erased, Frame{Samples: hit, Sync: sync})
			if r.Invalid != 1 || r.Erased == 0 || !erased[k] {
				t.Errorf("%s, symbol %d: %d erased, it: %v; %d invalid", name, k, r.Erased, erased[k], r.Invalid)
			}
			for i, e := range erased {
				if (e || y[i] != whole[i]) && max(i-k, k-i) > 80 {
					t.Fatalf("%s, symbol %d is damaged: symbol %d is %v, was %v, erased: %v", name, k, i, y[i], whole[i], e)
				}
			}
		}
	}
}

// Windows of three samples, which have loops of their own, are received as others are.
func TestWindowsOfThree(t *testing.T) {
	const sps, n = 5, 40
	samples := randomSymbols(n*sps + 8)
	r := newIntegrator(sps, 3)
	r.tune(3)
	z, stray := make([]complex64, n), make([]float32, n)
	r.filter(z, samples)
	spread(stray, z, samples[r.first:], 3, sps)
	for k := range z {
		window := samples[r.first+k*sps:][:3]
		var mean, rest complex128
		square := 0.0
		for _, x := range window {
			mean += complex128(x) / 3
			square += power(complex128(x)) / 3
		}
		for _, x := range window {
			rest += complex(power(complex128(x)-mean), 0)
		}
		near(t, "mean", k, z[k], mean)
		near(t, "spread", k, complex(stray[k], 0), rest)
		v, e := spreadOf(window)
		near(t, "mean spread", k, complex(float32(v), float32(e)), rest/3+complex(0, square))
	}
}

// Interference is taken off by every tap that matters, at a frame's ends as between.
func TestInterferenceIsTakenOff(t *testing.T) {
	const lead = 9
	rnd := newRand(4)
	for _, n := range []int{1, 5, 30, 200} {
		for taps := range 6 {
			i := interference{found: true}
			i.inverse[inverseReach] = 0.9 + 0.1i
			for range taps {
				i.inverse[rnd.IntN(len(i.inverse))] = complex(rnd.NormFloat64(), rnd.NormFloat64())
			}
			i.inverse[rnd.IntN(inverseReach)] = 5e-3 + 1e-3i
			z := randomSymbols(lead + n + interferenceReach)
			dst := make([]float32, n)
			i.take(dst, z, lead)
			flags, erased := make([]bool, len(z)), make([]bool, n)
			flags[lead+n/2] = true
			i.erase(erased, flags, lead)
			for k, got := range dst {
				want, depends := 0.0, false
				for m, e := range i.inverse {
					if at := lead + k - (m - inverseReach); at >= 0 && at < len(z) {
						want += real(e * complex128(z[at]))
						depends = depends || m != inverseReach && at == lead+n/2 && cmplx.Abs(e) > 4e-3
					}
				}
				if math.Abs(float64(got)-want) > 1e-5 || erased[k] != depends {
					t.Fatalf("%d symbols, symbol %d: %v, want %v; erased: %v, want %v", n, k, got, want, erased[k], depends)
				}
			}
		}
	}
}

// Corners are looked for in frames of any length, in any order; and bins that are added up
// beforehand count as they do one by one.
func TestDCBlockInFramesOfAnyLength(t *testing.T) {
	rnd := newRand(5)
	block := dcBlock{left: 2e-3}
	for _, n := range []int{66000, 4200, 66000, 140000, 9000} {
		z := make([]complex64, n)
		for k := range z {
			z[k] = complex(float32(rnd.NormFloat64()), 0)
		}
		block.find(z)
		flat := block.likelihood(0)
		for corner := 0.5; corner < float64(len(block.spectrum))/4; corner *= 1.7 {
			sum, logs, square := 0.0, 0.0, corner*corner
			for k, p := range block.spectrum {
				f := float64(k+1) * float64(k+1)
				g := (f + square) / (f + block.left*square)
				sum += p * g
				logs += math.Log(g)
			}
			want := -2 * (float64(len(block.spectrum))*math.Log(sum) - logs)
			if got := block.likelihood(corner); math.Abs(got-want) > 0.02 {
				t.Errorf("%d symbols, corner %v: %v over a flat spectrum, want %v", n, corner, got-flat, want-flat)
			}
		}
	}
}

// What 80 dB below the symbols looks like a tone, or turns with the carrier, is left alone;
// a converter that rounds the silence makes such of an offset.
func TestQuietTonesAreLeft(t *testing.T) {
	const n = 66000
	cfg := pulses["flat wide"]
	for _, c := range []struct {
		level float64
		taken bool
	}{{0, false}, {2e-4, false}, {2e-2, true}} {
		s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 0.1}, device{gain: 0.8, phase: -0.1}, device{gain: 1.3})
		s.lead, s.offset = 200, 3e-6
		samples, _ := s.capture(t)
		samples = append(samples, make([]complex64, 200)...)
		for k := range samples {
			samples[k] += 0.05 + complex64(cmplx.Rect(c.level, 2*math.Pi*0.0371*float64(k)))
		}
		sync := mustFind(t, mustDetector(t, cfg, Search{MaxOffset: 4e-3}), samples)
		y, erased := make([]float32, n), make([]bool, n)
		r := mustDemodulator(t, cfg, Receive{Tracking: Follow}).Demodulate(y, erased, Frame{Samples: samples, Sync: sync, Before: 150, After: 150})
		if (r.Strength > 0) != c.taken {
			t.Errorf("a tone of %v: %v taken off at %v", c.level, r.Strength, r.Tone)
		}
	}
}

// Pieces begin with the phase that is tracked there, and their symbols' sums with what
// stands still and what turns are those of the symbols one by one.
func TestPiecesAndTheirSums(t *testing.T) {
	const n, lead = 700, 6
	rnd := newRand(6)
	tracked := tracker{slope: 2e-3, first: []int{0, 50, 114, 178, 500, 501, 640, n - 10}}
	for range len(tracked.first) - 1 {
		tracked.phase = append(tracked.phase, rnd.NormFloat64())
	}
	w := way{sps: 8, payload: 40, lead: lead, theta: 0.4, reference: 30, step: 2e-3}
	reference := w.symbol(w.reference)
	z := randomSymbols(n)
	var want silentPart
	tracked.pieces(n, reference, func(from, to int, phase, _ float64) {
		if got := tracked.at(float64(from), reference); math.Abs(got-phase) > 1e-12 {
			t.Errorf("from %d on: phase %v, want %v", from, phase, got)
		}
		for k := max(from, lead); k < to; k++ {
			still := cmplx.Rect(1, w.phase(float64(w.instant(k))))
			turn := cmplx.Rect(1, tracked.at(float64(k), reference))
			want.turns += still * turn
			want.sum += complex128(z[k]) * still
			want.turned += complex128(z[k]) * cmplx.Conj(turn)
		}
	})
	s := silence{parts: []silentPart{{n: 1, energy: 1}}}
	got := s.symbols(z, w, &tracked)
	weight := complex(got.n/(n-lead), 0)
	for _, c := range [][2]complex128{{got.turns, want.turns}, {got.sum, want.sum}, {got.turned, want.turned}} {
		if cmplx.Abs(c[0]/weight-c[1]) > 1e-3 {
			t.Errorf("%v, want %v", c[0]/weight, c[1])
		}
	}
}

func TestRealnessIsTheMedian(t *testing.T) {
	tracked := tracker{sorted: []float64{0.9, 0.1, 0.5, 0.2, 0.7}}
	if got := tracked.realness(); got != 0.5 {
		t.Errorf("%v", got)
	}
}
