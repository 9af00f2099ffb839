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
func (l *Layer) spreadAssembly(m method, dst, x []float32) {
	c, lanes := l.conv, Lanes(l.path)
	count := c.channels * c.height
	_, _ = dst[:count*m.planes()*lanes], x[:((count-1)*c.width+m.planes())*lanes]
	spread := choose(l.path == vector.AVX512, m == fours, spreadPairsAVX2, spreadFoursAVX2, spreadPairsAVX512, spreadFoursAVX512)
	spread(&dst[0], &x[0], 4*c.width*lanes, count)
}

// filtersAssembly does what filtersPortable does, for 6, 5 or 1 rows.
func (l *Layer) filtersAssembly(m method, n int, y, x, w, products []float32) {
	c, panel, planes := l.conv, 4*Lanes(l.path), m.planes()
	height, width := c.pooled()
	_, _ = y[((n*height-1)*width+int(m))*panel/4-1], w[c.packed(m, n)-1]
	_, _ = x[c.spread(m, panel/4)-1], products[planes*n*panel/4-1]
	filtersOf(l.path, m, n)(&y[0], height*width*panel, width*panel, &x[0], c.height*planes*panel, c.channels, &w[0], &products[0], height)
}

// filtersOf returns the function of a tile of 6, 5 or 1 rows.
func filtersOf(p vector.Path, m method, n int) func(y *float32, stride, step int, x *float32, channel, channels int, w, products *float32, groups int) {
	wide, four := p == vector.AVX512, m == fours
	switch n {
	case 6:
		return choose(wide, four, pairs6AVX2, fours6AVX2, pairs6AVX512, fours6AVX512)
	case 5:
		return choose(wide, four, pairs5AVX2, fours5AVX2, pairs5AVX512, fours5AVX512)
	}
	return choose(wide, four, pairs1AVX2, fours1AVX2, pairs1AVX512, fours1AVX512)
}

// choose returns one of four.
func choose[T any](wide, four bool, narrowPairs, narrowFours, widePairs, wideFours T) T {
	switch {
	case wide && four:
		return wideFours
	case wide:
		return widePairs
	case four:
		return narrowFours
	}
	return narrowPairs
}

// gatherAssembly does what gatherPortable does, of as many columns as it gives.
func gatherAssembly(p vector.Path, dst []float32, rows [][]uint8, c Columns) int {
	const columns = 16 // of a block
	blocks := c.Count / columns
	if blocks == 0 {
		return 0
	}
	gather := gatherAVX2
	if p == vector.AVX512 {
		gather = gatherAVX512
	}
	gather(&dst[0], &rows[0], c.From, blocks, c.Factor, c.Addend)
	return blocks * columns
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
