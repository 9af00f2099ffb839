package sounding

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
)

// echoed sends bursts of changing gains over a path, with noise, and returns the mean of their
// responses with its variance, the last fit, and the last gain that was sent.
func echoed(t *testing.T, s *Sounding, imp channel.Impairments, air channel.Air, noise float64) (mean []complex128, variance float64, e Estimate, sent float64) {
	t.Helper()
	p, err := channel.NewPathThrough(imp, air, keystream.FromInteger(5))
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(15, 15))
	const start, bursts = 60, 24
	mean = make([]complex128, Lags)
	weight := 0.0
	for range bursts {
		w := make([]complex64, start+s.Burst()+120)
		copy(w[start:], s.Samples(0.5))
		sent = 1 + 0.3*rnd.NormFloat64()
		p.SetGain(sent)
		p.Begin(channel.Moment{Round: uint32(rnd.IntN(1e6))})
		p.Apply(w, w)
		for n := range w {
			w[n] += complex64(complex(noise*rnd.NormFloat64(), noise*rnd.NormFloat64()))
		}
		found, err := s.Acquire([][]complex64{w}, start, Search{Delay: 20, Offset: 5e-4})
		if err != nil {
			t.Fatal(err)
		}
		if e, err = s.Fit(w, start, found.Delay, found.Offset); err != nil {
			t.Fatal(err)
		}
		e.Response = s.Response(w, start)
		e = e.Sent(0.5)
		weight += square(e.Gain)
		for k, v := range e.Response {
			mean[k] += cmplx.Conj(e.Gain) * complex128(v)
		}
	}
	for k := range mean {
		mean[k] /= complex(weight, 0)
	}
	return mean, 8 * noise * noise / s.Energy() / weight, e, sent
}

// Echoes that are there are found with their delays, gains and phases, whole and fractions of a
// sample late, close to the first path and far behind it, with a carrier offset and an image.
func TestEchoes(t *testing.T) {
	for _, cfg := range []Config{
		{Kind: ZadoffChu, Length: 63, Repetitions: 4}, {Kind: MSequence, Length: 127, Repetitions: 2}, {Kind: ZadoffChu, Length: 31, Repetitions: 3},
	} {
		s := newSounding(t, cfg)
		for _, air := range [][]channel.Echo{
			{{DelaySamples: 8, Gain: 0.1, PhaseRad: 2}},
			{{DelaySamples: 3, Gain: 0.1, PhaseRad: -1}},
			{{DelaySamples: 13.5, Gain: 0.178, PhaseRad: 3}},
			{{DelaySamples: 4, Gain: 0.2}}, // which moves the fitted delay by 0.06 samples
			{{DelaySamples: 24, Gain: 0.05, PhaseRad: 0.5}},
			{{DelaySamples: 40.25, Gain: 0.02, PhaseRad: 0.5}},
			{{DelaySamples: 13.5, Gain: 0.1, PhaseRad: 1}, {DelaySamples: 5, Gain: 0.05, PhaseRad: -2}},
		} {
			t.Run(fmt.Sprint(cfg.Kind, cfg.Length, air), func(t *testing.T) {
				imp := channel.Impairments{DelaySamples: 2, CarrierOffset: 1e-4, PhaseRad: 1, IQGainDB: 0.2}
				mean, variance, e, sent := echoed(t, s, imp, channel.Air{Echoes: air}, 1e-3)
				got, err := s.Echoes(mean, variance)
				if err != nil || len(got) != len(air) {
					t.Fatalf("%+v, %v", got, err)
				}
				for k, want := range air {
					gain := cmplx.Rect(want.Gain, want.PhaseRad)
					if d := cmplx.Abs(got[k].Gain - gain); d > 5*math.Sqrt(got[k].GainVar)+0.002 || math.Abs(float64(got[k].Delay)-want.DelaySamples) > 0.015 {
						t.Errorf("%+v, want %+v: %v off, deviation %v", got[k], want, d, math.Sqrt(got[k].GainVar))
					}
				}
				shared, err := s.Shared(got)
				if err != nil {
					t.Fatal(err)
				}
				clean := e.Without(shared, 0.5)
				a := (1 + cmplx.Rect(math.Pow(10, 0.2/20), 0)) / 2
				if size := cmplx.Abs(clean.Gain) / math.Abs(sent) / cmplx.Abs(a); math.Abs(size-1) > 2e-3 {
					t.Errorf("the first path's gain is %v of what was sent, %v with echoes", size, cmplx.Abs(e.Gain)/math.Abs(sent))
				}
				if d := math.Abs(float64(clean.Noise) - 2e-6); d > 0.8e-6+2e-3*float64(e.Noise) {
					t.Errorf("the noise is %v, with echoes %v", clean.Noise, e.Noise)
				}
				if d := cmplx.Abs(clean.Image - (1-a)/a); d > 2e-3 {
					t.Errorf("the image is %v off, with echoes %v", d, cmplx.Abs(e.Image-(1-a)/a))
				}
			})
		}
	}
}

// Neither noise, nor what boards' filters do, nor an amplifier, nor echoes below the floor
// are taken for echoes.
func TestNoEchoes(t *testing.T) {
	s := newSounding(t, Config{Kind: ZadoffChu, Length: 63, Repetitions: 4})
	for name, imp := range map[string]channel.Impairments{
		"nothing": {}, "filter": {Filter: 0.35}, "narrow filter": {Filter: 0.25}, "fraction": {DelaySamples: 1.5, CarrierOffset: 2e-4}, "hardware": {DC: 0.1, IQGainDB: 0.5, IQPhaseRad: 0.05, CarrierOffset: 1e-4},
		"converter": {ConverterBits: 8}, "amplifier": {Amplifier: channel.Amplifier{Saturation: 1, PhaseRad: 0.05}},
	} {
		for _, noise := range []float64{1e-4, 1e-2, 0.1} {
			mean, variance, _, _ := echoed(t, s, imp, channel.Air{Echoes: []channel.Echo{{DelaySamples: 9, Gain: 0.004}}}, noise)
			if got, err := s.Echoes(mean, variance); err != nil || len(got) > 0 {
				t.Errorf("%s, noise %v: %+v, %v", name, noise, got, err)
			}
		}
	}
}
