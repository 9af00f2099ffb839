package kernel

import "ringwave/crypto/vector"

// convolution is a layer of filters of 5 x 5, each followed by 2 x 2 max-pooling and ReLU.
//
// Two neighbouring results in a row of five weights g take six products in place of ten
// (Winograd's F(2, 5) at 0, 1, -1, 2, -2 and infinity). With the six inputs d under them,
//
//	plane  input                              weight
//	0      4 d0 - 5 d2 + d4                   g0/4
//	1, 2   d4 - 4 d2 +- (d3 - 4 d1)           -(g0 +- g1 + g2 +- g3 + g4)/6
//	3, 4   d4 - d2 +- 2 (d3 - d1)             (g0 +- 2 g1 + 4 g2 +- 8 g3 + 16 g4)/24
//	5      4 d1 - 5 d3 + d5                   g4
//
// and, m_p being the sum over channels and then rows of the plane's products,
//
//	m0 + (m1 + m2) + (m3 + m4)    and    (m1 - m2) + 2 (m3 - m4) + m5
//
// are the two results. Of the four of a pool the largest is kept, the bias is added, and
// what is negative becomes 0. Sums begin with 0.
type convolution struct {
	channels, height, width int
}

// planes is how many products two neighbouring results of a row of five weights take.
const planes = 6

// pooled returns the height and width of the result.
func (c *convolution) pooled() (height, width int) {
	return (c.height - run + 1) / 2, (c.width - run + 1) / 2
}

// spread returns how many numbers the planes of the inputs under two columns of results are.
func (c *convolution) spread(lanes int) int { return c.channels * c.height * planes * lanes }

// Scratch returns how many numbers of memory Run needs.
func (l *Layer) Scratch() int {
	if l.conv == nil {
		return 0
	}
	lanes := Lanes(l.path)
	return l.conv.spread(lanes) + 2*planes*mostRows*lanes
}

// mostRows is the number of rows of the largest tile.
const mostRows = 6

// convolve computes a panel for several sets of parameters, column of pools by column: the
// planes of its inputs are at hand for all filters.
func (l *Layer) convolve(ys [][]float32, x []float32, ws [][]float32, scratch []float32) {
	c, lanes := l.conv, Lanes(l.path)
	_, width := c.pooled()
	slab, products := scratch[:c.spread(lanes)], scratch[c.spread(lanes):l.Scratch()]
	for column := range width {
		if from := x[2*column*lanes:]; l.path == vector.Portable {
			l.spreadPortable(slab, from)
		} else {
			l.spreadAssembly(slab, from)
		}
		for i, y := range ys {
			l.column(y[column*lanes:], slab, ws[i], products)
		}
	}
}

// column computes a column of pools.
func (l *Layer) column(y, slab, w, products []float32) {
	height, width := l.conv.pooled()
	for _, n := range l.tiles {
		if l.path == vector.Portable {
			l.pairsPortable(n, y, slab, w, products)
		} else {
			l.pairsAssembly(n, y, slab, w, products)
		}
		w = w[n*(planes*run*l.conv.channels+1):]
		y = y[min(n*height*width*Lanes(l.path), len(y)):]
	}
}

// packRow sets the planes of a row of five weights, in double precision, apart from each
// other in dst.
func packRow(dst []float32, apart int, g []float64) {
	even, odd := g[0]+g[2]+g[4], g[1]+g[3]
	even2, odd2 := g[0]+4*g[2]+16*g[4], 2*g[1]+8*g[3]
	for p, v := range [planes]float64{g[0] / 4, -(even + odd) / 6, -(even - odd) / 6, (even2 + odd2) / 24, (even2 - odd2) / 24, g[4]} {
		dst[p*apart] = float32(v)
	}
}

// packFilters packs filters: for each tile, by plane, channel and row, a weight of each
// filter, and then its biases.
func (l *Layer) packFilters(dst []float32, parameters []float64) {
	c := l.conv
	first, biases := 0, l.rows*l.fan
	for _, n := range l.tiles {
		apart := c.channels * run * n
		for r := range n {
			filter := parameters[(first+r)*l.fan:][:l.fan]
			for k := range c.channels * run {
				packRow(dst[k*n+r:], apart, filter[k*run:][:run])
			}
			dst[planes*apart+r] = float32(parameters[biases+first+r])
		}
		dst = dst[planes*apart+n:]
		first += n
	}
}

// spreadPortable makes the planes of the inputs under a column of pools.
func (l *Layer) spreadPortable(dst, x []float32) {
	const lanes = portableLanes
	for range l.conv.channels * l.conv.height {
		d, out := (*[6 * lanes]float32)(x), (*[planes * lanes]float32)(dst)
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
		dst = dst[planes*lanes:]
		x = x[min(l.conv.width*lanes, len(x)):]
	}
}

// pairsPortable computes a tile of rows of a column of pools.
func (l *Layer) pairsPortable(n int, y, x, w, products []float32) {
	const lanes = portableLanes
	height, width := l.conv.pooled()
	channel := l.conv.height * planes * lanes
	per := l.conv.channels * run * n
	biases := w[planes*per:][:n]
	for group := range height {
		for half := range 2 {
			for p := range planes {
				from := x[((2*group+half)*planes+p)*lanes:]
				sums := products[(half*planes+p)*n*lanes:][:n*lanes]
				l.product(n, sums, from, w[p*per:][:per], channel)
			}
		}
		for r := range n {
			to := (*[lanes]float32)(y[(r*height+group)*width*lanes:])
			for i := range lanes {
				var best float32
				for half := range 2 {
					var m [planes]float32
					for p := range m {
						m[p] = products[((half*planes+p)*n+r)*lanes+i]
					}
					first := m[0] + (m[1] + m[2]) + (m[3] + m[4])
					twice := m[3] - m[4]
					second := (m[1] - m[2]) + (twice + twice) + m[5]
					if half == 0 {
						best = first
					}
					best = larger(larger(best, first), second)
				}
				to[i] = larger(0, best+biases[r])
			}
		}
	}
}

// product sums the products of one plane for one or two rows.
func (l *Layer) product(n int, sums, x, w []float32, channel int) {
	const lanes = portableLanes
	var a0, a1, a2, a3, b0, b1, b2, b3 float32
	for range l.conv.channels {
		for k := range run {
			v := (*[lanes]float32)(x[k*planes*lanes:])
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
