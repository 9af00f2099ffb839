package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// arithmetic is a way of computing modulo a prime p in vectors of 64-bit lanes.
//
// Products with twiddle factors w are Shoup's: with w' = floor(2^beta w/p) and
// q = floor(y w'/2^beta), y w - q p is in [0, 2p) for every y < 2^beta. Where q may be
// smaller by up to 2, the product is in [0, 4p).
type arithmetic struct {
	name  string
	lanes int
	// log is log2 of lanes: the stages that are done on transposed blocks.
	log int
	// products says, in multiples of p, below what mul's results are.
	products uint64
	// lazy arithmetic has room for all stages of a forward transform without a
	// reduction between them.
	lazy bool
	mul  func(a *arithmetic, y reg.VecVirtual, w twiddle) reg.VecVirtual
	// product is Montgomery's, of vectors.
	product func(a *arithmetic, x, y reg.VecVirtual) reg.VecVirtual

	constants reg.GPVirtual
	kept      map[int]reg.VecVirtual
}

// The constants of a prime, in this order, each in all lanes: ntt.constants.
const (
	constP     = iota
	constP2    // 2p
	constHighP // p >> 32: these three are package zq's as well

	constP4     // 4p
	constNegP   // 2^52 - p
	constMask   // 2^52 - 1
	constZero   // 0
	constOne    // the twiddle factor 1, with its quotient
	constInvP   // p^-1 mod 2^beta
	constHighIP // constInvP >> 32
)

// twiddle is where a factor w lies; w' lies behind it.
type twiddle struct {
	base      reg.GPVirtual
	disp      int
	broadcast bool // one for all lanes
}

func (a *arithmetic) bytes() int { return 8 * a.lanes }

func (a *arithmetic) vec() reg.VecVirtual {
	if a.lanes == 8 {
		return ZMM()
	}
	return YMM()
}

func (a *arithmetic) load(m Mem) reg.VecVirtual {
	v := a.vec()
	if a.lanes == 8 {
		VMOVDQU64(m, v)
	} else {
		VMOVDQU(m, v)
	}
	return v
}

func (a *arithmetic) store(v reg.VecVirtual, m Mem) {
	if a.lanes == 8 {
		VMOVDQU64(v, m)
	} else {
		VMOVDQU(v, m)
	}
}

// zero returns a register of zeros to accumulate in. It is a copy of one: avo takes
// VPXORQ of a register with itself for a use of what was in it.
func (a *arithmetic) zero() reg.VecVirtual {
	v := a.vec()
	VMOVDQA64(a.constant(constZero), v)
	return v
}

// constant returns a constant of the prime: in a register of its own with AVX-512, which
// has enough of them.
func (a *arithmetic) constant(i int) Op {
	m := Mem{Base: a.constants, Disp: 64 * i}
	if a.lanes == 4 {
		return m
	}
	if v, ok := a.kept[i]; ok {
		return v
	}
	panic(fmt.Sprintf("constant %d was not kept", i))
}

// keep loads constants, before any loop.
func (a *arithmetic) keep(constants reg.Register, which ...int) {
	a.constants = constants.(reg.GPVirtual)
	a.kept = map[int]reg.VecVirtual{}
	if a.lanes == 4 {
		return
	}
	for _, i := range which {
		a.kept[i] = a.load(Mem{Base: a.constants, Disp: 64 * i})
	}
}

func (a *arithmetic) add(x reg.VecVirtual, y Op) reg.VecVirtual {
	v := a.vec()
	VPADDQ(y, x, v)
	return v
}

func (a *arithmetic) sub(x reg.VecVirtual, y Op) reg.VecVirtual {
	v := a.vec()
	VPSUBQ(y, x, v)
	return v
}

// subtractOnce takes x in [0, 2m) to [0, m) for a constant m < 2^62.
func (a *arithmetic) subtractOnce(x reg.VecVirtual, m int) reg.VecVirtual {
	d := a.sub(x, a.constant(m))
	if a.lanes == 8 {
		VPMINUQ(x, d, d)
	} else {
		VBLENDVPD(d, x, d, d) // x where d is negative
	}
	return d
}

// high returns the high halves of lanes in their low halves.
func (a *arithmetic) high(x reg.VecVirtual) reg.VecVirtual {
	v := a.vec()
	VPSRLQ(Imm(32), x, v)
	return v
}

func (a *arithmetic) mul32(x reg.VecVirtual, y Op) reg.VecVirtual {
	v := a.vec()
	VPMULUDQ(y, x, v)
	return v
}

// wide multiplies the low halves of lanes by those of words at a twiddle's address, plus
// offset bytes: 4 for their high halves.
func (a *arithmetic) wide(x reg.VecVirtual, w twiddle, offset int) reg.VecVirtual {
	v := a.vec()
	m := Mem{Base: w.base, Disp: w.disp + offset}
	switch {
	case !w.broadcast:
		VPMULUDQ(m, x, v)
	case a.lanes == 8:
		VPMULUDQ_BCST(m, x, v)
	default:
		VPBROADCASTQ(m, v)
		VPMULUDQ(v, x, v)
	}
	return v
}

// quotient returns where w' of a twiddle factor w lies.
func (a *arithmetic) quotient(w twiddle) twiddle {
	if w.broadcast {
		w.disp += 8
	} else {
		w.disp += a.bytes()
	}
	return w
}

// mulIFMA multiplies with IFMA52, beta = 52, for y < 2^52 and p < 2^50.
func mulIFMA(a *arithmetic, y reg.VecVirtual, w twiddle) reg.VecVirtual {
	q, r := a.zero(), a.zero()
	m, mq := Mem{Base: w.base, Disp: w.disp}, Mem{Base: w.base, Disp: a.quotient(w).disp}
	if w.broadcast {
		VPMADD52HUQ_BCST(mq, y, q)
		VPMADD52LUQ_BCST(m, y, r)
	} else {
		VPMADD52HUQ(mq, y, q)
		VPMADD52LUQ(m, y, r)
	}
	VPMADD52LUQ(a.constant(constNegP), q, r)
	VPANDQ(a.constant(constMask), r, r)
	return r
}

// quotientOf returns q of Shoup's product for beta = 64, less by 2 at most: the
// products of halves lose their low words, and the carry of the lowest is left out.
func (a *arithmetic) quotientOf(y, yHigh reg.VecVirtual, w twiddle) reg.VecVirtual {
	wq := a.quotient(w)
	q := a.wide(yHigh, wq, 4)
	middle := a.high(a.wide(yHigh, wq, 0))
	VPADDQ(middle, q, q)
	middle = a.high(a.wide(y, wq, 4))
	VPADDQ(middle, q, q)
	return q
}

// mulDQ multiplies with AVX512DQ's low words of products, beta = 64.
func mulDQ(a *arithmetic, y reg.VecVirtual, w twiddle) reg.VecVirtual {
	q := a.quotientOf(y, a.high(y), w)
	r := a.vec()
	m := Mem{Base: w.base, Disp: w.disp}
	if w.broadcast {
		VPMULLQ_BCST(m, y, r)
	} else {
		VPMULLQ(m, y, r)
	}
	VPMULLQ(a.constant(constP), q, q)
	VPSUBQ(q, r, r)
	return r
}

// mulAVX2 multiplies with products of 32-bit halves, beta = 64.
func mulAVX2(a *arithmetic, y reg.VecVirtual, w twiddle) reg.VecVirtual {
	yHigh := a.high(y)
	q := a.quotientOf(y, yHigh, w)
	middle := a.wide(y, w, 4)
	VPADDQ(a.wide(yHigh, w, 0), middle, middle)
	r := a.wide(y, w, 0)
	VPSUBQ(a.mul32(q, a.constant(constHighP)), middle, middle)
	VPSUBQ(a.mul32(q, a.constant(constP)), r, r)
	VPSUBQ(a.mul32(a.high(q), a.constant(constP)), middle, middle)
	VPSLLQ(Imm(32), middle, middle)
	VPADDQ(middle, r, r)
	return r
}

// forward is the butterfly of Cooley and Tukey: x + w y and x - w y.
func (a *arithmetic) forward(x, y reg.VecVirtual, w twiddle) (_, _ reg.VecVirtual) {
	if !a.lazy {
		x = a.subtractOnce(x, constP2)
	}
	r := a.mul(a, y, w)
	above := a.add(x, a.constant(a.bound()))
	return a.add(x, r), a.sub(above, r)
}

// bound is the constant that products are below.
func (a *arithmetic) bound() int {
	if a.products == 2 {
		return constP2
	}
	return constP4
}

// inverse is that of Gentleman and Sande, x + y and (x - y) w, of values below the bound.
func (a *arithmetic) inverse(x, y reg.VecVirtual, w twiddle) (_, _ reg.VecVirtual) {
	difference := a.sub(a.add(x, a.constant(a.bound())), y)
	sum := a.subtractOnce(a.add(x, y), a.bound())
	return sum, a.mul(a, difference, w)
}

// inverseEnd is that of the last stage, which takes both to [0, p) and divides them by n.
func (a *arithmetic) inverseEnd(x, y reg.VecVirtual, wx, wy twiddle) (_, _ reg.VecVirtual) {
	difference := a.sub(a.add(x, a.constant(a.bound())), y)
	return a.reduced(a.mul(a, a.add(x, y), wx)), a.reduced(a.mul(a, difference, wy))
}

// reduced takes a product to [0, p).
func (a *arithmetic) reduced(x reg.VecVirtual) reg.VecVirtual {
	if a.products == 4 {
		x = a.subtractOnce(x, constP2)
	}
	return a.subtractOnce(x, constP)
}

// reducedSum takes what a forward butterfly gives to [0, p).
func (a *arithmetic) reducedSum(x reg.VecVirtual) reg.VecVirtual {
	if a.lazy {
		return a.reduced(a.mul(a, x, twiddle{base: a.constants, disp: 64 * constOne, broadcast: true}))
	}
	return a.reduced(a.subtractOnce(x, constP2))
}

// stage does one stage on registers whose distance is far, and gives at of the block's
// twiddle factors the one of each group.
func stage(x []reg.VecVirtual, far int, at func(group int) twiddle, butterfly func(x, y reg.VecVirtual, w twiddle) (_, _ reg.VecVirtual)) {
	for group := 0; group*2*far < len(x); group++ {
		for i := range far {
			j := group*2*far + i
			x[j], x[j+far] = butterfly(x[j], x[j+far], at(group))
		}
	}
}

// broadcasts returns where the twiddle factors of the stage with so many groups lie in the
// table of a block: the pair of the first stage, the two of the second, and so on.
func broadcasts(base reg.GPVirtual, groups int) func(int) twiddle {
	return func(group int) twiddle {
		return twiddle{base: base, disp: 16 * (groups - 1 + group), broadcast: true}
	}
}

func (a *arithmetic) vectors(base reg.GPVirtual, behind, groups int) func(int) twiddle {
	return func(group int) twiddle {
		return twiddle{base: base, disp: behind + 2*a.bytes()*(groups-1+group)}
	}
}

// transpose exchanges registers and lanes.
func (a *arithmetic) transpose(x []reg.VecVirtual) {
	pairs := make([]reg.VecVirtual, len(x))
	for i := 0; i < len(x); i += 2 {
		low, high := a.vec(), a.vec()
		VPUNPCKLQDQ(x[i+1], x[i], low)
		VPUNPCKHQDQ(x[i+1], x[i], high)
		pairs[i], pairs[i+1] = low, high
	}
	if a.lanes == 4 {
		for i := range 2 {
			low, high := a.vec(), a.vec()
			VPERM2I128(Imm(0x20), pairs[i+2], pairs[i], low)
			VPERM2I128(Imm(0x31), pairs[i+2], pairs[i], high)
			x[i], x[i+2] = low, high
		}
		return
	}
	shuffle := func(x, y reg.VecVirtual) (even, odd reg.VecVirtual) {
		even, odd = a.vec(), a.vec()
		VSHUFI64X2(Imm(0x88), y, x, even)
		VSHUFI64X2(Imm(0xdd), y, x, odd)
		return even, odd
	}
	for i := range 2 {
		// Columns i and i+4, and i+2 and i+6, of four rows each.
		first0, second0 := shuffle(pairs[i], pairs[i+2])
		first1, second1 := shuffle(pairs[i+4], pairs[i+6])
		x[i], x[i+4] = shuffle(first0, first1)
		x[i+2], x[i+6] = shuffle(second0, second1)
	}
}

const passSignature = "func(x, w, c *uint64, groups, stride int)"

// constantsOf lists what the passes of an arithmetic take.
func (a *arithmetic) constantsOf() []int {
	if a.name == "IFMA" {
		return []int{constP, constP2, constNegP, constMask, constZero}
	}
	return []int{constP, constP2, constP4}
}

// pass writes a function that does log stages on vectors that are stride bytes from
// each other, 2^log of them at a time, in so many groups.
func (a *arithmetic) pass(name, doc string, log int, each func(x []reg.VecVirtual, w reg.GPVirtual), pairs int) {
	radix := 1 << log
	TEXT(name, NOSPLIT, passSignature)
	Doc(doc)
	Pragma("noescape")
	x, w, c := Load(Param("x"), GP64()).(reg.GPVirtual), Load(Param("w"), GP64()).(reg.GPVirtual), Load(Param("c"), GP64())
	groups, stride := Load(Param("groups"), GP64()), Load(Param("stride"), GP64())
	a.keep(c, a.constantsOf()...)
	x3, stride3 := GP64(), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	at := func(i int) Mem {
		switch i {
		case 0:
			return Mem{Base: x}
		case 3:
			return Mem{Base: x3}
		case 5, 7:
			return Mem{Base: x3, Index: stride, Scale: uint8(i - 3)}
		case 6:
			return Mem{Base: x, Index: stride3, Scale: 2}
		}
		return Mem{Base: x, Index: stride, Scale: uint8(i)}
	}
	left := GP64()
	Label("group")
	MOVQ(stride, left)
	if radix > 2 {
		LEAQ(Mem{Base: x, Index: stride3, Scale: 1}, x3)
	}
	Label("vectors")
	data := make([]reg.VecVirtual, radix)
	for i := range data {
		data[i] = a.load(at(i))
	}
	each(data, w)
	for i := range data {
		a.store(data[i], at(i))
	}
	step := Imm(uint64(a.bytes()))
	ADDQ(step, x)
	if radix > 2 {
		ADDQ(step, x3)
	}
	SUBQ(step, left)
	JNZ(LabelRef("vectors"))
	Comment("The next group.")
	switch radix {
	case 2:
		ADDQ(stride, x)
	case 4:
		ADDQ(stride3, x)
	case 8:
		LEAQ(Mem{Base: x, Index: stride3, Scale: 2}, x)
		ADDQ(stride, x)
	}
	ADDQ(U32(16*pairs), w)
	DECQ(groups)
	JNZ(LabelRef("group"))
	wipe(a.lanes)
	RET()
}

// block writes a function that does the stages next to coefficients, on blocks of
// lanes^2 of them.
func (a *arithmetic) block(name, doc string, each func(x []reg.VecVirtual, w reg.GPVirtual)) {
	TEXT(name, NOSPLIT, "func(x, w, c *uint64, blocks int)")
	Doc(doc)
	Pragma("noescape")
	x, w, c := Load(Param("x"), GP64()).(reg.GPVirtual), Load(Param("w"), GP64()).(reg.GPVirtual), Load(Param("c"), GP64())
	blocks := Load(Param("blocks"), GP64())
	a.keep(c, a.constantsOf()...)
	Label("block")
	data := make([]reg.VecVirtual, a.lanes)
	for i := range data {
		data[i] = a.load(Mem{Base: x, Disp: i * a.bytes()})
	}
	each(data, w)
	for i := range data {
		a.store(data[i], Mem{Base: x, Disp: i * a.bytes()})
	}
	ADDQ(U32(uint64(a.lanes*a.bytes())), x)
	ADDQ(U32(uint64(a.blockTable())), w)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	wipe(a.lanes)
	RET()
}

// blockTable returns the bytes of the twiddle factors of a block.
func (a *arithmetic) blockTable() int { return (a.lanes - 1) * (16 + 2*a.bytes()) }

func (a *arithmetic) passes() {
	logs := []int{3, 2}
	if a.lanes == 4 {
		logs = []int{2, 1}
	}
	for _, log := range logs {
		radix := 1 << log
		a.pass(fmt.Sprintf("forward%d%s", radix, a.name),
			fmt.Sprintf("forward%d%s does %d stages of a forward transform on vectors stride bytes apart.", radix, a.name, log),
			log, func(x []reg.VecVirtual, w reg.GPVirtual) {
				for groups := 1; groups < radix; groups *= 2 {
					stage(x, radix/2/groups, broadcasts(w, groups), a.forward)
				}
			}, radix-1)
		a.pass(fmt.Sprintf("inverse%d%s", radix, a.name),
			fmt.Sprintf("inverse%d%s does %d stages of an inverse transform on vectors stride bytes apart.", radix, a.name, log),
			log, func(x []reg.VecVirtual, w reg.GPVirtual) {
				for groups := radix / 2; groups >= 1; groups /= 2 {
					stage(x, radix/2/groups, broadcasts(w, groups), a.inverse)
				}
			}, radix-1)
		if radix == 2 {
			continue
		}
		a.pass(fmt.Sprintf("inverseEnd%d%s", radix, a.name),
			fmt.Sprintf("inverseEnd%d%s does the last %d stages of an inverse transform, and divides by n.", radix, a.name, log),
			log, func(x []reg.VecVirtual, w reg.GPVirtual) {
				for groups := radix / 2; groups > 1; groups /= 2 {
					stage(x, radix/2/groups, broadcasts(w, groups), a.inverse)
				}
				both := func(x, y reg.VecVirtual, wy twiddle) (_, _ reg.VecVirtual) {
					wx := wy
					wx.disp = 16 * (radix - 1)
					return a.inverseEnd(x, y, wx, wy)
				}
				stage(x, radix/2, broadcasts(w, 1), both)
			}, radix-1)
	}
	behind := 16 * (a.lanes - 1)
	a.block("forwardBlocks"+a.name,
		fmt.Sprintf("forwardBlocks%s does the last %d stages of a forward transform, and leaves blocks transposed.", a.name, 2*a.log),
		func(x []reg.VecVirtual, w reg.GPVirtual) {
			for groups := 1; groups < a.lanes; groups *= 2 {
				stage(x, a.lanes/2/groups, broadcasts(w, groups), a.forward)
			}
			a.transpose(x)
			for groups := 1; groups < a.lanes; groups *= 2 {
				stage(x, a.lanes/2/groups, a.vectors(w, behind, groups), a.forward)
			}
			for i := range x {
				x[i] = a.reducedSum(x[i])
			}
		})
	a.block("inverseBlocks"+a.name,
		fmt.Sprintf("inverseBlocks%s does the first %d stages of an inverse transform, of blocks that are transposed.", a.name, 2*a.log),
		func(x []reg.VecVirtual, w reg.GPVirtual) {
			for groups := a.lanes / 2; groups >= 1; groups /= 2 {
				stage(x, a.lanes/2/groups, a.vectors(w, behind, groups), a.inverse)
			}
			a.transpose(x)
			for groups := a.lanes / 2; groups >= 1; groups /= 2 {
				stage(x, a.lanes/2/groups, broadcasts(w, groups), a.inverse)
			}
		})
}

// multiply writes the function of products x y 2^-beta, in [0, 2p), of x, y < p.
func (a *arithmetic) multiply() {
	TEXT("multiply"+a.name, NOSPLIT, "func(z, x, y, c *uint64, vectors int)")
	Doc(fmt.Sprintf("multiply%s sets z to Montgomery's products x y 2^-beta, in (0, 2p), of x, y < p: beta is %s.", a.name, map[bool]string{true: "52", false: "64"}[a.name == "IFMA"]))
	Pragma("noescape")
	z, x, y := Load(Param("z"), GP64()), Load(Param("x"), GP64()), Load(Param("y"), GP64())
	c, left := Load(Param("c"), GP64()), Load(Param("vectors"), GP64())
	if a.name == "IFMA" {
		a.keep(c, constP, constInvP, constZero)
	} else {
		a.keep(c, constP, constInvP, constHighP, constHighIP)
	}
	Label("vector")
	a.store(a.product(a, a.load(Mem{Base: x}), a.load(Mem{Base: y})), Mem{Base: z})
	for _, r := range []reg.Register{x, y, z} {
		ADDQ(Imm(uint64(a.bytes())), r)
	}
	DECQ(left)
	JNZ(LabelRef("vector"))
	wipe(a.lanes)
	RET()
}

// productIFMA: with l the low 52 bits of x y and m = l/p mod 2^52, x y - m p is divisible
// by 2^52, and its low parts are equal.
func productIFMA(a *arithmetic, x, y reg.VecVirtual) reg.VecVirtual {
	low, high, m, mp := a.zero(), a.zero(), a.zero(), a.zero()
	VPMADD52LUQ(y, x, low)
	VPMADD52HUQ(y, x, high)
	VPMADD52LUQ(a.constant(constInvP), low, m)
	VPMADD52HUQ(a.constant(constP), m, mp)
	return a.add(a.sub(high, mp), a.constant(constP))
}

// product64 does the same for beta = 64, with products of halves.
func product64(a *arithmetic, x, y reg.VecVirtual) reg.VecVirtual {
	yHigh := a.high(y)
	high := a.upper(x, y, yHigh)
	m := a.low(a.low(x, y, yHigh), a.constant(constInvP), a.constant(constHighIP))
	mp := a.upper(m, a.constant(constP), a.constant(constHighP))
	return a.add(a.sub(high, mp), a.constant(constP))
}

// upper returns the upper word of x y, exactly: y is given with its high halves.
func (a *arithmetic) upper(x reg.VecVirtual, y, yHigh Op) reg.VecVirtual {
	low := a.mul32(x, y)
	part := a.mul32(x, yHigh)
	xHigh := a.high(x)
	// The middle and low halves of words that are added to are below 2^64.
	middle := a.mul32(xHigh, y)
	VPADDQ(a.high(low), middle, middle)
	high := a.mul32(xHigh, yHigh)
	VPADDQ(a.high(middle), high, high)
	VPSLLQ(Imm(32), middle, middle)
	VPSRLQ(Imm(32), middle, middle)
	VPADDQ(middle, part, part)
	VPADDQ(a.high(part), high, high)
	return high
}

// low returns the low word of x y.
func (a *arithmetic) low(x reg.VecVirtual, y, yHigh Op) reg.VecVirtual {
	middle := a.add(a.mul32(x, yHigh), a.mul32(a.high(x), y))
	VPSLLQ(Imm(32), middle, middle)
	return a.add(middle, a.mul32(x, y))
}

func ifma() *arithmetic {
	return &arithmetic{name: "IFMA", lanes: 8, log: 3, products: 2, mul: mulIFMA, product: productIFMA}
}

func dq() *arithmetic {
	return &arithmetic{name: "DQ", lanes: 8, log: 3, products: 4, lazy: true, mul: mulDQ, product: product64}
}

func avx2() *arithmetic {
	return &arithmetic{name: "AVX2", lanes: 4, log: 2, products: 4, lazy: true, mul: mulAVX2, product: product64}
}

// transforms writes what package ntt has in assembly.
func transforms() {
	for _, a := range []*arithmetic{ifma(), dq(), avx2()} {
		a.passes()
		a.multiply()
	}
}
