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
	tile(&y[0], 4*Lanes(l.path), &x[0], &w[0], l.fan/run, l.fan%run, l.floor)
}

// spreadAssembly does what spreadPortable does.
func (l *Layer) spreadAssembly(dst, x []float32) {
	c, lanes := l.conv, Lanes(l.path)
	count := c.channels * c.height
	_, _ = dst[:count*planes*lanes], x[:((count-1)*c.width+planes)*lanes]
	spread := spreadAVX2
	if l.path == vector.AVX512 {
		spread = spreadAVX512
	}
	spread(&dst[0], &x[0], 4*c.width*lanes, count)
}

// pairsAssembly does what pairsPortable does, for 6, 5 or 1 rows.
func (l *Layer) pairsAssembly(n int, y, x, w, products []float32) {
	pairs := pairs1AVX2
	switch {
	case l.path == vector.AVX2 && n == 6:
		pairs = pairs6AVX2
	case l.path == vector.AVX2 && n == 5:
		pairs = pairs5AVX2
	case l.path == vector.AVX512 && n == 6:
		pairs = pairs6AVX512
	case l.path == vector.AVX512 && n == 5:
		pairs = pairs5AVX512
	case l.path == vector.AVX512:
		pairs = pairs1AVX512
	}
	c, panel := l.conv, 4*Lanes(l.path)
	height, width := c.pooled()
	_, _ = y[((n*height-1)*width+1)*panel/4-1], w[n*(planes*run*c.channels+1)-1]
	_, _ = x[c.spread(panel/4)-1], products[2*planes*n*panel/4-1]
	pairs(&y[0], height*width*panel, width*panel, &x[0], c.height*planes*panel, c.channels, &w[0], &products[0], height)
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
