package kernel

import "golang.org/x/sys/cpu"

// lacks says what the processor, or its operating system, has not.
func lacks(p Path) string {
	switch {
	case p == AVX2 && !cpu.X86.HasAVX2:
		return "AVX2"
	case p == AVX512 && !cpu.X86.HasAVX512F:
		return "AVX512F"
	}
	return ""
}

// tileAssembly computes n rows, 6, 5 or 1. The slices have the lengths that Run gave
// them, so that the assembly stays within.
func (l *Layer) tileAssembly(n int, y, x, w []float32) {
	tile := tile1AVX2
	switch {
	case l.path == AVX2 && n == 6:
		tile = tile6AVX2
	case l.path == AVX2 && n == 5:
		tile = tile5AVX2
	case l.path == AVX512 && n == 6:
		tile = tile6AVX512
	case l.path == AVX512 && n == 5:
		tile = tile5AVX512
	case l.path == AVX512:
		tile = tile1AVX512
	}
	stride := 4 * l.groups * l.path.Lanes()
	tile(&y[0], stride, &x[0], &l.places[0], l.groups, l.pool, &w[0], &l.runs[0], l.fan/run, l.fan%run, l.floor)
}

// exercise runs the loop of the path.
func exercise(p Path, n int) int {
	const sums = 12 // of the loop in assembly
	times := (n + sums - 1) / sums
	if times < 1 {
		return 0 // the loop would not end
	}
	if p == AVX512 {
		peakAVX512(times)
		return times * sums * 16
	}
	peakAVX2(times)
	return times * sums * 8
}
