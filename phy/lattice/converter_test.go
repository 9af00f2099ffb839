package lattice_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/phy/lattice"
)

// Symbols that a converter of few bits has put on a lattice of its own are read all the
// same: that lattice says nothing of the noise.
func TestReadBehindACoarseConverter(t *testing.T) {
	for _, h := range [][]float64{{1, 1}, {1, 1.02}, {1, 0.73}} {
		for _, step := range []float64{1.0 / 32, 1.0 / 64, 1.0 / 100, 1.0 / 128} {
			rnd := rand.New(rand.NewPCG(7, uint64(1/step)))
			const n = 8192
			y, want := make([]float32, n), make([][2]int, n)
			for k := range y {
				sum := 0.01 * rnd.NormFloat64()
				for i := range h {
					want[k][i] = rnd.IntN(3) - 1
					sum += h[i] * float64(want[k][i])
				}
				y[k] = float32(step * math.Round(sum/step))
			}
			r, err := lattice.New(lattice.Options{MaxAlpha: 16})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Search(y, func(got []int32) bool {
				a, b := 0, 0
				for k, d := range want {
					if d[0] != 0 && d[1] == 0 {
						a = int(got[k]) * d[0]
					}
					if d[1] != 0 && d[0] == 0 {
						b = int(got[k]) * d[1]
					}
				}
				for k, d := range want {
					if int(got[k]) != a*d[0]+b*d[1] {
						return false
					}
				}
				return true
			})
			if err != nil {
				t.Errorf("gains %v in steps of %.4f: %v", h, step, err)
			}
		}
	}
}
