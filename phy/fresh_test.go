package phy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// slots differ in one thing each from the first.
func slots() []slot.Slot {
	return []slot.Slot{
		{Round: 3, Attempt: 1, Transmission: slot.TxC0},
		{Round: 4, Attempt: 1, Transmission: slot.TxC0},
		{Round: 3, Attempt: 2, Transmission: slot.TxC0},
		{Round: 3, Attempt: 1, Transmission: slot.TxShare},
		{Round: 3, Attempt: 1, Transmission: slot.TxC0, Again: 1},
		{Round: 3, Attempt: 1, Transmission: slot.TxC0, Again: slot.MaxAgain},
	}
}

// The ring link checks and disturbs the same payload anew in every slot, and gives the
// same again in the same slot.
func TestRingIsFreshInEverySlot(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	const n = 100
	r, _ := newRing(t, m, channel.Config{Devices: gaussian3}, [slot.Transmissions]float64{10, 10, 10, 10})
	x := randomPayloads(m, 3, n, rand.New(rand.NewPCG(1, 1)))
	silence := []zq.Vector{m.NewVector(n), m.NewVector(n), m.NewVector(n)}
	heard := func(s slot.Slot) (noise, checks []uint64) {
		rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, r.PatternSymbols())}
		send(t, r, s, silence, &rx)
		noise = slices.Clone(rx.Y[0])
		send(t, r, s, x, &rx)
		if !rx.CheckPassed {
			t.Errorf("%+v was refused", s)
		}
		return noise, slices.Clone(r.frames[1].Checks[0])
	}
	noise, checks := heard(slots()[0])
	if again, same := heard(slots()[0]); !slices.Equal(again, noise) || !slices.Equal(same, checks) {
		t.Error("a slot is not the same again")
	}
	for _, s := range slots()[1:] {
		other, otherChecks := heard(s)
		if slices.Equal(other, noise) {
			t.Errorf("%+v has the ring noise of %+v", s, slots()[0])
		}
		if slices.Equal(otherChecks, checks) {
			t.Errorf("%+v has the checks of %+v", s, slots()[0])
		}
	}
}

// The waveform link sends no check twice for the same payload, in no slot, repeat,
// group or block. Payload digits stay the same, but for a payload that is sent again.
func TestFramesAreCheckedAnew(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	const n, devices = 300, 2
	a := newAir(t, devices, scene{sigma: 0.3, bits: -1, noiseStd: 1}) // no frame can be read, and all are repeated
	var w *Waveform
	seen, digits, frames := map[string]string{}, "", 0
	w = newWaveform(t, a, m, func(c *WaveformConfig) {
		c.Group, c.Repeats, c.Alpha, c.Phase, c.BlockSymbols = 1, 2, 1, new(modem.Radians), 4000
		c.OnFrame = func(o Observation) error {
			frames++
			start := w.layout.start(w.groups[o.Group].patterns.Symbols())
			symbols := w.sender.devices[o.Group].symbols[start:]
			for i := range w.payload.Blocks() {
				from, to := w.payload.CheckSymbols(i)
				name := fmt.Sprintf("%+v, group %d, repeat %d, block %d", o.Slot, o.Group, o.Repeat, i)
				check := fmt.Sprint(symbols[from:to])
				if before, ok := seen[check]; ok {
					t.Errorf("%s has the check of %s", name, before)
				}
				seen[check] = name
				if first, _ := w.payload.BlockSymbols(i); i == 0 {
					now := fmt.Sprint(symbols[first:from])
					if masked := o.Slot.Again > 0; digits != "" && (now != digits) != masked {
						t.Errorf("%s has the same digits, or others: %v", name, masked)
					} else if !masked {
						digits = now
					}
				}
			}
			return nil
		}
	})
	one := randomPayloads(m, 1, n, rand.New(rand.NewPCG(1, 1)))[0]
	rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
	var begun slot.Slot
	for _, s := range slots() {
		key := slot.Slot{Round: s.Round, Attempt: s.Attempt}
		if key != begun && s.Again == 0 && s.Transmission == slot.TxC0 { // repeats are b's
			sendOver(t, w, key, []zq.Vector{one, one}, &rx)
			begun = key
		}
		sendOver(t, w, s, []zq.Vector{one, one}, &rx)
	}
	// Groups have patterns of their own, which are in the checks, too.
	h := w.expect(w.groups[0], 0).header
	if w.groups[0].weights.Of(h).Uint64() == w.groups[1].weights.Of(h).Uint64() {
		t.Error("two groups have the same weights")
	}
	if frames != len(seen)/w.payload.Blocks() || frames < 3*2*3+2*len(slots()) {
		t.Errorf("%d frames, %d checks", frames, len(seen))
	}
}

// A payload that is sent again in the same attempt is read again, and so is one whose
// first frame was lost.
func TestWaveformSendsAgain(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	const n, devices = 300, 3
	a := newAir(t, devices, scene{sigma: 0.2, bits: -1, noiseStd: 1e-3})
	w := newWaveform(t, a, m, func(c *WaveformConfig) { c.Repeats = 1 })
	rnd := rand.New(rand.NewPCG(2, 2))
	b, share := randomPayloads(m, devices, n, rnd), randomPayloads(m, devices, n, rnd)
	key := Reception{Y: m.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
	sendOver(t, w, slot.Slot{Round: 1}, b, &key)
	if !key.CheckPassed {
		t.Fatal(key.Reason)
	}
	want := m.NewVector(n)
	h := make([]float64, devices)
	if !w.Gains(h) {
		t.Fatal("no gains")
	}
	for i, x := range share {
		m.AddScaled(want, int64(h[i]), x)
	}
	for again := range uint8(3) {
		rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
		sendOver(t, w, slot.Slot{Round: 1, Transmission: slot.TxShare, Again: again}, share, &rx)
		if !rx.CheckPassed || !rx.Y.Equal(want) || !slices.Equal(rx.Pattern, key.Pattern) {
			t.Errorf("sent again %d times: passed %v (%s)", again, rx.CheckPassed, rx.Reason)
		}
	}
}

// Slots that a header has no room for are refused by both links: their weights would
// be those of another frame.
func TestSlotsHaveLimits(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	ring, _ := newRing(t, m, channel.Config{Devices: gaussian3}, [slot.Transmissions]float64{})
	wave := newWaveform(t, newAir(t, 1, scene{}), m, nil)
	for _, s := range []slot.Slot{{Attempt: slot.MaxAttempt + 1}, {Again: slot.MaxAgain + 1}, {Transmission: slot.Transmissions}, {Transmission: -1}} {
		for _, u := range []Uplink{ring, wave} {
			if err := u.Open(t.Context(), s, 4); err == nil {
				t.Errorf("%T opened %+v", u, s)
			}
		}
	}
}
