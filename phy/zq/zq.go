// Package zq holds vectors over Z_q in residue-number form, q = p_1 ... p_L.
//
// It takes in residues and integers and gives sums, integer multiples and
// centred values. A radio channel acts on such vectors as a map of Z-modules
// and on nothing else, so the package knows no polynomials, no transforms and no
// keys: only coefficients.
package zq

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"ringwave/crypto/vector"
)

// MaxPrimeBits bounds the primes of a Modulus, so that 2^14 products of two
// residues fit a 128-bit accumulator.
const MaxPrimeBits = 57

// maxPrimes bounds the number of primes: a value below q then fits 256 bits,
// sign included.
const maxPrimes = 4

// Modulus is an RNS basis: distinct odd primes p_1 ... p_L and what is computed
// from them once. It is safe for use by several goroutines.
type Modulus struct {
	primes  []uint64
	q       *big.Int
	half    [4]uint64   // (q-1)/2
	limbs   [4]uint64   // q
	inv     []uint64    // inv[j] = (p_1 ... p_{j-1})^-1 mod p_j, index from 0
	prod    [][4]uint64 // prod[j] = p_1 ... p_{j-1}
	pow     [][]uint64  // pow[j][i] = p_1 ... p_{i-1} mod p_j
	vectors []vectors
}

// NewModulus makes the modulus of the given primes, in their order. Primality is
// checked.
func NewModulus(primes []uint64) (*Modulus, error) {
	path, err := vector.Chosen()
	if err != nil {
		return nil, err
	}
	return newModulus(primes, path)
}

func newModulus(primes []uint64, path vector.Path) (*Modulus, error) {
	if len(primes) == 0 || len(primes) > maxPrimes {
		return nil, fmt.Errorf("a modulus has 1 to %d primes, not %d", maxPrimes, len(primes))
	}
	m := &Modulus{primes: append([]uint64(nil), primes...), q: big.NewInt(1)}
	for j, p := range primes {
		if p < 3 || bits.Len64(p) > MaxPrimeBits || !new(big.Int).SetUint64(p).ProbablyPrime(20) {
			return nil, fmt.Errorf("prime %d of the modulus is %d: it must be an odd prime of at most %d bits", j+1, p, MaxPrimeBits)
		}
		for _, other := range primes[:j] {
			if other == p {
				return nil, fmt.Errorf("prime %d occurs twice in the modulus", p)
			}
		}
		m.extend(j, p)
		m.vectors = append(m.vectors, newVectors(p, path))
	}
	m.limbs = limbsOf(m.q)
	m.half = limbsOf(new(big.Int).Rsh(m.q, 1))
	return m, nil
}

// extend adds prime j, p, to the constants; m.q is the product of those before.
func (m *Modulus) extend(j int, p uint64) {
	bp := new(big.Int).SetUint64(p)
	m.inv = append(m.inv, 1)
	if j > 0 {
		m.inv[j] = new(big.Int).ModInverse(m.q, bp).Uint64()
	}
	m.prod = append(m.prod, limbsOf(m.q))
	pow := make([]uint64, j)
	before := big.NewInt(1)
	for i := range pow {
		pow[i] = new(big.Int).Mod(before, bp).Uint64()
		before.Mul(before, new(big.Int).SetUint64(m.primes[i]))
	}
	m.pow = append(m.pow, pow)
	m.q = new(big.Int).Mul(m.q, bp)
}

func limbsOf(x *big.Int) (l [4]uint64) {
	var b [32]byte
	x.FillBytes(b[:])
	for i := range l {
		for _, c := range b[24-8*i : 32-8*i] {
			l[i] = l[i]<<8 | uint64(c)
		}
	}
	return l
}

// Primes returns the primes in order. The caller must not change them.
func (m *Modulus) Primes() []uint64 { return m.primes }

// Big returns q. The caller must not change it.
func (m *Modulus) Big() *big.Int { return m.q }

// Bits returns ceil(log2 q), the bits that one coefficient costs on the uplink.
func (m *Modulus) Bits() int { return m.q.BitLen() }

// Log2 returns log2 q.
func (m *Modulus) Log2() float64 {
	f, _ := new(big.Float).SetInt(m.q).Float64()
	return math.Log2(f)
}

// Vector is a vector over Z_q: Vector[j][k] in [0, p_j) is coefficient k modulo
// prime j.
type Vector [][]uint64

// NewVector returns the zero vector of n coefficients.
func (m *Modulus) NewVector(n int) Vector {
	v := make(Vector, len(m.primes))
	backing := make([]uint64, n*len(m.primes))
	for j := range v {
		v[j] = backing[j*n : (j+1)*n : (j+1)*n]
	}
	return v
}

// Len returns the number of coefficients.
func (v Vector) Len() int {
	if len(v) == 0 {
		return 0
	}
	return len(v[0])
}

// Clear sets every coefficient to zero.
func (v Vector) Clear() {
	for _, r := range v {
		clear(r)
	}
}

// Copy copies src, of the same shape, into v.
func (v Vector) Copy(src Vector) {
	for j := range v {
		copy(v[j], src[j])
	}
}

// Equal reports whether v and w are the same vector.
func (v Vector) Equal(w Vector) bool {
	if len(v) != len(w) {
		return false
	}
	for j := range v {
		if len(v[j]) != len(w[j]) {
			return false
		}
		for k := range v[j] {
			if v[j][k] != w[j][k] {
				return false
			}
		}
	}
	return true
}

// ErrNotReduced says that a residue is not below its prime.
var ErrNotReduced = errors.New("a residue is not below its prime")

// Valid checks the shape of v against the modulus and n, and every residue
// against its prime.
func (m *Modulus) Valid(v Vector, n int) error {
	if len(v) != len(m.primes) {
		return fmt.Errorf("a vector has residues for %d primes, the modulus has %d", len(v), len(m.primes))
	}
	for j, p := range m.primes {
		if len(v[j]) != n {
			return fmt.Errorf("a vector has %d coefficients modulo prime %d, expected %d", len(v[j]), j+1, n)
		}
		for _, x := range v[j] {
			if x >= p {
				return fmt.Errorf("%w: %d modulo %d", ErrNotReduced, x, p)
			}
		}
	}
	return nil
}

// AddScaled sets y += h x mod q. The vectors have the same shape.
func (m *Modulus) AddScaled(y Vector, h int64, x Vector) {
	for j, p := range m.primes {
		m.addScaled(y[j], residue(h, p), x[j], j)
	}
}

// AddMultiple sets y += u x mod q for a residue u, a vector of one coefficient.
func (m *Modulus) AddMultiple(y, u, x Vector) {
	for j := range m.primes {
		m.addScaled(y[j], u[j][0], x[j], j)
	}
}

// addScaled sets y += h x mod prime j.
func (m *Modulus) addScaled(y []uint64, h uint64, x []uint64, j int) {
	if h == 0 {
		return
	}
	p := m.primes[j]
	x = x[:len(y)]
	hs, _ := bits.Div64(h, 0, p)
	done := m.vectors[j].addScaled(y, h, hs, x)
	addScaledPortable(y[done:], h, hs, x[done:], p)
}

// residue returns h mod p in [0, p).
func residue(h int64, p uint64) uint64 {
	if h >= 0 {
		return uint64(h) % p
	}
	r := uint64(-h) % p // -h of the least int64 is 2^63 as a uint64
	if r == 0 {
		return 0
	}
	return p - r
}

// Add sets y = a + b mod q. The vectors have the same shape; y may be a or b.
func (m *Modulus) Add(y, a, b Vector) {
	for j, p := range m.primes {
		yj, aj, bj := y[j], a[j][:len(y[j])], b[j][:len(y[j])]
		for k := range yj {
			s := aj[k] + bj[k]
			yj[k] = min(s, s-p)
		}
	}
}

// Halve sets y = 2^-times y mod q.
func (m *Modulus) Halve(y Vector, times uint) {
	for j, p := range m.primes {
		half := uint64(1)
		for range times {
			half = (half + half&1*p) / 2 // half + p < 2^58
		}
		for k, x := range y[j] {
			y[j][k] = mulMod(x, half, p)
		}
	}
}

// AddInt sets y[k] += x mod q for one signed integer.
func (m *Modulus) AddInt(y Vector, k int, x int64) {
	for j, p := range m.primes {
		s := y[j][k] + residue(x, p)
		y[j][k] = min(s, s-p)
	}
}

// SetInt sets y[k] = x mod q for one signed integer.
func (m *Modulus) SetInt(y Vector, k int, x int64) {
	for j, p := range m.primes {
		y[j][k] = residue(x, p)
	}
}

// SetBig sets y[k] = x mod q.
func (m *Modulus) SetBig(y Vector, k int, x *big.Int) {
	var r big.Int
	for j, p := range m.primes {
		y[j][k] = r.Mod(x, new(big.Int).SetUint64(p)).Uint64()
	}
}

// Centred is an integer of absolute value at most (q-1)/2, as sign and
// magnitude.
type Centred struct {
	Negative bool
	Mag      [4]uint64 // little-endian limbs
}

// Centred returns coefficient k of v as the representative of its class nearest
// to zero, by Garner's mixed-radix conversion. Its time depends on the value:
// it is for values that their holder may see, such as M.
func (m *Modulus) Centred(v Vector, k int) Centred {
	var digit [maxPrimes]uint64
	var x [4]uint64
	for j, p := range m.primes {
		acc := uint64(0)
		for i := range j {
			acc = addMod(acc, mulMod(digit[i]%p, m.pow[j][i], p), p)
		}
		digit[j] = mulMod(subMod(v[j][k], acc, p), m.inv[j], p)
		addProduct(&x, m.prod[j], digit[j])
	}
	if !less(m.half, x) {
		return Centred{Mag: x}
	}
	return Centred{Negative: true, Mag: sub(m.limbs, x)}
}

// Float64 returns the nearest float64 up to one rounding of the sum of the limbs.
func (c Centred) Float64() float64 {
	f := 0.0
	for i := 3; i >= 0; i-- {
		f = f*0x1p64 + float64(c.Mag[i])
	}
	if c.Negative {
		return -f
	}
	return f
}

// Low64 returns the integer modulo 2^64.
func (c Centred) Low64() uint64 {
	if c.Negative {
		return -c.Mag[0]
	}
	return c.Mag[0]
}

// Big returns the integer.
func (c Centred) Big() *big.Int {
	x := new(big.Int)
	for i := 3; i >= 0; i-- {
		x.Lsh(x, 64)
		x.Or(x, new(big.Int).SetUint64(c.Mag[i]))
	}
	if c.Negative {
		x.Neg(x)
	}
	return x
}

func mulMod(a, b, p uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, p)
}

func addMod(a, b, p uint64) uint64 {
	s := a + b
	return min(s, s-p)
}

func subMod(a, b, p uint64) uint64 {
	d := a - b
	return min(d, d+p)
}

// addProduct sets x += a d. The sum fits four limbs, as it is below q.
func addProduct(x *[4]uint64, a [4]uint64, d uint64) {
	var carry, c uint64
	for i := range x {
		hi, lo := bits.Mul64(a[i], d)
		lo, c = bits.Add64(lo, carry, 0)
		hi += c
		x[i], c = bits.Add64(x[i], lo, 0)
		carry = hi + c
	}
}

func less(a, b [4]uint64) bool {
	var borrow uint64
	for i := range a {
		_, borrow = bits.Sub64(a[i], b[i], borrow)
	}
	return borrow == 1
}

func sub(a, b [4]uint64) (d [4]uint64) {
	var borrow uint64
	for i := range a {
		d[i], borrow = bits.Sub64(a[i], b[i], borrow)
	}
	return d
}

// Dot returns sum_k r[k] x[k] modulo prime j, for residues modulo it, at most 2^14 of them,
// so that the 128-bit sum of products below 2^114 cannot overflow.
func (m *Modulus) Dot(j int, r, x []uint64) uint64 {
	x = x[:len(r)]
	hi, lo, done := m.vectors[j].dot(r, x)
	var c uint64
	for k, rk := range r[done:] {
		h, l := bits.Mul64(rk, x[done+k])
		lo, c = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, c)
	}
	return bits.Rem64(hi, lo, m.primes[j])
}
