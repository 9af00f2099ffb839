package digit

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"ringwave/phy/zq"
)

var bases = [][]uint64{
	{0x7fff801},
	{0x3ffffffffed001},
	{0x3ffffffffd6001, 0x7ffffffffb4001},
	{0x3fffffffef8001, 0x3fffffffeb8001, 0x7ffffffffb4001, 0x7fffffffeac001},
}

func newCodec(t testing.TB, primes []uint64, base int) (*Codec, *zq.Modulus) {
	t.Helper()
	m, err := zq.NewModulus(primes)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(m, base)
	if err != nil {
		t.Fatal(err)
	}
	return c, m
}

func randomVector(m *zq.Modulus, n int, rnd *rand.Rand) zq.Vector {
	v := m.NewVector(n)
	for j, p := range m.Primes() {
		for k := range v[j] {
			v[j][k] = rnd.Uint64N(p)
		}
	}
	half := new(big.Int).Rsh(m.Big(), 1) // the extremes of the centred range
	m.SetBig(v, 0, half)
	m.SetBig(v, 1, new(big.Int).Neg(half))
	m.SetBig(v, 2, new(big.Int))
	return v
}

// The digits are those that math/big gives by repeated division, in range, and
// as many as ceil(log_B q); the paper's q of 109 bits has 69 trits.
func TestSplitAgainstBig(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, primes := range bases {
		for base := MinBase; base <= MaxBase; base += 2 {
			c, m := newCodec(t, primes, base)
			const n = 40
			v := randomVector(m, n, rnd)
			d := make([]int8, n*c.Digits())
			c.Split(d, v)
			bound := new(big.Int).Exp(big.NewInt(int64(base)), big.NewInt(int64(c.Digits())), nil)
			if bound.Cmp(m.Big()) < 0 || new(big.Int).Div(bound, big.NewInt(int64(base))).Cmp(m.Big()) >= 0 {
				t.Fatalf("base %d: %d digits", base, c.Digits())
			}
			for k := range n {
				rest := m.Centred(v, k).Big()
				for l := range c.Digits() {
					got := int64(d[k*c.Digits()+l])
					if 2*max(got, -got) > int64(base-1) {
						t.Fatalf("base %d: a digit is %d", base, got)
					}
					rest.Sub(rest, big.NewInt(got))
					var r big.Int
					rest.QuoRem(rest, big.NewInt(int64(base)), &r)
					if r.Sign() != 0 {
						t.Fatalf("base %d, coefficient %d: digit %d is %d, which leaves a remainder", base, k, l, got)
					}
				}
				if rest.Sign() != 0 {
					t.Fatalf("base %d, coefficient %d: the digits leave %v", base, k, rest)
				}
			}
		}
	}
	if c, _ := newCodec(t, bases[2], 3); c.Digits() != 69 {
		t.Errorf("%d trits at 109 bits, want 69", c.Digits())
	}
}

// Digits superposed with any integer gains join to the superposition of the
// elements.
func TestJoinIsTheSuperposition(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	for _, primes := range bases {
		for base := MinBase; base <= MaxBase; base += 2 {
			c, m := newCodec(t, primes, base)
			const n = 20
			for _, limit := range []int64{1, 30, 1 << 20} {
				y := make([]int32, n*c.Digits())
				want, got := m.NewVector(n), m.NewVector(n)
				for range 2 {
					x, d := randomVector(m, n, rnd), make([]int8, n*c.Digits())
					c.Split(d, x)
					h := rnd.Int64N(2*limit+1) - limit
					for s := range y {
						y[s] += int32(h) * int32(d[s])
					}
					m.AddScaled(want, h, x)
				}
				c.Join(got, y)
				if !got.Equal(want) {
					t.Fatalf("base %d, gains up to %d: the joined digits are no superposition", base, limit)
				}
			}
			// The largest superposed digits, all of one sign.
			y := make([]int32, c.Digits())
			want := new(big.Int)
			for l := len(y) - 1; l >= 0; l-- {
				y[l] = -MaxSuperposed
				want.Mul(want, big.NewInt(int64(base)))
				want.Sub(want, big.NewInt(MaxSuperposed))
			}
			one, ref := m.NewVector(1), m.NewVector(1)
			c.Join(one, y)
			m.SetBig(ref, 0, want)
			if !one.Equal(ref) {
				t.Fatalf("base %d: the largest digits join wrongly", base)
			}
		}
	}
}

func TestBadBase(t *testing.T) {
	_, m := newCodec(t, bases[0], 3)
	for _, base := range []int{-3, 0, 1, 2, 4, 16, 17} {
		if _, err := New(m, base); err == nil {
			t.Errorf("base %d was taken", base)
		}
	}
}

func TestNothingAllocated(t *testing.T) {
	c, m := newCodec(t, bases[3], 5)
	v := randomVector(m, 10, rand.New(rand.NewPCG(3, 3)))
	d, y := make([]int8, 10*c.Digits()), make([]int32, 10*c.Digits())
	if n := testing.AllocsPerRun(50, func() { c.Split(d, v); c.Join(v, y) }); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// The figures are a ratio to copying the digits.
func BenchmarkCodec(b *testing.B) {
	for _, base := range []int{3, 5, 7} {
		c, m := newCodec(b, bases[2], base)
		v := randomVector(m, 4096, rand.New(rand.NewPCG(3, 3)))
		d, y := make([]int8, 4096*c.Digits()), make([]int32, 4096*c.Digits())
		name := string('0' + rune(base))
		b.Run("split/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(d)))
			for b.Loop() {
				c.Split(d, v)
			}
		})
		b.Run("join/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(y)))
			for b.Loop() {
				c.Join(v, y)
			}
		})
		b.Run("copy/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(d)))
			e := make([]int8, len(d))
			for b.Loop() {
				copy(e, d)
			}
		})
	}
}
