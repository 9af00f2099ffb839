//go:build !amd64 || purego

package kernel

import "ringwave/crypto/vector"

// tileAssembly is not reached: no path but the portable one lacks nothing.
func (l *Layer) tileAssembly(n int, y, x, w []float32) { l.tilePortable(n, y, x, w) }

func (l *Layer) spreadAssembly(m method, dst, x []float32) { l.spreadPortable(m, dst, x) }

func (l *Layer) filtersAssembly(m method, n int, y, x, w, products []float32) {
	l.filtersPortable(m, n, y, x, w, products)
}

func gatherAssembly(vector.Path, []float32, [][]uint8, Columns) int { return 0 }

func exercise(_ vector.Path, n int) int { return exercisePortable(n) }
