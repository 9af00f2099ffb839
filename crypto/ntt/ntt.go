// Package ntt multiplies in R_q = Z_q[X]/(X^n+1), q a product of primes of 57 bits at
// most that are 1 modulo 2n.
//
// It takes in elements in coefficient form, residues prime by prime (phy/zq), and gives
// their number-theoretic transforms, and products of two of these in coefficient form. It
// knows nothing of what elements stand for. Roots of unity are those that lattigo's ring
// finds, so that it can judge every transform.
//
// Transforms are computed in vectors where the processor has them: with AVX-512 by IFMA52
// for primes below 2^50, by products of 64 bits for others, and with AVX2 by products of
// 32-bit halves. All paths give the same products. No branch and no address depends on an
// element.
package ntt

import (
	"fmt"
	"math/bits"

	"github.com/tuneinsight/lattigo/v5/ring"

	"ringwave/crypto/vector"
	"ringwave/phy/zq"
)

// Ring is R_q with what transforms need. It is safe for use by several goroutines.
type Ring struct {
	n      int
	fields []field
}

// Transform is an element of R_q as its transform. The order of its residues, all below
// their primes, is the path's own: those of one Ring are of use to it alone.
type Transform struct{ residues zq.Vector }

// Memory returns where the residues lie: for who fills it with an element in coefficient
// form, to be transformed in place, or wipes it.
func (t Transform) Memory() zq.Vector { return t.residues }

// field is the ring modulo one prime.
type field interface {
	// forward takes x, residues in coefficient form below p, to its transform.
	forward(x []uint64)
	// multiply sets z to the product, in coefficient form, of two transforms.
	multiply(z, x, y []uint64)
	// place returns where residue i of a transform in lattigo's order lies.
	place(i int) int
}

// NewRing returns the ring of dimension n, a power of two from 16 to 2^14, modulo the
// product of the primes. If the path lacks something for a prime or for n the next slower
// one serves.
func NewRing(n int, primes []uint64, path vector.Path) (*Ring, error) {
	if n < 1<<minLog || n > 1<<maxLog {
		return nil, fmt.Errorf("building R_q: n is %d: allowed are powers of two from 2^%d to 2^%d", n, minLog, maxLog)
	}
	theirs, err := ring.NewRing(n, primes)
	if err != nil {
		return nil, fmt.Errorf("building R_q: %w", err)
	}
	r := &Ring{n: n}
	for _, s := range theirs.SubRings {
		if bits.Len64(s.Modulus) > zq.MaxPrimeBits {
			return nil, fmt.Errorf("building R_q: prime %d has more than %d bits", s.Modulus, zq.MaxPrimeBits)
		}
		r.fields = append(r.fields, newField(rootsOf(s), path))
	}
	return r, nil
}

// minLog and maxLog are log2 of the least and of the largest n: values grow by 4p a
// stage, and (1 + 4*14) 2^57 is below 2^63.
const minLog, maxLog = 4, 14

// NewTransform makes room for a transform.
func (r *Ring) NewTransform() Transform {
	t := Transform{make(zq.Vector, len(r.fields))}
	backing := make([]uint64, r.n*len(r.fields))
	for j := range t.residues {
		t.residues[j] = backing[j*r.n : (j+1)*r.n : (j+1)*r.n]
	}
	return t
}

// Forward sets t to the transform of x, n residues a prime, each below its prime.
func (r *Ring) Forward(t Transform, x zq.Vector) {
	t.residues.Copy(x)
	r.ForwardInPlace(t)
}

// ForwardInPlace sets t to the transform of what its memory holds, residues in
// coefficient form below their primes.
func (r *Ring) ForwardInPlace(t Transform) {
	for j, f := range r.fields {
		f.forward(t.residues[j])
	}
}

// Multiply sets z, n residues a prime, to the product of x and y in coefficient form. It
// may share the memory of either.
func (r *Ring) Multiply(z zq.Vector, x, y Transform) {
	for j, f := range r.fields {
		f.multiply(z[j][:r.n], x.residues[j], y.residues[j])
	}
}

// Import returns the transform whose residues, in lattigo's order (the values at
// psi^(2 rev(i) + 1), psi the root of unity and rev the reversal of log2 n bits), are
// given.
func (r *Ring) Import(residues zq.Vector) Transform {
	t := r.NewTransform()
	for j, f := range r.fields {
		for i, x := range residues[j] {
			t.residues[j][f.place(i)] = x
		}
	}
	return t
}

// roots are the powers of psi, in reversed order of bits, and those of its inverse.
type roots struct {
	p                 uint64
	forward, backward []uint64
	inverseN          uint64
}

// rootsOf takes them out of lattigo's Montgomery form.
func rootsOf(s *ring.SubRing) roots {
	plain := func(x uint64) uint64 { return ring.IMForm(x, s.Modulus, s.MRedConstant) % s.Modulus }
	r := roots{
		p: s.Modulus, inverseN: plain(s.NInv),
		forward: make([]uint64, s.N), backward: make([]uint64, s.N),
	}
	for i := range r.forward {
		r.forward[i], r.backward[i] = plain(s.RootsForward[i]), plain(s.RootsBackward[i])
	}
	return r
}

// mulMod returns a b mod p, a, b < p. It is for tables.
func mulMod(a, b, p uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, p)
}

// shoup returns floor(2^beta w/p), w < p, beta 64 or 52.
func shoup(w, p uint64, beta uint) uint64 {
	q, _ := bits.Div64(w>>(64-beta), w<<beta, p)
	return q
}

// inverseWord returns p^-1 mod 2^64, p odd.
func inverseWord(p uint64) uint64 {
	x := p // right in 3 bits, and in twice as many after each step
	for range 5 {
		x *= 2 - p*x
	}
	return x
}
