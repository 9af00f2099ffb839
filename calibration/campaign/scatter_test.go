package campaign

import (
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/calibration/sounding"
	"ringwave/phy/modem"
)

// The error of what bursts say of a carrier is that of their scatter, whatever each claims:
// the truth lies within it.
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
		if ratio < 1 || ratio > 1.5 || beyond > 1 {
			t.Errorf("where bursts claim %v times their deviation the error told is %.2f times it, and the truth beyond it %d of 200 times", claimed, ratio, beyond)
		}
	}
}
