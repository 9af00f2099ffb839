//go:build !amd64

package kernel

func lacks(p Path) string { return p.String() + ", which is of amd64" }

// tileAssembly is not reached: no path but the portable one lacks nothing.
func (l *Layer) tileAssembly(n int, y, x, w []float32) { l.tilePortable(n, y, x, w) }

func exercise(_ Path, n int) int { return exercisePortable(n) }
