package sampler

import "ringwave/crypto/vector"

// vectors compares many words with a tail table at once: with t, an entry, where
// u + t >= 2^64, which is u >= 2^64 - t.
type vectors struct {
	thresholds []uint64
	path       vector.Path
}

func newVectors(tail []uint64, path vector.Path) vectors {
	v := vectors{path: path}
	for _, t := range tail {
		threshold := -t
		if path == vector.AVX2 { // which compares signed numbers, and by "greater"
			threshold = (threshold - 1) ^ 1<<63
		}
		v.thresholds = append(v.thresholds, threshold)
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
		signedCountsAVX512(&dst[0], &random[0], &v.thresholds[0], len(v.thresholds), groups)
	} else {
		signedCountsAVX2(&dst[0], &random[0], &v.thresholds[0], len(v.thresholds), groups)
	}
	return groups * group
}
