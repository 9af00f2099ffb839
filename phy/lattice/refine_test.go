package lattice

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What a block's teeth show is taken off: a baseline that wanders by as much as the teeth
// are apart, and what symbols have of their neighbours. What is left is noise, within a
// twentieth of its deviation; and a block that has neither keeps its noise.
func TestRefine(t *testing.T) {
	const n, noise = 8192, 0.008
	gains := []float64{1.07, 0.81, 1.32}
	for _, c := range []struct {
		name string
		harm func(clean []float64, k int) float64
	}{
		{"nothing", func([]float64, int) float64 { return 0 }},
		{"a baseline", func(_ []float64, k int) float64 { return 0.03 * math.Sin(float64(k)/700) }},
		{"neighbours", func(x []float64, k int) float64 {
			if k < 2 {
				return 0
			}
			return 0.012*x[k-1] - 0.008*x[k-2]
		}},
	} {
		rnd := rand.New(rand.NewPCG(5, 5))
		clean, y := make([]float64, n), make([]float32, n)
		for k := range clean {
			for _, h := range gains {
				clean[k] += h * float64(rnd.IntN(3)-1)
			}
		}
		for k := range y {
			y[k] = float32(clean[k] + c.harm(clean, k) + noise*rnd.NormFloat64())
		}
		r, err := New(Options{MaxAlpha: 40})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, n)
		r.Refine(got, y)
		before, after := deviation(y, clean), deviation(got, clean)
		t.Logf("%s: %.4f before, %.4f after", c.name, before, after)
		if after > 1.05*noise || after < 0.95*noise {
			t.Errorf("%s: %.4f is left of %.4f, the noise is %v", c.name, after, before, noise)
		}
	}
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, odd := range [][]float32{nil, make([]float32, 5), make([]float32, 100), {float32(math.NaN()), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}} {
		r.Refine(make([]float32, len(odd)), odd) // nothing to go by is no reason to panic
	}
}

func deviation(y []float32, clean []float64) float64 {
	sum := 0.0
	for k, x := range clean {
		d := float64(y[k]) - x
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(clean)))
}
