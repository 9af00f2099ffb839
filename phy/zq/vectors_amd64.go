//go:build !purego

package zq

import (
	"math/bits"

	"ringwave/crypto/vector"
)

// vectors computes multiples many at a time.
type vectors struct {
	path      vector.Path
	constants [24]uint64 // p, 2p and p >> 32, each in all lanes
}

func newVectors(p uint64, path vector.Path) vectors {
	v := vectors{path: path}
	for lane := range 8 {
		v.constants[lane], v.constants[8+lane], v.constants[16+lane] = p, 2*p, p>>32
	}
	return v
}

// addScaled does the beginning of what addScaledPortable does, and returns how much.
func (v *vectors) addScaled(y []uint64, h, hs uint64, x []uint64) int {
	factor := [4]uint64{h, hs}
	count := len(x) / 8
	if v.path == vector.Portable || count == 0 {
		return 0
	}
	y = y[:8*count]
	if v.path == vector.AVX512 {
		addScaledDQ(&y[0], &x[0], &factor[0], &v.constants[0], count)
	} else {
		addScaledAVX2(&y[0], &x[0], &factor[0], &v.constants[0], 2*count)
	}
	return 8 * count
}

// dot returns the sum of the first products r x, and how many they are.
func (v *vectors) dot(r, x []uint64) (hi, lo uint64, done int) {
	const most = 8 // lanes
	count := len(r) / most
	if v.path == vector.Portable || count == 0 {
		return 0, 0, 0
	}
	_ = x[:most*count]
	var sums [6 * most]uint64
	lanes := most
	if v.path == vector.AVX512 {
		dotAVX512(&r[0], &x[0], count, &sums[0])
	} else {
		lanes = most / 2
		dotAVX2(&r[0], &x[0], 2*count, &sums[0])
	}
	// Products of low halves, of low with high ones, and of high ones.
	for i := range 6 {
		total := uint64(0)
		for _, s := range sums[i*lanes:][:lanes] {
			total += s
		}
		shift := uint(29*(i/2) + 32*(i%2))
		var c uint64
		lo, c = bits.Add64(lo, total<<shift, 0)
		high := total >> (64 - shift)
		if shift >= 64 {
			high = total << (shift - 64)
		}
		hi, _ = bits.Add64(hi, high, c)
	}
	return hi, lo, most * count
}
