package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// multiples writes what package zq has in assembly.
func multiples() {
	for _, a := range []*arithmetic{dq(), avx2()} {
		a.addScaled()
	}
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
