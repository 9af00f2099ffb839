//go:build !amd64 || purego

package zq

import "ringwave/crypto/vector"

// vectors serve on amd64 alone.
type vectors struct{}

func newVectors(uint64, vector.Path) vectors { return vectors{} }

func (vectors) addScaled([]uint64, uint64, uint64, []uint64) int { return 0 }

func (vectors) dot([]uint64, []uint64) (hi, lo uint64, done int) { return 0, 0, 0 }
