//go:build !amd64

package vector

func lacks(p Path) string { return p.String() + ", which is of amd64" }

// HasIFMA reports whether the processor multiplies integers of 52 bits in vectors.
func HasIFMA() bool { return false }
