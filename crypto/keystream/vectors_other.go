//go:build !amd64 || purego

package keystream

import "ringwave/crypto/vector"

// vectors serve on amd64 alone.
type vectors struct{}

func (vectors) expand(*Seed, vector.Path) bool { return false }

func (vectors) fill([]byte, *[16]byte) bool { return false }

func (vectors) wipe() {}
