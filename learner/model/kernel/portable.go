package kernel

// portableLanes is Lanes of vector.Portable: with two rows that makes eight sums, which fit a
// processor's registers with what they are made of.
const portableLanes = 4

// tilePortable computes n rows, two or one.
func (l *Layer) tilePortable(n int, y, x, w []float32) {
	a, b := l.sums(n, x, w)
	for i := range portableLanes {
		y[i] = larger(l.floor, a[i])
		if n == 2 {
			y[portableLanes+i] = larger(l.floor, b[i])
		}
	}
}

// larger returns the larger of two, as VMAXPS does.
func larger(a, b float32) float32 {
	if a > b {
		return a
	}
	return b
}

// sums returns the sums of a tile of two rows, or of one, for four samples. A conversion
// keeps the compiler from fusing a product with the addition.
func (l *Layer) sums(n int, x, w []float32) (a, b [portableLanes]float32) {
	const lanes = portableLanes
	a0, b0 := w[0], w[n-1]
	a1, a2, a3 := a0, a0, a0
	b1, b2, b3 := b0, b0, b0
	w = w[n:]
	for k := range l.fan {
		v := (*[lanes]float32)(x[lanes*k:])
		p, q := w[n*k], w[n*k+n-1]
		a0 += float32(p * v[0])
		a1 += float32(p * v[1])
		a2 += float32(p * v[2])
		a3 += float32(p * v[3])
		b0 += float32(q * v[0])
		b1 += float32(q * v[1])
		b2 += float32(q * v[2])
		b3 += float32(q * v[3])
	}
	return [lanes]float32{a0, a1, a2, a3}, [lanes]float32{b0, b1, b2, b3}
}

// exercisePortable has six sums, as many as there are additions under way at once.
func exercisePortable(n int) int {
	const sums = 6
	var a, b, c, d, e, f float32
	x := float32(n&1) * 0 // not known to the compiler
	for i := 0; i < n; i += sums {
		a += float32(x * x)
		b += float32(x * x)
		c += float32(x * x)
		d += float32(x * x)
		e += float32(x * x)
		f += float32(x * x)
		x = -x
	}
	if a+b+c+d+e+f != 0 {
		return 0 // never: it keeps the sums
	}
	return (n + sums - 1) / sums * sums
}
