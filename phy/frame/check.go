package frame

import (
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/phy/zq"
)

// SoundnessBits is how surely the checks of one block, together, find it wrong: a
// block that they must refuse passes with probability 2^-40 at most.
const SoundnessBits = 40

// Check is a linear message authentication code over Z_q. For a block x of K
// coefficients, sent behind the device's pattern p of S symbols, its C check
// coefficients are
//
//	chk_c = sum_k r_ck x_k + sum_s z_cs p_s mod q,  c = 1 ... C.
//
// Devices and server share the weights r and z, and nobody else knows them. They
// are drawn anew for every frame and block (Weights), so that whatever was
// overheard under other weights is of no use. Every integer superposition
// satisfies the equation of its parts, whatever the gains H_i, which nobody needs
// to know: with y = sum H_i x_i and P = sum H_i p_i the received check coefficient
// must be sum r_k y_k + sum z_s P_s. The pattern is in the sum so that a payload
// that was scaled otherwise than its pattern is refused, too.
//
// # Without ring noise
//
// r and z are uniform in Z_q and equality is asked for. Let a received block
// differ from an integer superposition by d in its coefficients, delta in its
// pattern and e in its checks, chosen without knowledge of r and z. It passes if
// e_c = sum r_ck d_k + sum z_cs delta_s modulo every prime of q and for every c.
// Modulo a prime p that divides not all of d and delta, the right side is uniform
// and independent for each c: the block passes with probability p^-C at most. An
// error may be a multiple of all primes but the smallest, so C is the least with
// p_min^C >= 2^40.
//
// # With ring noise
//
// With noise of standard deviation sigma_w on every coefficient, the checks
// included, r_ck is 0 or 1, z as above, and the two sides may differ by the
// tolerance T/2, T = 12 sigma_w sqrt(K+1). A right block, whose checks have noise of
// variance sigma_w^2 (1 + K/2) in the mean, stays 6 to 8.5 deviations below.
//
// An error d with a coefficient |d_k| > T (centred modulo q), and any e and delta,
// passes one check with probability 1/2 at most: whatever the other weights are,
// the difference between the two sides is some u if r_ck = 0 and u - d_k if r_ck =
// 1, and these are further apart than T, so that not both are within T/2 of 0. No
// shape of d is an exception: d_k = q a/b or a multiple of a prime is as far from 0
// as it is. And no wider range of weights does better: for d_k near q/2 every even
// r_ck returns almost nothing. The r_ck are independent: C = 40. Errors within T are
// not told from noise and count in its budget.
//
// Where gains are no integers, e depends on r: a device's check coefficient is
// reduced modulo q before it is scaled. But sum_s z_s p_s makes each device's check
// uniform in Z_q whatever r and x are, so that a gain off an integer by a/b leaves a
// residual of a multiple of q/b that is no constant.
//
// # Use
//
// A Check is for one goroutine, but Sums may be called by several at once
// between two calls of Draw.
type Check struct {
	mod       *zq.Modulus
	length    int
	checks    int
	tolerance float64 // T/2; 0 where equality is asked for

	r [][]uint64 // r[c*L+j][k]: check c modulo prime j; nil with noise
	// bits holds the weights 0 and 1 of four coefficients at a time, one nibble a
	// check: byte c/2 of the group, its low half first. nil without noise.
	bits []byte
	z    [][]uint64 // z[c*L+j][s]

	sum     zq.Vector
	pattern zq.Vector // residues of a received pattern
}

// NewCheck makes the check of blocks of length coefficients behind patterns of the
// given number of symbols, received with ring noise of the given standard deviation
// (0 for none). It is an error if the noise leaves nothing to tell right from wrong
// by.
func NewCheck(mod *zq.Modulus, length, symbols int, noiseStd float64) (*Check, error) {
	if !(noiseStd > 0) {
		return newExactCheck(mod, length, symbols, exactChecks(mod)), nil
	}
	c := newCheck(mod, length, symbols, SoundnessBits)
	c.tolerance = 6 * noiseStd * math.Sqrt(float64(length)+1)
	// Two values further apart than T must not both be within T/2 of 0 modulo q.
	if !(math.Log2(4*c.tolerance) < mod.Log2()) {
		return nil, fmt.Errorf("ring noise of deviation %v over blocks of %d coefficients: an error that a linear check does not tell from noise may reach q/2 = 2^%.0f, so that it would pass anything", noiseStd, length, mod.Log2()-1)
	}
	c.bits = make([]byte, (length+coefficients4-1)/coefficients4*c.checks/2)
	return c, nil
}

// newExactCheck makes a check without ring noise.
func newExactCheck(mod *zq.Modulus, length, symbols, checks int) *Check {
	c := newCheck(mod, length, symbols, checks)
	c.r = rows(checks*len(mod.Primes()), length)
	return c
}

// newCheck makes what all checks have.
func newCheck(mod *zq.Modulus, length, symbols, checks int) *Check {
	return &Check{
		mod: mod, length: length, checks: checks, z: rows(checks*len(mod.Primes()), symbols),
		sum: mod.NewVector(checks), pattern: mod.NewVector(symbols),
	}
}

// exactChecks returns the least C with p_min^C >= 2^40.
func exactChecks(mod *zq.Modulus) int {
	least := math.Inf(1)
	for _, p := range mod.Primes() {
		least = math.Min(least, math.Log2(float64(p)))
	}
	return int(math.Ceil(SoundnessBits / least))
}

func rows(n, length int) [][]uint64 {
	r := make([][]uint64, n)
	for i := range r {
		r[i] = make([]uint64, length)
	}
	return r
}

// Len returns C, the number of check coefficients that a block carries.
func (c *Check) Len() int { return c.checks }

// Draw takes the weights from a stream: see Weights.
func (c *Check) Draw(stream *keystream.Stream) {
	stream.Fill(c.bits)
	c.drawUniform(c.r, stream)
	c.drawUniform(c.z, stream)
}

// drawUniform draws rows of residues, check by check and prime by prime.
func (c *Check) drawUniform(rows [][]uint64, stream *keystream.Stream) {
	primes := c.mod.Primes()
	for i, row := range rows {
		stream.Uniform(row, primes[i%len(primes)])
	}
}

// Sums sets chk, of Len coefficients, to the check coefficients of x behind a
// pattern, whose symbols, no more than NewCheck's, are given as residues.
func (c *Check) Sums(chk, x, pattern zq.Vector) {
	primes := c.mod.Primes()
	for j, p := range primes {
		if c.bits != nil {
			c.subsetSums(chk[j], x[j], p)
		}
		for i := range c.checks {
			row := i*len(primes) + j
			if c.bits == nil {
				chk[j][i] = c.mod.Dot(j, c.r[row], x[j])
			}
			s := chk[j][i] + c.mod.Dot(j, c.z[row][:len(pattern[j])], pattern[j])
			chk[j][i] = min(s, s-p)
		}
	}
}

const (
	// coefficients4 is the number of coefficients of which all 16 sums of subsets are
	// computed once, for each check to take one: with 40 checks that is a third of
	// the additions.
	coefficients4 = 4
	// unreduced is how many such sums, below p < 2^57 each, are added before a
	// reduction: 64 of them and a residue are below 2^64.
	unreduced = 64
)

// subsetSums sets sum[c] = sum_k r_ck x_k mod p for weights 0 and 1. Which entries of
// the table it reads depends on the weights, which all who run it know.
func (c *Check) subsetSums(sum, x []uint64, p uint64) {
	clear(sum)
	bits := c.bits
	for g := 0; len(x) > 0; g++ {
		four := x[:min(coefficients4, len(x))]
		x = x[len(four):]
		var table [1 << coefficients4]uint64
		for k, v := range four {
			for i := range 1 << k {
				t := table[i] + v
				table[1<<k+i] = min(t, t-p)
			}
		}
		for i := len(four); i < coefficients4; i++ { // there is none: it adds 0
			copy(table[1<<i:2<<i], table[:1<<i])
		}
		for i, b := range bits[:c.checks/2] {
			sum[2*i] += table[b&15]
			sum[2*i+1] += table[b>>4]
		}
		bits = bits[c.checks/2:]
		if g%unreduced == unreduced-1 || len(x) == 0 {
			for i := range sum {
				sum[i] %= p
			}
		}
	}
}

// take lays out a received pattern as residues.
func (c *Check) take(pattern []int64) {
	c.pattern.Clear() // of a group whose patterns are shorter than another's
	for s, v := range pattern[:min(len(pattern), c.pattern.Len())] {
		c.mod.SetInt(c.pattern, s, v)
	}
}

// Verify reports whether the received block y, its pattern and its check
// coefficients belong together.
func (c *Check) Verify(y zq.Vector, pattern []int64, chk zq.Vector) bool {
	c.take(pattern)
	c.Sums(c.sum, y, c.pattern)
	if c.tolerance == 0 {
		return c.sum.Equal(chk)
	}
	for j, p := range c.mod.Primes() {
		for i, s := range c.sum[j] {
			d := chk[j][i] - s
			c.sum[j][i] = min(d, d+p)
		}
	}
	for i := range c.checks {
		if math.Abs(c.mod.Centred(c.sum, i).Float64()) > c.tolerance {
			return false
		}
	}
	return true
}
