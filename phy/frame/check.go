package frame

import (
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/phy/zq"
)

// SoundnessBits is the number of bits that the checks of one block give
// together: a block that is no integer superposition passes with probability
// 2^-40 at most.
const SoundnessBits = 40

// Check computes and verifies chk = sum_k r_k x_k mod q for a block of K
// coefficients, r public and pseudo-random (physics.md section 4, point 2). Any
// integer superposition of blocks satisfies the same equation as its parts;
// a wrong coefficient breaks it.
//
// Without ring noise r_k is uniform in Z_q and equality is asked for. With ring
// noise of standard deviation sigma_w on every coefficient, the checks included,
// r_k is uniform in [-2^b, 2^b) and |chk - sum r_k y_k| may reach
// 6 2^b sigma_w sqrt(K+1): then a single error passes with probability 2^-b or
// (tolerance / (q/2)), whichever is larger, and b is what balances the two.
//
// A Check is for one goroutine, but Sums may be called by several at once
// between two calls of Draw.
type Check struct {
	mod       *zq.Modulus
	length    int
	noiseStd  float64
	checks    int
	weight    uint       // b; 0 where r is uniform in Z_q
	tolerance float64    // 0 where equality is asked for
	r         [][]uint64 // r[c*L+j][k]: check c modulo prime j
	stream    *keystream.Stream
	sum       zq.Vector
}

// NewCheck makes the check of blocks of length coefficients received with ring
// noise of the given standard deviation (0 for none). The seed is public. It is
// an error if the noise leaves a check less than a bit to tell right from wrong.
func NewCheck(mod *zq.Modulus, length int, noiseStd float64, seed keystream.Seed) (*Check, error) {
	c := &Check{mod: mod, length: length, noiseStd: noiseStd, stream: seed.Stream()}
	bitsEach := mod.Log2()
	if noiseStd > 0 {
		spread := math.Log2(12 * noiseStd * math.Sqrt(float64(length)+1))
		b := math.Max(1, math.Floor((mod.Log2()-spread)/2))
		c.weight = uint(math.Min(b, 40))
		c.tolerance = 6 * math.Ldexp(noiseStd, int(c.weight)) * math.Sqrt(float64(length)+1)
		bitsEach = math.Min(float64(c.weight), mod.Log2()-spread-float64(c.weight))
		if !(bitsEach >= 1) {
			return nil, fmt.Errorf("ring noise of deviation %v over blocks of %d coefficients: the tolerance of a linear check reaches q/2 = 2^%.0f, so that it would pass anything", noiseStd, length, mod.Log2()-1)
		}
	}
	c.checks = int(math.Ceil(SoundnessBits / bitsEach))
	c.r = make([][]uint64, c.checks*len(mod.Primes()))
	for i := range c.r {
		c.r[i] = make([]uint64, length)
	}
	c.sum = mod.NewVector(c.checks)
	return c, nil
}

// Len gives the number of check coefficients that a block carries.
func (c *Check) Len() int { return c.checks }

// Draw takes the weights r of the given round and attempt.
func (c *Check) Draw(round, attempt uint32) {
	c.stream.Start(round, attempt)
	primes := c.mod.Primes()
	for i := range c.checks {
		rows := c.r[i*len(primes) : (i+1)*len(primes)]
		if c.weight == 0 {
			for j, p := range primes {
				sampler.Uniform(rows[j], p, c.stream)
			}
			continue
		}
		c.drawSmall(rows, primes)
	}
}

// drawSmall draws r_k uniform in [-2^b, 2^b) as residues modulo every prime.
func (c *Check) drawSmall(rows [][]uint64, primes []uint64) {
	for k := range rows[0] {
		x := int64(c.stream.Uint64()) >> (63 - c.weight)
		for j, p := range primes {
			r := x % int64(p)
			rows[j][k] = uint64(r + r>>63&int64(p))
		}
	}
}

// Sums sets chk, of Len coefficients, to the check coefficients of x.
func (c *Check) Sums(chk, x zq.Vector) {
	primes := c.mod.Primes()
	for i := range c.checks {
		for j, p := range primes {
			chk[j][i] = zq.Dot(c.r[i*len(primes)+j], x[j], p)
		}
	}
}

// Verify tells whether the received block y and its received check
// coefficients belong together.
func (c *Check) Verify(y, chk zq.Vector) bool {
	c.Sums(c.sum, y)
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
