package experiment

import (
	"math"
	"testing"
)

// The band of an autocorrelation is white noise's at first, and widens with what is
// correlated before.
func TestBartlett(t *testing.T) {
	low, high := bartlett([]float64{1, 0.5, 0.5, 0, 0}, 0.2)
	for k, want := range []float64{0.2, 0.2, 0.2 * math.Sqrt(1.5), 0.2 * math.Sqrt2, 0.2 * math.Sqrt2} {
		if math.Abs(high[k]-want) > 1e-12 || low[k] != -high[k] {
			t.Errorf("lag %d: from %v to %v, want %v to either side", k, low[k], high[k], want)
		}
	}
}
