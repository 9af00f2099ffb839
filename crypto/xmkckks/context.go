package xmkckks

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/ntt"
	"ringwave/crypto/sampler"
	"ringwave/crypto/vector"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// Elements of R_q in coefficient form are zq.Vectors of n coefficients: what is sent.
// Their transforms are ntt.Transforms.

// Context is what everyone knows: the parameter set, the form of a round, the
// numbers of messages and of witnesses and the common public polynomial a. It is
// read-only and safe for use by several goroutines.
type Context struct {
	Params Params
	Form   Form
	// Messages is P, the number of messages of one ciphertext, in coefficients 0 to
	// P-1. The paper has one.
	Messages int
	// Witnesses is W, the number of coefficients that carry no message and must
	// decode to noise, P to P+W-1.
	Witnesses int

	mod      *zq.Modulus
	ring     *ntt.Ring
	a        ntt.Transform
	digests  cipher.AEAD // see Digest
	reducers []sampler.Reducer
	flood    sampler.Flood
	shareVar float64

	fingerprint Fingerprint
}

// NewContext makes the context of a parameter set for P messages a ciphertext, 1 as the
// paper has it or more, at positions 0 to P-1. Witnesses is the number W of coefficients
// that carry no message and must decode to noise, at positions P to P+W-1: P + W is n at
// most. The public seed gives a, uniform in R_q.
func NewContext(p Params, form Form, messages, witnesses int, public keystream.Seed) (*Context, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("parameter set %s: %w", p.Name, err)
	}
	if messages < 1 {
		return nil, fmt.Errorf("parameter set %s: %d messages a ciphertext: at least 1 is needed", p.Name, messages)
	}
	if witnesses < 0 || witnesses >= p.N {
		return nil, fmt.Errorf("parameter set %s: %d witnesses: allowed are 0 to n-1 = %d", p.Name, witnesses, p.N-1)
	}
	if messages > p.N-witnesses {
		return nil, noRoom(p, messages, witnesses)
	}
	mod, err := zq.NewModulus(p.Primes)
	if err != nil {
		return nil, fmt.Errorf("parameter set %s: %w", p.Name, err)
	}
	path, err := vector.Chosen()
	if err != nil {
		return nil, err
	}
	r, err := ntt.NewRing(p.N, p.Primes, path)
	if err != nil {
		return nil, fmt.Errorf("parameter set %s: %w", p.Name, err)
	}
	c := &Context{Params: p, Form: form, Messages: messages, Witnesses: witnesses, mod: mod, ring: r}
	for _, prime := range p.Primes {
		reducer, err := sampler.NewReducer(prime)
		if err != nil {
			return nil, fmt.Errorf("parameter set %s: %w", p.Name, err)
		}
		c.reducers = append(c.reducers, reducer)
	}
	if c.shareVar, err = p.ShareVariance(); err != nil {
		return nil, fmt.Errorf("parameter set %s: %w", p.Name, err)
	}
	if p.LogFlood != 0 {
		if c.flood, err = sampler.NewFlood(math.Exp2(p.LogFlood)); err != nil {
			return nil, fmt.Errorf("parameter set %s: %w", p.Name, err)
		}
	}
	c.drawPublic(public.Derive("a"))
	key := public.Derive("digest of c~1")
	if c.digests, err = newDigests(&key); err != nil {
		return nil, fmt.Errorf("parameter set %s: preparing digests: %w", p.Name, err)
	}
	return c, nil
}

// drawPublic draws a and the context's fingerprint. A uniform element has a uniform
// transform, so the drawn residues are taken as the transform itself.
func (c *Context) drawPublic(seed keystream.Seed) {
	a := c.mod.NewVector(c.Params.N)
	stream := seed.Stream()
	for j, p := range c.Params.Primes {
		stream.Uniform(a[j], p)
	}
	c.a = c.ring.Import(a)
	c.fingerprint = c.computeFingerprint(a)
}

// Modulus returns q as an RNS basis.
func (c *Context) Modulus() *zq.Modulus { return c.mod }

// ErrNoRoom says that n coefficients do not hold all messages and witnesses.
var ErrNoRoom = errors.New("no room in the ciphertext")

func noRoom(p Params, messages, witnesses int) error {
	return fmt.Errorf("%w: parameter set %s has n = %d coefficients, too few for P = %d messages and W = %d: allowed are at most %d messages",
		ErrNoRoom, p.Name, p.N, messages, witnesses, p.N-witnesses)
}

// Revealed returns the number of coefficients of c0 and D that a round sends.
func (c *Context) Revealed() int { return c.Params.revealed(c.Form, c.Messages, c.Witnesses) }

// PayloadLength returns the number of coefficients of a transmission: n of b and c1, as
// many as are revealed of c0 and D.
func (c *Context) PayloadLength(t slot.Transmission) int {
	return c.Params.payloadLength(c.Form, c.Messages, c.Witnesses, t)
}

// fewCoefficients is how many coefficients of a product are at most computed one by
// one: each is an inner product, and beyond some eight of them a transform, which gives
// all n, takes less time. What comes out is the same.
const fewCoefficients = 16

// transforms reports whether a device computes whole products, by transforms.
func (c *Context) transforms() bool { return c.Form == Whole || c.Revealed() > fewCoefficients }

// transformSmall sets y to the transform of x.
func (c *Context) transformSmall(y ntt.Transform, x []int8) {
	c.setSmall(y.Memory(), x)
	c.ring.ForwardInPlace(y)
}

// setSmall sets y[k] = x[k] mod q without a branch on x.
func (c *Context) setSmall(y zq.Vector, x []int8) {
	for j, p := range c.Params.Primes {
		yj := y[j][:len(x)]
		for k, xk := range x {
			s := int64(xk)
			yj[k] = uint64(s + s>>63&int64(p))
		}
	}
}

// addSmall sets y[k] += x[k] mod q without a branch on x.
func (c *Context) addSmall(y zq.Vector, x []int8) {
	for j, p := range c.Params.Primes {
		yj := y[j][:len(x)]
		for k, xk := range x {
			s := int64(xk)
			r := yj[k] + uint64(s+s>>63&int64(p)) // below 2p
			d := r - p                            // its top bit set, exactly if r is below p
			yj[k] = d + p&-(d>>63)
		}
	}
}

// addWords sets y[k] += x[k] mod q, |x[k]| < 2^62, without a branch on x.
func (c *Context) addWords(y zq.Vector, x []int64) {
	for j, p := range c.Params.Primes {
		yj, reducer := y[j][:len(x)], &c.reducers[j]
		for k, xk := range x {
			d := int64(yj[k]+reducer.ReduceWord(xk)) - int64(p)
			yj[k] = uint64(d + d>>63&int64(p))
		}
	}
}

// addInt128 sets y[k] += x mod q without a branch on x.
func (c *Context) addInt128(y zq.Vector, k int, x sampler.Int128) {
	for j, p := range c.Params.Primes {
		d := int64(y[j][k]+c.reducers[j].Reduce(x)) - int64(p)
		y[j][k] = uint64(d + d>>63&int64(p))
	}
}

// negacyclic lays out x so that one coefficient of a product with it is one
// inner product: in R_q
//
//	(x b)[k] = sum_{j<=k} x_j b_{k-j} - sum_{j>k} x_j b_{n+k-j}
//	         = sum_i b_i w[n-1-k+i], w[n-1-d] = x_d (d >= 0), w[n-1-d] = -x_{n+d} (d < 0).
//
// w has 2n entries, of which the last is unused.
func negacyclic(w, x []int8) {
	n := len(x)
	for d, xd := range x {
		w[n-1-d] = xd
		w[2*n-1-d] = -xd
	}
}

// chunk is how many products of a residue below 2^57 and an x in {-1, 0, 1} are
// added before the sum moves to 128 bits: two sums of 64, each below 2^63.
const chunk = 128

// smallProduct returns coefficient k of x b modulo prime j, where w is
// negacyclic(x) and every x is in {-1, 0, 1}: additions only, and no branch on x.
func (c *Context) smallProduct(w []int8, b zq.Vector, j, k int) uint64 {
	n := c.Params.N
	w = w[n-1-k : 2*n-1-k]
	bj := b[j][:len(w)]
	var total sampler.Int128
	for lo := 0; lo < n; lo += chunk {
		hi := min(lo+chunk, n)
		ws, bs := w[lo:hi], bj[lo:hi]
		bs = bs[:len(ws)]
		var even, odd int64
		for i := 0; i+1 < len(ws); i += 2 {
			even += int64(ws[i]) * int64(bs[i])
			odd += int64(ws[i+1]) * int64(bs[i+1])
		}
		total = total.Add(sampler.Int128From(even)).Add(sampler.Int128From(odd))
	}
	return c.reducers[j].Reduce(total)
}
