package frame

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
)

// Solve inverts Superpose, and finds nothing in a pattern with one wrong symbol.
func TestSolve(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{1, 3, 10, 40} {
		p := NewPatterns(n, keystream.FromInteger(uint64(n)))
		h, y := make([]int64, n), make([]int64, p.Symbols())
		for range 50 {
			for i := range h {
				h[i] = rnd.Int64N(4001) - 2000
			}
			p.Superpose(y, h)
			got, ok := p.Solve(y)
			if !ok || !slices.Equal(got, h) {
				t.Fatalf("N = %d: solved %v, %v, want %v", n, got, ok, h)
			}
			y[rnd.IntN(len(y))]++
			if _, ok := p.Solve(y); ok {
				t.Fatalf("N = %d: a damaged pattern was solved", n)
			}
		}
		if _, ok := p.Solve(y[1:]); ok {
			t.Error("a pattern of the wrong length was solved")
		}
	}
}
