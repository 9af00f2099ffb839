package campaign

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// The error of what bursts say of a carrier is at least that of their scatter, and of what
// they claim: the truth lies within it.
func TestScatterTellsTheError(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	for _, claimed := range []float64{7, 1, 0.2} { // times the true deviation
		const bursts, deviation = 64, 1e-6
		ratio, beyond := 0.0, 0
		for range 200 {
			var all []sounding.Estimate
			for range bursts {
				all = append(all, sounding.Estimate{
					Offset: 1e-3, DOffset: modem.CyclesPerSample(deviation * rnd.NormFloat64()),
					DOffsetVar: claimed * claimed * deviation * deviation, DDelayVar: 1,
				})
			}
			p := scattered(all)
			ratio += math.Sqrt(p.OffsetVar*bursts) / deviation / 200
			if math.Abs(float64(p.Offset)-1e-3) > 3*math.Sqrt(p.OffsetVar) {
				beyond++
			}
		}
		if least := max(1, claimed); ratio < least || ratio > 1.5*least || beyond > 1 {
			t.Errorf("where bursts claim %v times their deviation the error told is %.2f times it, and the truth beyond it %d of 200 times", claimed, ratio, beyond)
		}
	}
}

// Bursts that move, as the receiver's clock runs apart, turn by when they were really heard;
// and beside what clocks run apart by evenly their delays stand still.
func TestMovingBursts(t *testing.T) {
	const rate, drift, hz, devices, looks, blocks = 2e6, 20e-6, -8678.4, 2, 4, 20
	s, err := sounding.New(sounding.Config{Kind: sounding.MSequence, Length: 63, SamplesPerChip: 2, Repetitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Soundings: sounder.Config{Sounding: s, Devices: devices, Looks: looks, LookEvery: 400_000, Guard: 96}, SampleRate: rate}
	rnd := rand.New(rand.NewPCG(4, 5))
	var all []sounder.Block
	for k := range blocks {
		sent := float64(k) * 2e6
		moved := math.Round(drift * sent)
		b := sounder.Block{Number: k, At: radio.SampleIndex(sent + moved), Moved: int64(moved)}
		for j := range looks * devices {
			centre := c.Soundings.BurstCentre(j/devices, j%devices)
			delay := 3*float64(j%devices) + drift*(sent+centre) - moved
			heard := (float64(b.At) + centre + delay) / rate
			b.Records = append(b.Records, sounder.Record{Estimate: &sounding.Estimate{
				Gain:  cmplx.Rect(1, 0.3+2*math.Pi*math.Remainder(hz*heard, 1)) + complex(1e-4*rnd.NormFloat64(), 1e-4*rnd.NormFloat64()),
				Delay: modem.Samples(delay), DDelayVar: 1e-6, Offset: hz / rate, DOffset: modem.CyclesPerSample(0.5 / rate * rnd.NormFloat64()), DOffsetVar: 0.25 / rate / rate,
			}})
		}
		all = append(all, b)
	}
	carriers := FollowCarriers(&c.Soundings, rate, all, 0)
	for i, v := range carriers.Own {
		if !v.Follows || math.Abs(v.Offset.Value-hz) > 1e-4 {
			t.Errorf("device %d: %+v", i+1, v)
		}
	}
	series := c.series(Stilled(&c.Soundings, rate, all, map[int]Carriers{0: carriers}))
	for i, d := range series.Devices {
		for k, z := range d.Gain {
			if off := math.Abs(cmplx.Phase(z) - 0.3); off > 0.01 {
				t.Fatalf("device %d, look %d: its phase is off by %v", i+1, k, off)
			}
			if off := math.Abs(d.Delay[k] - d.Delay[0]); off > 0.01 {
				t.Fatalf("device %d, look %d: its delay moves by %v samples", i+1, k, off)
			}
		}
	}
}
