package keystream

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// The hash of residues drawn in pieces that end anywhere in a block.
func TestUniformVectors(t *testing.T) {
	const want = "71f46faea176b1e4168b675443e9c794"
	h := sha256.New()
	s := FromInteger(1).Derive("vectors").Stream()
	var lengths []int
	for i := range 70 {
		lengths = append(lengths, i)
	}
	lengths = append(lengths, 255, 256, 257, 1536, 4096, 4096, 8192)
	for _, p := range uniformModuli {
		for _, n := range lengths {
			x := make([]uint64, n)
			s.Uniform(x, p)
			binary.Write(h, binary.LittleEndian, x)
		}
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)[:16]); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

// Moduli: the least, one beside a power of two on either side, two of the
// scheme's primes, the greatest prime below 2^62.
var uniformModuli = []uint64{2, 3, 0x3ffffffffd6001, 0x7fff801, 257, 1<<62 - 57}

// chiSquare compares counts with cell probabilities, each 0 or enough for ten, and fails
// below p = 1e-6: the seed is fixed, so that this is a wrong sampler, not
// bad luck.
func chiSquare(t *testing.T, what string, count []int, prob []float64) {
	t.Helper()
	n, cells, chi2 := 0, 0, 0.
	for _, c := range count {
		n += c
	}
	for i, c := range count {
		expected := prob[i] * float64(n)
		if expected == 0 {
			if c > 0 {
				t.Errorf("%s: %d in a cell that nothing can be in", what, c)
			}
			continue
		}
		cells++
		chi2 += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	if p := (distuv.ChiSquared{K: float64(cells - 1)}).Survival(chi2); !(p >= 1e-6) {
		t.Errorf("%s: chi-square %.1f, %d cells, p = %.3g", what, chi2, cells, p)
	}
}

func TestUniform(t *testing.T) {
	const n = 1 << 18
	x := make([]uint64, n)
	s := FromInteger(2025).Derive("uniform").Stream()
	for _, p := range append([]uint64{5, 129, 1000003}, uniformModuli...) {
		s.Uniform(x, p)
		cells := min(p, 64)
		high := make([]int, cells) // by size
		low := make([]int, cells)  // by residue modulo cells
		pairs := make([]int, 8*8)  // neighbours, by size
		prob := make([]float64, cells)
		pairProb := make([]float64, 8*8)
		eighth := make([]float64, 8)
		for c := range cells {
			prob[c] = part(p, c, cells)
		}
		for c := range uint64(8) {
			eighth[c] = part(p, c, 8)
		}
		for i := range pairProb {
			pairProb[i] = eighth[i/8] * eighth[i%8]
		}
		for i, v := range x {
			if v >= p {
				t.Fatalf("%d modulo %d", v, p)
			}
			high[cell(v, p, cells)]++
			low[v%cells]++
			if i%2 == 1 {
				pairs[8*cell(x[i-1], p, 8)+cell(v, p, 8)]++
			}
		}
		chiSquare(t, fmt.Sprintf("high part modulo %d", p), high, prob)
		chiSquare(t, fmt.Sprintf("pairs modulo %d", p), pairs, pairProb)
		for c := range cells {
			prob[c] = float64((p-c+cells-1)/cells) / float64(p)
		}
		chiSquare(t, fmt.Sprintf("low part modulo %d", p), low, prob)
	}
}

// cell returns floor(v cells / p), and part the share of [0, p) in cell c.
func cell(v, p, cells uint64) uint64 {
	hi, lo := bits.Mul64(v, cells)
	q, _ := bits.Div64(hi, lo, p)
	return q
}

func part(p, c, cells uint64) float64 {
	first := func(c uint64) uint64 { // ceil(c p / cells)
		hi, lo := bits.Mul64(c, p)
		q, rem := bits.Div64(hi, lo, cells)
		if rem > 0 {
			q++
		}
		return q
	}
	return float64(first(c+1)-first(c)) / float64(p)
}

func TestUniformModulusOutOfRange(t *testing.T) {
	for _, p := range []uint64{0, 1, 1 << 62, math.MaxUint64} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("modulus %d was taken", p)
				}
			}()
			FromInteger(1).Stream().Uniform(make([]uint64, 1), p)
		}()
	}
}

func BenchmarkUniform(b *testing.B) {
	s := FromInteger(1).Stream()
	dst := make([]uint64, 4096)
	b.ReportAllocs()
	for b.Loop() {
		s.Start(0, 0)
		s.Uniform(dst, 0x3ffffffffd6001)
	}
}
