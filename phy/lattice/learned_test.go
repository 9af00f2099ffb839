package lattice

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// What a long block has shown reads short ones of the same gains that their own teeth do
// not, and never another one's.
func TestLearned(t *testing.T) {
	const rounds, long, short, alpha = 60, 8192, 140, 31.0
	gains := []float64{0.9, 0.61, 1.37}
	rnd := rand.New(rand.NewPCG(15, 1))
	block := func(n int) (y []float32, want []int32) {
		for range n {
			sum, integer := 0.0, int32(0)
			for _, h := range gains {
				d := float64(rnd.IntN(3) - 1)
				sum += h * d
				integer += int32(math.Round(alpha*h)) * int32(d)
			}
			y, want = append(y, float32(sum+0.012*rnd.NormFloat64())), append(want, integer)
		}
		return y, want
	}
	read := func(r *Receiver, y []float32, want []int32) bool {
		_, err := r.Again(y, alpha, func(got []int32) bool { return slices.Equal(got, want) })
		return err == nil
	}
	without, with := 0, 0
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range rounds {
		r.Forget()
		y, want := block(short)
		if read(r, y, want) {
			without++
		}
		known, integers := block(long)
		r.Learn(known, integers, alpha)
		if read(r, y, want) {
			with++
		}
	}
	t.Logf("%d of %d short blocks are read, %d once a long one was learned", without, rounds, with)
	if with < rounds*9/10 || without > rounds/2 {
		t.Errorf("%d of %d short blocks are read, %d once a long one was learned", without, rounds, with)
	}
}
