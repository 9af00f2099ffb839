package sampler

import (
	"fmt"
	"math"
	"math/bits"
)

// Int128 is an integer in [-2^127, 2^127): Hi 2^64 + Lo, in two's complement.
// Its methods are constant time but for Float64.
type Int128 struct {
	Hi int64
	Lo uint64
}

// Int128From returns x as an Int128.
func Int128From(x int64) Int128 { return Int128{Hi: x >> 63, Lo: uint64(x)} }

// Add returns x + y modulo 2^128.
func (x Int128) Add(y Int128) Int128 {
	lo, carry := bits.Add64(x.Lo, y.Lo, 0)
	hi, _ := bits.Add64(uint64(x.Hi), uint64(y.Hi), carry)
	return Int128{int64(hi), lo}
}

// Neg returns -x modulo 2^128.
func (x Int128) Neg() Int128 {
	lo, borrow := bits.Sub64(0, x.Lo, 0)
	hi, _ := bits.Sub64(0, uint64(x.Hi), borrow)
	return Int128{int64(hi), lo}
}

// Lsh returns x 2^k modulo 2^128. k is not a secret.
func (x Int128) Lsh(k uint) Int128 {
	if k >= 64 {
		return Int128{Hi: int64(x.Lo << (k - 64))}
	}
	// For k = 0 the shift by 64 gives 0, as Go defines it.
	return Int128{Hi: x.Hi<<k | int64(x.Lo>>(64-k)), Lo: x.Lo << k}
}

// Float64 returns x as a float64, with a relative error below 2^-51. Go's
// conversion branches on the top bit of Lo: it is for statistics, not for
// secrets.
func (x Int128) Float64() float64 {
	// The absolute value first: Hi and Lo of a small negative x would cancel.
	mask := uint64(x.Hi >> 63)
	lo, carry := bits.Add64(x.Lo^mask, mask&1, 0)
	hi := uint64(x.Hi) ^ mask + carry
	abs := math.FMA(float64(hi), 1<<64, float64(lo))
	return math.Copysign(abs, float64(x.Hi))
}

// Reducer takes 128-bit integers to their residues modulo p, by Barrett's
// method.
type Reducer struct {
	p        uint64
	uHi, uLo uint64 // floor(2^128/p)
	offset   uint64 // p - (2^127 mod p), in (0, p]
	u        uint64 // floor(2^64/p)
	least    uint64 // the least multiple of p from 2^62 on, below 2^63
}

// NewReducer returns the Reducer for p, 2 <= p < 2^62.
func NewReducer(p uint64) (Reducer, error) {
	if p < 2 || p >= 1<<62 {
		return Reducer{}, fmt.Errorf("sampler: modulus %d outside [2, 2^62)", p)
	}
	r := Reducer{p: p}
	var rem uint64
	r.uHi, rem = bits.Div64(1, 0, p)
	r.uLo, _ = bits.Div64(rem, 0, p)
	_, half := bits.Div64((1<<63)%p, 0, p)
	r.offset = p - half
	r.u, _ = bits.Div64(1, 0, p)
	r.least = (1<<62 + p - 1) / p * p
	return r, nil
}

// Modulus returns p.
func (r *Reducer) Modulus() uint64 { return r.p }

// Reduce returns the residue of x in [0, p), for every x, in constant time.
func (r *Reducer) Reduce(x Int128) uint64 {
	// y = x + 2^127 is in [0, 2^128): its residue, less that of 2^127.
	y := r.reduceUnsigned(uint64(x.Hi)^1<<63, x.Lo)
	return subtractOnce(y+r.offset, r.p) // y + offset < 2p
}

// ReduceWord is Reduce of |x| < 2^62.
func (r *Reducer) ReduceWord(x int64) uint64 {
	// y > 0 is below 2^64, and q = floor(y u / 2^64) is floor(y/p) or one less.
	y := uint64(x) + r.least
	q, _ := bits.Mul64(y, r.u)
	return subtractOnce(y-q*r.p, r.p)
}

// reduceUnsigned returns the residue in [0, p) of y = hi 2^64 + lo, any of 128 bits.
func (r *Reducer) reduceUnsigned(hi, lo uint64) uint64 {
	// q = floor(y u / 2^128) with u = floor(2^128/p) > 2^128/p - 1, so that
	// y/p - 1 < y u / 2^128 <= y/p, and q is floor(y/p) or one less. Only the
	// low word of q is needed: y - q p < 2p < 2^64.
	carry0, _ := bits.Mul64(lo, r.uLo)
	aHi, aLo := bits.Mul64(lo, r.uHi)
	bHi, bLo := bits.Mul64(hi, r.uLo)
	mid, c1 := bits.Add64(aLo, bLo, 0)
	_, c2 := bits.Add64(mid, carry0, 0)
	q := hi*r.uHi + aHi + bHi + c1 + c2
	return subtractOnce(lo-q*r.p, r.p)
}

// subtractOnce takes x in [0, 2p) to [0, p), p < 2^62.
func subtractOnce(x, p uint64) uint64 {
	d := x - p // negative, and its top bit set, exactly if x < p
	return d + p&-(d>>63)
}
