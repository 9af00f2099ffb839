package frame

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ringwave/crypto/keystream"
	"ringwave/phy/zq"
)

func TestPatternsHaveFullColumnRank(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 40, 61, 62, 63, 64, 65, 100, 127, 128} {
		p := NewPatterns(n, keystream.FromInteger(uint64(n)))
		if p.Symbols() < n || p.Symbols()%64 != 0 {
			t.Fatalf("N = %d: %d symbols", n, p.Symbols())
		}
		// Of random patterns for 64 devices five in seven are not certainly independent:
		// these were drawn until they were.
		if !independent(p.sign) {
			t.Errorf("N = %d: patterns were taken that may depend on one another", n)
		}
		m := mat.NewDense(p.Symbols(), n, nil)
		for i := range n {
			for s := range p.Symbols() {
				m.Set(s, i, float64(p.Symbol(i, s)))
			}
		}
		// The judge is gonum's singular value decomposition.
		var svd mat.SVD
		if !svd.Factorize(m, mat.SVDNone) {
			t.Fatal("SVD failed")
		}
		if rank := svd.Rank(1e-9); rank != n {
			t.Errorf("N = %d: rank %d", n, rank)
		}
	}
}

func TestDependentPatternsAreRejected(t *testing.T) {
	a, b := uint64(0x123456789abcdef0), uint64(0xfedcba9876543211)
	for name, sign := range map[string][][]uint64{
		"equal":    {{a}, {b}, {a}},
		"opposite": {{a}, {b}, {^b}},
	} {
		if independent(sign) {
			t.Errorf("%s patterns passed as independent", name)
		}
	}
}

func TestPatternShowsEveryChange(t *testing.T) {
	const n = 10
	p := NewPatterns(n, keystream.FromInteger(1))
	rnd := rand.New(rand.NewPCG(1, 1))
	y, z := make([]int64, p.Symbols()), make([]int64, p.Symbols())
	h := make([]int64, n)
	for range 1000 {
		for i := range h {
			h[i] = rnd.Int64N(2000) - 1000
		}
		p.Superpose(y, h)
		for s := range y {
			want := int64(0)
			for i := range h {
				want += h[i] * p.Symbol(i, s)
			}
			if y[s] != want {
				t.Fatalf("symbol %d is %d, want %d", s, y[s], want)
			}
		}
		h[rnd.IntN(n)]++
		p.Superpose(z, h)
		same := true
		for s := range y {
			same = same && y[s] == z[s]
		}
		if same {
			t.Fatal("a changed gain left the pattern as it was")
		}
	}
}

func testModulus(t testing.TB, primes ...uint64) *zq.Modulus {
	t.Helper()
	m, err := zq.NewModulus(primes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func checkOf(t testing.TB, m *zq.Modulus, n int, noise float64) *Check {
	t.Helper()
	c, err := NewCheck(m, n, patternWord, noise)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func randomVector(m *zq.Modulus, n int, s *keystream.Stream) zq.Vector {
	v := m.NewVector(n)
	for j, p := range m.Primes() {
		s.Uniform(v[j], p)
	}
	return v
}
