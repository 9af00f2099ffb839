package xmkckks

import (
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// openGuard returns every share: for tests of what a share is, not of whether it
// may be given.
type openGuard struct{}

func (openGuard) Answer(ShareRecord) error { return nil }

// party is a whole protocol in one process, over a superposition with integer
// gains that the test chooses and no ring noise.
type party struct {
	ctx     *Context
	devices []*Device
	gains   []int64
	key     *AggregatedKey
	c1      *AggregatedC1
	// sum holds what the server receives in each transmission.
	sum [slot.Transmissions]zq.Vector
	// sent holds what the devices sent, in the same order.
	sent [slot.Transmissions][]zq.Vector
}

func testSet(t testing.TB, name string) Params {
	t.Helper()
	p, ok := Lookup(name)
	if !ok {
		t.Fatalf("no parameter set %s", name)
	}
	return p
}

// tried returns the sets that a test tries: all of them, or with -short, as under the race
// detector, the small rings and one of several primes: what goroutines share is the same in
// rings of any size.
func tried() []Params {
	if !testing.Short() {
		return Sets()
	}
	return slices.DeleteFunc(Sets(), func(p Params) bool { return p.N > 2048 && p.Name != "ringwave-4096-100" })
}

func testContext(t testing.TB, p Params, form Form, witnesses int) *Context {
	t.Helper()
	c, err := NewContext(p, form, 1, witnesses, keystream.FromInteger(1).Derive("public"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func testDevice(t testing.TB, c *Context, i int, guard Guard) *Device {
	t.Helper()
	root := keystream.FromInteger(1)
	d, err := c.NewDevice(DeviceConfig{
		Index: i, Mu: 1, DeltaMax: 1, Guard: guard, Seed: root.DeriveSecret("device", uint64(i)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newParty makes one device of mu = 1 for each gain.
func newParty(t testing.TB, c *Context, gains []int64) *party {
	t.Helper()
	p := &party{ctx: c, gains: gains, key: c.NewAggregatedKey(), c1: c.NewAggregatedC1()}
	for i := range gains {
		p.devices = append(p.devices, testDevice(t, c, i, openGuard{}))
	}
	return p
}

// superpose returns sum H_i x_i of copies of x, and keeps the copies.
func (p *party) superpose(tx slot.Transmission, x []zq.Vector) zq.Vector {
	p.sent[tx] = nil
	p.sum[tx] = p.ctx.mod.NewVector(x[0].Len())
	for i, h := range p.gains {
		y := p.ctx.mod.NewVector(x[i].Len())
		y.Copy(x[i])
		p.sent[tx] = append(p.sent[tx], y)
		p.ctx.mod.AddScaled(p.sum[tx], h, y)
	}
	return p.sum[tx]
}

// attempt is attemptPacked for one message a device.
func (p *party) attempt(t testing.TB, round, attempt uint32, delta []float64) {
	t.Helper()
	one := make([][]float64, len(delta))
	for i := range delta {
		one[i] = delta[i : i+1]
	}
	p.attemptPacked(t, round, attempt, one)
}

// attemptPacked goes through the phases 1 to 3, for delta[i][p], device by device.
func (p *party) attemptPacked(t testing.TB, round, attempt uint32, delta [][]float64) {
	t.Helper()
	n := len(p.devices)
	b, c0, c1, share := vectors(n), vectors(n), vectors(n), vectors(n)
	for i, d := range p.devices {
		b[i] = d.PublicKey()
	}
	p.ctx.SetKey(p.key, p.superpose(slot.TxKey, b))
	for i, d := range p.devices {
		if err := d.Prepare(round, attempt); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Encrypt(p.key, delta[i]); err != nil {
			t.Fatal(err)
		}
		c0[i], c1[i] = d.Ciphertext()
	}
	p.superpose(slot.TxC0, c0)
	p.ctx.SetC1(p.c1, p.superpose(slot.TxC1, c1))
	for i, d := range p.devices {
		var err error
		if share[i], err = d.Share(p.c1); err != nil {
			t.Fatal(err)
		}
	}
	p.superpose(slot.TxShare, share)
}

// flooded returns e*_j of coefficient k, which the device still holds.
func (d *Device) flooded(k int) *big.Int {
	switch {
	case d.small != nil:
		return big.NewInt(int64(d.small[k]))
	case d.narrow != nil:
		return big.NewInt(d.narrow[k])
	}
	return bigOf(d.flood[k])
}

func bigOf(x sampler.Int128) *big.Int {
	y := new(big.Int).Lsh(big.NewInt(x.Hi), 64)
	return y.Add(y, new(big.Int).SetUint64(x.Lo))
}

// modulus returns q from the primes alone.
func modulus(primes []uint64) *big.Int {
	q := big.NewInt(1)
	for _, p := range primes {
		q.Mul(q, new(big.Int).SetUint64(p))
	}
	return q
}

// lift returns coefficient k of v in [0, q) by the Chinese remainder theorem, and
// shares no code with package zq.
func lift(primes []uint64, v zq.Vector, k int) *big.Int {
	q, x := modulus(primes), new(big.Int)
	for j, p := range primes {
		bp := new(big.Int).SetUint64(p)
		rest := new(big.Int).Div(q, bp)
		term := new(big.Int).ModInverse(rest, bp)
		term.Mul(term, rest)
		x.Add(x, term.Mul(term, new(big.Int).SetUint64(v[j][k])))
	}
	return x.Mod(x, q)
}

// centre returns the representative of x mod q nearest to zero.
func centre(x, q *big.Int) *big.Int {
	y := new(big.Int).Mod(x, q)
	if new(big.Int).Lsh(y, 1).Cmp(q) > 0 {
		y.Sub(y, q)
	}
	return y
}

func float(x *big.Int) float64 {
	f, _ := new(big.Float).SetInt(x).Float64()
	return f
}

// largestPrimes returns the largest primes of the given bit length that are 1
// modulo 2n.
func largestPrimes(t testing.TB, n, width, count int) (primes []uint64) {
	t.Helper()
	step := uint64(2 * n)
	for p := (uint64(1)<<width-1)/step*step + 1; len(primes) < count; p -= step {
		if bits.Len64(p) < width {
			if bits.Len64(p) < width-1 {
				t.Fatalf("fewer than %d primes of %d bits for n = %d", count, width, n)
			}
			continue
		}
		if new(big.Int).SetUint64(p).ProbablyPrime(20) {
			primes = append(primes, p)
		}
	}
	return primes
}

// smallSet is a set that shows every width of arithmetic at a size that
// schoolbook arithmetic and exhaustive tests can follow: two primes of the
// greatest width allowed, messages and e* beyond 64 bits.
func smallSet(t testing.TB, n int) Params {
	return Params{
		Name: "small", N: n, Primes: largestPrimes(t, n, zq.MaxPrimeBits, 2), LogLambda: 74,
		Secret: sampler.Ternary, Ephemeral: sampler.Ternary,
		KeyError: sampler.Binomial, Error0: sampler.Binomial, Error1: sampler.Gaussian,
		LogFlood: 80,
	}
}

// forms returns both forms, for loops.
func forms() []Form { return []Form{Whole, Short} }

// recoverOne is Recover of one message.
func recoverOne(s *Server, c0, share zq.Vector, alpha float64) (float64, error) {
	m := make([]float64, 1)
	err := s.Recover(m, c0, share, alpha)
	return m[0], err
}

// appendOne is AppendUpdate of one message.
func appendOne(t testing.TB, c *Context, h Header, m float64) []byte {
	t.Helper()
	b, err := c.AppendUpdate(nil, h, []float64{m})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decodeOne is DecodeUpdate of one message.
func decodeOne(c *Context, b []byte) (Header, float64, error) {
	m := make([]float64, 1)
	h, err := c.DecodeUpdate(b, m)
	return h, m[0], err
}
