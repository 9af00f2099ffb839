package phy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// Of an attempt whose b was not read, was of another attempt or never sent, nothing is
// accepted, also where the scale is known without it, and nothing is harmed of the
// attempts around it.
func TestWaveformReadsNothingWithoutKey(t *testing.T) {
	for name, c := range map[string]struct {
		slots []slot.Slot
		blank int // the transmission that nobody hears, -1 for none
		read  []bool
	}{
		"never sent":        {[]slot.Slot{{Transmission: slot.TxC0}, {Transmission: slot.TxC1}, {Transmission: slot.TxShare}}, -1, []bool{false, false, false}},
		"not heard":         {[]slot.Slot{{}, {Transmission: slot.TxC0}, {Transmission: slot.TxC1}, {Transmission: slot.TxShare}}, 0, []bool{false, false, false, false}},
		"of another round":  {[]slot.Slot{{}, {Round: 1, Transmission: slot.TxC0}, {Round: 1}, {Round: 1, Transmission: slot.TxC0}}, -1, []bool{true, false, true, true}},
		"of a round before": {[]slot.Slot{{}, {Transmission: slot.TxC0}, {Round: 1}, {Round: 1, Transmission: slot.TxC0}, {Round: 2}, {Round: 2, Transmission: slot.TxC0}}, 2, []bool{true, true, false, false, true, true}},
		"c0 not heard":      {[]slot.Slot{{}, {Transmission: slot.TxC0}, {Transmission: slot.TxC1}, {Transmission: slot.TxShare}}, 1, []bool{true, false, true, true}},
	} {
		for _, alpha := range []float64{0, 1} {
			t.Run(fmt.Sprintf("%s, alpha %v", name, alpha), func(t *testing.T) {
				b := keyBench(t, alpha)
				for k, s := range c.slots {
					b.source.end = 0
					if k == c.blank {
						b.source.from, b.source.end = 0, radio.Forever
					}
					const n = 40
					rx := Reception{Y: b.m.NewVector(n), Pattern: make([]int64, b.w.PatternSymbols())}
					sendOver(t, b.w, s, randomPayloads(b.m, 2, n, b.rnd), &rx)
					why := b.w.Report().Failure
					if rx.CheckPassed != c.read[k] {
						t.Errorf("%+v: read %v instead of %v: %s", s, rx.CheckPassed, c.read[k], why)
					}
					if !c.read[k] && k != c.blank && (!strings.Contains(why, "b of the attempt") || rx.Reason != why) {
						t.Errorf("%+v is void as %q, the reception says %q", s, why, rx.Reason)
					}
				}
			})
		}
	}
}

// keyBench is a bench whose receiver hears nothing where its source is harmed, and that
// knows the scale of its gains unless alpha is 0.
func keyBench(t *testing.T, alpha float64) *bench {
	if alpha == 0 {
		b := newBench(t, nil)
		b.source.change = nothing
		return b
	}
	b := &bench{
		air: newAir(t, 2, scene{sigma: 0.3, bits: 0, noiseStd: 1e-4}), m: newModulus(t, 0x7fff801),
		source: &spoiler{change: nothing}, rnd: rand.New(rand.NewPCG(10, 10)),
	}
	b.w = newWaveform(t, b.air, b.m, func(c *WaveformConfig) {
		b.source.Receiver, c.Receiver = c.Receiver, b.source
		c.Alpha, c.Phase = alpha, new(modem.Radians)
	})
	return b
}

func nothing(complex64) complex64 { return 0 }
