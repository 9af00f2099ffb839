package ntt

import "math/bits"

// portable computes with words of 64 bits. Products with twiddle factors are Shoup's,
// beta = 64, in [0, 2p); a forward transform needs no reduction before its end, for with
// p < 2^57 and 14 stages all stays below 2^62.
type portable struct {
	p, invP           uint64
	oneQ              uint64 // floor(2^64/p)
	forwards          []factor
	backwards         []factor
	inverseN, lastRow factor
}

// factor is w < p with floor(2^64 w/p).
type factor struct{ w, q uint64 }

func newFactor(w, p uint64) factor { return factor{w, shoup(w, p, 64)} }

func factors(w []uint64, p uint64) []factor {
	f := make([]factor, len(w))
	for i := range f {
		f[i] = newFactor(w[i], p)
	}
	return f
}

func newPortable(r roots) *portable {
	f := &portable{
		p: r.p, invP: inverseWord(r.p), oneQ: shoup(1, r.p, 64),
		forwards: factors(r.forward, r.p), backwards: factors(r.backward, r.p),
	}
	// Division by n, and by the 2^-64 of Montgomery's product.
	scale := r.inverseN
	for range 64 {
		scale = min(2*scale, 2*scale-r.p)
	}
	f.inverseN, f.lastRow = newFactor(scale, r.p), newFactor(mulMod(scale, r.backward[1], r.p), r.p)
	return f
}

func (f *portable) place(i int) int { return i }

// times returns w y - q p, in [0, 2p), for every y.
func (w factor) times(y, p uint64) uint64 {
	q, _ := bits.Mul64(w.q, y)
	return w.w*y - q*p
}

func (f *portable) forward(x []uint64) {
	p := f.p
	p2 := 2 * p
	m, t := 1, len(x)/2
	for ; t > 2; m, t = 4*m, t/4 {
		f.forwardTwo(x, m, t/2)
	}
	if t == 2 {
		f.forwardLastTwo(x)
	} else {
		for i, w := range f.forwards[m : 2*m] {
			pair := x[2*i : 2*i+2 : 2*i+2]
			r := w.times(pair[1], p)
			pair[0], pair[1] = pair[0]+r, pair[0]+p2-r
		}
	}
	for i, v := range x {
		q, _ := bits.Mul64(f.oneQ, v)
		v -= q * p
		x[i] = min(v, v-p)
	}
}

// forwardLastTwo does the last two stages, on four words at a time.
func (f *portable) forwardLastTwo(x []uint64) {
	p := f.p
	p2 := 2 * p
	m := len(x) / 4
	one, two := f.forwards[m:2*m], f.forwards[2*m:4*m]
	for i, w := range one {
		uv, group := (*[2]factor)(two[2*i:]), (*[4]uint64)(x[4*i:])
		a, b := group[0], group[1]
		c, d := w.times(group[2], p), w.times(group[3], p)
		a, c = a+c, a+p2-c
		b, d = uv[0].times(b+d, p), uv[1].times(b+p2-d, p)
		group[0], group[1], group[2], group[3] = a+b, a+p2-b, c+d, c+p2-d
	}
}

// forwardTwo does two stages, of m and 2m groups, on words t apart.
func (f *portable) forwardTwo(x []uint64, m, t int) {
	p := f.p
	p2 := 2 * p
	for i := range m {
		w, u, v := f.forwards[m+i], f.forwards[2*(m+i)], f.forwards[2*(m+i)+1]
		group := x[4*t*i : 4*t*(i+1)]
		a, b, c, d := group[:t], group[t:][:t], group[2*t:][:t], group[3*t:][:t]
		for k := range a {
			ak, bk := a[k], b[k]
			ck, dk := w.times(c[k], p), w.times(d[k], p)
			ak, ck = ak+ck, ak+p2-ck
			bk, dk = u.times(bk+dk, p), v.times(bk+p2-dk, p)
			a[k], b[k] = ak+bk, ak+p2-bk
			c[k], d[k] = ck+dk, ck+p2-dk
		}
	}
}

// multiply multiplies by Montgomery's method and transforms back, sums below 2p.
func (f *portable) multiply(z, x, y []uint64) {
	p, p2 := f.p, 2*f.p
	x, y = x[:len(z)], y[:len(z)]
	for k := range z {
		hi, lo := bits.Mul64(x[k], y[k])
		mp, _ := bits.Mul64(lo*f.invP, p)
		z[k] = hi + p - mp
	}
	f.inverseFirstTwo(z)
	m, t := len(z)/8, 4
	for ; m > 2; m, t = m/4, 4*t {
		f.inverseTwo(z, m/2, t)
	}
	if m == 2 {
		f.inverseOne(z, t)
		t *= 2
	}
	a, b := z[:t], z[t:][:t]
	for k := range a {
		s, d := a[k]+b[k], a[k]+p2-b[k]
		s, d = f.inverseN.times(s, p), f.lastRow.times(d, p)
		a[k], b[k] = min(s, s-p), min(d, d-p)
	}
}

// inverseFirstTwo does the first two stages, on four words at a time.
func (f *portable) inverseFirstTwo(x []uint64) {
	p, p2 := f.p, 2*f.p
	p4 := 2 * p2
	m := len(x) / 4
	one, two := f.backwards[m:2*m], f.backwards[2*m:4*m]
	for i, w := range one {
		uv, group := (*[2]factor)(two[2*i:]), (*[4]uint64)(x[4*i:])
		a, b, c, d := group[0], group[1], group[2], group[3]
		ab, cd := a+b, c+d // below 4p
		b, d = uv[0].times(a+p2-b, p), uv[1].times(c+p2-d, p)
		s, t := ab+cd, b+d
		s = min(s, s-p4)
		group[0], group[1] = min(s, s-p2), min(t, t-p2)
		group[2], group[3] = w.times(ab+p4-cd, p), w.times(b+p2-d, p)
	}
}

// inverseOne does the stage of two groups.
func (f *portable) inverseOne(x []uint64, t int) {
	p, p2 := f.p, 2*f.p
	for i, w := range f.backwards[2:4] {
		group := x[2*t*i : 2*t*(i+1)]
		a, b := group[:t], group[t:][:t]
		for k := range a {
			s, d := a[k]+b[k], a[k]+p2-b[k]
			a[k], b[k] = min(s, s-p2), w.times(d, p)
		}
	}
}

// inverseTwo does two stages, of 2m and m groups, on words t apart.
func (f *portable) inverseTwo(x []uint64, m, t int) {
	p, p2 := f.p, 2*f.p
	p4 := 2 * p2
	for i := range m {
		w, u, v := f.backwards[m+i], f.backwards[2*(m+i)], f.backwards[2*(m+i)+1]
		group := x[4*t*i : 4*t*(i+1)]
		a, b, c, d := group[:t], group[t:][:t], group[2*t:][:t], group[3*t:][:t]
		for k := range a {
			ak, bk, ck, dk := a[k], b[k], c[k], d[k]
			ab, cd := ak+bk, ck+dk // below 4p
			bk, dk = u.times(ak+p2-bk, p), v.times(ck+p2-dk, p)
			s := ab + cd
			s = min(s, s-p4)
			a[k] = min(s, s-p2)
			s = bk + dk
			b[k] = min(s, s-p2)
			c[k] = w.times(ab+p4-cd, p)
			d[k] = w.times(bk+p2-dk, p)
		}
	}
}
