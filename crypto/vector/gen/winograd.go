package main

import (
	"fmt"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// method is one of kernel's ways to compute neighbouring results of a row of five weights:
// two with six products, or four with eight.
type method struct {
	name    string
	results int
}

func methods() []method { return []method{{"pairs", 2}, {"fours", 4}} }

// planes is how many products the results take: kernel.method's.
func (m method) planes() int { return m.results + run - 1 }

// winograds writes the functions of convolutions.
func (t target) winograds() {
	for _, m := range methods() {
		t.spread(m)
		for _, rows := range []int{6, 5, 1} {
			t.filters(m, rows)
		}
	}
}

// constants sets registers to numbers in all lanes.
func constants(numbers []float32, to []reg.VecPhysical) {
	bits := GP32()
	for i, x := range numbers {
		MOVL(U32(math.Float32bits(x)), bits)
		VMOVD(bits, to[i].(reg.Vec).AsX())
		VBROADCASTSS(to[i].(reg.Vec).AsX(), to[i])
	}
}

// spread writes the function that makes the planes of inputs.
func (t target) spread(m method) {
	name := "spread" + strings.ToUpper(m.name[:1]) + m.name[1:] + t.name
	TEXT(name, NOSPLIT, "func(dst, x *float32, stride, count int)")
	Doc(fmt.Sprintf("%s sets %d planes of count panels of %d lanes, each made of as many neighbours in x. The stride from one first neighbour to the next is in bytes.", name, m.planes(), t.width*t.bytes/4))
	Pragma("noescape")
	dst, x := Load(Param("dst"), GP64()), Load(Param("x"), GP64())
	stride, left := Load(Param("stride"), GP64()), Load(Param("count"), GP64())
	body := t.spreadPairs
	if m.results == 4 {
		body = t.spreadFours
	}
	panel := t.width * t.bytes
	body(func(loop func(of func(at int) Mem, to func(plane int) Mem)) {
		Label("panel")
		for v := range t.width {
			loop(
				func(at int) Mem { return Mem{Base: x, Disp: at*panel + v*t.bytes} },
				func(plane int) Mem { return Mem{Base: dst, Disp: plane*panel + v*t.bytes} },
			)
		}
	})
	ADDQ(stride, x)
	ADDQ(U32(uint32(m.planes()*panel)), dst)
	DECQ(left)
	JNZ(LabelRef("panel"))
	VZEROUPPER()
	RET()
}

// spreadPairs makes the planes of two results.
func (t target) spreadPairs(each func(func(of, to func(int) Mem))) {
	d, four, five, a, b, out := t.vectors[:6], t.vectors[6], t.vectors[7], t.vectors[8], t.vectors[9], t.vectors[10]
	constants([]float32{4, 5}, t.vectors[6:8])
	each(func(of, to func(int) Mem) {
		for i := range d {
			VMOVUPS(of(i), d[i])
		}
		end := func(plane, first, middle, last int) {
			VMULPS(four, d[first], a)
			VMULPS(five, d[middle], b)
			VSUBPS(b, a, out)
			VADDPS(d[last], out, out)
			VMOVUPS(out, to(plane))
		}
		end(0, 0, 2, 4)
		VMULPS(four, d[2], a)
		VSUBPS(a, d[4], a)
		VMULPS(four, d[1], b)
		VSUBPS(b, d[3], b)
		both(a, b, out, to, 1)
		VSUBPS(d[2], d[4], a)
		VSUBPS(d[1], d[3], b)
		VADDPS(b, b, b)
		both(a, b, out, to, 3)
		end(5, 1, 3, 5)
	})
}

// both stores a plane, of a point, and the next one, of the point's negative.
func both(even, odd, out reg.VecPhysical, to func(int) Mem, plane int) {
	VADDPS(odd, even, out)
	VMOVUPS(out, to(plane))
	VSUBPS(odd, even, out)
	VMOVUPS(out, to(plane+1))
}

// spreadFours makes the planes of four results. Of the inputs d all planes but the ends'
// take (d6 + p d2) - q d4 and (d5 + p d1) - q d3.
func (t target) spreadFours(each func(func(of, to func(int) Mem))) {
	c, half, end := t.vectors[:5], t.vectors[5], t.vectors[6]
	low, high, middle, even, odd, out := t.vectors[7], t.vectors[8], t.vectors[9], t.vectors[10:13], t.vectors[13], t.vectors[14]
	constants([]float32{4.25, 0.25, 1.25, 4, 5, 0.5, 5.25}, t.vectors[:7])
	sum := func(p, q, to reg.VecPhysical) {
		if p == nil {
			VADDPS(low, high, to)
		} else {
			VMULPS(p, low, to)
			VADDPS(to, high, to)
		}
		VMULPS(q, middle, out)
		VSUBPS(out, to, to)
	}
	factors := [][2]reg.VecPhysical{{nil, c[0]}, {c[1], c[2]}, {c[3], c[4]}}
	each(func(of, to func(int) Mem) {
		load := func(l, m, h int) {
			VMOVUPS(of(l), low)
			VMOVUPS(of(m), middle)
			VMOVUPS(of(h), high)
		}
		Comment("The even inputs.")
		load(2, 4, 6)
		VSUBPS(low, middle, out)
		VMULPS(end, out, out)
		VMOVUPS(of(0), odd)
		VSUBPS(high, odd, odd)
		VADDPS(out, odd, out)
		VMOVUPS(out, to(0))
		for i, f := range factors {
			sum(f[0], f[1], even[i])
		}
		Comment("The odd inputs.")
		load(1, 3, 5)
		VSUBPS(high, middle, out)
		VMULPS(end, out, out)
		VMOVUPS(of(7), odd)
		VSUBPS(low, odd, odd)
		VADDPS(out, odd, out)
		VMOVUPS(out, to(7))
		for i, f := range factors {
			sum(f[0], f[1], odd)
			switch i {
			case 1:
				VADDPS(odd, odd, odd)
			case 2:
				VMULPS(half, odd, odd)
			}
			both(even[i], odd, out, to, 1+2*i)
		}
	})
}

// filters writes the function of a tile of rows. It is long because it is one assembly
// function, whose registers live from its first line to its last.
func (t target) filters(m method, rows int) {
	name, planes := fmt.Sprint(m.name, rows, t.name), m.planes()
	TEXT(name, NOSPLIT, "func(y *float32, stride, step int, x *float32, channel, channels int, w *float32, products *float32, groups int)")
	Doc(fmt.Sprintf("%s computes a tile of rows: %d filters, on panels of %d lanes. Strides from row to row of y, from group to group of y, and from channel to channel of x are in bytes.", name, rows, t.width*t.bytes/4))
	Pragma("noescape")
	n := rows * t.width
	acc, x := t.vectors[:n], t.vectors[n:n+t.width]
	weight, product := t.vectors[n+t.width], t.vectors[n+t.width+1]
	panel := t.width * t.bytes

	y, line := Load(Param("y"), GP64()), Load(Param("x"), GP64())
	channel, products := Load(Param("channel"), GP64()), Load(Param("products"), GP64())
	groups := Load(Param("groups"), GP64())
	plane, input, w, left, to, start := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	Label("group")
	for h := range 2 {
		name := func(label string) string { return fmt.Sprint(label, h) }
		MOVQ(products, to)
		MOVQ(line, start)
		Load(Param("w"), w)
		MOVQ(U32(uint32(planes)), plane)
		Label(name("plane"))
		MOVQ(start, input)
		Load(Param("channels"), left)
		terms := func(first bool) {
			for k := range run {
				for v := range t.width {
					VMOVUPS(Mem{Base: input, Disp: k*planes*panel + v*t.bytes}, x[v])
				}
				for r := range rows {
					VBROADCASTSS(Mem{Base: w, Disp: 4 * (k*rows + r)}, weight)
					if sums := acc[r*t.width:]; !first || k > 0 {
						t.row(x, weight, product, sums)
						continue
					}
					for v := range t.width {
						VMULPS(x[v], weight, acc[r*t.width+v])
					}
				}
			}
			ADDQ(channel, input)
			ADDQ(U32(4*run*uint32(rows)), w)
			DECQ(left)
		}
		terms(true)
		JZ(LabelRef(name("products")))
		Label(name("channel"))
		terms(false)
		JNZ(LabelRef(name("channel")))
		Label(name("products"))
		for i, v := range acc {
			VMOVUPS(v, Mem{Base: to, Disp: i * t.bytes})
		}
		ADDQ(U32(uint32(n*t.bytes)), to)
		ADDQ(U32(uint32(panel)), start)
		DECQ(plane)
		JNZ(LabelRef(name("plane")))
		ADDQ(U32(uint32(planes*panel)), line)
		t.largest(m, rows, h, y, w, products)
	}
	step := GP64()
	Load(Param("step"), step)
	ADDQ(step, y)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// largest keeps in y the largest of the results that the products are: of the first row of
// pools, or, in the second half, of both rows, to which the filter's bias is added.
func (t target) largest(m method, rows, half int, y, w, products reg.Register) {
	to, stride := GP64(), GP64()
	MOVQ(y, to)
	Load(Param("stride"), stride)
	planes := m.planes()
	p := t.vectors[:planes]
	temps, bias, zero := t.vectors[planes:planes+2], t.vectors[planes+2], t.vectors[planes+3]
	combine := t.combinePair
	if m.results == 4 {
		combine = t.combineFour
		constants([]float32{4, 2, 0.5, 0.25}, t.vectors[planes+4:])
	}
	VXORPS(zero, zero, zero)
	for r := range rows {
		if half == 1 {
			Comment(fmt.Sprintf("Filter %d: its bias lies behind all weights.", r))
			VBROADCASTSS(Mem{Base: w, Disp: 4 * r}, bias)
		}
		for v := range t.width {
			for i := range p {
				VMOVUPS(Mem{Base: products, Disp: ((i*rows+r)*t.width + v) * t.bytes}, p[i])
			}
			results := combine(p, temps, t.vectors[planes+4:])
			for i := 0; i < m.results; i += 2 {
				result := Mem{Base: to, Disp: (i/2*t.width + v) * t.bytes}
				best := temps[0]
				if half == 0 {
					VMAXPS(results[i+1], results[i], best)
				} else {
					VMOVUPS(result, best)
					VMAXPS(results[i], best, best)
					VMAXPS(results[i+1], best, best)
					VADDPS(bias, best, best)
					VMAXPS(best, zero, best)
				}
				VMOVUPS(best, result)
			}
		}
		if r < rows-1 {
			ADDQ(stride, to)
		}
	}
}

// sumAndDifference sets a to a + b and b to a - b.
func sumAndDifference(a, b, temp reg.VecPhysical) {
	VADDPS(b, a, temp)
	VSUBPS(b, a, b)
	VMOVAPS(temp, a)
}

// combinePair makes two results of the products m.
func (t target) combinePair(m, temps, _ []reg.VecPhysical) []reg.VecPhysical {
	sum, difference := temps[0], temps[1]
	VADDPS(m[2], m[1], sum)
	VSUBPS(m[2], m[1], difference)
	VADDPS(sum, m[0], m[0])
	VADDPS(m[4], m[3], sum)
	VADDPS(sum, m[0], m[0])
	VSUBPS(m[4], m[3], sum)
	VADDPS(sum, sum, sum)
	VADDPS(sum, difference, difference)
	VADDPS(m[5], difference, difference)
	return []reg.VecPhysical{m[0], difference}
}

// combineFour makes four results of the products m. The numbers c are 4, 2, 1/2 and 1/4: a
// multiplication leaves the units free that add, which are busier.
func (t target) combineFour(m, temps, c []reg.VecPhysical) []reg.VecPhysical {
	temp := temps[0]
	for i := 1; i < 7; i += 2 {
		sumAndDifference(m[i], m[i+1], temp)
	}
	s, d := []reg.VecPhysical{m[1], m[3], m[5]}, []reg.VecPhysical{m[2], m[4], m[6]}
	add := func(x, to reg.VecPhysical) { VADDPS(x, to, to) }
	Comment("m0 + s1 + s2 + s3.")
	add(s[0], m[0])
	VADDPS(s[2], s[1], temp)
	add(temp, m[0])
	Comment("s1 + 4 s2 + s3/4.")
	VMULPS(c[0], s[1], s[1])
	VMULPS(c[3], s[2], s[2])
	add(s[1], s[0])
	add(s[2], s[0])
	Comment("d1 + 2 d2 + d3/2, and d1 + 8 d2 + d3/8 + m7.")
	VMULPS(c[1], d[1], d[1])
	VMULPS(c[2], d[2], d[2])
	VMULPS(c[0], d[1], s[1])
	VMULPS(c[3], d[2], s[2])
	add(d[0], d[1])
	add(d[2], d[1])
	add(d[0], s[1])
	add(s[2], s[1])
	add(m[7], s[1])
	return []reg.VecPhysical{m[0], d[1], s[0], s[1]}
}
