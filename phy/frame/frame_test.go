package frame

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/phy/zq"
)

func TestPatternsHaveFullColumnRank(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 40, 63, 64, 65, 100} {
		p := NewPatterns(n, keystream.FromInteger(uint64(n)))
		if p.Symbols() < n || p.Symbols()%64 != 0 {
			t.Fatalf("N = %d: %d symbols", n, p.Symbols())
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

func newCheck(t testing.TB, m *zq.Modulus, n int, noise float64) *Check {
	t.Helper()
	c, err := NewCheck(m, n, noise, keystream.FromInteger(5))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Noise that would make a check pass anything is refused; just below that, a
// check still rejects random blocks.
func TestCheckRefusesNoiseThatHidesEverything(t *testing.T) {
	m := testModulus(t, 0x7fff801)
	const n = 1024
	refused := false
	for e := range 22 {
		noise := math.Exp2(float64(e))
		c, err := NewCheck(m, n, noise, keystream.FromInteger(5))
		if err != nil {
			refused = true
			continue
		}
		if refused {
			t.Fatalf("sigma_w = %v was taken, though less was refused", noise)
		}
		stream := keystream.FromInteger(6).Stream()
		for round := range uint32(100) {
			c.Draw(round, 0)
			if c.Verify(randomVector(m, n, stream), randomVector(m, c.Len(), stream)) {
				t.Fatalf("sigma_w = %v: a random block passed", noise)
			}
		}
	}
	if !refused {
		t.Error("no noise was refused")
	}
}

func randomVector(m *zq.Modulus, n int, s *keystream.Stream) zq.Vector {
	v := m.NewVector(n)
	for j, p := range m.Primes() {
		sampler.Uniform(v[j], p, s)
	}
	return v
}

// A superposition with integer gains passes, with and without ring noise; the
// same with one coefficient off by a large random amount, or one bit of one
// residue flipped, never does.
func TestCheckTellsIntegerSuperpositions(t *testing.T) {
	for _, primes := range [][]uint64{{0x7fff801}, {0x3ffffffffed001}, {0x3ffffffffd6001, 0x7ffffffffb4001}} {
		for _, noise := range []float64{0, 3.2} {
			m := testModulus(t, primes...)
			const n, devices = 200, 3
			check := newCheck(t, m, n, noise)
			if noise == 0 {
				if want := int(math.Ceil(40 / m.Log2())); check.Len() != want {
					t.Errorf("log2 q = %.0f: %d checks, want %d", m.Log2(), check.Len(), want)
				}
			}
			stream := keystream.FromInteger(6).Stream()
			rnd := rand.New(stream)
			accepted := 0
			for round := range uint32(1000) {
				check.Draw(round, 0)
				y, chk := m.NewVector(n), m.NewVector(check.Len())
				part := m.NewVector(check.Len())
				for range devices {
					x := randomVector(m, n, stream)
					check.Sums(part, x)
					h := rnd.Int64N(600) - 300
					m.AddScaled(y, h, x)
					m.AddScaled(chk, h, part)
				}
				for k := range n {
					m.AddInt(y, k, int64(math.Round(noise*rnd.NormFloat64())))
				}
				for k := range check.Len() {
					m.AddInt(chk, k, int64(math.Round(noise*rnd.NormFloat64())))
				}
				if !check.Verify(y, chk) {
					t.Fatalf("round %d: an integer superposition failed the check", round)
				}
				k := rnd.IntN(n)
				for j, p := range m.Primes() {
					y[j][k] = (y[j][k] + 1 + rnd.Uint64N(p-1)) % p
				}
				if check.Verify(y, chk) {
					accepted++
				}
			}
			if accepted != 0 {
				t.Errorf("log2 q = %.0f, noise %v: %d damaged blocks of 1000 passed", m.Log2(), noise, accepted)
			}
		}
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	m := testModulus(t, 0x3ffffffffd6001, 0x7ffffffffb4001)
	check := newCheck(t, m, 500, 0)
	y, chk := m.NewVector(500), m.NewVector(check.Len())
	if n := testing.AllocsPerRun(20, func() {
		check.Draw(1, 2)
		check.Sums(chk, y)
		check.Verify(y, chk)
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func BenchmarkDraw(b *testing.B) {
	m := testModulus(b, 0x3ffffffffd6001, 0x7ffffffffb4001)
	check := newCheck(b, m, 4096, 0)
	for b.Loop() {
		check.Draw(1, 2)
	}
}
