//go:build !amd64

package zq

// vectors serve on amd64 alone.
type vectors struct{}

func newVectors(uint64) vectors { return vectors{} }

func (vectors) addScaled([]uint64, uint64, uint64, []uint64) int { return 0 }
