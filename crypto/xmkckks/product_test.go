package xmkckks

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// schoolbook returns x y in Z[X]/(X^n+1).
func schoolbook(x, y []*big.Int) []*big.Int {
	n := len(x)
	z := make([]*big.Int, n)
	for k := range z {
		z[k] = new(big.Int)
	}
	var t big.Int
	for i, xi := range x {
		for j, yj := range y {
			t.Mul(xi, yj)
			if i+j < n {
				z[i+j].Add(z[i+j], &t)
			} else {
				z[i+j-n].Sub(z[i+j-n], &t)
			}
		}
	}
	return z
}

func bigSmall(x []int8) []*big.Int {
	y := make([]*big.Int, len(x))
	for k := range x {
		y[k] = big.NewInt(int64(x[k]))
	}
	return y
}

func bigVector(primes []uint64, v zq.Vector) []*big.Int {
	y := make([]*big.Int, v.Len())
	for k := range y {
		y[k] = lift(primes, v, k)
	}
	return y
}

func addBig(x ...[]*big.Int) []*big.Int {
	y := make([]*big.Int, len(x[0]))
	for k := range y {
		y[k] = new(big.Int)
		for _, xi := range x {
			y[k].Add(y[k], xi[k])
		}
	}
	return y
}

// checkVector compares the first coefficients of v with integers modulo q, as
// many as v has.
func checkVector(t *testing.T, what string, primes []uint64, v zq.Vector, want []*big.Int) {
	t.Helper()
	for j, p := range primes {
		for k, got := range v[j] {
			bp := new(big.Int).SetUint64(p)
			if w := new(big.Int).Mod(want[k], bp).Uint64(); got != w {
				t.Fatalf("%s: coefficient %d is %d modulo %d, expected %d", what, k, got, p, w)
			}
		}
	}
}

// Every coefficient of x b by inner products, against convolution in exact
// arithmetic, for primes of every width up to the widest.
func TestSmallProductAgainstSchoolbook(t *testing.T) {
	rnd := rand.New(keystream.FromInteger(3).Stream())
	for _, n := range []int{16, 32, 64, 256} {
		for _, width := range []int{20, 31, 40, zq.MaxPrimeBits} {
			set := smallSet(t, n)
			set.Primes = largestPrimes(t, n, width, 2)
			c := testContext(t, set, Short, 0)
			x, w := make([]int8, n), make([]int8, 2*n)
			b := c.mod.NewVector(n)
			for k := range x {
				x[k] = int8(rnd.IntN(3) - 1)
				for j, p := range set.Primes {
					b[j][k] = rnd.Uint64N(p)
				}
			}
			negacyclic(w, x)
			y := c.mod.NewVector(n)
			c.smallProducts(y, w, b)
			checkVector(t, "x b", set.Primes, y, schoolbook(bigSmall(x), bigVector(set.Primes, b)))
		}
	}
}

// The sums of smallProduct at their bounds: the largest n, the widest prime, and
// every product of one sign and of the largest size.
func TestSmallProductAtItsBounds(t *testing.T) {
	set := smallSet(t, maxN)
	c := testContext(t, set, Short, 0)
	b := c.mod.NewVector(set.N)
	for j, p := range set.Primes {
		for k := range b[j] {
			b[j][k] = p - 1
		}
	}
	for _, sign := range []int8{1, -1} {
		x, w := make([]int8, set.N), make([]int8, 2*set.N)
		for k := range x {
			x[k] = sign
		}
		negacyclic(w, x)
		// b is -1 throughout: coefficient k is -sign ((k+1) - (n-1-k)).
		for _, k := range []int{0, 1, set.N / 2, set.N - 1} {
			want := big.NewInt(-int64(sign) * int64(2*k+2-set.N))
			for j, p := range set.Primes {
				w := c.smallProduct(w, b, j, k)
				if r := new(big.Int).Mod(want, new(big.Int).SetUint64(p)).Uint64(); w != r {
					t.Errorf("x = %d throughout, coefficient %d: %d modulo %d, expected %d", sign, k, w, p, r)
				}
			}
		}
	}
}

// plainPublic returns a in coefficient form.
func plainPublic(c *Context) []*big.Int {
	// Times the transform of 1, which is 1 everywhere.
	one := c.ring.NewTransform()
	c.mod.AddInt(one.Memory(), 0, 1)
	c.ring.ForwardInPlace(one)
	a := c.mod.NewVector(c.Params.N)
	c.ring.Multiply(a, c.a, one)
	return bigVector(c.Params.Primes, a)
}

// keyError returns e_i of epoch 0 anew, which the device forgets once b_i is made.
func keyError(d *Device) []int8 {
	keys := d.cfg.Seed.Derive("key epoch", 0).Derive("s and e").Stream()
	s, e := make([]int8, len(d.s)), make([]int8, len(d.s))
	d.ctx.Params.Secret.Sample(s, keys)
	d.ctx.Params.KeyError.Sample(e, keys)
	return e
}

// All that a device sends, in both forms, against the paper's equations in exact
// arithmetic:
//
//	b_i = -s_i a + e_i, c0 = v b~ + m + e0, c1 = v a + e1, D = s c~1 + e*.
func TestDeviceAgainstSchoolbook(t *testing.T) {
	delta := []float64{0.875, -1, 0x1p-70}
	for _, n := range []int{16, 32, 64} {
		for _, form := range forms() {
			set := smallSet(t, n)
			c := testContext(t, set, form, 5)
			a := plainPublic(c)
			p := newParty(t, c, []int64{7, -3, 500})
			for round := range uint32(3) {
				p.attempt(t, round, 0, delta)
				keySum, c1Sum := bigVector(set.Primes, p.sum[slot.TxKey]), bigVector(set.Primes, p.sum[slot.TxC1])
				for i, d := range p.devices {
					s, v := bigSmall(d.s), bigSmall(d.v)
					b := schoolbook(s, a)
					for _, x := range b {
						x.Neg(x)
					}
					checkVector(t, "b", set.Primes, p.sent[slot.TxKey][i], addBig(b, bigSmall(keyError(d))))

					c0 := schoolbook(v, keySum)
					for k, e := range d.e0 {
						c0[k].Add(c0[k], big.NewInt(int64(e)))
					}
					c0[0].Add(c0[0], rounded(delta[i], set.LogLambda))
					checkVector(t, "c0", set.Primes, p.sent[slot.TxC0][i], c0)

					checkVector(t, "c1", set.Primes, p.sent[slot.TxC1][i], addBig(schoolbook(v, a), bigSmall(d.e1)))

					share := schoolbook(s, c1Sum)
					for k := range c.Revealed() {
						share[k].Add(share[k], d.flooded(k))
					}
					checkVector(t, "D", set.Primes, p.sent[slot.TxShare][i], share)
				}
			}
		}
	}
}

// encode is round(Lambda x), halves away from zero, for every scale of a set and
// every size of message.
func TestEncodeAgainstExactArithmetic(t *testing.T) {
	rnd := rand.New(keystream.FromInteger(4).Stream())
	for _, logLambda := range []int{16, 30, 40, 74, maxLogLambda} {
		check := func(x float64) {
			if got, want := bigOf(encode(x, logLambda)), rounded(x, logLambda); got.Cmp(want) != 0 {
				t.Errorf("encode(%v, %d) = %v, expected %v", x, logLambda, got, want)
			}
		}
		for _, sign := range []float64{1, -1} {
			check(0 * sign)
			for range 3000 {
				x := sign * math.Pow(10, 36*rnd.Float64()-30) // 1e-30 to 1e6
				if math.Abs(x) < math.Ldexp(1, 126-logLambda) {
					check(x)
				}
			}
			// Halves, and the numbers beside them.
			for range 1000 {
				half := sign * math.Ldexp(float64(rnd.Uint64N(1<<40))+0.5, -logLambda)
				check(half)
				check(math.Nextafter(half, 0))
				check(math.Nextafter(half, math.Inf(1)))
			}
			check(sign * math.Ldexp(0.49999999999999994, -logLambda))
			// Where the mantissa stops holding fractions.
			for _, e := range []int{51, 52, 53, 54, 62, 63, 64, 65, 100, 125} {
				x := math.Ldexp(sign, e-logLambda)
				check(x)
				check(math.Nextafter(x, 0))
				check(x + math.Ldexp(sign, e-logLambda-1))
			}
		}
	}
}

// The operations on residues at the edges of [0, p), over every small value.
func TestResiduesAtTheirEdges(t *testing.T) {
	for _, width := range []int{10, 31, zq.MaxPrimeBits} {
		set := smallSet(t, 16)
		set.Primes = largestPrimes(t, 16, width, 2)
		c := testContext(t, set, Short, 0)
		mod := func(x *big.Int, j int) uint64 {
			return new(big.Int).Mod(x, new(big.Int).SetUint64(set.Primes[j])).Uint64()
		}
		check := func(what string, y zq.Vector, want *big.Int) {
			t.Helper()
			for j := range set.Primes {
				if w := mod(want, j); y[j][0] != w {
					t.Errorf("%s: %d modulo %d, expected %d", what, y[j][0], set.Primes[j], w)
				}
			}
		}
		y := c.mod.NewVector(1)
		for x := math.MinInt8; x <= math.MaxInt8; x++ {
			small := []int8{int8(x)}
			c.setSmall(y, small)
			check("setSmall", y, big.NewInt(int64(x)))
			for _, edge := range []int64{0, 1, 2, 127, 128, -1, -2, -127, -128} { // p-1 and so on
				r := big.NewInt(edge)
				c.mod.SetBig(y, 0, r)
				c.addSmall(y, small)
				check("addSmall", y, new(big.Int).Add(r, big.NewInt(int64(x))))
			}
		}
		p := int64(set.Primes[0])
		for _, edge := range []int64{0, 1, 2, -1, -2} {
			r := big.NewInt(edge)
			c.mod.SetBig(y, 0, r)
			c.negate(y)
			check("negate", y, new(big.Int).Neg(r))
			for _, x := range []sampler.Int128{
				{}, sampler.Int128From(1), sampler.Int128From(-1),
				sampler.Int128From(p), sampler.Int128From(-p), sampler.Int128From(p - 1), sampler.Int128From(1 - p),
				{Hi: math.MaxInt64, Lo: math.MaxUint64}, {Hi: math.MinInt64},
				{Hi: -1}, {Hi: 0, Lo: math.MaxUint64}, {Hi: 1},
			} {
				c.mod.SetBig(y, 0, r)
				c.addInt128(y, 0, x)
				check("addInt128", y, new(big.Int).Add(r, bigOf(x)))
			}
			for _, x := range []int64{0, 1, -1, p, -p, p - 1, 1 - p, 1<<62 - 1, 1 - 1<<62} {
				c.mod.SetBig(y, 0, r)
				c.addWords(y, []int64{x})
				check("addWords", y, new(big.Int).Add(r, big.NewInt(x)))
			}
		}
	}
}

// The law of a key: b_i + s_i a is e_i, small and of the distribution's
// variance, for every set and over several epochs.
func TestKeyErrorVariance(t *testing.T) {
	for _, set := range Sets() {
		c := testContext(t, set, Whole, 0)
		want, bound := set.KeyError.Variance(), set.KeyError.Bound()
		var sum, square, fourth float64
		count := 0
		for i := range 3 {
			d := testDevice(t, c, i, openGuard{})
			for epoch := range uint32(4) {
				if epoch > 0 {
					if err := d.NewEpoch(epoch); err != nil {
						t.Fatal(err)
					}
				}
				s := c.ring.NewTransform()
				c.transformSmall(s, d.s)
				e := c.mod.NewVector(set.N)
				c.ring.Multiply(e, s, c.a)
				c.mod.Add(e, e, d.PublicKey())
				for k := range set.N {
					v := c.mod.Centred(e, k).Float64()
					if math.Abs(v) > float64(bound) {
						t.Fatalf("%s: coefficient %d of b + s a is %v, beyond %d", set.Name, k, v, bound)
					}
					sum += v
					square += v * v
					fourth += v * v * v * v
					count++
				}
			}
		}
		n := float64(count)
		// Both laws are nearly normal: the square's deviation is sqrt(2) times
		// its mean.
		mean, ratio := sum/math.Sqrt(n*want), (square/n/want-1)/math.Sqrt(2/n)
		t.Logf("%s: variance %.4f over %d coefficients, expected %.4f (%.2f deviations), kurtosis %.3f", set.Name, square/n, count, want, ratio, fourth/n/(want*want))
		if math.Abs(mean) > 5 || math.Abs(ratio) > 5 {
			t.Errorf("%s: mean and variance of e are %.2f and %.2f deviations off", set.Name, mean, ratio)
		}
	}
}
