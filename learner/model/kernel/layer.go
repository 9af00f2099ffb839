package kernel

import (
	"math"

	"ringwave/crypto/vector"
)

// run is the side of a filter, and how many terms of a fully connected layer the assembly,
// which is written for it, computes in a row.
const run = 5

// Layer is a layer of a network on one path. It is not changed once made.
type Layer struct {
	path   vector.Path
	conv   *convolution // nil for a fully connected layer
	inputs int          // units of the layer before
	rows   int          // filters, or units
	groups int          // results a row
	floor  float32
	fan    int   // terms a unit
	tiles  []int // the rows of each tile
}

// Convolution returns a layer of filters of 5 x 5 over channels x height x width units,
// without padding, each followed by 2 x 2 max-pooling and by ReLU; height and width
// must be even, and 6 or more. Its units are filters x (height-4)/2 x (width-4)/2, its
// weights filters x channels x 5 x 5.
func Convolution(p vector.Path, channels, height, width, filters int) *Layer {
	l := &Layer{
		path: p, conv: &convolution{channels, height, width}, inputs: channels * height * width, rows: filters,
		fan: channels * run * run, tiles: tilesOf(p, filters),
	}
	h, w := l.conv.pooled()
	l.groups = h * w
	return l
}

// Hidden returns a fully connected layer with ReLU; its weights are units x inputs.
func Hidden(p vector.Path, inputs, units int) *Layer {
	l := Output(p, inputs, units)
	l.floor = 0
	return l
}

// Output returns a fully connected layer without an activation.
func Output(p vector.Path, inputs, units int) *Layer {
	return &Layer{
		path: p, inputs: inputs, rows: units, groups: 1, fan: inputs, floor: float32(math.Inf(-1)), tiles: tilesOf(p, units),
	}
}

// tilesOf shares rows out among tiles: in portable code of 2 and 1; in assembly of 6
// and 5, or of 6 and 1 where that does not go, as a smaller tile leaves more of a
// processor idle.
func tilesOf(p vector.Path, rows int) (tiles []int) {
	if p == vector.Portable {
		for ; rows >= 2; rows -= 2 {
			tiles = append(tiles, 2)
		}
	} else if most := (rows + 5) / 6; 5*most <= rows {
		for i := range most {
			n := 5
			if i < rows-5*most {
				n = 6
			}
			tiles = append(tiles, n)
		}
		return tiles
	}
	for ; p != vector.Portable && rows >= 6; rows -= 6 {
		tiles = append(tiles, 6)
	}
	for range rows {
		tiles = append(tiles, 1)
	}
	return tiles
}

// Inputs returns the number of units that the layer takes.
func (l *Layer) Inputs() int { return l.inputs }

// Units returns the number of units that the layer gives.
func (l *Layer) Units() int { return l.rows * l.groups }

// Fan returns the number of terms of a unit, its bias not counted.
func (l *Layer) Fan() int { return l.fan }

// Rows returns the number of filters or of fully connected units.
func (l *Layer) Rows() int { return l.rows }

// Parameters returns the number of weights and biases.
func (l *Layer) Parameters() int { return l.rows * (l.Fan() + 1) }

// MultiplyAdds returns the number of multiplications that a sample takes by the layer's
// definition.
func (l *Layer) MultiplyAdds() int {
	if l.conv != nil {
		return l.rows * 4 * l.groups * l.fan
	}
	return l.rows * l.fan
}

// Packed returns the number of packed parameters.
func (l *Layer) Packed() int {
	if l.conv != nil {
		n := 0
		for _, m := range l.conv.methods() {
			n += l.conv.packed(m, l.rows)
		}
		return n
	}
	return l.Parameters()
}

// Pack sets dst, of Packed numbers, to the parameters in the order that Run takes, rounded to
// float32. They are given in the usual order: all weights, row by row, and then the biases.
func (l *Layer) Pack(dst []float32, parameters []float64) {
	if l.conv != nil {
		l.packFilters(dst, parameters)
		return
	}
	// For each tile its biases and then, for each k, a weight of each row.
	first, biases, at := 0, l.rows*l.fan, 0
	for _, n := range l.tiles {
		for r := range n {
			dst[at+r] = float32(parameters[biases+first+r])
		}
		at += n
		for r := range n {
			for k, v := range parameters[(first+r)*l.fan:][:l.fan] {
				dst[at+k*n+r] = float32(v)
			}
		}
		at += n * l.fan
		first += n
	}
}

// Run computes the units of one panel: y of Units x Lanes from x of Inputs x Lanes
// with packed parameters w, in memory of its own of Scratch numbers. It is fastest where all
// begin at multiples of 64 bytes. It panics where one of them is too short.
//
// A result that is the largest of several is the later where they are equal or one
// is no number.
func (l *Layer) Run(y, x, w, scratch []float32) {
	l.RunAll([][]float32{y}, x, [][]float32{w}, scratch)
}

// RunAll is Run for several sets of parameters at once, and as many results.
func (l *Layer) RunAll(ys [][]float32, x []float32, ws [][]float32, scratch []float32) {
	lanes := Lanes(l.path)
	x = x[:l.inputs*lanes]
	for i := range ys {
		_, _ = ys[i][:l.Units()*lanes], ws[i][:l.Packed()]
	}
	if l.conv != nil {
		l.convolve(ys, x, ws, scratch)
		return
	}
	stride := l.groups * lanes
	for i, y := range ys {
		w := ws[i]
		for _, n := range l.tiles {
			l.tile(n, y[:n*stride], x, w[:n*(l.Fan()+1)])
			y, w = y[n*stride:], w[n*(l.Fan()+1):]
		}
	}
}

// tile computes n rows.
func (l *Layer) tile(n int, y, x, w []float32) {
	if l.path == vector.Portable {
		l.tilePortable(n, y, x, w)
		return
	}
	l.tileAssembly(n, y, x, w)
}
