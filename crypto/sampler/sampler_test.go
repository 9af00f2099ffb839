package sampler

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"math"
	"math/bits"
	"testing"

	"ringwave/crypto/keystream"
)

var all = []Distribution{Zero, Ternary, Signs, Binomial, Gaussian}

// Lengths that end within a byte, a group and a block, and whole polynomials.
func vectorLengths() []int {
	var n []int
	for i := range 70 {
		n = append(n, i)
	}
	return append(n, 255, 256, 257, 1536, 4096, 4096, 8192)
}

func hexSum(h hash.Hash) string { return fmt.Sprintf("%x", h.Sum(nil)[:16]) }

// The hash of some 20,000 samples of each distribution, drawn in pieces of
// vectorLengths from one stream.
func TestVectors(t *testing.T) {
	want := map[Distribution]string{
		Zero:     "039e203921cbf29ccef1a31316411390",
		Ternary:  "4e63edb3c57eefc2caddfce7770085a0",
		Signs:    "3ae10c6216b950dbc53651bf5c4bcbb1",
		Binomial: "ea3a2d9814a466e213521257609a484f",
		Gaussian: "b15aae657bbc6d26e2cd2e259fca7521",
	}
	for _, d := range all {
		h := sha256.New()
		s := keystream.FromInteger(1).Derive("vectors").Stream()
		for _, n := range vectorLengths() {
			x := make([]int8, n)
			d.Sample(x, s)
			for _, v := range x {
				h.Write([]byte{byte(v)})
			}
		}
		if got := hexSum(h); got != want[d] {
			t.Errorf("%v: hash %s, want %s", d, got, want[d])
		}
	}
}

func draw(d Distribution, n int) ([]int8, []float64) {
	x := make([]int8, n)
	d.Sample(x, testStream("statistics"))
	f := make([]float64, n)
	for i, v := range x {
		f[i] = float64(v)
	}
	return x, f
}

func TestMarginals(t *testing.T) {
	for _, d := range all {
		law := probabilities(d)
		bound := int(d.Bound())
		x, f := draw(d, 1<<21)
		count := make([]int, len(law))
		for _, v := range x {
			count[int(v)+bound]++ // panics if the bound is wrong
		}
		if d == Zero {
			continue
		}
		chiSquare(t, d.String(), count, law)
		var m2, m4 float64
		for i, p := range law {
			v := float64(i - bound)
			m2 += p * v * v
			m4 += p * v * v * v * v
		}
		if math.Abs(m2/d.Variance()-1) > 1e-14 {
			t.Errorf("%v: Variance gives %v, the law has %v", d, d.Variance(), m2)
		}
		checkMoments(t, d.String(), f, m2, m4/(m2*m2))
		checkLags(t, d.String(), f, m2)
	}
}

// The pair (x[i], x[i+1]) in cells of values clipped to [-clip, clip], for even
// and for odd i, so that each test's pairs are independent. Groups of 3, 4, 5
// and 8 samples put their borders at both.
func TestPairs(t *testing.T) {
	clip := map[Distribution]int{Ternary: 1, Signs: 1, Binomial: 6, Gaussian: 6}
	for d, c := range clip {
		law := clipLaw(probabilities(d), c)
		x, _ := draw(d, 1<<21)
		for start := range 2 {
			count := make([]int, len(law)*len(law))
			prob := make([]float64, len(law)*len(law))
			for i := range prob {
				prob[i] = law[i/len(law)] * law[i%len(law)]
			}
			for i := start; i+1 < len(x); i += 2 {
				a := max(-c, min(c, int(x[i]))) + c
				b := max(-c, min(c, int(x[i+1]))) + c
				count[a*len(law)+b]++
			}
			chiSquare(t, fmt.Sprintf("pairs of %v from %d", d, start), count, prob)
		}
	}
}

func clipLaw(law []float64, c int) []float64 {
	out := make([]float64, 2*c+1)
	for i, p := range law {
		out[max(-c, min(c, i-len(law)/2))+c] += p
	}
	return out
}

// The fault of a sampler that uses one bit twice: what follows a -1.
func TestTernaryAfterMinusOne(t *testing.T) {
	x, _ := draw(Ternary, 1<<21)
	var after [3]int
	var n float64
	for i, v := range x[:len(x)-1] {
		if v == -1 {
			after[x[i+1]+1]++
			n++
		}
	}
	deviation := math.Sqrt(n * (1. / 3) * (2. / 3))
	for v, c := range after {
		d := (float64(c) - n/3) / deviation
		t.Logf("P(%d | previous = -1) = %.5f, %.2f deviations", v-1, float64(c)/n, d)
		if math.Abs(d) > 5 {
			t.Errorf("P(%d | previous = -1) = %.5f", v-1, float64(c)/n)
		}
	}
}

// All 243 bytes give all 243 words of five trits, in the order of the digits.
func TestTrits(t *testing.T) {
	for b := range 243 {
		n := 0
		for _, x := range trits(byte(b)) {
			if x < -1 || x > 1 {
				t.Fatalf("byte %d gives trit %d", b, x)
			}
			n = 3*n + int(x) + 1
		}
		if n != b {
			t.Errorf("byte %d gives the digits of %d", b, n)
		}
	}
}

// The binomial sampler against the definition, bit by bit.
func TestBinomialDefinition(t *testing.T) {
	x := make([]int8, 3*blockSize)
	Binomial.Sample(x, testStream("definition"))
	s := testStream("definition")
	for i := 0; i < len(x); i += 3 {
		a, b := s.Uint64(), s.Uint64()
		for j, word := range []uint64{a & (1<<42 - 1), b & (1<<42 - 1), a>>43 | b>>43<<21} {
			plus, minus := word>>21, ^word&(1<<21-1)
			want := bits.OnesCount64(plus) - bits.OnesCount64(minus)
			if int(x[i+j]) != want {
				t.Fatalf("sample %d is %d, by definition %d", i+j, x[i+j], want)
			}
		}
	}
}

func TestSampleStaysInside(t *testing.T) {
	s := testStream("guard")
	for _, d := range all {
		for n := range 600 {
			x := make([]int8, n+8)
			for i := range x {
				x[i] = 99
			}
			d.Sample(x[:n], s)
			for i, v := range x {
				if (v == 99) != (i >= n) {
					t.Fatalf("%v: %d samples asked, place %d is %d", d, n, i, v)
				}
			}
		}
	}
}

func TestNoDistribution(t *testing.T) {
	var none Distribution
	for name, f := range map[string]func(){
		"Sample":   func() { none.Sample(make([]int8, 1), testStream("none")) },
		"Variance": func() { none.Variance() },
		"Bound":    func() { none.Bound() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of no distribution did not panic", name)
				}
			}()
			f()
		}()
	}
}

func TestAllocations(t *testing.T) {
	s := testStream("allocations")
	small, residues, wide := make([]int8, 1000), make([]uint64, 1000), make([]Int128, 100)
	check := func(name string, f func()) {
		if n := testing.AllocsPerRun(10, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	for _, d := range all {
		check(d.String(), func() { d.Sample(small, s) })
	}
	f := newFlood(t, 1<<55)
	r, err := NewReducer(uniformModuli[2])
	if err != nil {
		t.Fatal(err)
	}
	check("Flood", func() {
		f.Sample(wide, s)
		residues[0] = r.Reduce(wide[0])
	})
}
