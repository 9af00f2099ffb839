package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// target is an instruction set: its vector registers and how many of them make the
// lanes of a panel.
type target struct {
	name    string
	vectors []reg.VecPhysical
	bytes   int // of a register
	width   int // registers a panel
}

// run is how many terms are computed in a row, and the side of a filter: kernel.run.
const run = 5

// tiles writes what package kernel has in assembly: for AVX2 and for AVX-512 the tiles of 6,
// 5 and 1 rows, and a loop of nothing but multiplications and additions, which measures
// what a core can do.
func tiles() {
	for _, t := range targets() {
		for _, rows := range []int{6, 5, 1} {
			t.tile(rows)
		}
		t.winograds()
		t.gather()
		t.peak()
	}
}

// targets returns the instruction sets.
func targets() []target {
	return []target{
		{"AVX2", []reg.VecPhysical{
			reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
			reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
		}, 32, 2},
		{"AVX512", []reg.VecPhysical{
			reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
			reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
			reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
			reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
		}, 64, 2},
	}
}

// tile writes the function of one tile of rows of a fully connected layer. It is long
// because it is one assembly function, whose registers live from its first line to its
// last: in parts, all would be handed around.
func (t target) tile(rows int) {
	TEXT(fmt.Sprintf("tile%d%s", rows, t.name), NOSPLIT, "func(y *float32, stride int, x, w *float32, whole, rest int, floor float32)")
	Doc(fmt.Sprintf("tile%d%s computes a tile of rows: %d of them, on a panel of %d lanes, of whole times %d terms and the rest of them. The stride from row to row of y is in bytes.", rows, t.name, rows, t.width*t.bytes/4, run))
	Pragma("noescape")

	n := rows * t.width
	acc, x := t.vectors[:n], t.vectors[n:n+t.width]
	weight, product := t.vectors[n+t.width], t.vectors[n+t.width+1]

	y, stride := Load(Param("y"), GP64()), Load(Param("stride"), GP64())
	input, w, left := Load(Param("x"), GP64()), Load(Param("w"), GP64()), Load(Param("whole"), GP64())
	Comment("Sums begin with the bias.")
	for r := range rows {
		VBROADCASTSS(Mem{Base: w, Disp: 4 * r}, acc[r*t.width])
		for v := 1; v < t.width; v++ {
			VMOVAPS(acc[r*t.width], acc[r*t.width+v])
		}
	}
	ADDQ(Imm(uint64(4*rows)), w)

	terms := func(count int) {
		for i := range count {
			for v := range t.width {
				VMOVUPS(Mem{Base: input, Disp: (i*t.width + v) * t.bytes}, x[v])
			}
			for r := range rows {
				VBROADCASTSS(Mem{Base: w, Disp: 4 * (i*rows + r)}, weight)
				t.row(x, weight, product, acc[r*t.width:])
			}
		}
		ADDQ(U32(uint32(count*t.width*t.bytes)), input)
		ADDQ(U32(uint32(4*count*rows)), w)
		DECQ(left)
	}
	TESTQ(left, left)
	JZ(LabelRef("rest"))
	Label("run")
	terms(run)
	JNZ(LabelRef("run"))
	Label("rest")
	Load(Param("rest"), left)
	TESTQ(left, left)
	JZ(LabelRef("floor"))
	Label("term")
	terms(1)
	JNZ(LabelRef("term"))

	Label("floor")
	floor, err := Param("floor").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(floor.Addr, product)
	for r := range rows {
		for v := range t.width {
			VMAXPS(acc[r*t.width+v], product, weight)
			VMOVUPS(weight, Mem{Base: y, Disp: v * t.bytes})
		}
		if r < rows-1 {
			ADDQ(stride, y)
		}
	}
	VZEROUPPER()
	RET()
}

// row adds to the sums of one row. Pairs of products come before their additions,
// which on Zen 3 was a few per cent faster than turn by turn.
func (t target) row(x []reg.VecPhysical, weight, product reg.VecPhysical, acc []reg.VecPhysical) {
	for v := 0; v < t.width; v += 2 {
		if v+2 < t.width {
			// The weight is needed again.
			VMULPS(x[v], weight, product)
			VADDPS(product, acc[v], acc[v])
			VMULPS(x[v+1], weight, product)
			VADDPS(product, acc[v+1], acc[v+1])
			continue
		}
		VMULPS(x[v], weight, product)
		VMULPS(x[v+1], weight, weight)
		VADDPS(product, acc[v], acc[v])
		VADDPS(weight, acc[v+1], acc[v+1])
	}
}

// peak writes a loop of independent multiplications and additions in registers.
func (t target) peak() {
	const sums = 12
	TEXT("peak"+t.name, NOSPLIT, "func(n int)")
	Doc(fmt.Sprintf("peak%s does n times %d multiplications, each followed by its addition, of %d lanes.", t.name, sums, t.bytes/4))
	n := Load(Param("n"), GP64())
	for _, v := range t.vectors[:16] {
		VPXOR(v.(reg.Vec).AsX(), v.(reg.Vec).AsX(), v.(reg.Vec).AsX())
	}
	Label("again")
	factor, products := t.vectors[15], t.vectors[12:15]
	for i := range sums {
		VMULPS(factor, factor, products[i%3])
		VADDPS(products[i%3], t.vectors[i], t.vectors[i])
	}
	DECQ(n)
	JNZ(LabelRef("again"))
	VZEROUPPER()
	RET()
}
