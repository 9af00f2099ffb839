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
	ones("onesAVX512", 8)
	ones("onesAVX2", 4)
	trits()
}

// together is how many vectors are counted at once, so that none waits for another.
const together = 4

// signedCounts writes the function that counts the thresholds that words have reached. They
// are in ascending order, in as many blocks of one size as a vector has lanes: a word's block
// is how many blocks' last thresholds it has reached, and of that block it is compared with
// all others, which a permutation brings to its lane. So no address depends on a word, and
// 46 thresholds take 12 comparisons with 8 lanes, 14 with 4. It is long because it is one
// assembly function.
func signedCounts(name string, lanes int) {
	TEXT(name, NOSPLIT, "func(dst *int8, words *byte, table *uint64, rows, groups int)")
	Doc(name+" sets dst to how many thresholds each word is greater than, negated where the word is odd:",
		map[int]string{8: "32 words a group.", 4: "16 words a group, which are compared as signed numbers, of which bit 63 is inverted."}[lanes],
		"The table has the size of a block, the last thresholds of all blocks but one, and rows: the first of all blocks, the second, and so on but for the last.")
	Pragma("noescape")
	dst, words, table := Load(Param("dst"), GP64()), Load(Param("words"), GP64()), Load(Param("table"), GP64())
	rows, groups := Load(Param("rows"), GP64()), Load(Param("groups"), GP64())
	vec := func() reg.VecVirtual {
		if lanes == 8 {
			return ZMM()
		}
		return YMM()
	}
	var u, block, m [together]reg.VecVirtual
	for i := range together {
		u[i], block[i], m[i] = vec(), vec(), vec()
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
	at, left, t, row := GP64(), GP64(), vec(), vec()
	// count adds 1 where u is greater than t.
	count := func(m, u, t, reached reg.VecVirtual) {
		if lanes == 8 {
			k := K()
			VPCMPUQ(Imm(6), t, u, k) // not less, nor equal
			VPADDQ(one, m, k, m)
			return
		}
		VPCMPGTQ(t, u, reached)
		VPSUBQ(reached, m, m)
	}

	Label("group")
	for i := range together {
		load := Mem{Base: words, Disp: 8 * lanes * i}
		if lanes == 8 {
			VMOVDQU64(load, u[i])
			VPXORQ(block[i], block[i], block[i])
		} else {
			VPXOR(load, top, u[i])
			VPXOR(block[i], block[i], block[i])
		}
	}
	for last := range lanes - 1 {
		VPBROADCASTQ(Mem{Base: table, Disp: 8 * (1 + last)}, t)
		for i := range together {
			count(block[i], u[i], t, row)
		}
	}
	Comment("The count so far, and the lane of a row.")
	VPBROADCASTQ(Mem{Base: table}, t)
	for i := range together {
		VPMULUDQ(t, block[i], m[i])
	}
	if lanes == 4 { // the halves 2b and 2b+1
		VPSLLQ(Imm(32), one, t)
		for i := range together {
			VPADDQ(block[i], block[i], block[i])
			VPSHUFD(Imm(0xa0), block[i], block[i])
			VPOR(t, block[i], block[i])
		}
	}
	LEAQ(Mem{Base: table, Disp: 8 * lanes}, at)
	MOVQ(rows, left)
	Label("row")
	if lanes == 8 {
		VMOVDQU64(Mem{Base: at}, row)
	} else {
		VMOVDQU(Mem{Base: at}, row)
	}
	for i := range together {
		if lanes == 8 {
			VPERMQ(row, block[i], t)
		} else {
			VPERMD(row, block[i], t)
		}
		count(m[i], u[i], t, t)
	}
	ADDQ(U32(uint64(8*lanes)), at)
	DECQ(left)
	JNZ(LabelRef("row"))

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

// binomialBits is how many bits a sample counts ones among.
const binomialBits = 42

// ones writes the function of binomial samples. It is long because it is one assembly
// function.
func ones(name string, lanes int) {
	table := func(name string, words ...uint64) Mem {
		data := GLOBL(name, RODATA|NOPTR)
		for i := range max(lanes, len(words)) {
			DATA(8*i, U64(words[i%len(words)]))
		}
		return data
	}
	low := table(name+"Low", 1<<binomialBits-1)
	// The bytes 0, 8 and 1 of each half, and then the first three of each four.
	gather := table(name+"Gather", 0xffffffffff010800, ^uint64(0))
	compact := table(name+"Compact", 0x0908060504020100, 0xffffffff0e0d0c0a)
	nibbles := table(name+"Nibbles", 0x0302020102010100, 0x0403030203020201)
	lowNibbles := table(name+"LowNibbles", 0x0f0f0f0f0f0f0f0f)
	half := table(name+"Half", binomialBits/2*0x0101010101010101)

	TEXT(name, NOSPLIT, "func(dst *int8, words *byte, groups int)")
	Doc(name+" sets dst to three samples of each 16 bytes: ones among the low 42 bits of both words, and among the 21 highest of both together, less 21.",
		map[int]string{8: "Four times 16 bytes a group; 4 bytes behind the last sample are overwritten.", 4: "Two times 16 bytes a group; 10 bytes behind the last sample are overwritten."}[lanes])
	Pragma("noescape")
	dst, words, groups := Load(Param("dst"), GP64()), Load(Param("words"), GP64()), Load(Param("groups"), GP64())
	vec := func() reg.VecVirtual {
		if lanes == 8 {
			return ZMM()
		}
		return YMM()
	}
	load := func(m Mem) reg.VecVirtual {
		v := vec()
		if lanes == 8 {
			VMOVDQU64(m, v)
		} else {
			VMOVDQU(m, v)
		}
		return v
	}
	mask, places := load(low), load(gather)
	compacted, less := XMM(), XMM()
	VMOVDQU(compact, compacted)
	VMOVDQU(half, less)
	var digits, four, zero reg.VecVirtual
	if lanes == 4 {
		digits, four, zero = load(nibbles), load(lowNibbles), vec()
		VPXOR(zero, zero, zero)
	}
	count := func(x reg.VecVirtual) reg.VecVirtual {
		n := vec()
		if lanes == 8 {
			VPOPCNTQ(x, n)
			return n
		}
		high := vec()
		VPAND(four, x, n)
		VPSRLQ(Imm(4), x, high)
		VPAND(four, high, high)
		VPSHUFB(n, digits, n)
		VPSHUFB(high, digits, high)
		VPADDB(high, n, n)
		VPSADBW(zero, n, n)
		return n
	}
	Label("group")
	x := load(Mem{Base: words})
	lower, upper := vec(), vec()
	if lanes == 8 {
		VPANDQ(mask, x, lower)
	} else {
		VPAND(mask, x, lower)
	}
	VPSRLQ(Imm(binomialBits+1), x, upper)
	lower, upper = count(lower), count(upper)
	Comment("The third sample is of both words; it goes to the second byte.")
	swapped := vec()
	VPSHUFD(Imm(0x4e), upper, swapped)
	VPADDQ(swapped, upper, upper)
	VPSLLQ(Imm(8), upper, upper)
	VPADDQ(upper, lower, lower)
	VPSHUFB(places, lower, lower)
	samples := XMM()
	if lanes == 8 {
		narrow := vec()
		first := K()
		selected := GP32()
		MOVL(U32(0x1111), selected)
		KMOVW(selected, first)
		VPCOMPRESSD(lower, first, narrow)
		VPSHUFB(compacted, narrow.AsX(), samples)
	} else {
		second := XMM()
		VEXTRACTI128(Imm(1), lower, second)
		VPUNPCKLDQ(second, lower.AsX(), samples)
		VPSHUFB(compacted, samples, samples)
	}
	VPSUBB(less, samples, samples)
	VMOVDQU(samples, Mem{Base: dst})
	ADDQ(Imm(uint64(8*lanes)), words)
	ADDQ(Imm(uint64(3*lanes/2)), dst)
	DECQ(groups)
	JNZ(LabelRef("group"))
	wipe(lanes)
	RET()
}

// trits writes the function of the digits of bytes in base 3.
func trits() {
	words := func(name string, of func(sample int) uint64) Mem {
		data := GLOBL(name, RODATA|NOPTR)
		for i := range 4 {
			var x uint64
			for k := range 4 {
				x |= of(4*i+k) << (16 * k)
			}
			DATA(8*i, U64(x))
		}
		return data
	}
	power := func(n int) (x uint64) {
		for x = 1; n > 0; n-- {
			x *= 3
		}
		return x
	}
	places := words("tritPlaces", func(s int) uint64 { return 0x8000 | uint64(min(s/5, 2)) })
	fractions := words("tritFractions", func(int) uint64 { return 270 })
	upTo := words("tritsUpTo", func(s int) uint64 { return power(s%5 + 1) })
	before := words("tritsBefore", func(s int) uint64 { return power(s % 5) })
	three := words("tritThree", func(int) uint64 { return 3 })
	one := words("tritOne", func(int) uint64 { return 1 })

	TEXT("tritsAVX2", NOSPLIT, "func(dst *int8, bytes *byte, groups int)")
	Doc("tritsAVX2 sets dst to the five digits in base 3 of each byte below 243, less one: of three bytes a group. A byte behind the last is read, and one behind the last sample overwritten.")
	Pragma("noescape")
	dst, bytes, groups := Load(Param("dst"), GP64()), Load(Param("bytes"), GP64()), Load(Param("groups"), GP64())
	Label("group")
	f, digit, higher, second := YMM(), YMM(), YMM(), XMM()
	VPBROADCASTD(Mem{Base: bytes}, f)
	VPSHUFB(places, f, f)
	Comment("As fractions of 2^16: see the portable form. A digit is what one more has than three times those before.")
	VPMULLW(fractions, f, f)
	VPMULHUW(upTo, f, digit)
	VPMULHUW(before, f, higher)
	VPMULLW(three, higher, higher)
	VPSUBW(higher, digit, digit)
	VPSUBW(one, digit, digit)
	VPACKSSWB(digit, digit, digit)
	VEXTRACTI128(Imm(1), digit, second)
	VPUNPCKLQDQ(second, digit.AsX(), second)
	VMOVDQU(second, Mem{Base: dst})
	ADDQ(Imm(3), bytes)
	ADDQ(Imm(15), dst)
	DECQ(groups)
	JNZ(LabelRef("group"))
	wipe(4)
	RET()
}
