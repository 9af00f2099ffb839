package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rounds of AES-256, and the round keys that they take: one more.
const rounds = 14

// chunkBlocks is how many blocks a chunk of keystream has: counters from 2 to 129, as
// GCM counts, so that the last byte alone changes.
const chunkBlocks = 128

// keystreams writes what package keystream has in assembly.
func keystreams() {
	expandKey()
	GLOBL("counters", RODATA|NOPTR)
	counters := NewDataAddr(Symbol{Name: "counters", Static: true}, 0)
	for lane := range 4 {
		DATA(16*lane, U64(0))
		DATA(16*lane+8, U64(uint64(lane)<<56))
	}
	chunk("chunkVAES", 4, counters)
	chunk("chunkAES", 1, counters)
}

// expandKey writes the key expansion of FIPS 197, section 5.2, for AES-256.
func expandKey() {
	TEXT("expandKey", NOSPLIT, "func(schedule, key *byte)")
	Doc("expandKey sets schedule to the 15 round keys of AES-256, 240 bytes, of a key of 32.")
	Pragma("noescape")
	schedule, key := Load(Param("schedule"), GP64()), Load(Param("key"), GP64())
	even, odd, word, shifted := XMM(), XMM(), XMM(), XMM()
	MOVOU(Mem{Base: key}, even)
	MOVOU(Mem{Base: key, Disp: 16}, odd)
	MOVOU(even, Mem{Base: schedule})
	MOVOU(odd, Mem{Base: schedule, Disp: 16})
	next := func(x, from reg.VecVirtual, constant uint64, which uint64, round int) {
		AESKEYGENASSIST(Imm(constant), from, word)
		PSHUFD(Imm(which), word, word)
		MOVOU(x, shifted)
		for range 3 { // each word is added to those behind it
			PSLLDQ(Imm(4), shifted)
			PXOR(shifted, x)
		}
		PXOR(word, x)
		MOVOU(x, Mem{Base: schedule, Disp: 16 * round})
	}
	constant := uint64(1)
	for round := 2; round <= rounds; round += 2 {
		next(even, odd, constant, 0xff, round)
		if round < rounds {
			next(odd, even, 0, 0xaa, round+1)
		}
		constant *= 2
	}
	wipe(4)
	RET()
}

// chunk writes the function of one chunk, in vectors of so many blocks, eight at a time,
// so that none waits for another.
func chunk(name string, blocks int, counters Mem) {
	const together = 8
	TEXT(name, NOSPLIT, "func(dst, schedule, first *byte)")
	Doc(fmt.Sprintf("%s sets dst to %d bytes of keystream: AES-256 of the first block and of those that follow, in whose last bytes it counts.", name, 16*chunkBlocks))
	Pragma("noescape")
	dst, schedule, first := Load(Param("dst"), GP64()), Load(Param("schedule"), GP64()), Load(Param("first"), GP64())
	vec := func() reg.VecVirtual {
		if blocks == 4 {
			return ZMM()
		}
		return XMM()
	}
	load := func(m Mem, v reg.VecVirtual) {
		if blocks == 4 {
			VBROADCASTI32X4(m, v)
		} else {
			VMOVDQU(m, v)
		}
	}
	counter, step, key := vec(), vec(), vec()
	load(Mem{Base: first}, counter)
	if blocks == 4 {
		VPADDD(counters, counter, counter)
	}
	// What a vector's counters are behind those of the one before.
	increment, low := GP64(), XMM()
	MOVQ(U64(uint64(blocks)<<56), increment)
	MOVQ(increment, low)
	VPSLLDQ(Imm(8), low, low)
	if blocks == 4 {
		VSHUFI32X4(Imm(0), low.AsZ(), low.AsZ(), step)
	} else {
		VMOVDQU(low, step)
	}
	var x [together]reg.VecVirtual
	for i := range x {
		x[i] = vec()
	}
	left := GP64()
	MOVQ(U32(uint64(chunkBlocks/blocks/together)), left)
	Label("blocks")
	load(Mem{Base: schedule}, key)
	for i := range x {
		if blocks == 4 {
			VPXORD(counter, key, x[i])
		} else {
			VPXOR(counter, key, x[i])
		}
		VPADDD(step, counter, counter)
	}
	for round := 1; round <= rounds; round++ {
		load(Mem{Base: schedule, Disp: 16 * round}, key)
		for i := range x {
			if round < rounds {
				VAESENC(key, x[i], x[i])
			} else {
				VAESENCLAST(key, x[i], x[i])
			}
		}
	}
	for i := range x {
		m := Mem{Base: dst, Disp: 16 * blocks * i}
		if blocks == 4 {
			VMOVDQU64(x[i], m)
		} else {
			VMOVDQU(x[i], m)
		}
	}
	ADDQ(U32(uint64(16*blocks*together)), dst)
	DECQ(left)
	JNZ(LabelRef("blocks"))
	wipe(blocks * 2)
	RET()
}
