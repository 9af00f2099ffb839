package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/vector"
)

// available returns the path or skips the test.
func available(t testing.TB, p vector.Path) {
	t.Helper()
	if lacking := p.Lacks(); lacking != "" {
		t.Skipf("SKIPPED: %s did not run: this processor lacks %s", p, lacking)
	}
}

// shape is a layer and what it must be, written down in the usual order.
type shape struct {
	name string
	make func(p vector.Path) *Layer
	// naive returns the units of one sample from its inputs and the parameters in
	// the usual order.
	naive func(x, w []float32) []float32
}

// unit is one sum as the package's comment has it.
func unit(bias float32, k int, term func(k int) (w, x float32)) float32 {
	sum := bias
	for i := range k {
		w, x := term(i)
		sum += float32(w * x)
	}
	return sum
}

// larger2 is the rule of Run.
func larger2(a, b float32) float32 {
	if a > b {
		return a
	}
	return b
}

func filters(c, h, w, filters int) shape {
	return shape{
		fmt.Sprintf("convolution %dx%dx%d to %d", c, h, w, filters),
		func(p vector.Path) *Layer { return Convolution(p, c, h, w, filters) },
		func(x, weights []float32) (y []float32) {
			k := c * 25
			for f := range filters {
				for py := 0; py < h-4; py += 2 {
					upper, lower := results(c, h, w, x, weights[f*k:], py), results(c, h, w, x, weights[f*k:], py+1)
					for px := 0; px < w-4; px += 2 {
						best := larger2(larger2(larger2(upper[px], upper[px+1]), lower[px]), lower[px+1])
						y = append(y, larger2(0, best+weights[filters*k+f]))
					}
				}
			}
			return y
		},
	}
}

// results returns a row of results.
func results(c, h, w int, x, weights []float32, py int) (row []float32) {
	for px := 0; px < w-4; {
		way := two()
		if px+4 <= w-4 {
			way = four()
		}
		some := way.results(c, h, w, x, weights, py, px)
		row, px = append(row, some...), px+len(some)
	}
	return row
}

// way is one of computing neighbouring results, as the comment of convolution has them.
type way struct {
	points  []point // all but infinity
	inputs  []func(d []float32) float32
	combine func(m []float32) []float32
}

type point struct{ at, times float64 }

func two() way {
	return way{
		[]point{{0, 1. / 4}, {1, -1. / 6}, {-1, -1. / 6}, {2, 1. / 24}, {-2, 1. / 24}},
		[]func(d []float32) float32{
			func(d []float32) float32 { return float32(float32(4*d[0])-float32(5*d[2])) + d[4] },
			func(d []float32) float32 { return (d[4] - float32(4*d[2])) + (d[3] - float32(4*d[1])) },
			func(d []float32) float32 { return (d[4] - float32(4*d[2])) - (d[3] - float32(4*d[1])) },
			func(d []float32) float32 { return (d[4] - d[2]) + float32(2*(d[3]-d[1])) },
			func(d []float32) float32 { return (d[4] - d[2]) - float32(2*(d[3]-d[1])) },
			func(d []float32) float32 { return float32(float32(4*d[1])-float32(5*d[3])) + d[5] },
		},
		func(m []float32) []float32 {
			return []float32{m[0] + (m[1] + m[2]) + (m[3] + m[4]), (m[1] - m[2]) + float32(2*(m[3]-m[4])) + m[5]}
		},
	}
}

func four() way {
	one := func(d []float32, k int) float32 { return (d[k+4] + d[k]) - float32(4.25*d[k+2]) }
	twice := func(d []float32, k int) float32 { return (d[k+4] + d[k]/4) - float32(1.25*d[k+2]) }
	half := func(d []float32, k int) float32 { return (d[k+4] + float32(4*d[k])) - float32(5*d[k+2]) }
	return way{
		[]point{{0, 1}, {1, -2. / 9}, {-1, -2. / 9}, {2, 1. / 90}, {-2, 1. / 90}, {0.5, 32. / 45}, {-0.5, 32. / 45}},
		[]func(d []float32) float32{
			func(d []float32) float32 { return float32(5.25*(d[4]-d[2])) + (d[0] - d[6]) },
			func(d []float32) float32 { return one(d, 2) + one(d, 1) },
			func(d []float32) float32 { return one(d, 2) - one(d, 1) },
			func(d []float32) float32 { return twice(d, 2) + float32(2*twice(d, 1)) },
			func(d []float32) float32 { return twice(d, 2) - float32(2*twice(d, 1)) },
			func(d []float32) float32 { return half(d, 2) + half(d, 1)/2 },
			func(d []float32) float32 { return half(d, 2) - half(d, 1)/2 },
			func(d []float32) float32 { return float32(5.25*(d[3]-d[5])) + (d[7] - d[1]) },
		},
		func(m []float32) []float32 {
			s1, s2, s3 := m[1]+m[2], m[3]+m[4], m[5]+m[6]
			d1, d2, d3 := m[1]-m[2], m[3]-m[4], m[5]-m[6]
			return []float32{
				(m[0] + s1) + (s2 + s3), (d1 + float32(2*d2)) + d3/2, (s1 + float32(4*s2)) + s3/4,
				((d1 + float32(8*d2)) + d3/2/4) + m[7],
			}
		},
	}
}

// results returns the results from px on, one plane after the other.
func (v way) results(c, h, w int, x, weights []float32, py, px int) []float32 {
	m := make([]float32, len(v.inputs))
	for p, input := range v.inputs {
		m[p] = unit(float32(math.Copysign(0, -1)), 5*c, func(i int) (float32, float32) {
			row := weights[i/5*25+i%5*5:][:5]
			value := float64(row[4])
			if p < len(v.points) {
				value = v.points[p].weight(row)
			}
			return float32(value), input(x[(i/5*h+py+i%5)*w+px:])
		})
	}
	return v.combine(m)
}

// weight is a polynomial's value at the point, even powers and odd ones apart.
func (p point) weight(row []float32) float64 {
	var sums [2]float64
	for k, g := range row {
		sums[k%2] += math.Pow(p.at, float64(k)) * float64(g)
	}
	return (sums[0] + sums[1]) * p.times
}

// The planes' products are those of the definition, in double precision, to its error.
func TestConvolutionIsOne(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const c, h, w = 3, 12, 14
	x, weights := make([]float32, c*h*w), make([]float32, 25*c)
	for i := range x {
		x[i] = float32(rnd.NormFloat64())
	}
	for i := range weights {
		weights[i] = float32(rnd.NormFloat64())
	}
	for py := range h - 4 {
		for px, got := range results(c, h, w, x, weights, py) {
			want, size := 0.0, 0.0
			for i, v := range weights {
				term := float64(v) * float64(x[(i/25*h+py+i/5%5)*w+px+i%5])
				want += term
				size += math.Abs(term)
			}
			if math.Abs(float64(got)-want) > 1e-6*size {
				t.Fatalf("result %d, %d is %v, want %v", py, px, got, want)
			}
		}
	}
}

func connected(inputs, units int, hidden bool) shape {
	s := shape{name: fmt.Sprintf("%d to %d, hidden %v", inputs, units, hidden)}
	s.make = func(p vector.Path) *Layer {
		if hidden {
			return Hidden(p, inputs, units)
		}
		return Output(p, inputs, units)
	}
	s.naive = func(x, w []float32) (y []float32) {
		for u := range units {
			sum := unit(w[inputs*units+u], inputs, func(k int) (float32, float32) { return w[u*inputs+k], x[k] })
			if hidden {
				sum = larger2(0, sum)
			}
			y = append(y, sum)
		}
		return y
	}
	return s
}

// shapes have tiles and runs that go up, and such as do not.
func shapes() []shape {
	return []shape{
		filters(3, 32, 32, 6), filters(6, 14, 14, 16), filters(1, 6, 6, 1), filters(2, 6, 10, 7), filters(1, 8, 6, 13),
		connected(400, 120, true), connected(120, 84, true), connected(84, 1, false), connected(1, 1, false),
		connected(4, 5, false), connected(5, 8, true), connected(7, 11, false), connected(11, 23, true),
	}
}

// odd returns numbers of all sizes: zeros of both signs, numbers too small for a normal
// exponent and such as overflow when multiplied.
func odd(rnd *rand.Rand) float32 {
	switch rnd.IntN(8) {
	case 0:
		return float32(math.Copysign(0, rnd.Float64()-0.5))
	case 1:
		return math.Float32frombits(rnd.Uint32())
	case 2:
		return float32(rnd.NormFloat64() * 1e-30)
	}
	return float32(rnd.NormFloat64())
}

// same reports whether two results are the same bits, or are both no number: which one
// of these a processor gives is its own affair.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// TestPaths compares every unit of every sample with the formula in float32, to the
// bit, and makes sure that nothing else is written.
func TestPaths(t *testing.T) {
	for _, p := range vector.Paths() {
		t.Run(p.String(), func(t *testing.T) {
			available(t, p)
			for _, s := range shapes() {
				for name, draw := range map[string]func(*rand.Rand) float32{
					"usual": func(rnd *rand.Rand) float32 { return float32(rnd.NormFloat64()) }, "odd": odd,
				} {
					checkShape(t, p, s, name, draw)
				}
			}
		})
	}
}

func checkShape(t *testing.T, p vector.Path, s shape, name string, draw func(*rand.Rand) float32) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	l := s.make(p)
	lanes := Lanes(p)
	w := make([]float32, l.Parameters())
	for i := range w {
		w[i] = draw(rnd)
	}
	packed, scratch := make([]float32, l.Packed()), make([]float32, l.Scratch())
	wide := make([]float64, len(w))
	for i, v := range w {
		wide[i] = float64(v)
	}
	l.Pack(packed, wide)
	const edge, mark = 100, 12345
	x, y := make([]float32, l.Inputs()*lanes), make([]float32, l.Units()*lanes+2*edge)
	for i := range x {
		x[i] = draw(rnd)
	}
	for i := range y {
		y[i] = mark
	}
	l.Run(y[edge:], x, packed, scratch)
	for i := range edge {
		if y[i] != mark || y[len(y)-1-i] != mark {
			t.Fatalf("%s, %s: wrote outside of the result", s.name, name)
		}
	}
	sample := make([]float32, l.Inputs())
	for _, lane := range []int{0, 1, lanes / 2, lanes - 1} {
		for i := range sample {
			sample[i] = x[i*lanes+lane]
		}
		for u, want := range s.naive(sample, w) {
			if got := y[edge+u*lanes+lane]; !same(got, want) {
				t.Fatalf("%s, %s: unit %d of sample %d is %v (%08x), want %v (%08x)", s.name, name, u, lane,
					got, math.Float32bits(got), want, math.Float32bits(want))
			}
		}
	}
}

// TestRest has what lies beyond a layer's inputs and parameters be no number: nothing
// of it may reach a result.
func TestRest(t *testing.T) {
	for _, p := range vector.Paths() {
		t.Run(p.String(), func(t *testing.T) {
			available(t, p)
			for _, s := range shapes() {
				l := s.make(p)
				n, m := l.Inputs()*Lanes(p), l.Packed()
				x, w := make([]float32, n+1000), make([]float32, m+1000)
				for i := range 1000 {
					x[n+i], w[m+i] = float32(math.NaN()), float32(math.NaN())
				}
				y := make([]float32, l.Units()*Lanes(p))
				l.Run(y, x, w, make([]float32, l.Scratch()))
				for i, v := range y {
					if v != 0 {
						t.Fatalf("%s: result %d of zeros is %v", s.name, i, v)
					}
				}
			}
		})
	}
}

// TestGather compares every number of panels with the rule of Columns, and makes sure that
// nothing else is written.
func TestGather(t *testing.T) {
	for _, p := range vector.Paths() {
		t.Run(p.String(), func(t *testing.T) {
			available(t, p)
			rnd := rand.New(rand.NewPCG(7, 8))
			lanes := Lanes(p)
			rows := make([][]uint8, lanes+1)
			for i := range rows {
				rows[i] = make([]uint8, 200)
				for j := range rows[i] {
					rows[i][j] = uint8(rnd.Uint32())
				}
			}
			for _, c := range []Columns{
				{0, 200, 1 / (255 * 0.247), -0.4914 / 0.247}, {0, 16, 1, 0}, {7, 193, 1. / 3, 1e9}, {199, 1, 1. / 255, 0}, {3, 31, -1. / 7, 1. / 9}, {200, 0, 1, 1},
			} {
				const mark = 12345
				dst := make([]float32, 201*lanes)
				for i := range dst {
					dst[i] = mark
				}
				Gather(p, dst, rows, c)
				for i, got := range dst {
					want := float32(mark)
					if column := i / lanes; column >= c.From && column < c.From+c.Count {
						want = float32(float64(c.Factor*float64(rows[i%lanes][column])) + c.Addend)
					}
					if got != want {
						t.Fatalf("%+v: column %d of row %d is %v, want %v", c, i/lanes, i%lanes, got, want)
					}
				}
			}
		})
	}
}

func TestExercise(t *testing.T) {
	for _, p := range vector.Paths() {
		if p.Lacks() != "" {
			continue
		}
		if n := Exercise(p, 1000); n < 1000 {
			t.Errorf("%s: %d of 1000", p, n)
		}
		if n := Exercise(p, 0); n != 0 {
			t.Errorf("%s: %d of none", p, n)
		}
	}
}
