package model

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/vector"
)

// TestDots: products in vectors are gonum's to the bit, whatever the length.
func TestDots(t *testing.T) {
	if vector.AVX2.Lacks() != "" {
		t.Skip("SKIPPED: this processor has no AVX2")
	}
	t.Setenv(vector.Environment, vector.AVX2.String())
	d, rng := newDotter(), rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		return x
	}
	for n := 1; n < 900; n++ {
		x, a, b := draw(n), draw(n+1), draw(n)
		xa, xb := d.dot(x, x, a[:n], b)
		if wantA, wantB := floats.Dot(x, a[:n]), floats.Dot(x, b); xa != wantA || xb != wantB {
			t.Fatalf("%d values: %v and %v, expected %v and %v", n, xa, xb, wantA, wantB)
		}
	}
}

func BenchmarkDots(b *testing.B) {
	x, y := make([]float64, 784), make([]float64, 784)
	d := newDotter()
	for b.Loop() {
		d.dot(x, x, y, y)
	}
}
