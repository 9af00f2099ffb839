package airhe

import (
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
)

// The parameters of Table I: N is n, Q is q = 3^Digits - 1.
const (
	N      = 9
	Q      = 6560
	Base   = 3
	Digits = 8
)

// Elements is the number of elements of Z_q of a ciphertext.
const Elements = N + 1

// errorLaw is the distribution of e.
const errorLaw = sampler.Gaussian

// SecretKey is s, residues modulo q, which every device holds.
type SecretKey [N]uint64

// NewSecretKey draws s.
func NewSecretKey(seed keystream.Seed) *SecretKey {
	var s SecretKey
	seed.Derive("s").Stream().Uniform(s[:], Q)
	return &s
}

// Ciphertext is (a, b): a in the first N elements, b in the last, residues
// modulo q.
type Ciphertext [Elements]uint64

// Encryptor is one device's: its own randomness under the common key. It is for
// one goroutine.
type Encryptor struct {
	key  *SecretKey
	a, e *keystream.Stream
}

// NewEncryptor makes the encryptor of a device whose randomness comes from seed.
func NewEncryptor(key *SecretKey, seed keystream.Seed) *Encryptor {
	return &Encryptor{key: key, a: seed.Derive("a").Stream(), e: seed.Derive("e").Stream()}
}

// Encrypt encrypts the integer of a round that belongs to a direction, counted
// from 0. Each has randomness of its own, which serves once.
func (x *Encryptor) Encrypt(message int64, round, direction uint32) Ciphertext {
	var ct Ciphertext
	var e [1]int8
	x.a.Start(round, direction)
	x.e.Start(round, direction)
	x.a.Uniform(ct[:N], Q)
	errorLaw.Sample(e[:], x.e)
	ct[N] = (inner(&ct, x.key) + residue(message+int64(e[0]))) % Q
	return ct
}

// Decrypt returns b - <a, s>, centred: message and error.
func Decrypt(ct *Ciphertext, key *SecretKey) int64 {
	return Centred((ct[N] + Q - inner(ct, key)) % Q)
}

// inner returns <a, s> modulo q. The sum is below n q^2.
func inner(ct *Ciphertext, key *SecretKey) (sum uint64) {
	for j, s := range key {
		sum += ct[j] * s
	}
	return sum % Q
}

func residue(x int64) uint64 { return uint64((x%Q + Q) % Q) }

// Centred returns the representative of a residue in -(q/2-1)..q/2.
func Centred(x uint64) int64 {
	if x > Q/2 {
		return int64(x) - Q
	}
	return int64(x)
}

// Split writes the balanced trits of a residue, centred: x = sum_l 3^l d_l,
// lowest first.
func Split(dst *[Digits]int8, x uint64) {
	c := Centred(x)
	for l := range dst {
		d := ((c+1)%Base+Base)%Base - 1
		dst[l] = int8(d)
		c = (c - d) / Base
	}
}

// Join returns sum_l 3^l y_l modulo q for superposed digits.
func Join(y *[Digits]int64) uint64 {
	sum := int64(0)
	for l := Digits - 1; l >= 0; l-- {
		sum = (sum*Base + y[l]) % Q
	}
	return residue(sum)
}

// scale returns S: the factor for which the sum of devices scalars of absolute value
// bound, their rounding, and six deviations of their errors, fill q/2.
func scale(devices int, bound float64) float64 {
	n := float64(devices)
	return (Q/2 - n/2 - 6*math.Sqrt(n*errorLaw.Variance())) / (n * bound)
}
