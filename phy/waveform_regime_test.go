package phy

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"ringwave/phy/channel"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// A repeated attempt of emulated gains stays on their lattice: fresh gains
// would take it off.
func TestEmulatedGainsAreReadAgain(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	a := newAir(t, 3, scene{sigma: 1, bits: 1, noiseStd: 1e-4})
	w := newWaveform(t, a, m, func(c *WaveformConfig) { c.Alpha, c.Phase = 2, new(modem.Radians) })
	rnd := rand.New(rand.NewPCG(1, 2))
	for attempt := range uint32(3) {
		x := randomPayloads(m, 3, 60, rnd)
		rx := Reception{Y: m.NewVector(60), Pattern: make([]int64, w.PatternSymbols())}
		sendOver(t, w, slot.Slot{Round: 1, Attempt: attempt}, x, &rx)
		if !rx.CheckPassed {
			t.Fatalf("attempt %d: %s", attempt, w.Report().Failure)
		}
		for i := range a.h {
			a.h[i] *= 2
		}
		if !rx.Y.Equal(superposition(m, a.h, x)) || rx.Alpha != 2 {
			t.Errorf("attempt %d: not the superposition with H = %v, or alpha = %v", attempt, a.h, rx.Alpha)
		}
	}
}

// Ten devices of quite different means and phases, which they trim, are read with
// H_i = 1 at 35 dB while their gains fluctuate by 2 %, in repeated attempts too.
func TestAlignedGains(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	const devices, n = 10, 430
	rnd := rand.New(rand.NewPCG(3, 4))
	means := make([]complex128, devices)
	for i := range means {
		means[i] = cmplx.Rect(0.7+0.6*rnd.Float64(), 2*math.Pi*rnd.Float64())
	}
	trims, level, err := Align(means)
	if err != nil {
		t.Fatal(err)
	}
	a := newAir(t, devices, scene{bits: -1, noiseStd: noiseFor(flatTop, 35) * level, impair: func(i int) channel.Impairments {
		return channel.Impairments{DelaySamples: delayOf(i)}
	}})
	w := newWaveform(t, a, m, func(c *WaveformConfig) {
		c.Alpha, c.Tolerance, c.Trim, c.Level = 1, 0.06, trims, level
		c.Lattice = lattice.Options{MaxAlpha: 4}
		c.OnTransmission = func(_ context.Context, s slot.Slot, at radio.SampleIndex) error {
			if s.Transmission != slot.TxKey {
				return nil
			}
			for i, mean := range means {
				h := mean * complex(1+0.02*rnd.NormFloat64(), 0)
				if err := a.medium.SetGain(i, at, complex64(h)); err != nil {
					return err
				}
			}
			return nil
		}
	})
	ones := make([]float64, devices)
	for i := range ones {
		ones[i] = 1
	}
	rounds, good := counted(10, 30, 500), 0
	for k := range uint32(rounds) {
		v := attemptOf(t, w, m, k, k%2, [slot.Transmissions]int{n, 2, n, 2}, rnd, func(tr slot.Transmission, x []zq.Vector, rx *Reception) {
			if !rx.Y.Equal(superposition(m, ones, x)) {
				t.Errorf("round %d, %v: accepted, and not the sum", k, tr)
			}
			if math.Abs(rx.Alpha-1) > 0.06 {
				t.Errorf("round %d: alpha = %v", k, rx.Alpha)
			}
		})
		if v.good {
			good++
		} else {
			t.Logf("round %d, %v: %s", k, v.failed, v.reason)
		}
	}
	t.Logf("%d of %d rounds read, level %.2f", good, rounds, level)
	if good*100 < rounds*99 {
		t.Errorf("%d of %d rounds were read: wanted are 99 %%", good, rounds)
	}
}

func TestAlign(t *testing.T) {
	means := []complex128{cmplx.Rect(2, 1), -0.5, 1i}
	trims, level, err := Align(means)
	if err != nil || level != 0.5 {
		t.Fatalf("level %v, %v", level, err)
	}
	for i, trim := range trims {
		if got := complex128(trim) * means[i]; cmplx.Abs(got-0.5) > 1e-12 || cmplx.Abs(complex128(trim)) > 1+1e-12 {
			t.Errorf("device %d arrives with %v at the drive %v", i+1, got, cmplx.Abs(complex128(trim)))
		}
	}
	for _, bad := range []complex128{0, cmplx.Inf(), cmplx.NaN()} {
		if _, _, err := Align([]complex128{1, bad}); err == nil {
			t.Errorf("a mean of %v was aligned", bad)
		}
	}
}

func TestRegimesAreValidated(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	for name, change := range map[string]func(*WaveformConfig){
		"tolerance without scale": func(c *WaveformConfig) { c.Tolerance = 0.1 },
		"tolerance of 1":          func(c *WaveformConfig) { c.Alpha, c.Tolerance = 1, 1 },
		"one trim for two":        func(c *WaveformConfig) { c.Trim = []Trim{1} },
		"trim of 2":               func(c *WaveformConfig) { c.Trim = []Trim{1, 2} },
		"trim of 0":               func(c *WaveformConfig) { c.Trim = []Trim{1, 0} },
		"negative level":          func(c *WaveformConfig) { c.Level = -1 },
		"amplitude of 2":          func(c *WaveformConfig) { c.Amplitude = 2 },
	} {
		cfg := WaveformConfig{Modulus: m, Devices: 2, Base: 3, Modem: flatTop}
		change(&cfg)
		if _, err := NewWaveform(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
