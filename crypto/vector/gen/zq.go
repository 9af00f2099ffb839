package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// multiples writes what package zq has in assembly.
func multiples() {
	for _, a := range []*arithmetic{dq(), avx2()} {
		a.addScaled()
	}
	for _, t := range targets() {
		t.dot()
	}
}

// dotRun is how many vectors are summed before their sums are taken apart: 64 products of
// two halves of residues, below 2^58 each, are below 2^64.
const dotRun = 64

// dot writes the function of the sum of r x in halves of 29 bits.
func (t target) dot() {
	TEXT("dot"+t.name, NOSPLIT, "func(r, x *uint64, vectors int, sums *uint64)")
	Doc(fmt.Sprintf("dot%s sets, of r x for r, x < 2^57 in vectors of %d, the sums in each lane of the products of their low 29 bits, of low with high ones, and of high ones: of each the low 32 bits, and what lies above.", t.name, t.bytes/8))
	Pragma("noescape")
	r, x := Load(Param("r"), GP64()), Load(Param("x"), GP64())
	left, sums := Load(Param("vectors"), GP64()), Load(Param("sums"), GP64())
	kept, acc := t.vectors[:6], t.vectors[6:9]
	rv, xv, rh, xh, product, mask := t.vectors[9], t.vectors[10], t.vectors[11], t.vectors[12], t.vectors[13], t.vectors[14]
	mask32 := t.vectors[15]
	and := func(mask, v, to reg.VecPhysical) {
		if t.bytes == 64 {
			VPANDQ(mask, v, to)
		} else {
			VPAND(mask, v, to)
		}
	}
	for _, m := range []struct {
		bits uint64
		to   reg.VecPhysical
	}{{1<<29 - 1, mask}, {1<<32 - 1, mask32}} {
		bits := GP64()
		MOVQ(U64(m.bits), bits)
		VMOVQ(bits, m.to.(reg.Vec).AsX())
		VPBROADCASTQ(m.to.(reg.Vec).AsX(), m.to)
	}
	clear := func(vectors []reg.VecPhysical) {
		for _, v := range vectors {
			// Of the low part of a register, which clears all of it.
			VPXOR(v.(reg.Vec).AsX(), v.(reg.Vec).AsX(), v.(reg.Vec).AsX())
		}
	}
	clear(kept)
	count, most := GP64(), GP64()
	MOVQ(U32(dotRun), most)
	Label("run")
	MOVQ(left, count)
	CMPQ(left, most)
	CMOVQHI(most, count)
	SUBQ(count, left)
	clear(acc)
	Label("vector")
	VMOVUPS(Mem{Base: r}, rv)
	VMOVUPS(Mem{Base: x}, xv)
	VPSRLQ(Imm(29), rv, rh)
	VPSRLQ(Imm(29), xv, xh)
	and(mask, rv, rv)
	and(mask, xv, xv)
	for _, p := range []struct {
		a, b reg.VecPhysical
		to   int
	}{{rv, xv, 0}, {rv, xh, 1}, {rh, xv, 1}, {rh, xh, 2}} {
		VPMULUDQ(p.a, p.b, product)
		VPADDQ(product, acc[p.to], acc[p.to])
	}
	ADDQ(U32(uint32(t.bytes)), r)
	ADDQ(U32(uint32(t.bytes)), x)
	DECQ(count)
	JNZ(LabelRef("vector"))
	for i, v := range acc {
		and(mask32, v, product)
		VPADDQ(product, kept[2*i], kept[2*i])
		VPSRLQ(Imm(32), v, v)
		VPADDQ(v, kept[2*i+1], kept[2*i+1])
	}
	TESTQ(left, left)
	JNZ(LabelRef("run"))
	for i, v := range kept {
		VMOVUPS(v, Mem{Base: sums, Disp: i * t.bytes})
	}
	VZEROUPPER()
	RET()
}

// addScaled writes the function of y + h x.
func (a *arithmetic) addScaled() {
	TEXT("addScaled"+a.name, NOSPLIT, "func(y, x, h, c *uint64, vectors int)")
	Doc("addScaled" + a.name + " sets y to y + h x mod p, all below p: h has its quotient floor(2^64 h/p) behind it, and two words that are not used.")
	Pragma("noescape")
	y, x, h := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("h"), GP64())
	c, left := Load(Param("c"), GP64()), Load(Param("vectors"), GP64())
	a.keep(c, constP, constP2)
	Label("vector")
	product := a.reduced(a.mul(a, a.load(Mem{Base: x}), twiddle{base: h.(reg.GPVirtual), broadcast: true}))
	a.store(a.subtractOnce(a.add(product, Mem{Base: y}), constP), Mem{Base: y})
	for _, r := range []reg.Register{x, y} {
		ADDQ(Imm(uint64(a.bytes())), r)
	}
	DECQ(left)
	JNZ(LabelRef("vector"))
	VZEROUPPER()
	RET()
}
