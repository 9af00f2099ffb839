//go:build !purego

package keystream

import (
	"golang.org/x/sys/cpu"

	"ringwave/crypto/vector"
)

// vectors computes chunks with the processor's AES instructions, many blocks at once.
type vectors struct {
	instructions
	schedule [240]byte // the 15 round keys
}

type instructions int

const (
	none instructions = iota
	aesNI
	vaes // four blocks a register
)

// expand takes the key and reports whether vectors serve on the path.
func (v *vectors) expand(key *Seed, path vector.Path) bool {
	switch {
	case path == vector.Portable || !cpu.X86.HasAES:
		return false
	case path == vector.AVX512 && cpu.X86.HasAVX512VAES:
		v.instructions = vaes
	default:
		v.instructions = aesNI
	}
	expandKey(&v.schedule[0], &key[0])
	return true
}

// fill sets dst, a chunk, to the blocks from first on. It reports whether vectors serve.
func (v *vectors) fill(dst []byte, first *[16]byte) bool {
	dst = dst[:chunkSize]
	switch v.instructions {
	case vaes:
		chunkVAES(&dst[0], &v.schedule[0], &first[0])
	case aesNI:
		chunkAES(&dst[0], &v.schedule[0], &first[0])
	default:
		return false
	}
	return true
}

func (v *vectors) wipe() { clear(v.schedule[:]) }
