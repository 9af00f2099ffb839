package kernel

import (
	"math"

	"ringwave/crypto/vector"
)

// convolution is a layer of filters of 5 x 5, each followed by 2 x 2 max-pooling and ReLU.
//
// Neighbouring results in a row of five weights g take fewer products than their definition:
// four take eight in place of twenty, and two six in place of ten (Winograd's F(4, 5) and
// F(2, 5)). With the inputs d under them, four are, from points 0, 1, -1, 2, -2, 1/2, -1/2 and
// infinity,
//
//	plane  input                                           weight, of g(x) = sum of g_k x^k
//	0      5.25 (d4 - d2) + (d0 - d6)                      g(0)
//	1, 2   ((d6 + d2) - 4.25 d4) +- ((d5 + d1) - 4.25 d3)  -g(+-1) 2/9
//	3, 4   ((d6 + d2/4) - 1.25 d4) +- 2 ((d5 + d1/4) - 1.25 d3)  g(+-2)/90
//	5, 6   ((d6 + 4 d2) - 5 d4) +- ((d5 + 4 d1) - 5 d3)/2  g(+-1/2) 32/45
//	7      5.25 (d3 - d5) + (d7 - d1)                      g4
//
// and, m_p being the sum over channels and then rows of the plane's products, s1 = m1 + m2,
// s2 = m3 + m4, s3 = m5 + m6 and d1, d2, d3 their differences,
//
//	(m0 + s1) + (s2 + s3), (d1 + 2 d2) + d3/2, (s1 + 4 s2) + s3/4 and ((d1 + 8 d2) + (d3/2)/4) + m7.
//
// Two are, from points 0, 1, -1, 2, -2 and infinity,
//
//	0      4 d0 - 5 d2 + d4                   g(0)/4
//	1, 2   d4 - 4 d2 +- (d3 - 4 d1)           -g(+-1)/6
//	3, 4   d4 - d2 +- 2 (d3 - d1)             g(+-2)/24
//	5      4 d1 - 5 d3 + d5                   g4
//
//	m0 + (m1 + m2) + (m3 + m4)    and    (m1 - m2) + 2 (m3 - m4) + m5.
//
// Of the four results of a pool the largest is kept, the bias is added, and what is negative
// becomes 0. Sums begin with their first product.
type convolution struct {
	channels, height, width int
}

// method is how many columns of pools are computed at once: two of them have four results in
// a row, and where their number is odd the last one has two.
type method int

const (
	pairs method = 1
	fours method = 2
)

// planes returns how many products a row's results take.
func (m method) planes() int { return 2*int(m) + run - 1 }

// pooled returns the height and width of the result.
func (c *convolution) pooled() (height, width int) {
	return (c.height - run + 1) / 2, (c.width - run + 1) / 2
}

// methods returns those that a layer takes, in the order of its columns.
func (c *convolution) methods() []method {
	switch _, width := c.pooled(); {
	case width == 1:
		return []method{pairs}
	case width%2 == 1:
		return []method{fours, pairs}
	}
	return []method{fours}
}

// spread returns how many numbers the planes of the inputs of a method's results are.
func (c *convolution) spread(m method, lanes int) int {
	return c.channels * c.height * m.planes() * lanes
}

// packed returns how many numbers the parameters of so many filters are for a method.
func (c *convolution) packed(m method, filters int) int {
	return filters * (m.planes()*run*c.channels + 1)
}

// Scratch returns how many numbers of memory Run needs.
func (l *Layer) Scratch() int {
	if l.conv == nil {
		return 0
	}
	lanes, most := Lanes(l.path), l.conv.methods()[0]
	return l.conv.spread(most, lanes) + most.planes()*mostRows*lanes
}

// mostRows is the number of rows of the largest tile.
const mostRows = 6

// convolve computes a panel for several sets of parameters, some columns of pools after the
// others: the planes of their inputs are at hand for all filters.
func (l *Layer) convolve(ys [][]float32, x []float32, ws [][]float32, scratch []float32) {
	c, lanes := l.conv, Lanes(l.path)
	_, width := c.pooled()
	column, at := 0, 0
	for _, m := range c.methods() {
		slab, products := scratch[:c.spread(m, lanes)], scratch[c.spread(m, lanes):l.Scratch()]
		for ; column+int(m) <= width; column += int(m) {
			if from := x[2*column*lanes:]; l.path == vector.Portable {
				l.spreadPortable(m, slab, from)
			} else {
				l.spreadAssembly(m, slab, from)
			}
			for i, y := range ys {
				l.columns(m, y[column*lanes:], slab, ws[i][at:], products)
			}
		}
		at += c.packed(m, l.rows)
	}
}

// columns computes a method's columns of pools.
func (l *Layer) columns(m method, y, slab, w, products []float32) {
	height, width := l.conv.pooled()
	for _, n := range l.tiles {
		if l.path == vector.Portable {
			l.filtersPortable(m, n, y, slab, w, products)
		} else {
			l.filtersAssembly(m, n, y, slab, w, products)
		}
		w = w[l.conv.packed(m, n):]
		y = y[min(n*height*width*Lanes(l.path), len(y)):]
	}
}

// packRow sets the planes of a row of five weights, in double precision, apart from each
// other in dst.
func (m method) packRow(dst []float32, apart int, g []float64) {
	even, odd := g[0]+g[2]+g[4], g[1]+g[3]
	even2, odd2 := g[0]+4*g[2]+16*g[4], 2*g[1]+8*g[3]
	set := func(p int, v float64) { dst[p*apart] = float32(v) }
	if m == pairs {
		set(0, g[0]/4)
		set(1, -(even+odd)/6)
		set(2, -(even-odd)/6)
		set(3, (even2+odd2)/24)
		set(4, (even2-odd2)/24)
		set(5, g[4])
		return
	}
	evenHalf, oddHalf := g[0]+g[2]/4+g[4]/16, g[1]/2+g[3]/8
	set(0, g[0])
	set(1, -(even+odd)*2/9)
	set(2, -(even-odd)*2/9)
	set(3, (even2+odd2)/90)
	set(4, (even2-odd2)/90)
	set(5, (evenHalf+oddHalf)*32/45)
	set(6, (evenHalf-oddHalf)*32/45)
	set(7, g[4])
}

// packFilters packs filters: for each method and tile, by plane, channel and row, a weight of
// each filter, and then its biases.
func (l *Layer) packFilters(dst []float32, parameters []float64) {
	for _, m := range l.conv.methods() {
		first, biases := 0, l.rows*l.fan
		for _, n := range l.tiles {
			apart := l.conv.channels * run * n
			for r := range n {
				filter := parameters[(first+r)*l.fan:][:l.fan]
				for k := range l.conv.channels * run {
					m.packRow(dst[k*n+r:], apart, filter[k*run:][:run])
				}
				dst[m.planes()*apart+r] = float32(parameters[biases+first+r])
			}
			dst = dst[l.conv.packed(m, n):]
			first += n
		}
	}
}

// spreadPortable makes the planes of the inputs under a method's columns of pools.
func (l *Layer) spreadPortable(m method, dst, x []float32) {
	const lanes = portableLanes
	spread := spreadPairs
	if m == fours {
		spread = spreadFours
	}
	for range l.conv.channels * l.conv.height {
		spread(dst, x)
		dst = dst[m.planes()*lanes:]
		x = x[min(l.conv.width*lanes, len(x)):]
	}
}

func spreadPairs(dst, x []float32) {
	const lanes = portableLanes
	d, out := (*[6 * lanes]float32)(x), (*[6 * lanes]float32)(dst)
	for i := range lanes {
		d0, d1, d2, d3, d4, d5 := d[i], d[lanes+i], d[2*lanes+i], d[3*lanes+i], d[4*lanes+i], d[5*lanes+i]
		a, b := d4-float32(4*d2), d3-float32(4*d1)
		e, f := d4-d2, d3-d1
		f += f
		out[i] = (float32(4*d0) - float32(5*d2)) + d4
		out[lanes+i], out[2*lanes+i] = a+b, a-b
		out[3*lanes+i], out[4*lanes+i] = e+f, e-f
		out[5*lanes+i] = (float32(4*d1) - float32(5*d3)) + d5
	}
}

func spreadFours(dst, x []float32) {
	const lanes = portableLanes
	d, out := (*[8 * lanes]float32)(x), (*[8 * lanes]float32)(dst)
	for i := range lanes {
		d0, d1, d2, d3 := d[i], d[lanes+i], d[2*lanes+i], d[3*lanes+i]
		d4, d5, d6, d7 := d[4*lanes+i], d[5*lanes+i], d[6*lanes+i], d[7*lanes+i]
		out[i] = float32(5.25*(d4-d2)) + (d0 - d6)
		even, odd := (d6+d2)-float32(4.25*d4), (d5+d1)-float32(4.25*d3)
		out[lanes+i], out[2*lanes+i] = even+odd, even-odd
		even, odd = (d6+float32(0.25*d2))-float32(1.25*d4), (d5+float32(0.25*d1))-float32(1.25*d3)
		odd += odd
		out[3*lanes+i], out[4*lanes+i] = even+odd, even-odd
		even, odd = (d6+float32(4*d2))-float32(5*d4), (d5+float32(4*d1))-float32(5*d3)
		odd = float32(0.5 * odd)
		out[5*lanes+i], out[6*lanes+i] = even+odd, even-odd
		out[7*lanes+i] = float32(5.25*(d3-d5)) + (d7 - d1)
	}
}

// filtersPortable computes a tile of rows of a method's columns of pools.
func (l *Layer) filtersPortable(m method, n int, y, x, w, products []float32) {
	const lanes = portableLanes
	height, width := l.conv.pooled()
	planes := m.planes()
	channel, line := l.conv.height*planes*lanes, planes*lanes
	per := l.conv.channels * run * n
	biases := w[planes*per:][:n]
	for group := range height {
		for half := range 2 {
			for p := range planes {
				from := x[((2*group+half)*planes+p)*lanes:]
				l.product(n, products[p*n*lanes:][:n*lanes], from, w[p*per:][:per], line, channel)
			}
			for r := range n {
				to := y[(r*height+group)*width*lanes:][:int(m)*lanes]
				for i := range lanes {
					m.pool(to[i:], products[r*lanes+i:], n*lanes, half, biases[r])
				}
			}
		}
	}
}

// pool takes a lane's products, apart from each other, into its pools: in the second half of
// their rows the last ones.
func (m method) pool(to, products []float32, apart, half int, bias float32) {
	var results [4]float32
	if m == fours {
		results = combineFour(products, apart)
	} else {
		results[0], results[1] = combinePair(products, apart)
	}
	for i := range int(m) {
		first, second := results[2*i], results[2*i+1]
		best := &to[i*portableLanes]
		if half == 0 {
			*best = larger(first, second)
		} else {
			*best = larger(0, larger(larger(*best, first), second)+bias)
		}
	}
}

func combinePair(m []float32, apart int) (first, second float32) {
	m1, m2, m3, m4 := m[apart], m[2*apart], m[3*apart], m[4*apart]
	twice := m3 - m4
	return m[0] + (m1 + m2) + (m3 + m4), (m1 - m2) + (twice + twice) + m[5*apart]
}

func combineFour(m []float32, apart int) [4]float32 {
	m1, m2, m3, m4, m5, m6 := m[apart], m[2*apart], m[3*apart], m[4*apart], m[5*apart], m[6*apart]
	s1, s2, s3 := m1+m2, m3+m4, m5+m6
	d1, d2, d3 := m1-m2, m3-m4, m5-m6
	half := float32(0.5 * d3)
	return [4]float32{
		(m[0] + s1) + (s2 + s3),
		(d1 + float32(2*d2)) + half,
		(s1 + float32(4*s2)) + float32(0.25*s3),
		((d1 + float32(8*d2)) + float32(0.25*half)) + m[7*apart],
	}
}

// product sums the products of one plane for one or two rows.
func (l *Layer) product(n int, sums, x, w []float32, line, channel int) {
	const lanes = portableLanes
	// Nothing but -0 leaves what is added to it as it is.
	a0 := float32(math.Copysign(0, -1))
	a1, a2, a3, b0, b1, b2, b3 := a0, a0, a0, a0, a0, a0, a0
	for range l.conv.channels {
		for k := range run {
			v := (*[lanes]float32)(x[k*line:])
			p := w[0]
			a0 += float32(p * v[0])
			a1 += float32(p * v[1])
			a2 += float32(p * v[2])
			a3 += float32(p * v[3])
			if n == 2 {
				q := w[1]
				b0 += float32(q * v[0])
				b1 += float32(q * v[1])
				b2 += float32(q * v[2])
				b3 += float32(q * v[3])
			}
			w = w[n:]
		}
		x = x[min(channel, len(x)):]
	}
	sums[0], sums[1], sums[2], sums[3] = a0, a1, a2, a3
	if n == 2 {
		sums[4], sums[5], sums[6], sums[7] = b0, b1, b2, b3
	}
}
