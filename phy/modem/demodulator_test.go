package modem

import (
	"math"
	"math/cmplx"
	"testing"

	"ringwave/radio/iq"
)

// An offset of up to 1e-4 cycles a sample is found and followed over 100,000
// symbols (80 cycles), also with phase noise, and with devices at other phases as
// far as their cross products allow.
func TestOffsetOverALongFrame(t *testing.T) {
	const n = 100000
	for _, c := range []struct {
		name     string
		cfg      Config
		tracking Tracking
		devices  []device
		wander   float64 // standard deviation of the phase's step a sample
		limit    float64 // dB
	}{
		{"flat, line", pulses["flat"], Follow, []device{{gain: 1, phase: 1}}, 0, -36.5},
		{"rrc, line", pulses["rrc"], Follow, []device{{gain: 1, phase: 1}}, 0, -38.5},
		{"rrc, line, opposite phases", pulses["rrc"], Follow, []device{{gain: 1, phase: 1}, {gain: 0.6, phase: 1 + math.Pi}}, 0, -36.5},
		{"rrc, follow", pulses["rrc"], Follow, []device{{gain: 1, phase: 1}}, 0, -38},
		{"rrc, follow, phase noise", pulses["rrc"], Follow, []device{{gain: 1, phase: 1}}, 1e-4, -34},
		{"rrc, line, phases within 0.6", pulses["rrc"], Follow, []device{{gain: 1, phase: 1}, {gain: 0.8, phase: 1.3}, {gain: 1.2, phase: 0.7}}, 0, -38},
	} {
		s := newScene(c.cfg, 1, n, 3, c.devices...)
		s.offset, s.noise = 1e-4, 8*math.Pow(10, -3.82)*2./3 // 35.2 + 3 dB
		samples, _ := s.capture(t)
		phase := 0.0
		for k := range samples {
			samples[k] *= complex64(cmplx.Rect(1, phase))
			phase += c.wander * s.rnd.NormFloat64()
		}
		sync := mustFind(t, mustDetector(t, c.cfg, Search{MaxOffset: 1e-4}), samples)
		y, report := demodulate(t, c.cfg, Receive{Tracking: c.tracking, Block: 512}, samples, sync, n)
		theta, _ := s.common()
		e := evm(y, s.want(theta))
		t.Logf("%s: error %.1f dB, realness %.3f, drift %.2f rad", c.name, e, report.Realness, report.Drift)
		if e > c.limit || !report.Tracked {
			t.Errorf("%s: error %.1f dB, want %.1f; tracked: %v", c.name, e, c.limit, report.Tracked)
		}
	}
}

// Devices in quadrature of equal power leave no axis to track; that is said and
// the preamble's phase is held.
func TestNoAxisIsSaid(t *testing.T) {
	const n = 4000
	cfg := pulses["flat"]
	s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 0}, device{gain: 1, phase: math.Pi / 2})
	samples, _ := s.capture(t)
	sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
	y, report := demodulate(t, cfg, Receive{Tracking: Follow}, samples, sync, n)
	if report.Tracked || report.Realness > 0.2 || report.Drift != 0 {
		t.Errorf("tracked: %v, realness %v, drift %v", report.Tracked, report.Realness, report.Drift)
	}
	if e := evm(y, s.want(math.Pi/4)); e > -60 {
		t.Errorf("error %.1f dB", e)
	}
}

// fullScale is the integer that 8-bit converters have for an amplitude of 1.
const fullScale = 127

// converter is of 8 bits.
var converter = iq.New(iq.Config{Format: iq.CI8, Step: 1.0 / fullScale})

// clipLevel is the amplitude that only the converter's ends reach.
const clipLevel Amplitude = (fullScale - 0.5) / fullScale

// 8-bit converters at both ends leave the error of uniform rounding, the back-off
// of signal and filter counted in.
func TestEightBits(t *testing.T) {
	const n = 20000
	for name, cfg := range pulses {
		s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 0.3}, device{gain: 0.7, phase: 0.3})
		s.offset = 1.1e-5 // keeps a flat top from being rounded the same way for ever
		samples, _ := s.capture(t)
		const backOff = 0.25
		for k := range samples {
			samples[k] *= backOff
		}
		codes := make([]byte, 2*len(samples))
		if n := converter.Encode(codes, samples); n.Clipped != 0 {
			t.Fatalf("%s: %d samples clipped", name, n.Clipped)
		}
		converter.Decode(samples, codes)
		sync := mustFind(t, mustDetector(t, cfg, Search{MaxOffset: 1e-4}), samples)
		y, _ := demodulate(t, cfg, Receive{Tracking: Follow, Clip: clipLevel}, samples, sync, n)
		want := s.want(0.3)
		for k := range want {
			want[k] *= backOff
		}
		got := evm(y, want)
		step := 1.0 / fullScale
		independent := 10 * math.Log10(step*step/12*NoiseBandwidth(cfg.Pulse, 8)/meanSquare(want))
		same := 10 * math.Log10(step*step/12/meanSquare(want))
		// Samples of a flat top are rounded alike without noise, so their mean is as
		// good as one sample; those of a root-raised-cosine differ.
		predicted := same
		if name == "rrc" { // whose cut-off adds its -54.2 dB
			predicted = 10 * math.Log10(math.Pow(10, independent/10)+math.Pow(10, -5.42))
		}
		low, high := predicted-1.5, predicted+1
		t.Logf("%s: EVM %.1f dB, predicted %.1f", name, got, predicted)
		if got < low || got > high {
			t.Errorf("%s: EVM %.1f dB, predicted %.1f to %.1f", name, got, low, high)
		}
	}
}

// Whatever happens to samples, symbols are right or flagged, only those are
// flagged that depend on damage, and the damage is counted.
func TestDamageIsFlagged(t *testing.T) {
	const n = 2000
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for name, cfg := range pulses {
		s := newScene(cfg, 1, n, 3, device{gain: 0.3, phase: 1})
		clean, payload := s.capture(t)
		theta := Radians(1)
		want := s.want(theta)
		detector := mustDetector(t, cfg, Search{})
		at := func(symbol int) int { return int(payload) + 8*symbol }
		reach := int(math.Ceil(float64(cfg.Pulse.half(8)) / 8))
		// What is left of symbols of which all samples were clipped alike.
		clippedTo := math.Cos(float64(theta)) - 0.2*math.Sin(float64(theta))
		for kind, c := range map[string]struct {
			harm             func(x []complex64) []complex64
			first, last      int // damaged symbols
			invalid, clipped int
		}{
			"NaN samples": {func(x []complex64) []complex64 {
				x[at(500)], x[at(501)] = complex(nan, 0), complex(0, inf)
				return x
			}, 500, 501, 2, 0},
			"an absurd sample": {func(x []complex64) []complex64 { x[at(3)] = 1e20; return x }, 3, 3, 1, 0},
			"a clipped burst": {func(x []complex64) []complex64 {
				for k := at(700); k < at(720); k++ {
					x[k] = complex(1, -0.2)
				}
				return x
			}, 700, 720, 0, 160},
			"a lost block":        {func(x []complex64) []complex64 { MarkLost(x[at(900):at(1000)]); return x }, 900, 1000, 800, 0},
			"a capture cut short": {func(x []complex64) []complex64 { return x[:at(1800)] }, 1800, n - 1, 0, 0},
			"nothing":             {func(x []complex64) []complex64 { return x }, -100, -100, 0, 0},
		} {
			samples := c.harm(append([]complex64(nil), clean...))
			sync := mustFind(t, detector, samples)
			y, erased := make([]float32, n), make([]bool, n)
			for _, tracking := range []Tracking{Hold, Follow} {
				report := mustDemodulator(t, cfg, Receive{Tracking: tracking, Clip: 0.99}).Demodulate(y, erased, Frame{Samples: samples, Sync: sync})
				flagged := Symbols(0)
				for k := range y {
					if erased[k] {
						flagged++
					}
					switch inside := k >= c.first-reach-1 && k <= c.last+reach+1; {
					case erased[k] && inside && c.clipped > 0 && name != "rrc" && math.Abs(float64(y[k])-clippedTo) < 0.01:
					case erased[k] && (y[k] != 0 || !inside):
						t.Fatalf("%s, %s: symbol %d is flagged and %v", name, kind, k, y[k])
					case !erased[k] && math.Abs(float64(y[k])-want[k]) > 0.01:
						t.Fatalf("%s, %s: symbol %d is %v, want %v, and not flagged", name, kind, k, y[k], want[k])
					case !erased[k] && k > c.first && k < c.last:
						t.Fatalf("%s, %s: symbol %d is not flagged", name, kind, k)
					}
				}
				if report.Erased != flagged || report.Invalid != c.invalid || report.Clipped != c.clipped {
					t.Errorf("%s, %s: %+v, want %d flagged", name, kind, report, flagged)
				}
				if (kind == "a capture cut short") != (report.Missing > 0) {
					t.Errorf("%s, %s: %d symbols missing", name, kind, report.Missing)
				}
			}
		}
	}
}

// A preamble of which a tenth is lost still gives the frame, and says so; one that
// is lost for more than half gives none.
func TestDamagedPreamble(t *testing.T) {
	const n = 500
	for name, cfg := range pulses {
		s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 1})
		s.noise = 1e-4
		samples, payload := s.capture(t)
		middle := int(payload) - 8*70
		detector := mustDetector(t, cfg, Search{MaxOffset: 1e-5})
		MarkLost(samples[middle : middle+8*12])
		sync := mustFind(t, detector, samples)
		if sync.Lost < 12 || sync.Lost > 12+20 || math.Abs(float64(sync.Amplitude)-1) > 0.01 {
			t.Errorf("%s: %d symbols lost, amplitude %v", name, sync.Lost, sync.Amplitude)
		}
		y, _ := demodulate(t, cfg, Receive{Tracking: Follow, Block: 64}, samples, sync, n)
		if e := evm(y, s.want(1)); e > -33 {
			t.Errorf("%s: error %.1f dB", name, e)
		}
		MarkLost(samples[middle-8*30 : middle+8*45])
		if s, err := detector.First(samples); err == nil {
			t.Errorf("%s: found with %d symbols lost", name, s.Lost)
		}
	}
}

// A Sync that no detector gave is no reason to panic.
func TestOddSync(t *testing.T) {
	samples := make([]complex64, 1000)
	for name, cfg := range pulses {
		d := mustDemodulator(t, cfg, Receive{Tracking: Follow, Block: 16})
		y, erased := make([]float32, 100), make([]bool, 100)
		for _, at := range []Samples{-1e30, -1e4, -300.5, 0, 0.1, 700, 999, 1e9, 1e30, Samples(math.NaN()), Samples(math.Inf(1))} {
			r := d.Demodulate(y, erased, Frame{Samples: samples, Sync: Sync{Payload: at}})
			count := Symbols(0)
			for _, e := range erased {
				if e {
					count++
				}
			}
			if r.Erased != count || at == 1e9 && count != 100 {
				t.Errorf("%s at %v: %+v, %d flagged", name, at, r, count)
			}
		}
		d.Demodulate(nil, nil, Frame{Samples: samples, Sync: Sync{}})
	}
}

// Flat tops that pass a band-limited delay, as through converters, ring around
// their edges. The figures are what the package's documentation warns of.
func TestBandLimitedDelay(t *testing.T) {
	const n = 2000
	for _, c := range []struct {
		pulse FlatTop
		limit float64
	}{
		{FlatTop{Edge: 1}, -39},
		{FlatTop{Edge: 1, Overlap: true}, -50},
		{FlatTop{Edge: 2, Tolerance: 1}, -59},
		{FlatTop{Edge: 2, Tolerance: 1, Overlap: true}, -50},
		{FlatTop{Edge: 3, Tolerance: 1, Overlap: true}, -67},
		{FlatTop{Edge: 4, Tolerance: 1, Overlap: true}, -59},
	} {
		cfg := flatTop(8, c.pulse)
		s := newScene(cfg, 1, n, 3, device{gain: 1})
		samples, _ := s.capture(t)
		delayed := fractionalDelay(samples, 0.5)
		for k := range samples {
			samples[k] += delayed[k]
		}
		sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
		y, _ := demodulate(t, cfg, Receive{}, samples, sync, n)
		want := s.want(0)
		for k := range want {
			want[k] *= float64(sync.Amplitude)
		}
		e := evm(y, want)
		t.Logf("%+v: %.1f dB", c.pulse, e)
		if e > c.limit {
			t.Errorf("%+v: error %.1f dB, want %v", c.pulse, e, c.limit)
		}
	}
}

// fractionalDelay is a sinc of 128 taps under a Hann window.
func fractionalDelay(x []complex64, delay float64) []complex64 {
	out := make([]complex64, len(x))
	for n := range out {
		var sum complex128
		for k := max(0, n-64); k < min(len(x), n+64); k++ {
			u := float64(n-k) - delay
			tap := math.Pow(math.Cos(math.Pi*u/130), 2)
			if u != 0 {
				tap *= math.Sin(math.Pi*u) / (math.Pi * u)
			}
			sum += complex128(x[k]) * complex(tap, 0)
		}
		out[n] = complex64(sum)
	}
	return out
}
