package keystream

import (
	"encoding/binary"
	"math/bits"
)

// Uniform fills dst with independent residues uniform on [0, p), 2 <= p < 2^62,
// exactly: words of the bit length of p are drawn until one is below p, fewer
// than two on average. No branch and no address depends on a residue that is kept.
// Residues count as public: only the buffer is overwritten, not the stack.
func (s *Stream) Uniform(dst []uint64, p uint64) {
	if p < 2 || p >= 1<<62 {
		panic("keystream: a modulus outside [2, 2^62)")
	}
	mask := uint64(1)<<bits.Len64(p-1) - 1
	var block [512]byte
	for len(dst) > 0 {
		words := min(len(dst), len(block)/8)
		s.Fill(block[:8*words])
		kept := 0 // at most one for each word before this one: below len(dst)
		for i := range words {
			x := binary.LittleEndian.Uint64(block[8*i:]) & mask
			dst[kept] = x
			// x and p are below 2^62: the difference is negative, and its
			// top bit set, exactly if x is to be kept.
			kept += int((x - p) >> 63)
		}
		dst = dst[kept:]
	}
	clear(block[:])
}
