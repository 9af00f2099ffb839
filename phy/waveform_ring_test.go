package phy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// turned returns the devices integer real parts and some quadrature: static phases
// of the paths, of whose gains the receiver keeps the real part.
func (a *air) turned(_ context.Context, s slot.Slot, at radio.SampleIndex) error {
	a.gains.Scaled(a.h, s.Round, s.Attempt, int(s.Transmission))
	return a.turn(at)
}

// turn gives the devices the real parts in a.h.
func (a *air) turn(at radio.SampleIndex) error {
	for i, h := range a.h {
		phase := 0.9 * math.Sin(float64(i)) // below a quarter turn: the sign stays
		if err := a.medium.SetGain(i, at, complex(float32(h), float32(h*math.Tan(phase)))); err != nil {
			return err
		}
	}
	return nil
}

// The ring link's elements to the bit, in all four transmissions of many random
// rounds: N = 1 to 10, B = 3, 5 and 7, the moduli of all parameter sets (most
// rounds at the small ones), sum |H_i| up to 30, the scale given, with static
// phases and delays up to a sample: as they are (flat-top) or compensated
// (root-raised-cosine). None is refused.
func TestWaveformIsTheRingLinkInManyRounds(t *testing.T) {
	small, lean := []uint64{0x7fff801}, []uint64{leanPrime}
	middle := []uint64{0x3ffffffffd6001, 0x7ffffffffb4001}
	large := []uint64{0x3fffffffef8001, 0x3fffffffeb8001, 0x7ffffffffb4001, 0x7fffffffeac001}
	primes := [][]uint64{small, lean, small, middle, small, lean, large}
	const most = 30 // sum |H_i|
	each := counted(1, 4, 20)
	number, rounds, largest := 0, 0, 0.0
	for devices := 1; devices <= 10; devices++ {
		for _, base := range []int{3, 5, 7} {
			for _, name := range []string{"flat-top", "root-raised-cosine"} {
				set := primes[number%len(primes)]
				number++
				t.Run(fmt.Sprintf("N=%d/B=%d/%s/%d primes", devices, base, name, len(set)), func(t *testing.T) {
					a, w, ring, rnd := bothLinks(t, devices, base, name, set)
					k := uint32(0)
					for compared := 0; compared < each; k++ {
						a.gains.Scaled(a.h, k, 0, 0)
						sum, size := 0.0, 0.0
						for _, h := range a.h {
							sum += h
							size += math.Abs(h)
						}
						// Without any gain there is nothing to receive, and the very first
						// preamble must show, to put the receiver in time.
						if size == 0 || size > most || k == 0 && sum == 0 {
							continue
						}
						largest = max(largest, size)
						compared++
						rounds++
						for tr, n := range [slot.Transmissions]int{12, 2, 12, 2} {
							x := randomPayloads(w.cfg.Modulus, devices, n, rnd)
							got := Reception{Y: w.cfg.Modulus.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
							want := Reception{Y: w.cfg.Modulus.NewVector(n), Pattern: make([]int64, ring.PatternSymbols())}
							s := slot.Slot{Round: k, Transmission: slot.Transmission(tr)}
							sendOver(t, w, s, x, &got)
							sendOver(t, ring, s, x, &want)
							if !got.CheckPassed {
								t.Errorf("%v, gains %v: refused: %s", s, a.h, w.Report().Failure)
							} else if !got.Y.Equal(want.Y) {
								t.Errorf("%v, gains %v: the links differ", s, a.h)
							}
						}
					}
				})
			}
		}
	}
	t.Logf("%d rounds, sum |H| up to %v", rounds, largest)
}

// bothLinks returns a waveform over the air and a ring link of the same gains.
func bothLinks(t *testing.T, devices, base int, name string, set []uint64) (*air, *Waveform, *Ring, *rand.Rand) {
	t.Helper()
	m, pulse := newModulus(t, set...), flatTop
	if name != "flat-top" {
		pulse = rootRaised
	}
	rnd := rand.New(rand.NewPCG(9, uint64(100*devices+base)))
	delays := make([]modem.Samples, devices)
	for i := range delays {
		delays[i] = modem.Samples(rnd.Float64())
	}
	a := newAir(t, devices, scene{sigma: 3, bits: 0, noiseStd: 1e-4, impair: func(i int) channel.Impairments {
		return channel.Impairments{DelaySamples: float64(delays[i])}
	}})
	w := newWaveform(t, a, m, func(c *WaveformConfig) {
		c.Base, c.Alpha, c.Phase, c.Modem, c.OnTransmission = base, 1, new(modem.Radians), pulse, a.turned
		if name != "flat-top" {
			c.Advance = delays
		}
	})
	ring, err := NewRing(RingConfig{Modulus: m, Gains: a.gains, Secret: keystream.FromInteger(2), Noise: keystream.FromInteger(3)})
	if err != nil {
		t.Fatal(err)
	}
	return a, w, ring, rnd
}

// Gains and delays of flat tops whose preamble, the sum of all devices' pulses, is
// strongest where edges of some devices are: there its timing is off by a sample,
// and integers are read in which nothing is right. The symbols tell better.
func TestWaveformTimingOfBothSigns(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	for _, c := range []struct {
		base          int
		gains, delays []float64
	}{
		{7, []float64{0, -1, 4}, []float64{0.6515452989657935, 0.9608871743064294, 0.30293501453435345}},
		{5, []float64{2, 0, 3, -3, 2, -2, 2, -7, -3, -1}, []float64{
			0.7541619680266367, 0.7045436634244377, 0.6125675964263729, 0.6799950887937853, 0.37491214128988604,
			0.3873354751515776, 0.24015595349124463, 0.8869781523907915, 0.7474179637268406, 0.40886686706163455,
		}},
	} {
		devices := len(c.gains)
		a := newAir(t, devices, scene{noiseStd: 1e-4, impair: func(i int) channel.Impairments {
			return channel.Impairments{DelaySamples: c.delays[i]}
		}})
		w := newWaveform(t, a, m, func(cfg *WaveformConfig) {
			cfg.Base, cfg.Alpha, cfg.Phase = c.base, 1, new(modem.Radians)
			cfg.OnTransmission = func(_ context.Context, _ slot.Slot, at radio.SampleIndex) error {
				copy(a.h, c.gains)
				return a.turn(at)
			}
		})
		rnd := rand.New(rand.NewPCG(13, uint64(devices)))
		for tr, n := range [slot.Transmissions]int{12, 2, 12, 2} {
			x := randomPayloads(m, devices, n, rnd)
			got := Reception{Y: m.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
			sendOver(t, w, slot.Slot{Transmission: slot.Transmission(tr)}, x, &got)
			if !got.CheckPassed || !got.Y.Equal(superposition(m, c.gains, x)) {
				t.Errorf("gains %v, %v: %s", c.gains, slot.Transmission(tr), w.Report().Failure)
			}
		}
	}
}
