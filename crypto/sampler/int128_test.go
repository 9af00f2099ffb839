package sampler

import (
	"math"
	"math/big"
	"testing"
)

func (x Int128) big() *big.Int {
	b := big.NewInt(x.Hi)
	b.Lsh(b, 64)
	return b.Add(b, new(big.Int).SetUint64(x.Lo))
}

// wrap takes b modulo 2^128 to [-2^127, 2^127).
func wrap(b *big.Int) *big.Int {
	half := new(big.Int).Lsh(big.NewInt(1), 127)
	full := new(big.Int).Lsh(big.NewInt(1), 128)
	b = new(big.Int).Add(b, half)
	return b.Mod(b, full).Sub(b, half)
}

func int128Samples() []Int128 {
	var x []Int128
	edge := []uint64{0, 1, 2, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64}
	for _, hi := range edge {
		for _, lo := range edge {
			x = append(x, Int128{int64(hi), lo})
		}
	}
	s := testStream("int128")
	for range 3000 {
		shift := s.Uint64() % 64 // all magnitudes
		x = append(x, Int128{int64(s.Uint64()) >> shift, s.Uint64()})
		x = append(x, Int128From(int64(s.Uint64())>>shift))
	}
	return x
}

func TestInt128(t *testing.T) {
	x := int128Samples()
	for i, a := range x {
		b := x[(7*i+3)%len(x)]
		if got, want := a.Add(b).big(), wrap(new(big.Int).Add(a.big(), b.big())); got.Cmp(want) != 0 {
			t.Fatalf("%v + %v = %v, want %v", a.big(), b.big(), got, want)
		}
		if got, want := a.Neg().big(), wrap(new(big.Int).Neg(a.big())); got.Cmp(want) != 0 {
			t.Fatalf("-%v = %v, want %v", a.big(), got, want)
		}
		k := uint(i % 130)
		if got, want := a.Lsh(k).big(), wrap(new(big.Int).Lsh(a.big(), k)); got.Cmp(want) != 0 {
			t.Fatalf("%v << %d = %v, want %v", a.big(), k, got, want)
		}
		want, _ := new(big.Float).SetInt(a.big()).Float64()
		if got := a.Float64(); math.Abs(got-want) > math.Abs(want)*0x1p-51 {
			t.Fatalf("%v as a float64 is %v, want %v", a.big(), got, want)
		}
		if got := Int128From(int64(a.Lo)).big(); got.Cmp(big.NewInt(int64(a.Lo))) != 0 {
			t.Fatalf("Int128From(%d) = %v", int64(a.Lo), got)
		}
	}
}

func TestReduce(t *testing.T) {
	x := int128Samples()
	moduli := append([]uint64{4, 7, 1 << 61, 1<<61 - 1, 1<<62 - 1, 0x7ffffffffb4001}, uniformModuli...)
	for _, p := range moduli {
		r, err := NewReducer(p)
		if err != nil {
			t.Fatal(err)
		}
		if r.Modulus() != p {
			t.Errorf("modulus %d became %d", p, r.Modulus())
		}
		modulus := new(big.Int).SetUint64(p)
		for _, v := range x {
			want := new(big.Int).Mod(v.big(), modulus).Uint64()
			if got := r.Reduce(v); got != want {
				t.Fatalf("%v modulo %d is %d, want %d", v.big(), p, got, want)
			}
		}
		word := func(v int64) {
			if got, want := r.ReduceWord(v), new(big.Int).Mod(big.NewInt(v), modulus).Uint64(); got != want {
				t.Fatalf("the word %d modulo %d is %d, want %d", v, p, got, want)
			}
		}
		for _, v := range x {
			v := int64(v.Lo) >> 2 // below 2^61, and next to 2^62:
			for _, v := range []int64{v, v - v%int64(p), v - v%int64(p) - 1, 1<<62 - 1 - v&0xff, v&0xff + 1 - 1<<62} {
				word(v)
			}
		}
		// Multiples of p and their neighbours, where the quotient is hardest.
		for i, v := range x {
			m := new(big.Int).Sub(v.big(), new(big.Int).Mod(v.big(), modulus))
			m.Add(m, big.NewInt(int64(i%3-1)))
			if m.BitLen() > 127 {
				continue
			}
			want := new(big.Int).Mod(m, modulus).Uint64()
			if got := r.Reduce(fromBig(m)); got != want {
				t.Fatalf("%v modulo %d is %d, want %d", m, p, got, want)
			}
		}
	}
	for _, p := range []uint64{0, 1, 1 << 62} {
		if _, err := NewReducer(p); err == nil {
			t.Errorf("modulus %d was taken", p)
		}
	}
}

// fromBig takes b in [-2^127, 2^127).
func fromBig(b *big.Int) Int128 {
	lo := new(big.Int).And(b, new(big.Int).SetUint64(math.MaxUint64))
	return Int128{Hi: new(big.Int).Rsh(b, 64).Int64(), Lo: lo.Uint64()}
}

// Moduli: the least, one beside a power of two on either side, two of the
// scheme's primes, the greatest prime below 2^62.
var uniformModuli = []uint64{2, 3, 0x3ffffffffd6001, 0x7fff801, 257, 1<<62 - 57}
