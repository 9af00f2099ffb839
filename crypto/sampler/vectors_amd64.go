//go:build !purego

package sampler

import (
	"golang.org/x/sys/cpu"

	"ringwave/crypto/vector"
)

// vectors counts for many words at once which entries t of a tail table they reach: those with
// u + t >= 2^64, which is u > 2^64 - t - 1.
type vectors struct {
	thresholds []uint64 // in the order of the assembly
	rows       int
	path       vector.Path
}

func newVectors(tail []uint64, path vector.Path) vectors {
	blocks := 8
	if path == vector.AVX2 {
		blocks = 4
	}
	size := max(2, (len(tail)+blocks)/blocks) // so that the last threshold is reached by none
	threshold := func(i int) uint64 {
		x := ^uint64(0) // never
		if i < len(tail) {
			x = -tail[i] - 1
		}
		if path == vector.AVX2 { // which compares signed numbers
			x ^= 1 << 63
		}
		return x
	}
	v := vectors{path: path, rows: size - 1, thresholds: []uint64{uint64(size)}}
	for b := range blocks - 1 {
		v.thresholds = append(v.thresholds, threshold((b+1)*size-1))
	}
	for i := range v.rows {
		for b := range blocks {
			v.thresholds = append(v.thresholds, threshold(b*size+i))
		}
	}
	return v
}

// inVectors draws as many samples as make whole groups, and returns how many.
func (v *vectors) inVectors(dst []int8, random []byte) int {
	group := 16
	if v.path == vector.AVX512 {
		group = 32
	}
	groups := len(dst) / group
	if v.path == vector.Portable || groups == 0 {
		return 0
	}
	random = random[:8*groups*group]
	// No function value: what is given to one would not stay on the stack.
	if v.path == vector.AVX512 {
		signedCountsAVX512(&dst[0], &random[0], &v.thresholds[0], v.rows, groups)
	} else {
		signedCountsAVX2(&dst[0], &random[0], &v.thresholds[0], v.rows, groups)
	}
	return groups * group
}

// binomialInVectors draws three samples for each 16 bytes of as many groups as make whole
// vectors, and returns how many groups.
func binomialInVectors(path vector.Path, samples *[blockSize/16*3 + spare]int8, random *[blockSize]byte, groups int) int {
	switch {
	case path == vector.AVX512 && cpu.X86.HasAVX512VPOPCNTDQ && groups >= 4:
		onesAVX512(&samples[0], &random[0], groups/4)
		return groups &^ 3
	case path != vector.Portable && groups >= 2:
		onesAVX2(&samples[0], &random[0], groups/2)
		return groups &^ 1
	}
	return 0
}

// tritsInVectors draws five samples for each of so many bytes, as far as they make whole
// vectors, and returns for how many.
func tritsInVectors(path vector.Path, samples *[5*blockSize + spare]int8, bytes *[blockSize + 1]byte, count int) int {
	if path == vector.Portable || count < 3 {
		return 0
	}
	tritsAVX2(&samples[0], &bytes[0], count/3)
	return count / 3 * 3
}
