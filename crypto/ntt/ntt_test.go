package ntt

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/tuneinsight/lattigo/v5/ring"

	"ringwave/crypto/vector"
	"ringwave/phy/zq"
)

// tried are prime sizes at the edges of what the ways of computing allow, and those of
// the parameter sets.
func tried() []int { return []int{27, 36, 44, 49, 50, 54, 55, 57} }

// primesOf returns the largest and the smallest prime of so many bits that n allows.
func primesOf(t testing.TB, size, n int) []uint64 {
	t.Helper()
	g := ring.NewNTTFriendlyPrimesGenerator(uint64(size), uint64(2*n))
	largest, err := g.NextDownstreamPrime()
	if err != nil {
		t.Fatal(err)
	}
	smallest := uint64(1)<<(size-1) + 1
	for !ring.IsPrime(smallest) {
		smallest += uint64(2 * n)
	}
	if bits.Len64(largest) != size || bits.Len64(smallest) != size {
		t.Fatalf("no primes of %d bits for n = %d: %d, %d", size, n, smallest, largest)
	}
	return []uint64{largest, smallest}
}

// available returns the paths that this processor can take.
func available() (paths []vector.Path) {
	for _, p := range vector.Paths() {
		if p.Lacks() == "" {
			paths = append(paths, p)
		}
	}
	return paths
}

// fieldsOf returns every way in which this processor can compute modulo a prime.
func fieldsOf(t testing.TB, n int, primes []uint64) map[string]*Ring {
	t.Helper()
	rings := map[string]*Ring{}
	for _, path := range available() {
		r, err := NewRing(n, primes, path)
		if err != nil {
			t.Fatal(err)
		}
		rings[path.String()] = r
	}
	addSlower(t, rings, n, primes)
	return rings
}

// elements are what transforms are tried on: the edges, and random ones.
func elements(n int, primes []uint64, seed uint64) []zq.Vector {
	rng := rand.New(rand.NewPCG(seed, 1))
	fill := func(f func(k int, p uint64) uint64) zq.Vector {
		v := make(zq.Vector, len(primes))
		for j, p := range primes {
			v[j] = make([]uint64, n)
			for k := range v[j] {
				v[j][k] = f(k, p)
			}
		}
		return v
	}
	return []zq.Vector{
		fill(func(int, uint64) uint64 { return 0 }),
		fill(func(_ int, p uint64) uint64 { return p - 1 }),
		fill(func(k int, p uint64) uint64 { return uint64(k&1) * (p - 1) }),
		fill(func(k int, p uint64) uint64 { return uint64(max(0, 1-k)) }),
		fill(func(_ int, p uint64) uint64 { return rng.Uint64N(p) }),
		fill(func(_ int, p uint64) uint64 { return p - 1 - rng.Uint64N(2) }),
	}
}

// export returns what Import took.
func (r *Ring) export(t Transform) zq.Vector {
	x := r.NewTransform().residues
	for j, f := range r.fields {
		for i := range x[j] {
			x[j][i] = t.residues[j][f.place(i)]
		}
	}
	return x
}

func equal(a, b []uint64) error {
	for k := range a {
		if a[k] != b[k] {
			return fmt.Errorf("coefficient %d is %d, expected %d", k, a[k], b[k])
		}
	}
	return nil
}

// TestLattigoAgrees compares transforms, and products in coefficient form, with
// lattigo's, to the bit.
func TestLattigoAgrees(t *testing.T) {
	for log := 4; log <= maxLog; log++ {
		n := 1 << log
		for _, size := range tried() {
			if testing.Short() && log > 12 && size != 50 && size != 57 {
				continue
			}
			primes := primesOf(t, size, n)
			theirs, err := ring.NewRing(n, primes)
			if err != nil {
				t.Fatal(err)
			}
			rings, xs := fieldsOf(t, n, primes), elements(n, primes, uint64(n*size))
			for i, x := range xs {
				y := xs[(i+2)%len(xs)]
				tx, ty, z := theirs.NewPoly(), theirs.NewPoly(), theirs.NewPoly()
				theirs.NTT(ring.Poly{Coeffs: [][]uint64(x)}, tx)
				theirs.NTT(ring.Poly{Coeffs: [][]uint64(y)}, ty)
				theirs.MForm(ty, z)
				theirs.MulCoeffsMontgomery(z, tx, z)
				theirs.INTT(z, z)
				for name, r := range rings {
					fx, fy := r.NewTransform(), r.NewTransform()
					r.Forward(fx, x)
					r.Forward(fy, y)
					product := r.NewTransform().residues
					r.Multiply(product, fx, fy)
					got := r.export(fx)
					for j, p := range primes {
						if err := equal(got[j], tx.Coeffs[j]); err != nil {
							t.Fatalf("%s, n = %d, p = %d, element %d: transform: %v", name, n, p, i, err)
						}
						if err := equal(product[j], z.Coeffs[j]); err != nil {
							t.Fatalf("%s, n = %d, p = %d, element %d: product: %v", name, n, p, i, err)
						}
					}
				}
			}
		}
	}
}

// TestSchoolbook compares coefficients of products with sums of math/big.
func TestSchoolbook(t *testing.T) {
	for _, n := range []int{16, 256, 4096} {
		for _, size := range tried() {
			primes := primesOf(t, size, n)
			xs := elements(n, primes, 7)
			x, y := xs[1], xs[4]
			for name, r := range fieldsOf(t, n, primes) {
				z := r.NewTransform().residues
				fx, fy := r.NewTransform(), r.NewTransform()
				r.Forward(fx, x)
				r.Forward(fy, y)
				r.Multiply(z, fx, fy)
				for j, p := range primes {
					for _, k := range []int{0, 1, n / 2, n - 1} {
						if want := schoolbook(x[j], y[j], k, p); z[j][k] != want {
							t.Fatalf("%s, n = %d, p = %d: coefficient %d is %d, expected %d", name, n, p, k, z[j][k], want)
						}
					}
				}
			}
		}
	}
}

// schoolbook returns coefficient k of x y modulo X^n+1 and p.
func schoolbook(x, y []uint64, k int, p uint64) uint64 {
	var sum, product big.Int
	for i := range x {
		product.Mul(new(big.Int).SetUint64(x[i]), new(big.Int).SetUint64(y[(k-i+len(y))%len(y)]))
		if i > k {
			product.Neg(&product)
		}
		sum.Add(&sum, &product)
	}
	return sum.Mod(&sum, new(big.Int).SetUint64(p)).Uint64()
}

// TestImport: a transform that is taken in lattigo's order is given back so.
func TestImport(t *testing.T) {
	const n = 1024
	primes := primesOf(t, 50, n)
	x := elements(n, primes, 3)[4]
	for name, r := range fieldsOf(t, n, primes) {
		got := r.export(r.Import(x))
		for j := range primes {
			if err := equal(got[j], x[j]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		n      int
		primes []uint64
	}{
		{1 << 15, []uint64{0x3ffffffffc001}},
		{8, []uint64{0x7fff801}},
		{1024, []uint64{0x7fff803}},
		{1024, []uint64{0x1fffffffffe00001}}, // 61 bits
	} {
		if _, err := NewRing(c.n, c.primes, vector.Portable); err == nil {
			t.Errorf("n = %d, primes %v: taken", c.n, c.primes)
		}
	}
}

// FuzzPaths: all paths give the same product, whatever the residues.
func FuzzPaths(f *testing.F) {
	f.Add(uint64(1), uint8(0))
	f.Add(^uint64(0), uint8(5))
	const n = 256
	rings := map[int]map[string]*Ring{}
	for _, size := range tried() {
		rings[size] = fieldsOf(f, n, primesOf(f, size, n))
	}
	f.Fuzz(func(t *testing.T, seed uint64, which uint8) {
		size := tried()[int(which)%len(tried())]
		primes := primesOf(t, size, n)
		xs := elements(n, primes, seed)
		x, y := xs[4], xs[int(which/8)%len(xs)]
		var want zq.Vector
		for name, r := range rings[size] {
			fx, fy := r.NewTransform(), r.NewTransform()
			r.Forward(fx, x)
			r.Forward(fy, y)
			z := r.NewTransform().residues
			r.Multiply(z, fx, fy)
			if want == nil {
				want = z
			}
			for j := range z {
				if err := equal(z[j], want[j]); err != nil {
					t.Fatalf("%s, p = %d: %v", name, primes[j], err)
				}
			}
		}
	})
}

// BenchmarkTransform times transforms beside lattigo's: ns/butterfly is of one of the
// n/2 log2 n butterflies modulo one prime.
func BenchmarkTransform(b *testing.B) {
	for _, n := range []int{1024, 2048, 4096, 8192, 16384} {
		for _, size := range []int{50, 54} {
			primes := primesOf(b, size, n)[:1]
			x := elements(n, primes, 1)[4]
			butterflies := float64(n / 2 * (bits.Len(uint(n)) - 1))
			report := func(b *testing.B) {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/butterflies, "ns/butterfly")
			}
			for name, r := range fieldsOf(b, n, primes) {
				t := r.NewTransform()
				b.Run(fmt.Sprintf("n=%d/%d-bit/%s/forward", n, size, name), func(b *testing.B) {
					for b.Loop() {
						r.Forward(t, x)
					}
					report(b)
				})
				b.Run(fmt.Sprintf("n=%d/%d-bit/%s/multiply", n, size, name), func(b *testing.B) {
					for b.Loop() {
						r.Multiply(t.residues, t, t)
					}
					report(b)
				})
			}
			theirs, err := ring.NewRing(n, primes)
			if err != nil {
				b.Fatal(err)
			}
			p := theirs.NewPoly()
			copy(p.Coeffs[0], x[0])
			b.Run(fmt.Sprintf("n=%d/%d-bit/lattigo/forward", n, size), func(b *testing.B) {
				for b.Loop() {
					theirs.NTT(p, p)
				}
				report(b)
			})
			b.Run(fmt.Sprintf("n=%d/%d-bit/lattigo/inverse", n, size), func(b *testing.B) {
				for b.Loop() {
					theirs.INTT(p, p)
				}
				report(b)
			})
		}
	}
}
