package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// samplers writes what package sampler has in assembly.
func samplers() {
	signedCounts("signedCountsAVX512", 8)
	signedCounts("signedCountsAVX2", 4)
}

// together is how many vectors are counted at once, so that none waits for another.
const together = 4

// signedCounts writes the function that compares words with all thresholds. It is long
// because it is one assembly function.
func signedCounts(name string, lanes int) {
	TEXT(name, NOSPLIT, "func(dst *int8, words *byte, thresholds *uint64, entries, groups int)")
	Doc(name+" sets dst to how many of the thresholds each word has reached, negated where the word is odd:",
		map[int]string{8: "32 words a group.", 4: "16 words a group. Words and thresholds are compared as signed numbers, thresholds less one."}[lanes])
	Pragma("noescape")
	dst, words, thresholds := Load(Param("dst"), GP64()), Load(Param("words"), GP64()), Load(Param("thresholds"), GP64())
	entries, groups := Load(Param("entries"), GP64()), Load(Param("groups"), GP64())
	vec := func() reg.VecVirtual {
		if lanes == 8 {
			return ZMM()
		}
		return YMM()
	}
	var u, m [together]reg.VecVirtual
	for i := range together {
		u[i], m[i] = vec(), vec()
	}
	one := vec()
	ones := GP64()
	MOVQ(U32(1), ones)
	x := XMM()
	MOVQ(ones, x)
	VPBROADCASTQ(x, one)
	top := vec()
	if lanes == 4 {
		SHLQ(Imm(63), ones)
		MOVQ(ones, x)
		VPBROADCASTQ(x, top)
	}
	at, left, t := GP64(), GP64(), vec()

	Label("group")
	for i := range together {
		load := Mem{Base: words, Disp: 8 * lanes * i}
		if lanes == 8 {
			VMOVDQU64(load, u[i])
			VPSUBQ(one, one, m[i])
		} else {
			VPXOR(load, top, u[i])
			VPXOR(m[i], m[i], m[i])
		}
	}
	MOVQ(thresholds, at)
	MOVQ(entries, left)
	Label("threshold")
	VPBROADCASTQ(Mem{Base: at}, t)
	for i := range together {
		if lanes == 8 {
			reached := K()
			VPCMPUQ(Imm(5), t, u[i], reached) // not below
			VPADDQ(one, m[i], reached, m[i])
		} else {
			reached := vec()
			VPCMPGTQ(t, u[i], reached)
			VPSUBQ(reached, m[i], m[i])
		}
	}
	ADDQ(Imm(8), at)
	DECQ(left)
	JNZ(LabelRef("threshold"))

	Comment("Negate where bit 0 is set.")
	for i := range together {
		mask := vec()
		if lanes == 8 {
			zero := vec()
			VPSUBQ(one, one, zero)
			VPANDQ(one, u[i], mask)
			VPSUBQ(mask, zero, mask)
			VPXORQ(mask, m[i], m[i])
		} else {
			zero := vec()
			VPXOR(zero, zero, zero)
			VPAND(one, u[i], mask)
			VPSUBQ(mask, zero, mask)
			VPXOR(mask, m[i], m[i])
		}
		VPSUBQ(mask, m[i], m[i])
	}
	if lanes == 8 {
		for i := range together {
			VPMOVQB(m[i], Mem{Base: dst, Disp: 8 * i})
		}
	} else {
		Comment("Low words of pairs of vectors, then halves of words, then bytes; lanes come last.")
		low, high := vec(), vec()
		VSHUFPS(Imm(0x88), m[1], m[0], low)
		VSHUFPS(Imm(0x88), m[3], m[2], high)
		VPACKSSDW(high, low, low)
		VPACKSSWB(low, low, low)
		upper := XMM()
		VEXTRACTI128(Imm(1), low, upper)
		VPUNPCKLWD(upper, low.AsX(), upper)
		VMOVDQU(upper, Mem{Base: dst})
	}
	ADDQ(U32(uint64(8*lanes*together)), words)
	ADDQ(U32(uint64(lanes*together)), dst)
	DECQ(groups)
	JNZ(LabelRef("group"))
	wipe(lanes)
	RET()
}
