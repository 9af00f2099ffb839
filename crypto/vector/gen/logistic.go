package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// dots writes what package model has in assembly.
func dots() {
	TEXT("twoDots", NOSPLIT, "func(x, next, a, b *float64, groups int, sums *[8]float64)")
	Doc("twoDots sets the halves of sums to products of x with a and with b, summed by the remainder of their index modulo 4, and fetches what begins at next.")
	Pragma("noescape")
	x, next := Load(Param("x"), GP64()), Load(Param("next"), GP64())
	a, b := Load(Param("a"), GP64()), Load(Param("b"), GP64())
	left, sums := Load(Param("groups"), GP64()), Load(Param("sums"), GP64())
	ofA, ofB, value, product := YMM(), YMM(), YMM(), YMM()
	VXORPD(ofA, ofA, ofA)
	VXORPD(ofB, ofB, ofB)
	at := GP64()
	XORQ(at, at)
	Label("group")
	PREFETCHT0(Mem{Base: next, Index: at, Scale: 1})
	VMOVUPD(Mem{Base: x, Index: at, Scale: 1}, value)
	VMULPD(Mem{Base: a, Index: at, Scale: 1}, value, product)
	VADDPD(product, ofA, ofA)
	VMULPD(Mem{Base: b, Index: at, Scale: 1}, value, product)
	VADDPD(product, ofB, ofB)
	ADDQ(Imm(32), at)
	DECQ(left)
	JNZ(LabelRef("group"))
	VMOVUPD(ofA, Mem{Base: sums})
	VMOVUPD(ofB, Mem{Base: sums, Disp: 32})
	VZEROUPPER()
	RET()
}
