package kernel

import (
	"math"

	"ringwave/crypto/vector"
)

// run is how many terms in a row have inputs that lie in a row, so that one number says
// where: five of a filter's columns, or of any units of a fully connected layer. The
// assembly is written for it.
const run = 5

// Layer is a layer of a network on one path. It is not changed once made.
type Layer struct {
	path   vector.Path
	inputs int // units of the layer before
	rows   int // filters, or units
	groups int // results a row
	pool   int // places a result is the largest of
	floor  float32
	fan    int     // terms a unit
	runs   []int32 // where each five terms lie, from a place on, and one more number
	places []int32 // groups x pool: where a window begins
	tiles  []int   // the rows of each tile
}

// Convolution returns a layer of filters of 5 x 5 over channels x height x width units,
// without padding, each followed by ReLU and by 2 x 2 max-pooling; height and width
// must be even, and 6 or more. Its units are filters x (height-4)/2 x (width-4)/2, its
// weights filters x channels x 5 x 5.
func Convolution(p vector.Path, channels, height, width, filters int) *Layer {
	const side = run
	lanes := int32(Lanes(p))
	l := &Layer{path: p, inputs: channels * height * width, rows: filters, pool: 4, fan: channels * side * side, tiles: tilesOf(p, filters)}
	at := func(c, y, x int) int32 { return int32((c*height+y)*width+x) * lanes }
	for c := range channels {
		for y := range side {
			l.runs = append(l.runs, at(c, y, 0))
		}
	}
	for y := 0; y+side <= height; y += 2 {
		for x := 0; x+side <= width; x += 2 {
			l.places = append(l.places, at(0, y, x), at(0, y, x+1), at(0, y+1, x), at(0, y+1, x+1))
		}
	}
	l.groups = len(l.places) / l.pool
	l.runs = append(l.runs, 0)
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
	l := &Layer{
		path: p, inputs: inputs, rows: units, groups: 1, pool: 1, fan: inputs,
		floor: float32(math.Inf(-1)), places: []int32{0}, tiles: tilesOf(p, units),
	}
	for k := 0; k < inputs; k += run {
		l.runs = append(l.runs, int32(k*Lanes(p)))
	}
	l.runs = append(l.runs, 0)
	return l
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

// MultiplyAdds returns the number of multiplications that a sample takes.
func (l *Layer) MultiplyAdds() int { return l.rows * len(l.places) * l.Fan() }

// Packing gives, for each packed parameter, its index among the parameters in the
// usual order: all weights, row by row, and then the biases. Packed are for each tile
// its biases and then, for each k, a weight of each row.
func (l *Layer) Packing() []int32 {
	packing := make([]int32, 0, l.Parameters())
	biases := l.rows * l.Fan()
	first := 0
	for _, n := range l.tiles {
		for r := range n {
			packing = append(packing, int32(biases+first+r))
		}
		for k := range l.Fan() {
			for r := range n {
				packing = append(packing, int32((first+r)*l.Fan()+k))
			}
		}
		first += n
	}
	return packing
}

// Run computes the units of one panel: y of Units x Lanes from x of Inputs x Lanes
// with packed parameters w. It is fastest where y and x begin at multiples of 64
// bytes. It panics where one of them is too short.
//
// A result that is the largest of several is the later where they are equal or one
// is no number.
func (l *Layer) Run(y, x, w []float32) {
	lanes := Lanes(l.path)
	y, x, w = y[:l.Units()*lanes], x[:l.inputs*lanes], w[:l.Parameters()]
	stride := l.groups * lanes
	for _, n := range l.tiles {
		l.tile(n, y[:n*stride], x, w[:n*(l.Fan()+1)])
		y, w = y[n*stride:], w[n*(l.Fan()+1):]
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
