//go:build !amd64 || purego

package ntt

import "ringwave/crypto/vector"

func newField(r roots, _ vector.Path) field { return newPortable(r) }
