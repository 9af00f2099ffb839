//go:build !amd64 || purego

package sampler

import "ringwave/crypto/vector"

type vectors struct{}

func newVectors([]uint64, vector.Path) vectors { return vectors{} }

func (vectors) inVectors([]int8, []byte) int { return 0 }

func binomialInVectors(vector.Path, *[blockSize/16*3 + spare]int8, *[blockSize]byte, int) int {
	return 0
}

func tritsInVectors(vector.Path, *[5*blockSize + spare]int8, *[blockSize + 1]byte, int) int { return 0 }
