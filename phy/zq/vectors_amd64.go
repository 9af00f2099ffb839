//go:build !purego

package zq

import "ringwave/crypto/vector"

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
