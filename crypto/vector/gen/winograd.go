package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// planes is how many products two neighbouring results of a row of five weights take:
// kernel.planes.
const planes = 6

// winograds writes the functions of convolutions.
func (t target) winograds() {
	t.spread()
	for _, rows := range []int{6, 5, 1} {
		t.pairs(rows)
	}
}

// spread writes the function that makes the planes of inputs.
func (t target) spread() {
	TEXT("spread"+t.name, NOSPLIT, "func(dst, x *float32, stride, count int)")
	Doc(fmt.Sprintf("spread%s sets %d planes of count panels of %d lanes, each made of six neighbours in x. The stride from one first neighbour to the next is in bytes.", t.name, planes, t.width*t.bytes/4))
	Pragma("noescape")
	dst, x := Load(Param("dst"), GP64()), Load(Param("x"), GP64())
	stride, left := Load(Param("stride"), GP64()), Load(Param("count"), GP64())
	d, four, five, a, b, out := t.vectors[:6], t.vectors[6], t.vectors[7], t.vectors[8], t.vectors[9], t.vectors[10]
	constant := GP32()
	for _, c := range []struct {
		v    reg.VecPhysical
		bits uint32
	}{{four, 0x40800000}, {five, 0x40a00000}} {
		MOVL(U32(c.bits), constant)
		VMOVD(constant, c.v.(reg.Vec).AsX())
		VBROADCASTSS(c.v.(reg.Vec).AsX(), c.v)
	}
	Label("panel")
	panel := t.width * t.bytes
	for v := range t.width {
		for i := range d {
			VMOVUPS(Mem{Base: x, Disp: i*panel + v*t.bytes}, d[i])
		}
		to := func(plane int) Mem { return Mem{Base: dst, Disp: plane*panel + v*t.bytes} }
		end := func(plane, first, middle, last int) {
			VMULPS(four, d[first], a)
			VMULPS(five, d[middle], b)
			VSUBPS(b, a, out)
			VADDPS(d[last], out, out)
			VMOVUPS(out, to(plane))
		}
		both := func(plane int) {
			VADDPS(b, a, out)
			VMOVUPS(out, to(plane))
			VSUBPS(b, a, out)
			VMOVUPS(out, to(plane+1))
		}
		end(0, 0, 2, 4)
		VMULPS(four, d[2], a)
		VSUBPS(a, d[4], a)
		VMULPS(four, d[1], b)
		VSUBPS(b, d[3], b)
		both(1)
		VSUBPS(d[2], d[4], a)
		VSUBPS(d[1], d[3], b)
		VADDPS(b, b, b)
		both(3)
		end(5, 1, 3, 5)
	}
	ADDQ(stride, x)
	ADDQ(U32(uint32(planes*panel)), dst)
	DECQ(left)
	JNZ(LabelRef("panel"))
	VZEROUPPER()
	RET()
}

// pairs writes the function of a tile of rows. It is long because it is one assembly
// function, whose registers live from its first line to its last.
func (t target) pairs(rows int) {
	TEXT(fmt.Sprintf("pairs%d%s", rows, t.name), NOSPLIT, "func(y *float32, stride, step int, x *float32, channel, channels int, w *float32, products *float32, groups int)")
	Doc(fmt.Sprintf("pairs%d%s computes a tile of rows: %d filters, on panels of %d lanes. Strides from row to row of y, from group to group of y, and from channel to channel of x are in bytes.", rows, t.name, rows, t.width*t.bytes/4))
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
		MOVQ(U32(planes), plane)
		Label(name("plane"))
		for _, v := range acc {
			VXORPS(v, v, v)
		}
		MOVQ(start, input)
		Load(Param("channels"), left)
		Label(name("channel"))
		for k := range run {
			for v := range t.width {
				VMOVUPS(Mem{Base: input, Disp: k*planes*panel + v*t.bytes}, x[v])
			}
			for r := range rows {
				VBROADCASTSS(Mem{Base: w, Disp: 4 * (k*rows + r)}, weight)
				t.row(x, weight, product, acc[r*t.width:])
			}
		}
		ADDQ(channel, input)
		ADDQ(U32(4*run*uint32(rows)), w)
		DECQ(left)
		JNZ(LabelRef(name("channel")))
		for i, v := range acc {
			VMOVUPS(v, Mem{Base: to, Disp: i * t.bytes})
		}
		ADDQ(U32(uint32(n*t.bytes)), to)
		ADDQ(U32(uint32(panel)), start)
		DECQ(plane)
		JNZ(LabelRef(name("plane")))
		ADDQ(U32(uint32(planes*panel)), line)
		t.largest(rows, h, y, w, products)
	}
	step := GP64()
	Load(Param("step"), step)
	ADDQ(step, y)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// largest keeps in y the largest of the results that the products are: of the first two of
// a pool, or, in the second half, of all four, to which the filter's bias is added.
func (t target) largest(rows, half int, y, w, products reg.Register) {
	to, stride := GP64(), GP64()
	MOVQ(y, to)
	Load(Param("stride"), stride)
	m := t.vectors[:planes]
	sum, difference, best, bias, zero := t.vectors[6], t.vectors[7], t.vectors[8], t.vectors[9], t.vectors[10]
	VXORPS(zero, zero, zero)
	for r := range rows {
		if half == 1 {
			Comment(fmt.Sprintf("Filter %d: its bias lies behind all weights.", r))
			VBROADCASTSS(Mem{Base: w, Disp: 4 * r}, bias)
		}
		for v := range t.width {
			for p := range planes {
				VMOVUPS(Mem{Base: products, Disp: ((p*rows+r)*t.width + v) * t.bytes}, m[p])
			}
			VADDPS(m[2], m[1], sum)
			VSUBPS(m[2], m[1], difference)
			VADDPS(sum, m[0], m[0])
			VADDPS(m[4], m[3], sum)
			VADDPS(sum, m[0], m[0])
			VSUBPS(m[4], m[3], sum)
			VADDPS(sum, sum, sum)
			VADDPS(sum, difference, difference)
			VADDPS(m[5], difference, difference)
			result := Mem{Base: to, Disp: v * t.bytes}
			if half == 0 {
				VMAXPS(difference, m[0], best)
			} else {
				VMOVUPS(result, best)
				VMAXPS(m[0], best, best)
				VMAXPS(difference, best, best)
				VADDPS(bias, best, best)
				VMAXPS(best, zero, best)
			}
			VMOVUPS(best, result)
		}
		if r < rows-1 {
			ADDQ(stride, to)
		}
	}
}
