package frame

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/zq"
)

// Symbols of several devices superposed with integer gains decode to the
// superposed vector, block by block, also those of a payload that is sent again, which
// are other ones; one wrong digit fails its block and no other.
func TestPayload(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, primes := range [][]uint64{{0x7fff801}, {0x3ffffffffd6001, 0x7ffffffffb4001}} {
		m := testModulus(t, primes...)
		for trial, base := range []int{3, 7, 3, 7} {
			payload(t, m, base, trial > 1, rnd)
		}
	}
}

// payload sends one payload of each of several devices, again or for the first time.
func payload(t *testing.T, m *zq.Modulus, base int, again bool, rnd *rand.Rand) {
	t.Helper()
	codec, err := digit.New(m, base)
	if err != nil {
		t.Fatal(err)
	}
	const n, devices = 130, 3
	p, err := NewPayload(m, codec, n, 50, patternWord)
	if err != nil {
		t.Fatal(err)
	}
	if p.Blocks() != 3 || p.Len() != n {
		t.Fatalf("%d blocks of %d coefficients", p.Blocks(), p.Len())
	}
	stream := keystream.FromInteger(9).Stream()
	p.Draw(NewWeights(keystream.FromInteger(4), 0).Of(Header{Round: 7, Attempt: 1}), again)
	y, want := make([]int32, p.Symbols()), m.NewVector(n)
	patterns, gains, pattern := NewPatterns(devices, keystream.FromInteger(5)), make([]int64, devices), make([]int64, patternWord)
	for i, own := range patterns.Residues(m) {
		x, symbols, scratch := randomVector(m, n, stream), make([]int8, p.Symbols()), p.NewScratch()
		p.Encode(symbols, x, scratch)
		plain := slices.Clone(symbols)
		p.EncodeChecks(symbols, own, scratch)
		if from, _ := p.CheckSymbols(0); slices.Equal(plain[:from], symbols[:from]) == again {
			t.Errorf("sent again: %v: the payload's digits are not what they should be", again)
		}
		h := rnd.Int64N(41) - 20
		gains[i] = h
		for s, d := range symbols {
			y[s] += int32(h) * int32(d)
		}
		m.AddScaled(want, h, x)
	}
	patterns.Superpose(pattern, gains)
	decodePayload(t, m, p, y, pattern, want, rnd)
}

// decodePayload decodes what was received, and again with one wrong digit.
func decodePayload(t *testing.T, m *zq.Modulus, p *Payload, y []int32, pattern []int64, want zq.Vector, rnd *rand.Rand) {
	t.Helper()
	got := m.NewVector(want.Len())
	decode := func() (passed []bool) {
		for i := range p.Blocks() {
			from, to := p.BlockSymbols(i)
			passed = append(passed, p.DecodeBlock(got, i, y[from:to], pattern))
		}
		return passed
	}
	for i, ok := range decode() {
		if !ok {
			t.Fatalf("block %d of a good payload failed", i)
		}
	}
	if !got.Equal(want) {
		t.Fatal("the payload is not the superposition")
	}
	for range 200 {
		at := rnd.IntN(len(y))
		y[at]++
		for i, ok := range decode() {
			from, to := p.BlockSymbols(i)
			if ok == (at >= from && at < to) {
				t.Fatalf("a wrong digit at %d: block %d (%d to %d) passed: %v", at, i, from, to, ok)
			}
		}
		y[at]--
	}
}

func TestPayloadAllocatesNothing(t *testing.T) {
	m := testModulus(t, 0x3ffffffffed001)
	codec, err := digit.New(m, 3)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPayload(m, codec, 300, 100, patternWord)
	if err != nil {
		t.Fatal(err)
	}
	x, dst, scratch, y := m.NewVector(300), make([]int8, p.Symbols()), p.NewScratch(), make([]int32, p.Symbols())
	v := zq.Vector(m.NewVector(300))
	weights, own, pattern := NewWeights(keystream.FromInteger(4), 0), m.NewVector(patternWord), make([]int64, patternWord)
	if n := testing.AllocsPerRun(20, func() {
		p.Draw(weights.Of(Header{Round: 1}), true)
		p.Encode(dst, x, scratch)
		p.EncodeChecks(dst, own, scratch)
		from, to := p.BlockSymbols(1)
		p.DecodeBlock(v, 1, y[from:to], pattern)
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func TestHeader(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		h := Header{
			Run: uint16(rnd.Uint32()), Round: rnd.Uint32(), Attempt: uint16(rnd.Uint32()),
			Transmission: uint8(rnd.Uint32()), Group: uint16(rnd.Uint32()), Repeat: uint8(rnd.Uint32()),
		}
		var s [HeaderSymbols]int8
		h.Symbols(s[:], 0)
		y := make([]float32, HeaderSymbols)
		for i, v := range s {
			y[i] = float32(v) * (0.2 + rnd.Float32())
		}
		got, err := DecodeHeader(y, 0)
		if err != nil || got != h {
			t.Fatalf("%+v came back as %+v, %v", h, got, err)
		}
		i := rnd.IntN(len(y))
		y[i] = -y[i]
		if _, err := DecodeHeader(y, 0); err == nil {
			t.Fatalf("a flipped symbol %d was taken", i)
		}
	}
	if _, err := DecodeHeader(make([]float32, HeaderSymbols), 0); err == nil {
		t.Error("silence was taken for a header")
	}
	if _, err := DecodeHeader(nil, 0); err == nil {
		t.Error("nothing was taken for a header")
	}
}

// Whatever is taken for a header is one that could have been sent.
func FuzzHeader(f *testing.F) {
	var s [HeaderSymbols]int8
	Header{Run: 1, Round: 2, Attempt: 3, Transmission: 1, Group: 4, Repeat: 5}.Symbols(s[:], 0)
	seed := make([]byte, HeaderSymbols)
	for i, v := range s {
		seed[i] = byte(v)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		y := make([]float32, len(data))
		for i, b := range data {
			y[i] = float32(int8(b))
		}
		h, err := DecodeHeader(y, 0)
		if err != nil {
			return
		}
		var again [HeaderSymbols]int8
		h.Symbols(again[:], 0)
		for i, v := range again {
			if float32(v)*y[i] <= 0 {
				t.Fatalf("symbol %d was %v", i, y[i])
			}
		}
	})
}
