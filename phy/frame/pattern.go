// Package frame adds to a payload of ring elements what lets a receiver judge a
// superposition without any channel state: a pattern per device that shows
// whether the gains stayed the same, and linear check coefficients that survive
// any integer superposition and nothing else. Both come from a secret of devices and
// server: who does not have it cannot add to a frame unnoticed.
//
// It takes in vectors over Z_q and gives check coefficients and verdicts. It
// knows nothing of keys, of waveforms, or of the gains.
package frame

import (
	"math/bits"

	"ringwave/crypto/keystream"
	"ringwave/phy/zq"
)

// patternWord is the granularity of a pattern's length in symbols.
const patternWord = 64

// Patterns holds one pseudo-random +-1 sequence a device. The N sequences
// are linearly independent, so that the received sum of H_i times pattern i
// changes whenever any integer gain H_i does.
type Patterns struct {
	devices int
	symbols int
	sign    [][]uint64 // sign[i]: bit t set where device i sends -1 at symbol t
}

// NewPatterns draws patterns for the given number of devices, at least 1, from a
// seed that devices and server share: 64 symbols, or the next multiple of 64 that is no less than the
// number of devices. They are redrawn until they have full column rank.
func NewPatterns(devices int, seed keystream.Seed) *Patterns {
	words := (devices + patternWord - 1) / patternWord
	p := &Patterns{devices: devices, symbols: words * patternWord}
	stream := seed.Stream()
	for {
		p.sign = make([][]uint64, devices)
		for i := range p.sign {
			p.sign[i] = make([]uint64, words)
			for w := range p.sign[i] {
				p.sign[i][w] = stream.Uint64()
			}
		}
		if independent(p.sign) {
			return p
		}
	}
}

// Symbols returns the length of each pattern.
func (p *Patterns) Symbols() int { return p.symbols }

// Devices returns the number of patterns.
func (p *Patterns) Devices() int { return p.devices }

// Symbol returns what device i sends at symbol t, -1 or +1.
func (p *Patterns) Symbol(i, t int) int64 {
	return 1 - 2*int64(p.sign[i][t/patternWord]>>(t%patternWord)&1)
}

// Residues returns every device's pattern as residues, for Check.Sums.
func (p *Patterns) Residues(mod *zq.Modulus) []zq.Vector {
	v := make([]zq.Vector, p.devices)
	for i := range v {
		v[i] = p.Residue(i, mod)
	}
	return v
}

// Residue returns one device's.
func (p *Patterns) Residue(i int, mod *zq.Modulus) zq.Vector {
	v := mod.NewVector(p.symbols)
	for t := range p.symbols {
		mod.SetInt(v, t, p.Symbol(i, t))
	}
	return v
}

// Superpose sets y[t] = sum_i h[i] pattern_i[t] for t below Symbols.
func (p *Patterns) Superpose(y []int64, h []int64) {
	clear(y)
	for i, hi := range h {
		for w, s := range p.sign[i] {
			block := y[w*patternWord : (w+1)*patternWord]
			for t := range block {
				mask := -int64(s >> t & 1)
				block[t] += (hi ^ mask) - mask
			}
		}
	}
}

// independent reports whether +-1 sequences given by their signs are certainly
// linearly independent over the rationals.
//
// Flipping whole sequences and whole symbols keeps the rank, so let the first
// sequence and every sequence's first symbol be +1. Subtracting the first
// sequence from the others then leaves -2 times a 0/1 matrix B, and the rank is
// one more than B's, which over the rationals is at least its rank over GF(2).
// So the test may reject patterns that would do, and never takes ones that do
// not.
func independent(sign [][]uint64) bool {
	first := sign[0]
	rows := make([][]uint64, 0, len(sign)-1)
	for _, s := range sign[1:] {
		row := make([]uint64, len(s))
		flip := -((s[0] ^ first[0]) & 1)
		for w := range row {
			row[w] = s[w] ^ first[w] ^ flip
		}
		rows = append(rows, row)
	}
	return fullRankGF2(rows)
}

// fullRankGF2 reports whether the rows are independent over GF(2). It overwrites
// them.
func fullRankGF2(rows [][]uint64) bool {
	for r, row := range rows {
		w, bit, ok := leadingBit(row)
		if !ok {
			return false
		}
		for _, other := range rows[r+1:] {
			if other[w]>>bit&1 == 0 {
				continue
			}
			for i := range other {
				other[i] ^= row[i]
			}
		}
	}
	return true
}

func leadingBit(row []uint64) (word, bit int, ok bool) {
	for w, x := range row {
		if x != 0 {
			return w, bits.TrailingZeros64(x), true
		}
	}
	return 0, 0, false
}
