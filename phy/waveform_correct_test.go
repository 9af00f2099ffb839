package phy

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// Four devices in groups of two, whose carriers are up to 300 Hz apart, which leak and have
// images, arrive as if they had none of it where they correct it: with gains of 1 all sums
// are exact. Without it none is. A silent device leaks, too, and corrects that.
func TestCorrectedDevices(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	const devices, n = 4, 430
	offsets := []float64{0, 300, -120, 0.4}
	faults := func(i int) channel.Impairments {
		return channel.Impairments{CarrierOffset: offsets[i] / 10e6, DC: complex64(complex(0.05, -0.04)), IQGainDB: 0.5, IQPhaseRad: 0.03}
	}
	a := (1 + cmplx.Rect(math.Pow(10, 0.5/20), 0.03)) / 2
	const late = 7 // samples, of all paths
	var given []modem.Correction
	var trims []Trim
	for i := range offsets {
		f := offsets[i] / 10e6
		given = append(given, modem.Correction{Offset: modem.CyclesPerSample(f), Since: -late, Image: (1 - cmplx.Conj(a)) / a, Leakage: complex(0.05, -0.04) / a})
		trims = append(trims, Trim(cmplx.Rect(1, -cmplx.Phase(a))))
	}
	for _, corrected := range []bool{true, false} {
		air := newAir(t, devices, scene{bits: -1, noiseStd: noiseFor(flatTop, 35), impair: faults})
		w := newWaveform(t, air, m, func(c *WaveformConfig) {
			c.Group, c.Alpha, c.Phase, c.Trim, c.Level = 2, 1, new(modem.Radians), trims, cmplx.Abs(a)
			c.OnTransmission = func(context.Context, slot.Slot, radio.SampleIndex) error { return nil }
			if corrected {
				c.Correction = given
				c.OnFrame = func(o Observation) error {
					checkSilence(t, "before", o.Samples[32:160])
					checkSilence(t, "behind", o.Samples[len(o.Samples)-140:len(o.Samples)-12])
					return nil
				}
			}
		})
		good := 0
		const rounds = 8
		rnd := rand.New(rand.NewPCG(15, 6))
		for k := range uint32(rounds) {
			v := attemptOf(t, w, m, k, 0, [slot.Transmissions]int{n, 2, n, 2}, rnd, func(tr slot.Transmission, x []zq.Vector, rx *Reception) {
				if !rx.Y.Equal(superposition(m, []float64{1, 1, 1, 1}, x)) {
					t.Errorf("round %d, %v: accepted, and not the sum", k, tr)
				}
			})
			if v.good {
				good++
			} else if corrected {
				t.Logf("round %d, %v: %s", k, v.failed, v.reason)
			}
		}
		if want := map[bool]int{true: rounds, false: 0}[corrected]; good != want {
			t.Errorf("corrected %t: %d of %d rounds were read, want %d", corrected, good, rounds, want)
		}
	}
}

// checkSilence wants the mean of samples of a guard time to be below what a hundredth of
// one device's leakage would be, and the noise's.
func checkSilence(t *testing.T, where string, x []complex64) {
	t.Helper()
	var mean complex128
	for _, v := range x {
		mean += complex128(v) / complex(float64(len(x)), 0)
	}
	if cmplx.Abs(mean) > 5*noiseFor(flatTop, 35)/math.Sqrt(float64(len(x)))+6e-4 {
		t.Errorf("the mean of the guard time %s a frame is %v", where, mean)
	}
}

// What devices make up for is refused where it is not of all of them, or no correction.
func TestAlignmentIsValidated(t *testing.T) {
	for name, a := range map[string]Alignment{
		"one correction for two": {Correction: make([]modem.Correction, 1)},
		"one advance for two":    {Advance: make([]modem.Samples, 1)},
		"an image of 1":          {Correction: []modem.Correction{{}, {Image: 1}}},
		"a clock of 1":           {Correction: []modem.Correction{{}, {Clock: 1}}},
	} {
		if a.validate(2) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := (&Alignment{Correction: make([]modem.Correction, 2)}).validate(2); err != nil {
		t.Error(fmt.Errorf("two for two: %w", err))
	}
}
