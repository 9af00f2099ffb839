package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// signals writes what package phy/kernel has in assembly.
func signals() {
	for _, w := range []wide{{"AVX2", 32}, {"AVX512", 64}} {
		for _, vectors := range []int{4, 1} {
			w.convolve(vectors)
		}
		w.turn()
		w.addNoise()
	}
	for _, together := range []int{4, 1} {
		correlate(together)
	}
	shape()
}

// shape writes the function that makes samples of symbols.
func shape() {
	TEXT("shape", NOSPLIT, "func(dst *complex64, line, taps *float32, count, vectors int, factors *[8]float32, symbols int)")
	Doc("shape sets each symbol's samples, of which there are four a vector, to factors times sums of count symbols of the line from its own on, times taps: of each symbol, a row of pairs of equal ones.")
	Pragma("noescape")
	dst, line, taps := Load(Param("dst"), GP64()), Load(Param("line"), GP64()), Load(Param("taps"), GP64())
	count, vectors := Load(Param("count"), GP64()), Load(Param("vectors"), GP64())
	at, symbols := Load(Param("factors"), GP64()), Load(Param("symbols"), GP64())
	factors := YMM()
	VMOVUPS(Mem{Base: at}, factors)
	row := GP64()
	MOVQ(vectors, row)
	SHLQ(Imm(5), row)
	column, left, tap, symbol, more := GP64(), GP64(), GP64(), GP64(), GP64()
	sum, value := YMM(), YMM()
	Label("symbol")
	MOVQ(taps, column)
	MOVQ(vectors, left)
	Label("vector")
	MOVQ(column, tap)
	MOVQ(line, symbol)
	VBROADCASTSS(Mem{Base: symbol}, sum)
	VMULPS(Mem{Base: tap}, sum, sum)
	MOVQ(count, more)
	DECQ(more)
	JZ(LabelRef("done"))
	Label("tap")
	ADDQ(row, tap)
	ADDQ(Imm(4), symbol)
	VBROADCASTSS(Mem{Base: symbol}, value)
	VMULPS(Mem{Base: tap}, value, value)
	VADDPS(value, sum, sum)
	DECQ(more)
	JNZ(LabelRef("tap"))
	Label("done")
	VMULPS(factors, sum, sum)
	VMOVUPS(sum, Mem{Base: dst})
	ADDQ(Imm(32), dst)
	ADDQ(Imm(32), column)
	DECQ(left)
	JNZ(LabelRef("vector"))
	ADDQ(Imm(4), line)
	DECQ(symbols)
	JNZ(LabelRef("symbol"))
	VZEROUPPER()
	RET()
}

// wide is a kind of vectors of float32: complex samples, the real part of each before the
// imaginary one.
type wide struct {
	name  string
	bytes int
}

func (w wide) vec() reg.VecVirtual {
	if w.bytes == 64 {
		return ZMM()
	}
	return YMM()
}

// zero returns a register of zeros. It is made of a whole register that is written: avo
// takes the exclusive or of a register with itself for a use of what was in it.
func (w wide) zero() reg.VecVirtual {
	v := w.vec()
	x := GP32()
	XORL(x, x)
	half := XMM()
	VMOVD(x, half)
	VBROADCASTSS(half, v)
	return v
}

// bits returns a register that has the word in all lanes.
func (w wide) bits(word uint32) reg.VecVirtual {
	v, x, half := w.vec(), GP32(), XMM()
	MOVL(U32(word), x)
	VMOVD(x, half)
	VBROADCASTSS(half, v)
	return v
}

// convolve writes the function of a filter whose taps are real.
func (w wide) convolve(vectors int) {
	TEXT(fmt.Sprintf("convolve%d%s", vectors, w.name), NOSPLIT, "func(dst, src *complex64, taps *float32, count int, gain float32, blocks int)")
	Doc(fmt.Sprintf("convolve%d%s sets blocks of %d samples of dst to gain times the sum of count taps, the first of them times the newest sample.", vectors, w.name, vectors*w.bytes/8))
	Pragma("noescape")
	dst, src, taps := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("taps"), GP64())
	count, blocks := Load(Param("count"), GP64()), Load(Param("blocks"), GP64())
	gain := w.vec()
	at, err := Param("gain").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(at.Addr, gain)
	zero := w.zero()
	sums := make([]reg.VecVirtual, vectors)
	Label("block")
	for v := range sums {
		sums[v] = w.vec()
		VMOVAPS(zero, sums[v])
	}
	from, tap, left := GP64(), GP64(), GP64()
	Comment("The newest sample of the first output.")
	LEAQ(Mem{Base: src, Index: count, Scale: 8, Disp: -8}, from)
	MOVQ(taps, tap)
	MOVQ(count, left)
	factor := w.vec()
	products := []reg.VecVirtual{w.vec(), w.vec()}
	Label("tap")
	VBROADCASTSS(Mem{Base: tap}, factor)
	for v := range sums {
		product := products[v%2]
		VMULPS(Mem{Base: from, Disp: v * w.bytes}, factor, product)
		VADDPS(product, sums[v], sums[v])
	}
	SUBQ(Imm(8), from)
	ADDQ(Imm(4), tap)
	DECQ(left)
	JNZ(LabelRef("tap"))
	for v := range sums {
		VMULPS(gain, sums[v], sums[v])
		VMOVUPS(sums[v], Mem{Base: dst, Disp: v * w.bytes})
	}
	ADDQ(U32(uint32(vectors*w.bytes)), dst)
	ADDQ(U32(uint32(vectors*w.bytes)), src)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// turn writes the function that multiplies by a complex number, as the compiler does: in
// double precision, in which products of float32 are exact.
func (w wide) turn() {
	TEXT("turn"+w.name, NOSPLIT, "func(x *complex64, re, im float64, vectors int)")
	Doc(fmt.Sprintf("turn%s multiplies %d samples a vector.", w.name, w.bytes/16))
	Pragma("noescape")
	x, left := Load(Param("x"), GP64()), Load(Param("vectors"), GP64())
	re, im := w.vec(), w.vec()
	for _, p := range []struct {
		name string
		v    reg.VecVirtual
	}{{"re", re}, {"im", im}} {
		at, err := Param(p.name).Resolve()
		if err != nil {
			panic(err)
		}
		VBROADCASTSD(at.Addr, p.v)
	}
	Label("vector")
	value, other := w.vec(), w.vec()
	VCVTPS2PD(Mem{Base: x}, value)
	if w.bytes == 64 {
		VPERMILPD(Imm(0x55), value, other)
	} else {
		VPERMILPD(Imm(0x5), value, other)
	}
	VMULPD(im, other, other)
	Comment("Real parts: re x - im y; imaginary ones: re y + im x.")
	VFMADDSUB213PD(other, re, value)
	if w.bytes == 64 {
		narrow := YMM()
		VCVTPD2PS(value, narrow)
		VMOVUPS(narrow, Mem{Base: x})
	} else {
		narrow := XMM()
		VCVTPD2PSY(value, narrow)
		VMOVUPS(narrow, Mem{Base: x})
	}
	ADDQ(Imm(uint64(w.bytes/2)), x)
	DECQ(left)
	JNZ(LabelRef("vector"))
	VZEROUPPER()
	RET()
}

// The constants of addNoise, in this order: kernel.noise.
const (
	noiseOne    = iota
	noiseLowest // bits of sqrt(1/2)
	noiseMantissa
	noiseRealOne
	noiseLog       // nine coefficients
	noiseLow       = noiseLog + 9
	noiseHalf      = noiseLow + 1
	noiseHigh      = noiseHalf + 1
	noiseExponent  = noiseHigh + 1
	noiseMinusTwo  = noiseExponent + 1
	noiseFraction  = noiseMinusTwo + 1
	noiseMiddle    = noiseFraction + 1
	noiseAngle     = noiseMiddle + 1
	noiseSine      = noiseAngle + 1
	noiseCosine    = noiseSine + 3
	noiseSign      = noiseCosine + 3
	noiseConstants = noiseSign + 1
)

// floats has the operations of addNoise, on vectors.
type floats struct {
	wide
	constants reg.Register
}

func (f floats) constant(i int) reg.VecVirtual {
	v := f.vec()
	VBROADCASTSS(Mem{Base: f.constants, Disp: 4 * i}, v)
	return v
}

func (f floats) mul(x, y reg.VecVirtual) reg.VecVirtual {
	v := f.vec()
	VMULPS(y, x, v)
	return v
}

func (f floats) add(x, y reg.VecVirtual) reg.VecVirtual {
	v := f.vec()
	VADDPS(y, x, v)
	return v
}

func (f floats) sub(x, y reg.VecVirtual) reg.VecVirtual {
	v := f.vec()
	VSUBPS(y, x, v)
	return v
}

func (f floats) and(x, y reg.VecVirtual) reg.VecVirtual {
	v := f.vec()
	VANDPS(y, x, v)
	return v
}

func (f floats) xor(x, y reg.VecVirtual) reg.VecVirtual {
	v := f.vec()
	VXORPS(y, x, v)
	return v
}

func (f floats) or(x, y reg.VecVirtual) reg.VecVirtual {
	v := f.vec()
	VORPS(y, x, v)
	return v
}

func (f floats) shift(x reg.VecVirtual, by int, op func(...Op)) reg.VecVirtual {
	v := f.vec()
	op(Imm(uint64(by)), x, v)
	return v
}

func (f floats) convert(x reg.VecVirtual) reg.VecVirtual {
	v := f.vec()
	VCVTDQ2PS(x, v)
	return v
}

// addNoise writes the function of two normal numbers for eight random bytes, by Box and Muller. What it
// computes, and in which order, is kernel.normals.
func (w wide) addNoise() {
	TEXT("addNoise"+w.name, NOSPLIT, "func(dst *complex64, random *byte, std float32, constants *uint32, vectors int)")
	Doc(fmt.Sprintf("addNoise%s adds std times two normal numbers, of eight random bytes, to each of %d samples a vector.", w.name, w.bytes/4))
	Pragma("noescape")
	dst, random := Load(Param("dst"), GP64()), Load(Param("random"), GP64())
	f := floats{w, Load(Param("constants"), GP64())}
	left := Load(Param("vectors"), GP64())
	std := w.vec()
	at, err := Param("std").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(at.Addr, std)
	Label("vector")
	first, second := w.vec(), w.vec()
	VMOVUPS(Mem{Base: random}, first)
	VMOVUPS(Mem{Base: random, Disp: w.bytes}, second)
	v, u := w.vec(), w.vec()
	VSHUFPS(Imm(0x88), second, first, v)
	VSHUFPS(Imm(0xdd), second, first, u)

	Comment("ln of a number from 0 to 1.")
	x := f.convert(f.or(f.shift(u, 1, shiftRight), f.constant(noiseOne)))
	above := w.vec()
	VPSUBD(f.constant(noiseLowest), x, above)
	exponent := f.shift(above, 23, shiftRightSigned)
	m := w.vec()
	VPSUBD(f.shift(exponent, 23, shiftLeft), x, m)
	g := f.sub(m, f.constant(noiseRealOne))
	e := f.sub(f.convert(exponent), f.constant(noiseExponent))
	z := f.mul(g, g)
	y := f.constant(noiseLog)
	for i := 1; i < 9; i++ {
		y = f.add(f.mul(y, g), f.constant(noiseLog+i))
	}
	y = f.mul(f.mul(y, g), z)
	y = f.add(y, f.mul(e, f.constant(noiseLow)))
	y = f.sub(y, f.mul(z, f.constant(noiseHalf)))
	y = f.add(g, y)
	y = f.add(y, f.mul(e, f.constant(noiseHigh)))
	r := w.vec()
	VSQRTPS(f.mul(y, f.constant(noiseMinusTwo)), r)
	r = f.mul(r, std)

	Comment("The angle: a quadrant, and what is left of it.")
	a := w.vec()
	VPSUBD(f.constant(noiseMiddle), f.and(v, f.constant(noiseFraction)), a)
	t := f.mul(f.convert(a), f.constant(noiseAngle))
	q := f.mul(t, t)
	sin := f.constant(noiseSine)
	for i := 1; i < 3; i++ {
		sin = f.add(f.mul(sin, q), f.constant(noiseSine+i))
	}
	sin = f.add(f.mul(f.mul(sin, q), t), t)
	cos := f.constant(noiseCosine)
	for i := 1; i < 3; i++ {
		cos = f.add(f.mul(cos, q), f.constant(noiseCosine+i))
	}
	cos = f.mul(f.mul(cos, q), q)
	cos = f.sub(cos, f.mul(q, f.constant(noiseHalf)))
	cos = f.add(cos, f.constant(noiseRealOne))

	Comment("Odd quadrants swap sine and cosine.")
	doubled := f.shift(v, 1, shiftLeft)
	swap := f.shift(doubled, 31, shiftRightSigned)
	differ := f.and(f.xor(sin, cos), swap)
	cos, sin = f.xor(cos, differ), f.xor(sin, differ)
	sign := f.constant(noiseSign)
	cos = f.xor(cos, f.and(f.xor(v, doubled), sign))
	sin = f.xor(sin, f.and(v, sign))
	re, im := f.mul(r, cos), f.mul(r, sin)
	low, high := w.vec(), w.vec()
	VUNPCKLPS(im, re, low)
	VUNPCKHPS(im, re, high)
	VADDPS(Mem{Base: dst}, low, low)
	VADDPS(Mem{Base: dst, Disp: w.bytes}, high, high)
	VMOVUPS(low, Mem{Base: dst})
	VMOVUPS(high, Mem{Base: dst, Disp: w.bytes})
	ADDQ(U32(uint32(2*w.bytes)), dst)
	ADDQ(U32(uint32(2*w.bytes)), random)
	DECQ(left)
	JNZ(LabelRef("vector"))
	VZEROUPPER()
	RET()
}

func shiftRight(ops ...Op)       { VPSRLD(ops[0], ops[1], ops[2]) }
func shiftRightSigned(ops ...Op) { VPSRAD(ops[0], ops[1], ops[2]) }
func shiftLeft(ops ...Op)        { VPSLLD(ops[0], ops[1], ops[2]) }

// correlate writes the function of sums of samples times taps, for so many sums at a
// time: a sum is four partial ones, which are a vector.
func correlate(together int) {
	TEXT(fmt.Sprintf("correlate%d", together), NOSPLIT, "func(dst, src *complex64, taps *float32, fours, rest, stride, groups int)")
	Doc(fmt.Sprintf("correlate%d sets groups of %d samples of dst to sums over fours times four taps and the rest of them. The stride is in bytes.", together, together))
	Pragma("noescape")
	dst, src, taps := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("taps"), GP64())
	stride, groups := Load(Param("stride"), GP64()), Load(Param("groups"), GP64())
	w := wide{"", 32}
	Comment("Each tap twice, for both parts of a sample.")
	order := YMM()
	twice(order)
	zero := w.zero()
	from := make([]reg.GPVirtual, together)
	for s := range from {
		from[s] = GP64()
	}
	sums := make([]reg.VecVirtual, together)
	tap, left := GP64(), GP64()
	Label("group")
	for s := range sums {
		sums[s] = YMM()
		VMOVAPS(zero, sums[s])
		if s == 0 {
			MOVQ(src, from[0])
		} else {
			LEAQ(Mem{Base: from[s-1], Index: stride, Scale: 1}, from[s])
		}
	}
	MOVQ(taps, tap)
	Load(Param("fours"), left)
	factor := YMM()
	products := []reg.VecVirtual{YMM(), YMM()}
	TESTQ(left, left)
	JZ(LabelRef("few"))
	Label("four")
	VBROADCASTF128(Mem{Base: tap}, factor)
	VPERMILPS(order, factor, factor)
	for s := range sums {
		product := products[s%2]
		VMULPS(Mem{Base: from[s]}, factor, product)
		VADDPS(product, sums[s], sums[s])
		ADDQ(Imm(32), from[s])
	}
	ADDQ(Imm(16), tap)
	DECQ(left)
	JNZ(LabelRef("four"))
	Label("few")
	Comment("The rest is added to the first partial sum. To the others 0 is.")
	Load(Param("rest"), left)
	TESTQ(left, left)
	JZ(LabelRef("sum"))
	Label("one")
	VBROADCASTSS(Mem{Base: tap}, factor)
	for s := range sums {
		sample := products[s%2]
		VMOVSD(Mem{Base: from[s]}, sample.AsX())
		VMULPS(factor, sample, sample)
		VADDPS(sample, sums[s], sums[s])
		ADDQ(Imm(8), from[s])
	}
	ADDQ(Imm(4), tap)
	DECQ(left)
	JNZ(LabelRef("one"))
	Label("sum")
	for s := range sums {
		second, swapped := XMM(), XMM()
		first := sums[s].AsX()
		VEXTRACTF128(Imm(1), sums[s], second)
		VPERMILPD(Imm(1), first, swapped)
		VADDPS(swapped, first, first)
		VPERMILPD(Imm(1), second, swapped)
		VADDPS(swapped, second, second)
		VADDPS(second, first, first)
		VMOVSD(first, Mem{Base: dst, Disp: 8 * s})
		ADDQ(stride, src)
	}
	ADDQ(Imm(uint64(8*together)), dst)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// twice sets the control of VPERMILPS that gives elements 0, 0, 1, 1 of the lower half and
// 2, 2, 3, 3 of the upper one.
func twice(order reg.VecVirtual) {
	x, low, high := GP64(), XMM(), XMM()
	for _, half := range []struct {
		first, second uint64
		v             reg.VecVirtual
	}{{0, 1, low}, {2, 3, high}} {
		MOVQ(U64(half.first<<32|half.first), x)
		VMOVQ(x, half.v)
		MOVQ(U64(half.second<<32|half.second), x)
		VPINSRQ(Imm(1), x, half.v, half.v)
	}
	VINSERTF128(Imm(1), high, low.AsY(), order)
}
