package sampler

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"ringwave/crypto/keystream"
	"ringwave/crypto/vector"
)

// A tail table holds P(|x| >= k), k = 1, 2, ..., of a symmetric distribution over
// the integers, in units of 2^-64 and rounded to even numbers, that is to 2^-63.
// It ends where P(|x| >= k) rounds to 0. The distribution that it stands for is
// the one with these probabilities exactly.

// magnitudes draws four absolute values from a tail table, one for each uniform
// word: the number of entries t with u + t >= 2^64, which is at least k with
// probability tail[k-1]/2^64, for the entries fall. The table is read from end to
// end whatever the words are. As its entries are even, bit 0 of a word has no
// influence and stays free for the sign.
//
// Four words at once hide the latency of each sum of carries behind the others.
func magnitudes(tail []uint64, u *[4]uint64) (m [4]uint64) {
	u0, u1, u2, u3 := u[0], u[1], u[2], u[3]
	var m0, m1, m2, m3 uint64
	for _, t := range tail {
		_, c := bits.Add64(u0, t, 0)
		m0, _ = bits.Add64(m0, 0, c)
		_, c = bits.Add64(u1, t, 0)
		m1, _ = bits.Add64(m1, 0, c)
		_, c = bits.Add64(u2, t, 0)
		m2, _ = bits.Add64(m2, 0, c)
		_, c = bits.Add64(u3, t, 0)
		m3, _ = bits.Add64(m3, 0, c)
	}
	return [4]uint64{m0, m1, m2, m3}
}

// signed negates m where bit 0 of u is set.
func signed(m, u uint64) int64 {
	mask := -(u & 1)
	return int64(m^mask) - int64(mask)
}

// fromTable draws four samples from a tail table with 32 bytes of keystream.
func fromTable(tail []uint64, random []byte) (x [4]int64) {
	_ = random[31]
	var u [4]uint64
	for i := range u {
		u[i] = binary.LittleEndian.Uint64(random[8*i:])
	}
	m := magnitudes(tail, &u)
	for i := range x {
		x[i] = signed(m[i], u[i])
	}
	return x
}

// tableVariance returns the variance of the distribution of a tail table:
// E x^2 = sum over k >= 1 of (k^2 - (k-1)^2) P(|x| >= k). Summed from the
// smallest term, with a relative error below 2^-50.
func tableVariance(tail []uint64) float64 {
	var v float64
	for i := len(tail) - 1; i >= 0; i-- {
		v += float64(2*i+1) * float64(tail[i])
	}
	return v / (1 << 64)
}

func sampleGaussian(dst []int8, s *keystream.Stream) {
	table := gaussianTable()
	var block [blockSize]byte
	var samples [blockSize / 8]int8
	for len(dst) > 0 {
		words := min((len(dst)+3)/4*4, blockSize/8)
		s.Fill(block[:8*words])
		table.sample(samples[:words], block[:8*words])
		dst = dst[copy(dst, samples[:words]):]
	}
	clear(block[:])
	clear(samples[:])
}

// table is a tail table with what vectors need of it.
type table struct {
	tail []uint64
	vectors
}

var (
	gaussianTable = sync.OnceValue(func() *table { return newTable(gaussianTail[:], chosen()) })
	floodTable    = sync.OnceValue(func() *table { return newTable(floodTail[:], chosen()) })
)

func newTable(tail []uint64, path vector.Path) *table {
	return &table{tail, newVectors(tail, path)}
}

// sample draws samples, a multiple of four, with eight bytes of keystream each.
func (t *table) sample(dst []int8, random []byte) {
	done := t.inVectors(dst, random)
	for k := done; k < len(dst); k += 4 {
		x := fromTable(t.tail, random[8*k:])
		dst[k], dst[k+1], dst[k+2], dst[k+3] = int8(x[0]), int8(x[1]), int8(x[2]), int8(x[3])
	}
}
