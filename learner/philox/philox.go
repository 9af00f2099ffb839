// Package philox gives random words that programs in other languages can make, too.
//
// It takes in a key and gives the words of Philox4x64-10 (J. Salmon et al., "Parallel Random
// Numbers: As Easy as 1, 2, 3", 2011) in the order in which NumPy's random.Philox(key=key)
// .random_raw() has them. It knows nothing of what they are for. They are for nothing secret:
// the generator is no cipher.
package philox

import "math/bits"

// Generator is the state before the next word.
type Generator struct {
	key     uint64
	counter uint64 // of the block that is at hand; the other three words of the paper's counter stay 0
	block   [4]uint64
	next    int // of the block
}

// New returns the generator of a key, the low word of two of which the other is 0.
func New(key uint64) *Generator { return &Generator{key: key, next: 4} }

// Uint64 returns the next word. There are 2^66 of them; no more than 2^64 are meant to be used.
func (g *Generator) Uint64() uint64 {
	if g.next == len(g.block) {
		g.counter++ // before the first block: NumPy's counter is 1 there
		g.block, g.next = block([4]uint64{g.counter}, [2]uint64{g.key}), 0
	}
	g.next++
	return g.block[g.next-1]
}

// block returns the four words of a counter, after ten rounds.
func block(c [4]uint64, key [2]uint64) [4]uint64 {
	const (
		multiplier0, multiplier1 = 0xD2E7470EE14C6C93, 0xCA5A826395121157
		weyl0, weyl1             = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
		rounds                   = 10
	)
	for range rounds {
		high0, low0 := bits.Mul64(multiplier0, c[0])
		high1, low1 := bits.Mul64(multiplier1, c[2])
		c = [4]uint64{high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0}
		key[0] += weyl0
		key[1] += weyl1
	}
	return c
}
