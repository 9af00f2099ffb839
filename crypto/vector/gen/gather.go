package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gather writes the function that makes a panel of rows of bytes, 16 of each at a time. The
// four bytes of a doubleword are those of neighbouring columns, so that shifts take bytes
// apart once the doublewords of all rows lie side by side.
func (t target) gather() {
	lanes := t.width * t.bytes / 4
	name := "gather" + t.name
	TEXT(name, NOSPLIT, "func(dst *float32, rows *[]uint8, offset, blocks int, factor, addend float64)")
	Doc(fmt.Sprintf("%s sets panels of %d lanes, 16 for each block, to factor times a byte plus addend, of as many rows from an offset in each on.", name, lanes))
	Pragma("noescape")
	dst, rows := Load(Param("dst"), GP64()), Load(Param("rows"), GP64())
	offset, left, row := Load(Param("offset"), GP64()), Load(Param("blocks"), GP64()), GP64()
	factor, addend, mask := t.vectors[12], t.vectors[13], t.vectors[14]
	for _, p := range []struct {
		name string
		to   reg.VecPhysical
	}{{"factor", factor}, {"addend", addend}} {
		from, err := Param(p.name).Resolve()
		if err != nil {
			panic(err)
		}
		VBROADCASTSD(from.Addr, p.to)
	}
	bits := GP32()
	MOVL(U32(0xff), bits)
	VMOVD(bits, mask.(reg.Vec).AsX())
	VPBROADCASTD(mask.(reg.Vec).AsX(), mask)
	slots := t.bytes / 16
	// Nobody else knows that so many rows are read: in a set that no cache holds each costs a
	// wait.
	const ahead = 512
	Label("block")
	for group := range t.width {
		quads := t.vectors[:4]
		for i, q := range quads {
			for slot := range slots {
				MOVQ(Mem{Base: rows, Disp: 24 * (group*t.bytes/4 + 4*slot + i)}, row)
				PREFETCHT0(Mem{Base: row, Index: offset, Scale: 1, Disp: ahead})
				t.insert(slot, Mem{Base: row, Index: offset, Scale: 1}, q)
			}
		}
		for i, q := range t.transposed(quads, t.vectors[4:8]) {
			for b := range 4 {
				column := Mem{Base: dst, Disp: (4*i+b)*4*lanes + group*t.bytes}
				t.scaled(q, b, column, t.vectors[8:12], factor, addend, mask)
			}
		}
	}
	ADDQ(Imm(16), offset)
	ADDQ(U32(uint32(16*4*lanes)), dst)
	DECQ(left)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// insert loads 16 bytes into a slot of a register; the first one's are loaded first.
func (t target) insert(slot int, from Mem, to reg.VecPhysical) {
	switch {
	case slot == 0:
		VMOVDQU(from, to.(reg.Vec).AsX())
	case t.bytes == 64:
		VINSERTI32X4(Imm(uint64(slot)), from, to, to)
	default:
		VINSERTI128(Imm(uint64(slot)), from, to, to)
	}
}

// transposed returns the columns of the four doublewords of each of four registers' slots.
func (t target) transposed(q, temp []reg.VecPhysical) []reg.VecPhysical {
	VPUNPCKLDQ(q[1], q[0], temp[0])
	VPUNPCKHDQ(q[1], q[0], temp[1])
	VPUNPCKLDQ(q[3], q[2], temp[2])
	VPUNPCKHDQ(q[3], q[2], temp[3])
	VPUNPCKLQDQ(temp[2], temp[0], q[0])
	VPUNPCKHQDQ(temp[2], temp[0], q[1])
	VPUNPCKLQDQ(temp[3], temp[1], q[2])
	VPUNPCKHQDQ(temp[3], temp[1], q[3])
	return q
}

// scaled stores factor times a byte of each doubleword plus addend, in double precision and
// rounded to single.
func (t target) scaled(q reg.VecPhysical, b int, to Mem, v []reg.VecPhysical, factor, addend, mask reg.VecPhysical) {
	whole := q
	if b > 0 {
		VPSRLD(Imm(uint64(8*b)), q, v[0])
		whole = v[0]
	}
	switch {
	case b == 3:
	case t.bytes == 64:
		VPANDD(mask, whole, v[0])
	default:
		VPAND(mask, whole, v[0])
	}
	low := func(r reg.VecPhysical) reg.Register {
		if t.bytes == 64 {
			return r.(reg.Vec).AsY()
		}
		return r.(reg.Vec).AsX()
	}
	if t.bytes == 64 {
		VEXTRACTI64X4(Imm(1), v[0], low(v[1]))
	} else {
		VEXTRACTI128(Imm(1), v[0], low(v[1]))
	}
	for i, half := range v[:2] {
		VCVTDQ2PD(low(half), v[2])
		VMULPD(factor, v[2], v[2])
		VADDPD(addend, v[2], v[2])
		if t.bytes == 64 {
			VCVTPD2PS(v[2], low(v[3]))
		} else {
			VCVTPD2PSY(v[2], low(v[3]))
		}
		to.Disp += i * t.bytes / 2
		VMOVUPS(low(v[3]), to)
	}
}
