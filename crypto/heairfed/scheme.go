package heairfed

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v5/ring"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
)

// The parameters of Table I: N is n, Q is q.
const (
	N = 4096
	Q = 0x3fff4001
)

// The distributions of secrets and of errors.
const (
	secretLaw = sampler.Ternary
	errorLaw  = sampler.Gaussian
)

// Scheme is single-key CKKS over Z_q[X]/(X^n+1), without what sums do not need:
// slots, products, several primes. It is read-only and safe for use by several
// goroutines.
type Scheme struct {
	ring *ring.Ring
}

// NewScheme makes the scheme.
func NewScheme() (*Scheme, error) {
	r, err := ring.NewRing(N, []uint64{Q})
	if err != nil {
		return nil, fmt.Errorf("heairfed: building the ring: %w", err)
	}
	return &Scheme{ring: r}, nil
}

// SecretKey is s, which every device holds.
type SecretKey struct {
	mont ring.Poly // transform, in Montgomery form
}

// PublicKey is (b, a) with b = -s a + e.
type PublicKey struct {
	b, a ring.Poly // transforms, in Montgomery form
}

// Ciphertext is (c0, c1) in coefficient form: n residues below q each.
type Ciphertext struct {
	C0, C1 []uint64
}

// NewCiphertext makes room for a ciphertext.
func NewCiphertext() *Ciphertext {
	return &Ciphertext{C0: make([]uint64, N), C1: make([]uint64, N)}
}

// NewKeys draws the common keys.
func (s *Scheme) NewKeys(seed keystream.Seed) (*SecretKey, *PublicKey) {
	secret, e := s.small(secretLaw, seed.Derive("s").Stream()), s.small(errorLaw, seed.Derive("e").Stream())
	a := s.ring.NewPoly()
	seed.Derive("a").Stream().Uniform(a.Coeffs[0], Q) // as its transform
	b := s.ring.NewPoly()
	s.ring.NTT(secret, secret)
	s.ring.MForm(secret, secret)
	s.ring.NTT(e, e)
	s.ring.MulCoeffsMontgomery(a, secret, b)
	s.ring.Sub(e, b, b)
	s.ring.MForm(a, a)
	s.ring.MForm(b, b)
	return &SecretKey{secret}, &PublicKey{b: b, a: a}
}

// small draws a polynomial of small coefficients, in coefficient form.
func (s *Scheme) small(law sampler.Distribution, stream *keystream.Stream) ring.Poly {
	var x [N]int8
	law.Sample(x[:], stream)
	p := s.ring.NewPoly()
	for k, v := range x {
		p.Coeffs[0][k] = residue(int64(v))
	}
	clear(x[:])
	return p
}

// residue returns x modulo q in [0, q), for |x| < q, without a branch on x.
func residue(x int64) uint64 { return uint64(x + x>>63&Q) }

// Centred returns the representative of a residue that is nearest to zero.
func Centred(x uint64) int64 {
	if x > Q/2 {
		return int64(x) - Q
	}
	return int64(x)
}

// Encryptor is one device's: its own randomness under the common public key. It
// is for one goroutine.
type Encryptor struct {
	scheme    *Scheme
	key       *PublicKey
	v, e0, e1 *keystream.Stream
}

// NewEncryptor makes the encryptor of a device whose randomness comes from seed.
func (s *Scheme) NewEncryptor(key *PublicKey, seed keystream.Seed) *Encryptor {
	return &Encryptor{
		scheme: s, key: key,
		v: seed.Derive("v").Stream(), e0: seed.Derive("e0").Stream(), e1: seed.Derive("e1").Stream(),
	}
}

// Encrypt encrypts at most n integers of absolute value below q/2, one a
// coefficient, and takes zeros for those that are missing. Part counts the
// ciphertexts of a round: the randomness of a round and part serves once.
func (e *Encryptor) Encrypt(ct *Ciphertext, message []int64, round, part uint32) {
	for _, s := range []*keystream.Stream{e.v, e.e0, e.e1} {
		s.Start(round, part)
	}
	r := e.scheme.ring
	v := e.scheme.small(secretLaw, e.v)
	r.NTT(v, v)
	c0, c1 := asPoly(ct.C0), asPoly(ct.C1)
	r.MulCoeffsMontgomery(v, e.key.b, c0)
	r.MulCoeffsMontgomery(v, e.key.a, c1)
	r.INTT(c0, c0)
	r.INTT(c1, c1)
	r.Add(c0, e.scheme.small(errorLaw, e.e0), c0)
	r.Add(c1, e.scheme.small(errorLaw, e.e1), c1)
	for k, m := range message {
		c := ct.C0[k] + residue(m)
		if c >= Q {
			c -= Q
		}
		ct.C0[k] = c
	}
}

// Decrypt writes the centred coefficients of c0 + c1 s to dst, n of them.
func (s *Scheme) Decrypt(dst []int64, ct *Ciphertext, key *SecretKey) {
	t := s.ring.NewPoly()
	s.ring.NTT(asPoly(ct.C1), t)
	s.ring.MulCoeffsMontgomery(t, key.mont, t)
	s.ring.INTT(t, t)
	s.ring.Add(t, asPoly(ct.C0), t)
	for k := range dst {
		dst[k] = Centred(t.Coeffs[0][k])
	}
}

func asPoly(x []uint64) ring.Poly { return ring.Poly{Coeffs: [][]uint64{x}} }

// EncryptionVariance is the variance of a coefficient of c0 + c1 s - m =
// v e + e0 + e1 s over keys and randomness: sigma^2 (1 + 2 n 2/3).
func EncryptionVariance() float64 {
	return errorLaw.Variance() * (1 + 2*N*secretLaw.Variance())
}
