package frame

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/zq"
)

// testPrimes are moduli of all shapes: of the parameter sets, and one with a prime far
// smaller than the others.
func testPrimes() [][]uint64 {
	return [][]uint64{
		{0x7fff801},
		{0x3ffffffffed001},
		{0x3ffffffffd6001, 0x7ffffffffb4001},
		{0x3fffffffef8001, 0x3fffffffeb8001, 0x7ffffffffb4001, 0x7fffffffeac001},
		{12289, 0x3ffffffffd6001},
	}
}

// exchange is a block of several devices, superposed with integer gains.
type exchange struct {
	check   *Check
	weights Weights
	y, chk  zq.Vector
	pattern []int64
}

func (e *exchange) passes() bool { return e.check.Verify(e.y, e.pattern, e.chk) }

// copyOf returns an exchange that may be damaged.
func (e *exchange) copyOf() *exchange {
	m := e.check.mod
	d := &exchange{e.check, e.weights, m.NewVector(e.y.Len()), m.NewVector(e.chk.Len()), slices.Clone(e.pattern)}
	d.y.Copy(e.y)
	d.chk.Copy(e.chk)
	return d
}

// add adds an integer to coefficient k of v.
func add(m *zq.Modulus, v zq.Vector, k int, x *big.Int) {
	d := m.NewVector(1)
	m.SetBig(d, 0, x)
	for j, p := range m.Primes() {
		v[j][k] = (v[j][k] + d[j][0]) % p
	}
}

// single returns how many of the checks pass each for itself.
func (e *exchange) single() (n int) {
	c, m := e.check, e.check.mod
	for s, v := range e.pattern {
		m.SetInt(c.pattern, s, v)
	}
	c.Sums(c.sum, e.y, c.pattern)
	difference := m.NewVector(c.checks)
	for j, p := range m.Primes() {
		for i := range difference[j] {
			difference[j][i] = (e.chk[j][i] + p - c.sum[j][i]) % p
		}
	}
	for i := range c.checks {
		if math.Abs(m.Centred(difference, i).Float64()) <= c.tolerance {
			n++
		}
	}
	return n
}

// superposed sends random blocks of n coefficients of some devices, with ring noise.
func superposed(check *Check, round uint32, devices int, noise float64, rnd *rand.Rand) *exchange {
	m := check.mod
	e := &exchange{
		check: check, weights: NewWeights(keystream.FromInteger(5), 0),
		y: m.NewVector(check.length), chk: m.NewVector(check.Len()), pattern: make([]int64, patternWord),
	}
	check.Draw(e.weights.Of(Header{Round: round}))
	patterns := NewPatterns(devices, keystream.FromInteger(6))
	h, part, stream := make([]int64, devices), m.NewVector(check.Len()), keystream.FromInteger(7).Stream()
	stream.Start(round, 0)
	for i, own := range patterns.Residues(m) {
		x := randomVector(m, check.length, stream)
		check.Sums(part, x, own)
		h[i] = rnd.Int64N(600) - 300
		m.AddScaled(e.y, h[i], x)
		m.AddScaled(e.chk, h[i], part)
	}
	patterns.Superpose(e.pattern, h)
	for _, v := range []zq.Vector{e.y, e.chk} {
		for k := range v.Len() {
			m.AddInt(v, k, int64(math.Round(noise*rnd.NormFloat64())))
		}
	}
	return e
}

// Superpositions with integer gains pass, of all moduli and lengths, with and without
// ring noise.
func TestCheckTakesIntegerSuperpositions(t *testing.T) {
	for _, primes := range testPrimes() {
		m := testModulus(t, primes...)
		for _, noise := range []float64{0, 0.1, 0.3, 3.2, 8} {
			for _, n := range []int{1, 2, 3, 5, 64, 200, 257} {
				check := checkOf(t, m, n, noise)
				rnd := rand.New(rand.NewPCG(uint64(n), uint64(10*noise)))
				for round := range uint32(50) {
					if e := superposed(check, round, 1+rnd.IntN(10), noise, rnd); !e.passes() {
						t.Fatalf("log2 q = %.0f, K = %d, noise %v, round %d: an integer superposition failed", m.Log2(), n, noise, round)
					}
				}
			}
		}
	}
}

// The number of checks follows from the smallest prime, as an error may be a multiple
// of all others.
func TestChecksForTheSmallestPrime(t *testing.T) {
	for i, want := range []int{2, 1, 1, 1, 3} {
		m := testModulus(t, testPrimes()[i]...)
		if got := checkOf(t, m, 10, 0).Len(); got != want {
			t.Errorf("log2 q = %.0f: %d checks, want %d", m.Log2(), got, want)
		}
		if got := checkOf(t, m, 10, 1).Len(); got != SoundnessBits {
			t.Errorf("log2 q = %.0f with noise: %d checks, want %d", m.Log2(), got, SoundnessBits)
		}
	}
}

// structured returns errors that checks of another kind let pass: q a/b, multiples of
// all primes but one, and what lies just beyond what counts as noise.
func structured(m *zq.Modulus, beyond float64) []*big.Int {
	list := []*big.Int{big.NewInt(int64(math.Ceil(beyond)) + 1), big.NewInt(-int64(math.Ceil(beyond)) - 1)}
	for b := int64(2); b <= 12; b++ {
		for a := int64(1); a < b; a++ {
			x := new(big.Int).Mul(m.Big(), big.NewInt(a))
			list = append(list, x.Div(x, big.NewInt(b)))
		}
	}
	for _, p := range m.Primes() {
		if len(m.Primes()) > 1 {
			list = append(list, new(big.Int).Div(m.Big(), new(big.Int).SetUint64(p)))
		}
	}
	return list
}

// No error with a coefficient beyond 12 sigma_w sqrt(K+1) passes, whatever its shape,
// and each check for itself lets half of them pass at most.
func TestCheckRefusesStructuredErrors(t *testing.T) {
	for _, primes := range testPrimes() {
		m := testModulus(t, primes...)
		for _, noise := range []float64{0, 1, 8} {
			for _, n := range []int{1, 3, 257} {
				check := checkOf(t, m, n, noise)
				rnd := rand.New(rand.NewPCG(uint64(n), uint64(noise)))
				beyond := 12 * noise * math.Sqrt(float64(n+1))
				tried := 0
				for round, x := range structured(m, beyond) {
					e := superposed(check, uint32(round), 3, noise, rnd)
					single := 0
					for damage := range 4 {
						d := e.copyOf()
						if damage < 2 {
							add(m, d.y, rnd.IntN(n), x)
						} else { // in all coefficients
							for k := range n {
								add(m, d.y, k, x)
							}
						}
						if damage%2 == 1 { // and in the checks
							for k := range check.Len() {
								add(m, d.chk, k, x)
							}
						}
						if d.passes() {
							t.Fatalf("log2 q = %.0f, K = %d, noise %v: an error of %v passed (damage %d)", m.Log2(), n, noise, x, damage)
						}
						single += d.single()
						tried += check.Len()
					}
					// Of 160 checks half pass at most in the mean: 5 deviations.
					if most := 80 + 5*math.Sqrt(40.); noise > 0 && float64(single) > most {
						t.Errorf("log2 q = %.0f, K = %d: %d of 160 checks let %v pass", m.Log2(), n, single, x)
					}
				}
				if tried == 0 {
					t.Fatal("nothing was tried")
				}
			}
		}
	}
}

// What lies within the tolerance counts as noise, and no more: half of 12 sigma_w
// sqrt(K+1) is the limit for one check, so that three quarters of it are refused.
func TestTolerance(t *testing.T) {
	m := testModulus(t, 0x3ffffffffed001)
	const n, noise = 255, 4.0
	check := checkOf(t, m, n, noise)
	rnd := rand.New(rand.NewPCG(1, 2))
	limit := 12 * noise * math.Sqrt(n+1)
	for round := range uint32(100) {
		small, large := superposed(check, round, 3, noise, rnd), superposed(check, round, 3, noise, rnd)
		m.AddInt(small.y, rnd.IntN(n), int64(limit/8))
		m.AddInt(large.y, rnd.IntN(n), int64(limit*3/4))
		if !small.passes() {
			t.Fatalf("round %d: an error of an eighth of the limit was refused", round)
		}
		if large.passes() {
			t.Fatalf("round %d: an error of three quarters of the limit passed", round)
		}
	}
}

// The pattern is in the sum: a payload scaled otherwise than its pattern is refused,
// scaled alike it is an integer superposition.
func TestCheckCoversThePattern(t *testing.T) {
	for _, primes := range testPrimes() {
		m := testModulus(t, primes...)
		for _, noise := range []float64{0, 1} {
			check := checkOf(t, m, 40, noise)
			rnd := rand.New(rand.NewPCG(3, 4))
			for round := range uint32(20) {
				e := superposed(check, round, 3, noise, rnd)
				scaled := e.copyOf()
				m.AddScaled(scaled.y, 1, e.y)
				m.AddScaled(scaled.chk, 1, e.chk)
				if scaled.passes() {
					t.Fatal("a payload of twice its gains passed behind the pattern of once")
				}
				for s := range scaled.pattern {
					scaled.pattern[s] *= 2
				}
				if noise == 0 && !scaled.passes() {
					t.Fatal("a block of twice its gains was refused")
				}
				e.pattern[rnd.IntN(len(e.pattern))]++
				if e.passes() {
					t.Fatal("a wrong symbol of the pattern passed")
				}
			}
		}
	}
}

// Noise that would make a check pass anything is refused; just below that, a
// check still rejects random blocks.
func TestCheckRefusesNoiseThatHidesEverything(t *testing.T) {
	m := testModulus(t, 0x7fff801)
	const n = 1024
	refused := false
	for e := range 22 {
		noise := math.Exp2(float64(e))
		c, err := NewCheck(m, n, patternWord, noise)
		if err != nil {
			refused = true
			continue
		}
		if refused {
			t.Fatalf("sigma_w = %v was taken, though less was refused", noise)
		}
		stream, weights := keystream.FromInteger(6).Stream(), NewWeights(keystream.FromInteger(5), 0)
		for round := range uint32(100) {
			c.Draw(weights.Of(Header{Round: round}))
			if c.Verify(randomVector(m, n, stream), make([]int64, patternWord), randomVector(m, c.Len(), stream)) {
				t.Fatalf("sigma_w = %v: a random block passed", noise)
			}
		}
	}
	if !refused {
		t.Error("no noise was refused")
	}
}

// Weights are uniform over all of Z_q, or fair bits with noise: Pearson's chi-square
// over 64 cells stays below its 1 - 1e-6 quantile, 124.
func TestWeightsAreUniform(t *testing.T) {
	chiSquare := func(cells *[64]int, n int) (x float64) {
		want := float64(n) / 64
		for _, c := range cells {
			x += (float64(c) - want) * (float64(c) - want) / want
		}
		return x
	}
	m := testModulus(t, 0x3ffffffffd6001, 0x7ffffffffb4001)
	exact, noisy := checkOf(t, m, 4096, 0), checkOf(t, m, 4096, 1)
	exact.Draw(NewWeights(keystream.FromInteger(1), 0).Of(Header{}))
	noisy.Draw(NewWeights(keystream.FromInteger(1), 0).Of(Header{}))
	for j, p := range m.Primes() {
		for _, rows := range [][][]uint64{exact.r, exact.z, noisy.z} {
			var cells [64]int
			n := 0
			for i := j; i < len(rows); i += 2 {
				for _, r := range rows[i] {
					cells[r/(p/64+1)]++
					n++
				}
			}
			if x := chiSquare(&cells, n); n >= 640 && x > 124 {
				t.Errorf("prime %d: chi-square %.0f of %d weights", p, x, n)
			}
		}
	}
	var cells [64]int
	for k := range noisy.bits {
		cells[(int(noisy.bits[k])^k<<3)&63]++ // six of its eight weights, and its place
	}
	if x := chiSquare(&cells, len(noisy.bits)); x > 124 {
		t.Errorf("bits: chi-square %.0f", x)
	}
}

// Weights are other ones for every round, attempt, transmission, repeat, group and
// block, and for another secret.
func TestWeightsAreFresh(t *testing.T) {
	m := testModulus(t, 0x3ffffffffed001)
	for _, noise := range []float64{0, 1} {
		one, two := checkOf(t, m, 50, noise), checkOf(t, m, 50, noise)
		draw := func(secret, group uint64, h Header) []uint64 {
			stream := NewWeights(keystream.FromInteger(secret), group).Of(h)
			var all []uint64
			for _, c := range []*Check{one, two} { // two blocks
				c.Draw(stream)
				for _, b := range c.bits {
					all = append(all, uint64(b))
				}
				all = append(all, slices.Concat(c.r...)...)
				all = append(all, slices.Concat(c.z...)...)
			}
			if half := len(all) / 2; slices.Equal(all[:half], all[half:]) {
				t.Error("two blocks have the same weights")
			}
			return all
		}
		h := Header{Round: 7, Attempt: 1, Transmission: 2, Repeat: 3}
		first := draw(1, 0, h)
		if !slices.Equal(first, draw(1, 0, h)) {
			t.Fatal("weights are not the same for the same frame")
		}
		for what, other := range map[string][]uint64{
			"secret":       draw(2, 0, h),
			"group":        draw(1, 1, h),
			"round":        draw(1, 0, Header{Round: 8, Attempt: 1, Transmission: 2, Repeat: 3}),
			"attempt":      draw(1, 0, Header{Round: 7, Attempt: 2, Transmission: 2, Repeat: 3}),
			"transmission": draw(1, 0, Header{Round: 7, Attempt: 1, Transmission: 3, Repeat: 3}),
			"sent again":   draw(1, 0, Header{Round: 7, Attempt: 1, Transmission: 2 + 4, Repeat: 3}),
			"repeat":       draw(1, 0, Header{Round: 7, Attempt: 1, Transmission: 2, Repeat: 4}),
		} {
			same := 0
			for k := range first {
				if first[k] == other[k] {
					same++
				}
			}
			if noise == 0 && same > 0 || same > len(first)/10 {
				t.Errorf("another %s: %d of %d weights are the same", what, same, len(first))
			}
		}
	}
}

// Sums of bits, four coefficients at a time, are those of math/big.
func TestSubsetSums(t *testing.T) {
	m := testModulus(t, 0x3ffffffffd6001, 0x7ffffffffb4001)
	stream := keystream.FromInteger(3).Stream()
	for _, n := range []int{1, 2, 3, 4, 5, 8, 255, 256, 257, 4096, 8191} {
		c := checkOf(t, m, n, 1)
		c.Draw(NewWeights(keystream.FromInteger(uint64(n)), 0).Of(Header{}))
		x := randomVector(m, n, stream)
		if n == 8191 { // the largest residues, all weights 1: nothing overflows
			for i := range c.bits {
				c.bits[i] = 0xff
			}
			for j, p := range m.Primes() {
				for k := range x[j] {
					x[j][k] = p - 1
				}
			}
		}
		got := make([]uint64, c.checks)
		for j, p := range m.Primes() {
			c.subsetSums(got, x[j], p)
			for i := range c.checks {
				want := new(big.Int)
				for k, v := range x[j] {
					b := c.bits[k/4*c.checks/2+i/2] >> (4 * (i % 2) & 7)
					if b>>(k%4)&1 == 1 {
						want.Add(want, new(big.Int).SetUint64(v))
					}
				}
				if want.Mod(want, new(big.Int).SetUint64(p)); want.Uint64() != got[i] {
					t.Fatalf("K = %d, check %d modulo %d: %d, want %v", n, i, p, got[i], want)
				}
			}
		}
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	m := testModulus(t, 0x3ffffffffd6001, 0x7ffffffffb4001)
	for _, noise := range []float64{0, 1} {
		check := checkOf(t, m, 500, noise)
		weights, own := NewWeights(keystream.FromInteger(5), 0), m.NewVector(patternWord)
		y, chk, pattern := m.NewVector(500), m.NewVector(check.Len()), make([]int64, patternWord)
		if n := testing.AllocsPerRun(20, func() {
			check.Draw(weights.Of(Header{Round: 1}))
			check.Sums(chk, y, own)
			check.Verify(y, pattern, chk)
		}); n != 0 {
			t.Errorf("noise %v: %v allocations a run", noise, n)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	m := testModulus(b, 0x3ffffffffd6001, 0x7ffffffffb4001)
	for name, noise := range map[string]float64{"exact": 0, "noisy": 1} {
		check := checkOf(b, m, 4096, noise)
		weights, own := NewWeights(keystream.FromInteger(5), 0), m.NewVector(patternWord)
		x, chk := randomVector(m, 4096, keystream.FromInteger(6).Stream()), m.NewVector(check.Len())
		b.Run(name+"/Draw", func(b *testing.B) {
			for b.Loop() {
				check.Draw(weights.Of(Header{}))
			}
		})
		b.Run(name+"/Sums", func(b *testing.B) {
			for b.Loop() {
				check.Sums(chk, x, own)
			}
		})
	}
}
