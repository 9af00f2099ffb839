package frame

import (
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/zq"
)

// What a block lacks is found by its check, masked or not, and only in the range that is
// allowed.
func TestSolveUnknowns(t *testing.T) {
	for _, primes := range [][]uint64{{0x7fff801}, {0x3ffffffffed001}, {0x3ffffffffed001, 0x7fff801}} {
		mod, err := zq.NewModulus(primes)
		if err != nil {
			t.Fatal(err)
		}
		codec, err := digit.New(mod, 3)
		if err != nil {
			t.Fatal(err)
		}
		const n, gain = 30, 7
		p, err := NewPayload(mod, codec, n, 20, 64)
		if err != nil {
			t.Fatal(err)
		}
		if s := p.Spare(); s != 16383 {
			t.Errorf("%#x: %v tries to spare, want 2^54/2^40, a little less", primes, s)
		}
		patterns := NewPatterns(1, keystream.FromInteger(3))
		for _, again := range []bool{false, true} {
			p.Draw(NewWeights(keystream.FromInteger(4), 0).Of(Header{}), again)
			rnd := rand.New(rand.NewPCG(5, 5))
			x, scratch, digits := mod.NewVector(n), p.NewScratch(), make([]int8, p.Symbols())
			for j, prime := range primes {
				for k := range x[j] {
					x[j][k] = rnd.Uint64N(prime)
				}
			}
			p.Encode(digits, x, scratch)
			p.EncodeChecks(digits, patterns.Residues(mod)[0], scratch)
			pattern := make([]int64, patterns.Symbols())
			patterns.Superpose(pattern, []int64{gain})
			from, to := p.BlockSymbols(1)
			y := make([]int32, to-from)
			for k := range y {
				y[k] = gain * int32(digits[from+k])
			}
			solveOne(t, p, y, pattern, 5, 3*codec.Digits()+2, to-from-1)
		}
	}
}

// solveOne removes symbols at first and second, and finds them.
func solveOne(t *testing.T, p *Payload, y []int32, pattern []int64, places ...int) {
	t.Helper()
	var unknowns []Unknown
	want := make([]int64, len(places))
	shape, none := make([]int32, len(y)), make([]int64, len(pattern))
	for i, at := range places {
		want[i], y[at] = int64(y[at]), 0
		clear(shape)
		shape[at] = 1
		u := Unknown{From: -20, To: 20, Step: p.NewResidual(1)}
		p.Residual(u.Step, 1, shape, none)
		unknowns = append(unknowns, u)
	}
	residual, got := p.NewResidual(1), make([]int64, len(places))
	p.Residual(residual, 1, y, pattern)
	if !p.Solve(got, residual, unknowns) {
		t.Fatal("not solved")
	}
	v := p.mod.NewVector(p.Len())
	for i, at := range places {
		if got[i] != want[i] {
			t.Errorf("symbol %d is %d, want %d", at, got[i], want[i])
		}
		y[at] = int32(got[i])
	}
	if !p.DecodeBlock(v, 1, y, pattern) {
		t.Error("solved, and the check does not hold")
	}
	unknowns[1].From = want[1] + 1
	if p.Solve(got, residual, unknowns) {
		t.Error("solved by a value out of range")
	}
}
