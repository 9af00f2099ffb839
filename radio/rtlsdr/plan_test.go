package rtlsdr

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"ringwave/radio"
)

// The synthesizer's settings make what is asked for to half a step of its
// fraction, from an oscillator within its range, at any frequency.
func TestPlanPLL(t *testing.T) {
	for _, crystal := range []float64{28.8e6, 16e6, 28.8e6 * (1 + 150e-6)} {
		for lo := minVCO / maxDivider; lo < maxVCO/2; lo += 777_777.7 {
			p, err := planPLL(lo, crystal)
			if err != nil {
				t.Fatal(err)
			}
			divider := float64(int(1) << p.dividerLog)
			step := 2 * crystal / (1 << 16) / divider
			if off := math.Abs(p.lo(crystal) - lo); off > step/2*(1+1e-6) {
				t.Fatalf("%v Hz: %v Hz off, a step is %v", lo, off, step)
			}
			if vco := p.lo(crystal) * divider; vco < minVCO-step*divider || vco > maxVCO+step*divider {
				t.Fatalf("%v Hz: the oscillator is at %v", lo, vco)
			}
			// What the six bits and the two can say.
			if ni := (p.integer - 13) / 4; p.integer < 13 || ni > 63 {
				t.Fatalf("%v Hz: %+v", lo, p)
			}
		}
	}
	for _, lo := range []float64{0, 27.6e6, 1770e6, math.NaN(), math.Inf(1)} {
		if p, err := planPLL(lo, 28.8e6); err == nil {
			t.Errorf("%v Hz is taken: %+v", lo, p)
		}
	}
}

// The published list is what raising the two amplifiers in turn gives, but for one
// step after which the next is hardly larger.
func TestGainList(t *testing.T) {
	var sums []int
	total := 0
	for i := range 15 {
		sums = append(sums, total)
		total += lnaSteps[i+1]
		sums = append(sums, total)
		total += mixerSteps[i+1]
	}
	sums = slices.DeleteFunc(sums, func(g int) bool { return g == 483 })
	if !slices.Equal(gains[:], slices.Compact(sums)) {
		t.Errorf("the list is\n%v instead of\n%v", gains, sums)
	}
	for _, g := range gains {
		s, got := planGain(g), 0
		for i := range s.lna {
			got += lnaSteps[i+1]
		}
		for i := range s.mixer {
			got += mixerSteps[i+1]
		}
		if got != g || s.lna > 15 || s.mixer > 15 {
			t.Errorf("%d: %+v, which is %d", g, s, got)
		}
	}
}

func TestFloorGain(t *testing.T) {
	for g, want := range map[radio.Decibels]radio.Decibels{0: 0, 0.5: 0, 0.9: 0.9, 1.3: 0.9, 40.2: 40.2, 48.3: 48, 49.6: 49.6} {
		if got, err := FloorGain(g); err != nil || math.Abs(float64(got-want)) > 1e-9 {
			t.Errorf("%v becomes %v instead of %v: %v", g, got, want, err)
		}
	}
	for _, g := range []radio.Decibels{-1, 49.7, radio.Decibels(math.NaN())} {
		if got, err := FloorGain(g); err == nil {
			t.Errorf("%v becomes %v", g, got)
		}
	}
}

// The words are those that librtlsdr 0.6.0 sends.
func TestPlanRate(t *testing.T) {
	for rate, word := range map[radio.Hertz]uint32{
		250000: 0x0ccccccc, 1000000: 0x07333330, 1200000: 0x06000000, 1600000: 0x04800000, 1800000: 0x04000000,
		2000000: 0x03999998, 2048000: 0x03840000, 2400000: 0x03000000, 2800000: 0x02924924, 3200000: 0x02400000,
	} {
		got, actual, err := planRate(rate)
		if err != nil || got != word {
			t.Errorf("%v: %#08x instead of %#08x: %v", rate, got, word, err)
		}
		if math.Abs(float64(actual/rate-1)) > 1e-7 {
			t.Errorf("%v becomes %v", rate, actual)
		}
	}
	for _, rate := range []radio.Hertz{0, 225000, 300001, 900000, 3200001, -1, radio.Hertz(math.NaN()), radio.Hertz(math.Inf(1))} {
		if _, actual, err := planRate(rate); err == nil {
			t.Errorf("%v is taken as %v", rate, actual)
		}
	}
}

// The middle of the filter is where librtlsdr 0.6.0 tunes the demodulator to: the
// word that it sends.
func TestPlanChannel(t *testing.T) {
	for bandwidth, word := range map[float64]int{
		250000: 0x3b471d, 1000000: 0x3c38e4, 1200000: 0x3c38e4, 1600000: 0x3caaab, 1800000: 0x3c1c72,
		2000000: 0x3c638f, 2400000: 0x3bf778, 2800000: 0x381112, 3200000: 0x381112,
	} {
		c := planChannel(bandwidth)
		if got := -int(c.intermediate*turn/demodCrystal) & 0x3fffff; got != word {
			t.Errorf("%v Hz: %06x instead of %06x", bandwidth, got, word)
		}
	}
	for _, bandwidth := range []float64{0, 6.5e6, 7.5e6, 1e9} {
		if c := planChannel(bandwidth); c.intermediate < 2e6 {
			t.Errorf("%v Hz: %+v", bandwidth, c)
		}
	}
}

func TestFilterBytes(t *testing.T) {
	want, _ := hex.DecodeString("cadcd7d8e0f20e3506509c0d71111471741941a5")
	if got := filterBytes(); !bytes.Equal(got, want) {
		t.Errorf("% x instead of % x", got, want)
	}
}
