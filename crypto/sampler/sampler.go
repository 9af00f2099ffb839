// Package sampler draws the secrets and the noise of lattice cryptography.
//
// It takes in a keystream (crypto/keystream) and gives small integers (Distribution)
// and wide Gaussian noise as 128-bit integers (Flood). It knows nothing of the scheme:
// what is sampled, how often and why is its caller's affair.
//
// All sampling is constant time: no branch and no address depends on a sampled
// value. The only branches taken on random bits are those that throw bits away
// (Ternary); what is kept is independent of them. Nothing is allocated, and the stack,
// on which random bits are buffered, is overwritten before return (package secret).
// The keystream still holds its own copy: see Stream.Wipe.
package sampler

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"

	"ringwave/crypto/keystream"
	"ringwave/crypto/secret"
	"ringwave/crypto/vector"
)

// Distribution names a distribution of small integers. It is a plain value, to
// be written into parameter sets and compared. The zero value names none, so
// that a forgotten field is found out and not sampled as no noise at all.
type Distribution uint8

const (
	_ Distribution = iota

	// Zero is always 0 and reads no keystream: for tests of one noise term
	// among several.
	Zero

	// Ternary is uniform on {-1, 0, 1}: variance 2/3, exactly.
	Ternary

	// Signs is uniform on {-1, 1}: variance 1, exactly.
	Signs

	// Binomial is the centred binomial distribution with eta = 21, the number
	// of ones among 42 fair bits less 21 (the choice of SEAL; the construction
	// is that of FIPS 203, Algorithm 8): values in [-21, 21], variance 10.5,
	// exactly.
	Binomial

	// Gaussian is the discrete Gaussian over the integers with sigma = 3.2 (P(x)
	// proportional to exp(-x^2/2 sigma^2)), by inversion of a cumulative table
	// in units of 2^-63, read from end to end for every sample. Values in
	// [-29, 29], variance 10.24 but for a part in 2^63; the statistical distance
	// to the ideal distribution is below 2^-60.7 a sample.
	Gaussian
)

// String returns the name as it is printed in parameter sets.
func (d Distribution) String() string {
	switch d {
	case Zero:
		return "zero"
	case Ternary:
		return "ternary"
	case Signs:
		return "signs"
	case Binomial:
		return "binomial(eta=21)"
	case Gaussian:
		return "gaussian(sigma=3.2)"
	}
	return fmt.Sprintf("Distribution(%d)", uint8(d))
}

// Variance returns the variance of what Sample draws, exactly but for the rounding
// of float64: for Gaussian that of the table in use.
func (d Distribution) Variance() float64 {
	switch d {
	case Zero:
		return 0
	case Ternary:
		return 2.0 / 3
	case Signs:
		return 1
	case Binomial:
		return 2 * eta / 4.0
	case Gaussian:
		return tableVariance(gaussianTail[:])
	}
	panic("sampler: no distribution chosen")
}

// Bound returns the largest absolute value that Sample can draw.
func (d Distribution) Bound() int64 {
	switch d {
	case Zero:
		return 0
	case Ternary, Signs:
		return 1
	case Binomial:
		return eta
	case Gaussian:
		return int64(len(gaussianTail))
	}
	panic("sampler: no distribution chosen")
}

// Sample fills dst with independent samples.
func (d Distribution) Sample(dst []int8, s *keystream.Stream) {
	secret.Do(func() { d.sample(dst, s) })
}

func (d Distribution) sample(dst []int8, s *keystream.Stream) {
	switch d {
	case Zero:
		clear(dst)
	case Ternary:
		sampleTernary(dst, s)
	case Signs:
		sampleSigns(dst, s)
	case Binomial:
		sampleBinomial(dst, s)
	case Gaussian:
		sampleGaussian(dst, s)
	default:
		panic("sampler: no distribution chosen")
	}
}

// blockSize is how many bytes of keystream are taken at a time. It is a multiple
// of what a group of samples needs: 16 bytes (Binomial), 32 bytes (Gaussian).
const blockSize = 512

// sampleTernary takes five trits from each byte below 3^5 = 243 and drops the
// others, 5 in 100.
func sampleTernary(dst []int8, s *keystream.Stream) {
	path := chosen()
	var block, kept [blockSize + 1]byte
	var samples [5*blockSize + spare]int8
	for len(dst) > 0 {
		random := block[:min((len(dst)+4)/5, blockSize)]
		s.Fill(random)
		count := 0
		for _, b := range random {
			kept[count] = b
			count += int((uint32(b) - 243) >> 31) // 1 if b is below 243
		}
		for k := tritsInVectors(path, &samples, &kept, count); k < count; k++ {
			five := trits(kept[k])
			copy(samples[5*k:], five[:])
		}
		dst = dst[copy(dst, samples[:5*count]):]
	}
	clear(block[:])
	clear(kept[:])
	clear(samples[:])
}

// trits returns the five digits of b < 243 in base 3, first the highest, each less
// one.
func trits(b byte) (x [5]int8) {
	// f = b ceil(2^16/243) is b/243 as a fraction of 2^16, too large by less
	// than 242/2^16. Its digits are the integer parts of 3f, 3 frac(3f), ...:
	// the last asks for the floor of b plus an excess of 243 * 242/2^16 < 1, so
	// that the excess changes no digit.
	f := uint32(b) * 270
	for i := range x {
		f *= 3
		x[i] = int8(f>>16) - 1
		f &= 1<<16 - 1
	}
	return x
}

func sampleSigns(dst []int8, s *keystream.Stream) {
	var block [blockSize]byte
	for len(dst) > 0 {
		random := block[:min((len(dst)+7)/8, blockSize)]
		s.Fill(random)
		for _, b := range random {
			n := min(len(dst), 8)
			for i := range dst[:n] {
				dst[i] = int8(b>>i&1)<<1 - 1
			}
			dst = dst[n:]
		}
	}
	clear(block[:])
}

const eta = 21

// sampleBinomial takes three samples of 42 bits from each 128.
//
// A centred binomial sample is the number of ones among 21 bits less that among
// 21 others. With the latter inverted, which leaves fair bits fair, it is the
// number of ones among all 42 less 21.
func sampleBinomial(dst []int8, s *keystream.Stream) {
	path := chosen()
	var block [blockSize]byte
	var samples [blockSize/16*3 + spare]int8
	for len(dst) > 0 {
		groups := min((len(dst)+2)/3, blockSize/16)
		s.Fill(block[:16*groups])
		done := binomialInVectors(path, &samples, &block, groups)
		for g := done; g < groups; g++ {
			three := binomialOf(block[16*g:])
			copy(samples[3*g:], three[:])
		}
		dst = dst[copy(dst, samples[:3*groups]):]
	}
	clear(block[:])
	clear(samples[:])
}

// spare is how many samples behind the last vectors may overwrite.
const spare = 16

// chosen returns the path of samples.
var chosen = sync.OnceValue(vector.Fastest)

// binomialOf returns three samples of 16 bytes of keystream.
func binomialOf(random []byte) [3]int8 {
	const mask42 = 1<<(2*eta) - 1
	a := binary.LittleEndian.Uint64(random)
	b := binary.LittleEndian.Uint64(random[8:])
	// Bits 43 to 63 of both words, 21 each, make the third sample.
	c := a>>43 | b>>43<<21
	return [3]int8{
		int8(bits.OnesCount64(a&mask42)) - eta,
		int8(bits.OnesCount64(b&mask42)) - eta,
		int8(bits.OnesCount64(c)) - eta,
	}
}
