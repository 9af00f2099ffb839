package phy

import (
	"math"
	"math/rand/v2"
	"ringwave/phy/slot"
	"testing"
)

// The real gains that the patterns tell are those of the channel, within what rounding
// to integers moved them: of every group at its own scale, whatever integer brings it to
// the others', and without the gains of retries.
func TestRealGains(t *testing.T) {
	const devices, group = 4, 2
	m := newModulus(t, 0x7fff801)
	a := newAir(t, devices, scene{sigma: 0.5, bits: -1, noiseStd: 0.004})
	w := newWaveform(t, a, m, func(c *WaveformConfig) { c.Group, c.Lattice.MaxAlpha = group, 20 })
	if !w.TurnsGroups() {
		t.Error("a receiver that looks for the lattice does not go by the phase of the sum")
	}
	rnd := rand.New(rand.NewPCG(31, 32))
	rx := Reception{Y: m.NewVector(400), Pattern: make([]int64, w.PatternSymbols())}
	h, slack := make([]float64, devices), make([]float64, devices)
	read, scaled := 0, 0
	for k := range uint32(60) {
		sendOver(t, w, slot.Slot{Round: k, Attempt: k % 4}, randomPayloads(m, devices, 400, rnd), &rx)
		if !rx.CheckPassed {
			continue
		}
		if !w.RealGains(h, slack) {
			t.Errorf("round %d: accepted, and its patterns have no integer gains", k)
			continue
		}
		read++
		if w.groups[0].scale != w.groups[1].scale {
			scaled++
		}
		for i, got := range h {
			// A group whose sum is negative is turned over.
			want := a.h[i]
			if first := i / group * group; a.h[first]+a.h[first+1] < 0 {
				want = -want
			}
			if math.Abs(got-want) > slack[i]+0.01*math.Abs(want)+0.01 {
				t.Errorf("round %d, attempt %d: the gain of device %d is read as %.4f, and it is %.4f: rounding moves it by %.4f at most", k, k%4, i+1, got, want, slack[i])
			}
		}
	}
	t.Logf("%d of 60 rounds read, %d with groups of different integers", read, scaled)
	if read < 45 || scaled < 10 {
		t.Errorf("%d rounds were read, %d of them with groups of different integers: that shows little", read, scaled)
	}
}
