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

// run is how many terms in a row have inputs that lie in a row: kernel.run.
const run = 5

// tiles writes what package kernel has in assembly: for AVX2 and for AVX-512 the tiles of 6,
// 5 and 1 rows, and a loop of nothing but multiplications and additions, which measures
// what a core can do.
func tiles() {
	for _, t := range []target{
		{"AVX2", []reg.VecPhysical{
			reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
			reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
		}, 32, 2},
		{"AVX512", []reg.VecPhysical{
			reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
			reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
			reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
			reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
		}, 64, 4},
	} {
		for _, rows := range []int{6, 5, 1} {
			t.tile(rows)
		}
		t.peak()
	}
}

// tile writes the function of one tile of rows; the Go declaration that avo writes
// beside it says what it is given. It is long because it is one assembly function, whose
// registers live from its first line to its last: in parts, all would be handed around.
func (t target) tile(rows int) {
	TEXT(fmt.Sprintf("tile%d%s", rows, t.name), NOSPLIT, "func(y *float32, stride int, x *float32, places *int32, groups, pool int, w *float32, runs *int32, whole, rest int, floor float32)")
	Doc(fmt.Sprintf("tile%d%s computes a tile of rows: %d of them, on panels of %d lanes. The stride from row to row of y is in bytes.", rows, t.name, rows, t.width*t.bytes/4))
	Pragma("noescape")

	n := rows * t.width
	acc, x := t.vectors[:n], t.vectors[n:n+t.width]
	weight, product := t.vectors[n+t.width], t.vectors[n+t.width+1]

	y := Load(Param("y"), GP64())
	stride := Load(Param("stride"), GP64())
	from := Load(Param("x"), GP64())
	place := Load(Param("places"), GP64())
	groups := Load(Param("groups"), GP64())

	// Row r of the result is at y + r*stride, with 1, 2 and 4 as factors of an
	// address: 3 and 5 need a register.
	var stride3, stride5 reg.Register
	if rows > 3 {
		s := GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, s)
		stride3 = s
	}
	if rows > 5 {
		s := GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 4}, s)
		stride5 = s
	}
	result := func(r, v int) Mem {
		m := Mem{Base: y, Disp: v * t.bytes}
		switch r {
		case 1, 2, 4:
			m.Index, m.Scale = stride, uint8(r)
		case 3:
			m.Index, m.Scale = stride3, 1
		case 5:
			m.Index, m.Scale = stride5, 1
		}
		return m
	}

	base, left, w, runs, pool, at := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()

	Label("group")
	Comment("The largest so far is the floor.")
	floor, err := Param("floor").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(floor.Addr, product)
	for r := range rows {
		for v := range t.width {
			VMOVUPS(product, result(r, v))
		}
	}
	Load(Param("pool"), pool)

	Label("place")
	MOVLQSX(Mem{Base: place}, base)
	ADDQ(Imm(4), place)
	LEAQ(Mem{Base: from, Index: base, Scale: 4}, base)
	Load(Param("w"), w)
	Load(Param("runs"), runs)
	Load(Param("whole"), left)
	MOVLQSX(Mem{Base: runs}, at)
	Comment("Sums begin with the bias.")
	for r := range rows {
		VBROADCASTSS(Mem{Base: w, Disp: 4 * r}, acc[r*t.width])
		for v := 1; v < t.width; v++ {
			VMOVAPS(acc[r*t.width], acc[r*t.width+v])
		}
	}
	ADDQ(Imm(uint64(4*rows)), w)

	input := GP64()
	term := func(i int) {
		for v := range t.width {
			VMOVUPS(Mem{Base: input, Disp: (i*t.width + v) * t.bytes}, x[v])
		}
		for r := range rows {
			VBROADCASTSS(Mem{Base: w, Disp: 4 * (i*rows + r)}, weight)
			t.row(x, weight, product, acc[r*t.width:])
		}
	}
	Comment("Whole runs; where the next begins is loaded ahead of its use.")
	LEAQ(Mem{Base: base, Index: at, Scale: 4}, input)
	TESTQ(left, left)
	JZ(LabelRef("rest"))
	Label("run")
	MOVLQSX(Mem{Base: runs, Disp: 4}, at)
	ADDQ(Imm(4), runs)
	for i := range run {
		term(i)
	}
	LEAQ(Mem{Base: base, Index: at, Scale: 4}, input)
	ADDQ(U32(4*run*rows), w)
	DECQ(left)
	JNZ(LabelRef("run"))
	Label("rest")
	Comment("Terms that are left.")
	Load(Param("rest"), left)
	TESTQ(left, left)
	JZ(LabelRef("largest"))
	Label("term")
	term(0)
	ADDQ(U32(t.width*t.bytes), input)
	ADDQ(U32(4*rows), w)
	DECQ(left)
	JNZ(LabelRef("term"))

	Label("largest")
	for r := range rows {
		for v := range t.width {
			VMOVUPS(result(r, v), product)
			VMAXPS(acc[r*t.width+v], product, product)
			VMOVUPS(product, result(r, v))
		}
	}
	DECQ(pool)
	JNZ(LabelRef("place"))
	ADDQ(U32(t.width*t.bytes), y)
	DECQ(groups)
	JNZ(LabelRef("group"))
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
