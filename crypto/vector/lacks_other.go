//go:build !amd64 || purego

package vector

func lacks(p Path) string { return p.String() + ", or this program was built without assembly" }

// HasIFMA reports whether the processor multiplies integers of 52 bits in vectors.
func HasIFMA() bool { return false }
