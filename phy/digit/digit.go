// Package digit writes elements of Z_q as balanced base-B digits and reads
// superposed digits back (phy/README.md, section 2).
//
// It takes in vectors over Z_q and gives digits in {-(B-1)/2 ... (B-1)/2}, B odd;
// it takes in integers y_l = sum_i H_i d_{i,l}, whatever the integer gains, and
// gives the superposed element sum_l B^l y_l mod q. That is carry-free and exact.
// It knows nothing of symbols, of noise or of gains.
package digit

import (
	"fmt"
	"math/big"
	"math/bits"

	"ringwave/phy/zq"
)

// The bases that a symbol can carry.
const (
	MinBase = 3
	MaxBase = 15
)

// MaxSuperposed bounds |y_l|: the largest superposed digit that Join takes.
const MaxSuperposed = 1 << 24

// Codec converts between Z_q and digits to one base. It is read-only and safe
// for use by several goroutines.
type Codec struct {
	mod    *zq.Modulus
	base   int
	digits int // L

	// Split works on x + (B^L-1)/2, whose plain digits are those of x plus
	// (B-1)/2. A word is the largest power of B below 2^64 with 4 chunks in it; a
	// chunk's digits come from a table.
	offset      [5]uint64 // (B^L-1)/2
	chunkDigits int
	chunkBase   uint64 // B^chunkDigits, the table's length
	wordBase    uint64 // chunkBase^4
	table       []int8 // digits of 0 .. chunkBase-1, lowest first

	// Join sums joinDigits digits in an int64 before it reduces.
	joinDigits int
	power      [][]uint64 // power[c][j] = B^(c joinDigits) mod p_j
}

// New makes the codec of an odd base from 3 to 15.
func New(mod *zq.Modulus, base int) (*Codec, error) {
	if base < MinBase || base > MaxBase || base%2 == 0 {
		return nil, fmt.Errorf("the digits' base is %d: it must be odd, from %d to %d", base, MinBase, MaxBase)
	}
	c := &Codec{mod: mod, base: base}
	bound, b := big.NewInt(1), big.NewInt(int64(base))
	for bound.Cmp(mod.Big()) < 0 {
		bound.Mul(bound, b)
		c.digits++
	}
	half := new(big.Int).Rsh(bound, 1) // B^L is odd: (B^L-1)/2
	for i := range c.offset {
		c.offset[i] = new(big.Int).Rsh(half, uint(64*i)).Uint64()
	}
	c.makeTable()
	c.makePowers()
	return c, nil
}

// makeTable fills the digits of every chunk of at most 1024 values.
func (c *Codec) makeTable() {
	c.chunkBase = 1
	for c.chunkBase*uint64(c.base) <= 1024 {
		c.chunkBase *= uint64(c.base)
		c.chunkDigits++
	}
	c.wordBase = c.chunkBase * c.chunkBase * c.chunkBase * c.chunkBase
	c.table = make([]int8, c.chunkBase*uint64(c.chunkDigits))
	half := (c.base - 1) / 2
	for x := range int(c.chunkBase) {
		rest := x
		for l := range c.chunkDigits {
			c.table[x*c.chunkDigits+l] = int8(rest%c.base - half)
			rest /= c.base
		}
	}
}

// makePowers computes the powers of B that Join needs. A sum of m digits below
// 2^24 weighted by powers of B stays below 2^24 B^m: below 2^62 for B^m <= 2^37.
func (c *Codec) makePowers() {
	step := uint64(1)
	for step*uint64(c.base) <= 1<<37 {
		step *= uint64(c.base)
		c.joinDigits++
	}
	power := make([]uint64, len(c.mod.Primes()))
	for j := range power {
		power[j] = 1
	}
	for l := 0; l < c.digits; l += c.joinDigits {
		c.power = append(c.power, power)
		next := make([]uint64, len(power))
		for j, p := range c.mod.Primes() {
			next[j] = mulMod(power[j], step%p, p)
		}
		power = next
	}
}

// Digits returns L = ceil(log_B q), the digits of one coefficient.
func (c *Codec) Digits() int { return c.digits }

// Base returns B.
func (c *Codec) Base() int { return c.base }

// Split writes the digits of every coefficient of v: digit l of coefficient k,
// lowest first, to dst[k L + l].
func (c *Codec) Split(dst []int8, v zq.Vector) {
	for k := range v.Len() {
		c.splitOne(dst[k*c.digits:(k+1)*c.digits], c.mod.Centred(v, k))
	}
}

func (c *Codec) splitOne(dst []int8, x zq.Centred) {
	sum := c.shifted(x)
	for len(dst) > 0 {
		rest := divide(&sum, c.wordBase)
		for part := 0; part < 4 && len(dst) > 0; part++ {
			chunk := rest % c.chunkBase
			rest /= c.chunkBase
			digits := c.table[int(chunk)*c.chunkDigits:][:c.chunkDigits]
			dst = dst[copy(dst, digits):]
		}
	}
}

// shifted returns x + (B^L-1)/2, which is in [0, B^L).
func (c *Codec) shifted(x zq.Centred) [5]uint64 {
	sum := c.offset
	var carry uint64
	if x.Negative {
		for i := range 4 {
			sum[i], carry = bits.Sub64(sum[i], x.Mag[i], carry)
		}
		sum[4] -= carry
		return sum
	}
	for i := range 4 {
		sum[i], carry = bits.Add64(sum[i], x.Mag[i], carry)
	}
	sum[4] += carry
	return sum
}

// divide sets x = floor(x/d) and gives the remainder.
func divide(x *[5]uint64, d uint64) uint64 {
	rest := uint64(0)
	for i := 4; i >= 0; i-- {
		if x[i] == 0 && rest == 0 {
			continue
		}
		x[i], rest = bits.Div64(rest, x[i], d)
	}
	return rest
}

// Join sets v to the elements whose superposed digits are y, laid out as Split
// does: coefficient k is sum_l B^l y[k L + l] mod q. Every |y| is at most
// MaxSuperposed.
func (c *Codec) Join(v zq.Vector, y []int32) {
	for k := range v.Len() {
		c.joinOne(v, k, y[k*c.digits:(k+1)*c.digits])
	}
}

func (c *Codec) joinOne(v zq.Vector, k int, y []int32) {
	for j := range v {
		v[j][k] = 0
	}
	for part, power := range c.power {
		group := y[part*c.joinDigits : min((part+1)*c.joinDigits, len(y))]
		sum := int64(0)
		for l := len(group) - 1; l >= 0; l-- {
			sum = sum*int64(c.base) + int64(group[l])
		}
		for j, p := range c.mod.Primes() {
			s := sum % int64(p)
			s += s >> 63 & int64(p)
			r := v[j][k] + mulMod(uint64(s), power[j], p)
			v[j][k] = min(r, r-p)
		}
	}
}

func mulMod(a, b, p uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, p)
}
