package zq

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/vector"
)

var bases = [][]uint64{
	{0x7fff801},
	{0x3ffffffffed001},
	{0x3ffffffffd6001, 0x7ffffffffb4001},
	{0x3fffffffef8001, 0x3fffffffeb8001, 0x7ffffffffb4001, 0x7fffffffeac001},
	{0x1ffffffffff6001}, // 57 bits
}

func modulus(t testing.TB, primes []uint64) *Modulus {
	t.Helper()
	m, err := NewModulus(primes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func randomBig(rnd *rand.Rand, q *big.Int) *big.Int {
	x := new(big.Int)
	for range 4 {
		x.Lsh(x, 64)
		x.Or(x, new(big.Int).SetUint64(rnd.Uint64()))
	}
	x.Mod(x, q)
	if new(big.Int).Lsh(x, 1).Cmp(q) > 0 {
		x.Sub(x, q)
	}
	return x
}

// Every operation is compared with math/big, on every path that this processor has.
func TestAgainstBig(t *testing.T) {
	for _, path := range vector.Paths() {
		if path.Lacks() == "" {
			t.Run(path.String(), func(t *testing.T) { againstBig(t, path) })
		}
	}
}

func againstBig(t *testing.T, path vector.Path) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, primes := range bases {
		m, err := newModulus(primes, path)
		if err != nil {
			t.Fatal(err)
		}
		const n = 50
		x, y, z := m.NewVector(n), m.NewVector(n), m.NewVector(n)
		bx, by := make([]*big.Int, n), make([]*big.Int, n)
		for k := range n {
			bx[k], by[k] = randomBig(rnd, m.Big()), randomBig(rnd, m.Big())
			switch k {
			case 0:
				bx[k] = new(big.Int)
			case 1:
				bx[k] = new(big.Int).Rsh(m.Big(), 1)
			case 2:
				bx[k] = new(big.Int).Neg(new(big.Int).Rsh(m.Big(), 1))
			case 3:
				bx[k], by[k] = big.NewInt(-1), big.NewInt(-1)
			}
			m.SetBig(x, k, bx[k])
			m.SetBig(y, k, by[k])
			if got := m.Centred(x, k); got.Big().Cmp(bx[k]) != 0 {
				t.Fatalf("%v: centred %v, want %v", primes, got.Big(), bx[k])
			}
			want, _ := new(big.Float).SetInt(bx[k]).Float64()
			if got := m.Centred(x, k).Float64(); math.Abs(got-want) > math.Abs(want)*1e-15 {
				t.Fatalf("Float64 gave %v, want %v", got, want)
			}
		}
		for _, h := range []int64{0, 1, -1, 17, -300, math.MaxInt64, math.MinInt64} {
			z.Copy(y)
			m.AddScaled(z, h, x)
			for k := range n {
				want := new(big.Int).Mul(big.NewInt(h), bx[k])
				checkCoefficient(t, m, z, k, want.Add(want, by[k]))
			}
		}
		m.Add(z, x, y)
		for k := range n {
			checkCoefficient(t, m, z, k, new(big.Int).Add(bx[k], by[k]))
		}
		m.AddInt(z, 3, -12345)
		want := new(big.Int).Add(bx[3], by[3])
		checkCoefficient(t, m, z, 3, want.Sub(want, big.NewInt(12345)))
		for j, p := range primes {
			want := new(big.Int)
			for k := range n {
				want.Add(want, new(big.Int).Mul(bx[k], by[k]))
			}
			want.Mod(want, new(big.Int).SetUint64(p))
			if got := m.Dot(j, x[j], y[j]); got != want.Uint64() {
				t.Fatalf("Dot gave %d, want %v", got, want)
			}
		}
		if err := m.Valid(z, n); err != nil {
			t.Error(err)
		}
	}
}

// Dot gives math/big's sums on all paths, for all lengths about its vectors and runs, of
// residues at the edges too.
func TestDot(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, path := range vector.Paths() {
		if lacking := path.Lacks(); lacking != "" {
			t.Logf("SKIPPED: %s did not run: this processor lacks %s", path, lacking)
			continue
		}
		for _, p := range []uint64{3, 1<<29 - 3, 1<<57 - 13} {
			m, err := newModulus([]uint64{p}, path)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 1, 7, 8, 9, 16, 511, 512, 513, 520, 1031, 1 << 14} {
				for _, largest := range []bool{true, false} {
					r, x, want := make([]uint64, n), make([]uint64, n), new(big.Int)
					for k := range n {
						r[k], x[k] = p-1, p-1
						if !largest {
							r[k], x[k] = rnd.Uint64N(p), rnd.Uint64N(p)
						}
						want.Add(want, new(big.Int).Mul(new(big.Int).SetUint64(r[k]), new(big.Int).SetUint64(x[k])))
					}
					want.Mod(want, new(big.Int).SetUint64(p))
					if got := m.Dot(0, r, x); got != want.Uint64() {
						t.Fatalf("%s, %d terms modulo %d: got %d, want %v", path, n, p, got, want)
					}
				}
			}
		}
	}
}

func checkCoefficient(t *testing.T, m *Modulus, v Vector, k int, want *big.Int) {
	t.Helper()
	d := new(big.Int).Sub(m.Centred(v, k).Big(), want)
	if d.Mod(d, m.Big()).Sign() != 0 {
		t.Fatalf("coefficient %d is %v, want %v modulo q", k, m.Centred(v, k).Big(), want)
	}
}

func TestBits(t *testing.T) {
	for i, want := range []int{27, 54, 109, 218} {
		m := modulus(t, bases[i])
		if m.Bits() != want || math.Abs(m.Log2()-float64(want)) > 1e-3 {
			t.Errorf("%v has %d bits, log2 %v, want %d", bases[i], m.Bits(), m.Log2(), want)
		}
	}
}

func TestBadModulus(t *testing.T) {
	for _, primes := range [][]uint64{nil, {15}, {2}, {7, 7}, {3, 5, 7, 11, 13}, {(1 << 61) - 1}} {
		if _, err := NewModulus(primes); err == nil {
			t.Errorf("%v was taken", primes)
		}
	}
}

func TestValidRejects(t *testing.T) {
	m := modulus(t, bases[2])
	v := m.NewVector(4)
	v[1][2] = m.Primes()[1]
	if m.Valid(v, 4) == nil {
		t.Error("an unreduced residue was taken")
	}
	if m.Valid(m.NewVector(3), 4) == nil || m.Valid(v[:1], 4) == nil {
		t.Error("a wrong shape was taken")
	}
}

func BenchmarkAddScaled(b *testing.B) {
	m := modulus(b, bases[2])
	x, y := m.NewVector(4096), m.NewVector(4096)
	for b.Loop() {
		m.AddScaled(y, 321, x)
	}
}

func BenchmarkDot(b *testing.B) {
	m := modulus(b, bases[2])
	x, y := m.NewVector(4096), m.NewVector(4096)
	for b.Loop() {
		for j := range m.Primes() {
			m.Dot(j, x[j], y[j])
		}
	}
}
