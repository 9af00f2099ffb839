package attack

import (
	"math"

	"github.com/tuneinsight/lattigo/v5/ring"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/zq"
)

// workbench is R_q of a parameter set with its public a: what an attacker computes
// with.
type workbench struct {
	params xmkckks.Params
	ring   *ring.Ring
	mod    *zq.Modulus
	a      zq.Vector // transform
}

// newWorkbench makes it for a context's public seed. a is drawn from it as the
// context draws it, which anyone can.
func newWorkbench(p xmkckks.Params, public keystream.Seed) (*workbench, error) {
	r, err := ring.NewRing(p.N, p.Primes)
	if err != nil {
		return nil, err
	}
	mod, err := zq.NewModulus(p.Primes)
	if err != nil {
		return nil, err
	}
	w := &workbench{params: p, ring: r, mod: mod, a: mod.NewVector(p.N)}
	stream := public.Derive("a").Stream()
	for j, prime := range p.Primes {
		stream.Uniform(w.a[j], prime)
	}
	return w, nil
}

func poly(v zq.Vector) ring.Poly { return ring.Poly{Coeffs: [][]uint64(v)} }

// ownKey returns s and e of key epoch 0 of the device with that seed: what its owner
// has.
func (w *workbench) ownKey(seed keystream.Seed) (s, e []int8) {
	stream := seed.Derive("key epoch", 0).Derive("s and e").Stream()
	s, e = make([]int8, w.params.N), make([]int8, w.params.N)
	w.params.Secret.Sample(s, stream)
	w.params.KeyError.Sample(e, stream)
	return s, e
}

// ownRandomness returns v, e0 and e1 of a round's first attempt, all coefficients.
func (w *workbench) ownRandomness(seed keystream.Seed, round uint32) (v, e0, e1 []int8) {
	epoch := seed.Derive("key epoch", 0)
	draw := func(law sampler.Distribution, name string) []int8 {
		x, stream := make([]int8, w.params.N), epoch.Derive(name).Stream()
		stream.Start(round, 0)
		law.Sample(x, stream)
		return x
	}
	return draw(w.params.Ephemeral, "v"), draw(w.params.Error0, "e0"), draw(w.params.Error1, "e1")
}

// lift returns small integers as an element of R_q.
func lift[T int8 | int64](w *workbench, x []T) zq.Vector {
	y := w.mod.NewVector(w.params.N)
	for k, v := range x {
		w.mod.AddInt(y, k, int64(v))
	}
	return y
}

// addWide adds wide integers to the coefficients of x.
func (w *workbench) addWide(x zq.Vector, e []sampler.Int128) error {
	for j, p := range w.params.Primes {
		reducer, err := sampler.NewReducer(p)
		if err != nil {
			return err
		}
		for k := range e {
			x[j][k] = (x[j][k] + reducer.Reduce(e[k])) % p
		}
	}
	return nil
}

// transform returns the number-theoretic transform of x.
func (w *workbench) transform(x zq.Vector) zq.Vector {
	y := w.mod.NewVector(w.params.N)
	w.ring.NTT(poly(x), poly(y))
	return y
}

// multiply returns the product of two transforms, in coefficient form.
func (w *workbench) multiply(x, y zq.Vector) zq.Vector {
	z := w.mod.NewVector(w.params.N)
	w.ring.MForm(poly(x), poly(z))
	w.ring.MulCoeffsMontgomery(poly(z), poly(y), poly(z))
	w.ring.INTT(poly(z), poly(z))
	return z
}

// divide returns x/y in R_q, x in coefficient form and y as its transform. Where y
// has a zero, with probability n L/p for a uniform y, the quotient is no solution.
func (w *workbench) divide(x, y zq.Vector) zq.Vector {
	inverse := w.mod.NewVector(w.params.N)
	for j, p := range w.params.Primes {
		for k, v := range y[j] {
			inverse[j][k] = ring.ModExp(v, p-2, p)
		}
	}
	return w.multiply(inverse, w.transform(x))
}

// centred returns all coefficients, centred.
func (w *workbench) centred(x zq.Vector) []float64 {
	y := make([]float64, x.Len())
	for k := range y {
		y[k] = w.mod.Centred(x, k).Float64()
	}
	return y
}

// firstOf gives, for a fixed polynomial s, coefficient 0 of s c: s_0 c_0 less the
// sum of s_{n-i} c_i.
func firstOf[T int8 | int64](w *workbench, s []T) func(c zq.Vector) zq.Vector {
	row := make([]T, len(s))
	row[0] = s[0]
	for i := 1; i < len(s); i++ {
		row[i] = -s[len(s)-i]
	}
	factors := lift(w, row)
	return func(c zq.Vector) zq.Vector {
		y := w.mod.NewVector(1)
		for j := range w.params.Primes {
			y[j][0] = w.mod.Dot(j, factors[j], c[j])
		}
		return y
	}
}

// open returns the message that c0 and c1 hold under the key that product multiplies
// by: (c0 + c1 s)[0]/Lambda, centred.
func (w *workbench) open(c0, c1 zq.Vector, product func(zq.Vector) zq.Vector) float64 {
	y := product(c1)
	for j, p := range w.params.Primes {
		y[j][0] = (y[j][0] + c0[j][0]) % p
	}
	return w.mod.Centred(y, 0).Float64() / w.params.Lambda()
}

// openingStd returns the deviation of what open finds under the right key, the sum
// of the given number of keys.
func (w *workbench) openingStd(keys int) float64 {
	p := w.params
	each := p.Ephemeral.Variance()*p.KeyError.Variance() + p.Secret.Variance()*p.Error1.Variance()
	return math.Sqrt(float64(keys*p.N)*each+p.Error0.Variance()+1./12) / p.Lambda()
}

// average estimates the fixed part of a sequence of residues modulo the first
// prime, x + e_t, from the first and the mean of the differences to it: it gives
// the estimate of e_1 = first - x. next fills in one more of the sequence.
func (w *workbench) average(first []uint64, more int, next func(dst []uint64) error) ([]float64, error) {
	p := w.params.Primes[0]
	sum, x := make([]int64, len(first)), make([]uint64, len(first))
	for range more {
		if err := next(x); err != nil {
			return nil, err
		}
		for k := range sum {
			d := int64((x[k] + p - first[k]) % p)
			if d > int64(p/2) {
				d -= int64(p)
			}
			sum[k] += d
		}
	}
	e := make([]float64, len(first))
	for k, s := range sum {
		e[k] = -float64(s) / float64(more+1)
	}
	return e, nil
}

func floats[T int8 | int64](x []T) []float64 {
	y := make([]float64, len(x))
	for k, v := range x {
		y[k] = float64(v)
	}
	return y
}

// rounded rounds to integers, and to int64.
func rounded(x []float64) []int64 {
	y := make([]int64, len(x))
	for k, v := range x {
		y[k] = int64(math.Round(v))
	}
	return y
}

// added returns the sum of polynomials.
func added(xs ...[]int8) []int64 {
	sum := make([]int64, len(xs[0]))
	for _, x := range xs {
		for k, v := range x {
			sum[k] += int64(v)
		}
	}
	return sum
}
