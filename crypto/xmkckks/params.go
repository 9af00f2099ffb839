package xmkckks

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"ringwave/crypto/sampler"
	"ringwave/phy/slot"
)

// Form is which coefficients a round sends.
type Form int

const (
	// Whole sends all n coefficients of b, c0, c1 and D, as the paper does.
	Whole Form = iota
	// Short sends b and c1 whole, and of c0 and D only the coefficients that
	// carry the messages and the witnesses.
	Short
)

// String returns the name of the form in configs.
func (f Form) String() string {
	if f == Short {
		return "short"
	}
	return "whole"
}

// Params is a parameter set. All of it is public.
type Params struct {
	Name string
	// N is the ring dimension n, a power of two.
	N int
	// Primes are the factors of q, each 1 modulo 2n.
	Primes []uint64
	// LogLambda is log2 of the scaling factor Lambda.
	LogLambda int
	// Secret is the distribution of s, Ephemeral that of v.
	Secret, Ephemeral sampler.Distribution
	// KeyError, Error0 and Error1 are the distributions of e, e0 and e1.
	KeyError, Error0, Error1 sampler.Distribution
	// ShareError is the distribution of e* where LogFlood is 0.
	ShareError sampler.Distribution
	// LogFlood is log2 of the least standard deviation of a flooding e*, or 0
	// for a small e*.
	LogFlood float64
	// FloodingBits is the statistical security, in the sense of FloodStd, that a
	// run with this set must have; 0 asks for none.
	FloodingBits float64
	// Form is the form of a round unless the user chooses another.
	Form Form
	// Note says in a sentence what a user of the set must know.
	Note string
}

// The limits of what the package computes with.
const (
	minN         = 16
	maxN         = 16384
	maxLogLambda = 96
	maxLogFlood  = 96
)

// Sets returns the parameter sets that the program knows, the default first.
//
// Lambda and the flooding of the sets named ringwave are chosen for the paper's
// experiments: N = 10, alpha = 2^8, |Delta f/mu| <= 16, mu = 1, sigma = 1 and 10, and
// 1,600 shares of one key, four times what 400 rounds take. Widest is
// sigma = 10 in the whole form. At (4096, 100) it takes sigma* = 2^54.8 for 40 bits;
// e* is 2^55. Lambda is as large as leaves room to spare: alpha Lambda |M| stays
// below 2^94.2 of q/2 = 2^99, room for |Delta f/mu| up to 480 or a few hundred
// devices, while std(eps) is 2^-17 at sigma = 1 and 2^-14 at sigma = 10, a
// thousandth of what changes a training. Six deviations of the noise stay below
// 2^73, which leaves two witnesses. NewDesign widens e* where a run needs more, as
// several messages a ciphertext never do: the whole form reveals all there is.
//
// At (8192, 200) there is room for twice the bits at the same std(eps), so that the
// statistical distance, too, stays below 2^-40 (see Design.FloodingDistance): sigma* is
// 2^75.7 for 80 bits, and e* 2^76, the widest that is sampled from single words;
// Lambda is the largest allowed.
func Sets() []Params {
	// The largest primes below 2^50 that are 1 modulo 16384, found by trying
	// 2^50 - 16383, 2^50 - 2*16384 + 1 and so on: they serve n = 4096 and n = 8192,
	// and products of two residues fit vector units of 52 bits.
	primes50 := []uint64{0x3ffffffffc001, 0x3fffffffcc001, 0x3ffffffef4001, 0x3ffffffe94001}
	primes109 := []uint64{0x3ffffffffd6001, 0x7ffffffffb4001}
	return []Params{
		{
			Name: "ringwave-4096-100", N: 4096, Primes: primes50[:2:2], LogLambda: 74,
			Secret: sampler.Ternary, Ephemeral: sampler.Ternary,
			KeyError: sampler.Binomial, Error0: sampler.Binomial, Error1: sampler.Binomial,
			LogFlood: 55, FloodingBits: 40, Form: Short,
			Note: "the program's own default: within the tables of 2018 and 2024, decryption shares flooded for at least 40 bits",
		},
		{
			Name: "ringwave-8192-200", N: 8192, Primes: primes50, LogLambda: 96,
			Secret: sampler.Ternary, Ephemeral: sampler.Ternary,
			KeyError: sampler.Binomial, Error0: sampler.Binomial, Error1: sampler.Binomial,
			LogFlood: 76, FloodingBits: 80, Form: Short,
			Note: "within the tables of 2018 and 2024, decryption shares flooded for at least 80 bits, at four times the uplink",
		},
		{
			Name: "ringwave-4096", N: 4096, Primes: primes109, LogLambda: 74,
			Secret: sampler.Ternary, Ephemeral: sampler.Ternary,
			KeyError: sampler.Binomial, Error0: sampler.Binomial, Error1: sampler.Binomial,
			LogFlood: 55, FloodingBits: 40, Form: Short,
			Note: "the default of earlier runs and recordings: 3 bits of q beyond the table of 2024, decryption shares flooded for at least 40 bits",
		},
		{
			Name: "paper-4096", N: 4096, Primes: primes109, LogLambda: 40,
			Secret: sampler.Signs, Ephemeral: sampler.Ternary,
			KeyError: sampler.Gaussian, Error0: sampler.Gaussian, Error1: sampler.Gaussian,
			ShareError: sampler.Gaussian, Form: Whole,
			Note: "the paper's set B: sigma_phi = 3.2, 0 bits of flooding: what a round reveals of the secrets is not hidden",
		},
		{
			Name: "paper-8192", N: 8192,
			Primes:    []uint64{0x3fffffffef8001, 0x3fffffffeb8001, 0x7ffffffffb4001, 0x7fffffffeac001},
			LogLambda: 40,
			Secret:    sampler.Signs, Ephemeral: sampler.Ternary,
			KeyError: sampler.Gaussian, Error0: sampler.Gaussian, Error1: sampler.Gaussian,
			ShareError: sampler.Gaussian, Form: Whole,
			Note: "the paper's set A: sigma_phi = 3.2, 0 bits of flooding: what a round reveals of the secrets is not hidden",
		},
		{
			Name: "lean-2048", N: 2048, Primes: []uint64{0x3ffffffffed001}, LogLambda: 30,
			Secret: sampler.Ternary, Ephemeral: sampler.Ternary,
			KeyError: sampler.Binomial, Error0: sampler.Binomial, Error1: sampler.Binomial,
			ShareError: sampler.Binomial, Form: Short,
			Note: "a quarter of the uplink of (4096, 109) in the same form; no flooding: q leaves room for it in single rounds only",
		},
		{
			Name: "demo-1024", N: 1024, Primes: []uint64{0x7fff801}, LogLambda: 16,
			Secret: sampler.Ternary, Ephemeral: sampler.Ternary,
			KeyError: sampler.Binomial, Error0: sampler.Binomial, Error1: sampler.Binomial,
			ShareError: sampler.Binomial, Form: Short,
			Note: "a demonstration set without flooding: q leaves no room for it; not for values that must stay secret",
		},
	}
}

// Lookup returns the set of the given name.
func Lookup(name string) (Params, bool) {
	for _, p := range Sets() {
		if p.Name == name {
			return p, true
		}
	}
	return Params{}, false
}

// Validate says what is wrong with a parameter set.
func (p *Params) Validate() error {
	if p.N < minN || p.N > maxN || bits.OnesCount(uint(p.N)) != 1 {
		return fmt.Errorf("n is %d: it must be a power of two from %d to %d", p.N, minN, maxN)
	}
	for _, prime := range p.Primes {
		if prime%uint64(2*p.N) != 1 {
			return fmt.Errorf("the prime %d is %d modulo 2n = %d: it must be 1, so that R_q has a number-theoretic transform", prime, prime%uint64(2*p.N), 2*p.N)
		}
	}
	if p.LogLambda < 1 || p.LogLambda > maxLogLambda {
		return fmt.Errorf("log2 Lambda is %d: allowed are 1 to %d", p.LogLambda, maxLogLambda)
	}
	if p.LogFlood != 0 && !(p.LogFlood >= 16 && p.LogFlood <= maxLogFlood) {
		return fmt.Errorf("log2 of the flooding's deviation is %v: allowed are 16 to %d, or 0 for none", p.LogFlood, maxLogFlood)
	}
	return nil
}

// Lambda returns the scaling factor.
func (p *Params) Lambda() float64 { return math.Ldexp(1, p.LogLambda) }

// LogQ returns log2 q.
func (p *Params) LogQ() float64 {
	sum := 0.0
	for _, prime := range p.Primes {
		sum += math.Log2(float64(prime))
	}
	return sum
}

// Modulus returns q.
func (p *Params) Modulus() *big.Int {
	q := big.NewInt(1)
	for _, prime := range p.Primes {
		q.Mul(q, new(big.Int).SetUint64(prime))
	}
	return q
}

// CoefficientBits returns the bits of one coefficient, its residues packed:
// ceil(log2 q) for the sets of Sets.
func (p *Params) CoefficientBits() int {
	sum := 0
	for _, prime := range p.Primes {
		sum += bits.Len64(prime)
	}
	return sum
}

// ShareVariance returns sigma_phi^2, the variance of e*.
func (p *Params) ShareVariance() (float64, error) {
	if p.LogFlood == 0 {
		return p.ShareError.Variance(), nil
	}
	f, err := sampler.NewFlood(math.Exp2(p.LogFlood))
	if err != nil {
		return 0, err
	}
	return f.Variance(), nil
}

// CiphertextBytes returns the size of (c0, c1) with all coefficients, packed at
// ceil(log2 q) bits each: Table II.
func (p *Params) CiphertextBytes() int { return 2 * p.N * p.CoefficientBits() / 8 }

// ExpansionFactor returns the ciphertext's size against the 8 bytes of one
// floating-point value.
func (p *Params) ExpansionFactor() float64 { return float64(p.CiphertextBytes()) / 8 }

// UplinkBits returns the payload that a device sends in one attempt at a round:
// 4 n ceil(log2 q) bits in the whole form (the paper's Section IV-H), and
// (2n + 2(P+W)) ceil(log2 q) in the short one, of P messages a ciphertext.
func (p *Params) UplinkBits(form Form, messages, witnesses int) int {
	return 2 * (p.N + p.revealed(form, messages, witnesses)) * p.CoefficientBits()
}

// revealed returns the number of coefficients of c0 and D that a round sends.
func (p *Params) revealed(form Form, messages, witnesses int) int {
	if form == Whole {
		return p.N
	}
	return messages + witnesses
}

// payloadLength returns the number of coefficients of a transmission.
func (p *Params) payloadLength(form Form, messages, witnesses int, t slot.Transmission) int {
	if t == slot.TxC0 || t == slot.TxShare {
		return p.revealed(form, messages, witnesses)
	}
	return p.N
}
