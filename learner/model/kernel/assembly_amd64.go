//go:build !purego

package kernel

import "ringwave/crypto/vector"

// tileAssembly computes n rows, 6, 5 or 1. The slices have the lengths that Run gave
// them, so that the assembly stays within.
func (l *Layer) tileAssembly(n int, y, x, w []float32) {
	tile := tile1AVX2
	switch {
	case l.path == vector.AVX2 && n == 6:
		tile = tile6AVX2
	case l.path == vector.AVX2 && n == 5:
		tile = tile5AVX2
	case l.path == vector.AVX512 && n == 6:
		tile = tile6AVX512
	case l.path == vector.AVX512 && n == 5:
		tile = tile5AVX512
	case l.path == vector.AVX512:
		tile = tile1AVX512
	}
	stride := 4 * l.groups * Lanes(l.path)
	tile(&y[0], stride, &x[0], &l.places[0], l.groups, l.pool, &w[0], &l.runs[0], l.fan/run, l.fan%run, l.floor)
}

// exercise runs the loop of the path.
func exercise(p vector.Path, n int) int {
	const sums = 12 // of the loop in assembly
	times := (n + sums - 1) / sums
	if times < 1 {
		return 0 // the loop would not end
	}
	if p == vector.AVX512 {
		peakAVX512(times)
		return times * sums * 16
	}
	peakAVX2(times)
	return times * sums * 8
}
