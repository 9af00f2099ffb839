package kernel

// portableLanes is Lanes of vector.Portable: with two rows that makes eight sums, which fit a
// processor's registers with what they are made of.
const portableLanes = 4

// tilePortable computes n rows, two or one.
func (l *Layer) tilePortable(n int, y, x, w []float32) {
	for i := range y {
		y[i] = l.floor
	}
	stride := l.groups * portableLanes
	for i, place := range l.places {
		to := y[i/l.pool*portableLanes:]
		if n == 2 {
			a, b := l.twoRows(x[place:], w)
			larger(to, a)
			larger(to[stride:], b)
		} else {
			larger(to, l.oneRow(x[place:], w))
		}
	}
}

// larger keeps the larger of each two, as VMAXPS does.
func larger(y []float32, sums [4]float32) {
	m := (*[4]float32)(y)
	for i, s := range sums {
		if !(m[i] > s) {
			m[i] = s
		}
	}
}

// twoRows returns the sums of a tile of two rows for four samples. A conversion keeps
// the compiler from fusing a product with the addition.
func (l *Layer) twoRows(x, w []float32) (a, b [4]float32) {
	a0, b0 := w[0], w[1]
	a1, a2, a3 := a0, a0, a0
	b1, b2, b3 := b0, b0, b0
	w = w[2:]
	for i := range l.fan / run {
		v, u := (*[4 * run]float32)(x[l.runs[i]:]), (*[2 * run]float32)(w)
		for k := range run {
			p, q := u[2*k], u[2*k+1]
			x0, x1, x2, x3 := v[4*k], v[4*k+1], v[4*k+2], v[4*k+3]
			a0 += float32(p * x0)
			a1 += float32(p * x1)
			a2 += float32(p * x2)
			a3 += float32(p * x3)
			b0 += float32(q * x0)
			b1 += float32(q * x1)
			b2 += float32(q * x2)
			b3 += float32(q * x3)
		}
		w = w[2*run:]
	}
	x = x[l.runs[l.fan/run]:]
	for k := range l.fan % run {
		v, u := (*[4]float32)(x[4*k:]), (*[2]float32)(w[2*k:])
		p, q := u[0], u[1]
		a0 += float32(p * v[0])
		a1 += float32(p * v[1])
		a2 += float32(p * v[2])
		a3 += float32(p * v[3])
		b0 += float32(q * v[0])
		b1 += float32(q * v[1])
		b2 += float32(q * v[2])
		b3 += float32(q * v[3])
	}
	return [4]float32{a0, a1, a2, a3}, [4]float32{b0, b1, b2, b3}
}

// oneRow is twoRows for a single row. It is for few rows, and plain.
func (l *Layer) oneRow(x, w []float32) (a [4]float32) {
	for lane := range a {
		sum := w[0]
		for k, weight := range w[1 : l.fan+1] {
			sum += float32(weight * x[int(l.runs[k/run])+k%run*portableLanes+lane])
		}
		a[lane] = sum
	}
	return a
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
