package xmkckks

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/tuneinsight/lattigo/v5/core/rlwe"
	"github.com/tuneinsight/lattigo/v5/ring"
	"github.com/tuneinsight/lattigo/v5/utils/sampling"

	"ringwave/crypto/keystream"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// judgeParameters returns lattigo's own parameters of the same ring.
func judgeParameters(t testing.TB, p Params) rlwe.Parameters {
	t.Helper()
	params, err := rlwe.NewParametersFromLiteral(rlwe.ParametersLiteral{
		LogN: bits.Len(uint(p.N)) - 1, Q: p.Primes, NTTFlag: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return params
}

// lattigoGaussian returns lattigo's sampler of small errors, for comparisons of
// speed alone.
func lattigoGaussian(t testing.TB, params rlwe.Parameters) ring.Sampler {
	t.Helper()
	prng, err := sampling.NewKeyedPRNG([]byte("ringwave"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := ring.NewSampler(prng, params.RingQ(), params.Xe(), false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// judge decrypts (c0, c1) under the integer polynomial s with lattigo's
// Decryptor, and gives the plaintext's coefficients modulo the primes.
func judge(t testing.TB, p Params, s []int64, c0, c1 zq.Vector) zq.Vector {
	t.Helper()
	params := judgeParameters(t, p)
	sk := rlwe.NewSecretKey(params)
	for j, prime := range p.Primes {
		for k, x := range s {
			if x < 0 {
				sk.Value.Q.Coeffs[j][k] = prime - uint64(-x)
			} else {
				sk.Value.Q.Coeffs[j][k] = uint64(x)
			}
		}
	}
	params.RingQ().NTT(sk.Value.Q, sk.Value.Q)
	params.RingQ().MForm(sk.Value.Q, sk.Value.Q)

	ct := rlwe.NewCiphertext(params, 1, params.MaxLevel())
	ct.IsNTT = false
	for j := range p.Primes {
		copy(ct.Value[0].Coeffs[j], c0[j])
		copy(ct.Value[1].Coeffs[j], c1[j])
	}
	return zq.Vector(rlwe.NewDecryptor(params, sk).DecryptNew(ct).Value.Coeffs)
}

// aggregatedSecret returns S~ = sum H_i s_i over the integers.
func (p *party) aggregatedSecret() []int64 {
	s := make([]int64, p.ctx.Params.N)
	for i, d := range p.devices {
		for k, x := range d.s {
			s[k] += p.gains[i] * int64(x)
		}
	}
	return s
}

// rounded returns round(2^logLambda x), halves away from zero, in exact
// arithmetic.
func rounded(x float64, logLambda int) *big.Int {
	r := new(big.Rat)
	r.SetFloat64(x)
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(logLambda))))
	twice := new(big.Int).Lsh(new(big.Int).Abs(r.Num()), 1)
	twice.Add(twice, r.Denom())
	twice.Div(twice, new(big.Int).Lsh(r.Denom(), 1))
	if r.Sign() < 0 {
		twice.Neg(twice)
	}
	return twice
}

// A decryptor that knows nothing of this package finds in (c~0, c~1), under the
// aggregated secret, what the server finds in c~0 + D~, at every coefficient and
// but for sum H_j e*_j, which is known; and the message at coefficient 0.
//
// Gains go up to 500 where q has room for the noise that they bring; at
// demo-1024 they would bring more than q, so that it is asked twice: with these
// for the identity, with gains up to 8 for the message.
func TestJudgeAgrees(t *testing.T) {
	for _, set := range tried() {
		bounds := []int64{500}
		if set.N == 1024 {
			bounds = []int64{500, 8}
		}
		for _, most := range bounds {
			t.Run(set.Name, func(t *testing.T) { judgeSet(t, set, most) })
		}
	}
}

func judgeSet(t *testing.T, set Params, most int64) {
	rnd := rand.New(keystream.FromInteger(7).Derive(set.Name).Stream())
	gains, scaled, delta := judgedGains(rnd, most)
	c := testContext(t, set, Whole, 0)
	p := newParty(t, c, gains)
	p.attempt(t, 0, 0, delta)
	judged := judge(t, set, p.aggregatedSecret(), p.sum[slot.TxC0], p.sum[slot.TxC1])

	q := modulus(set.Primes)
	message := new(big.Int)
	for i, h := range gains {
		message.Add(message, new(big.Int).Mul(big.NewInt(h), rounded(delta[i], set.LogLambda)))
	}
	sums := SumsOf(scaled)
	b := c.Budget(sums, [slot.Transmissions]float64{})
	// What the judge sees holds no e*; the message is exact.
	std := math.Sqrt(b.A + b.B1 + b.C1)
	fits := 7*std < float(q)/4
	if fits != (set.N != 1024 || most == 8) {
		t.Fatalf("gains %d: seven deviations are 2^%.1f of q = 2^%.1f", gains, math.Log2(7*std), math.Log2(float(q)))
	}
	floodStd := math.Sqrt(b.E)
	var worst, worstFlood, square float64
	for k := range set.N {
		got := lift(set.Primes, judged, k)
		server := new(big.Int).Add(lift(set.Primes, p.sum[slot.TxC0], k), lift(set.Primes, p.sum[slot.TxShare], k))
		difference := centre(new(big.Int).Sub(server, got), q)
		want := new(big.Int)
		for i, d := range p.devices {
			want.Add(want, new(big.Int).Mul(big.NewInt(gains[i]), d.flooded(k)))
		}
		if difference.Cmp(want) != 0 {
			t.Fatalf("gains %d: coefficient %d of the server's sum less the judge's is %d, sum H e* is %d", gains, k, difference, want)
		}
		worstFlood = max(worstFlood, math.Abs(float(difference))/floodStd)
		if k == 0 {
			got.Sub(got, message)
		}
		noise := float(centre(got, q))
		worst = max(worst, math.Abs(noise)/std)
		square += noise * noise / (std * std)
	}
	square /= float64(set.N)
	t.Logf("gains %d: noise at most %.2f deviations of 2^%.1f, its variance %.3f of the budget's; sum H e* at most %.2f deviations of 2^%.1f",
		gains, worst, math.Log2(std), square, worstFlood, math.Log2(floodStd))
	if worstFlood > 7 {
		t.Errorf("gains %d: sum H e* reaches %.2f deviations", gains, worstFlood)
	}
	if !fits {
		return
	}
	if worst > 7 {
		t.Errorf("gains %d: the noise reaches %.2f deviations of the budget", gains, worst)
	}
	// One key and one encryption: the spread of the variance itself is about
	// sqrt(2/n) from the coefficients and as much again from V, S~ and E~.
	if limit := 5 * math.Sqrt(8/float64(set.N)); math.Abs(square-1) > limit {
		t.Errorf("gains %d: the noise has %.3f of the budget's variance, allowed is 1 to within %.2f", gains, square, limit)
	}
}

// judgedGains draws three gains of magnitude 1 to most, also as floats, and values to send.
func judgedGains(rnd *rand.Rand, most int64) (gains []int64, scaled, delta []float64) {
	gains, scaled, delta = make([]int64, 3), make([]float64, 3), make([]float64, 3)
	for i := range gains {
		gains[i] = 1 + rnd.Int64N(most)
		if rnd.Uint64()&1 != 0 {
			gains[i] = -gains[i]
		}
		delta[i] = 2*rnd.Float64() - 1
		scaled[i] = float64(gains[i])
	}
	return gains, scaled, delta
}

// The short form gives the whole one's c1, and the first 1+W coefficients of its
// c0 and D, bit for bit: b, c1, v b~ and s c~1 do not depend on the form, and the
// samplers draw the same e0 and e* however many follow. This is a guarantee as
// long as every error distribution draws in the order of its coefficients.
func TestShortFormIsPartOfWhole(t *testing.T) {
	const witnesses = 4
	gains, delta := []int64{3, -2, 5}, []float64{0.5, -0.25, 1}
	for _, set := range append(tried(), smallSet(t, 64)) {
		t.Run(set.Name, func(t *testing.T) {
			whole := newParty(t, testContext(t, set, Whole, witnesses), gains)
			short := newParty(t, testContext(t, set, Short, witnesses), gains)
			for attempt := range uint32(3) {
				whole.attempt(t, attempt, attempt, delta)
				short.attempt(t, attempt, attempt, delta)
				for _, tx := range []slot.Transmission{slot.TxKey, slot.TxC0, slot.TxC1, slot.TxShare} {
					for i := range gains {
						s, w := short.sent[tx][i], whole.sent[tx][i]
						if tx == slot.TxC0 || tx == slot.TxShare {
							if s.Len() != 1+witnesses {
								t.Fatalf("%v of the short form has %d coefficients, expected %d", tx, s.Len(), 1+witnesses)
							}
							w = firstCoefficients(w, 1+witnesses)
						}
						if !s.Equal(w) {
							t.Errorf("attempt %d: %v of device %d differs between the forms", attempt, tx, i+1)
						}
					}
				}
			}
		})
	}
}

func firstCoefficients(v zq.Vector, n int) (w zq.Vector) {
	for _, residues := range v {
		w = append(w, residues[:n])
	}
	return w
}

// The server takes a witness for noise up to six deviations at gains that a round
// exceeds with probability 1e-9, and no further, whatever the scale found.
func TestWitnessTolerance(t *testing.T) {
	for _, set := range Sets() {
		link := Link{Mu: []float64{1, 1, 1}, Omega: []float64{2, 2, 2}, Alpha: 8, DeltaMax: 1, Shares: 4, Messages: 2}
		design, err := NewDesign(set, Short, link)
		if err != nil {
			t.Fatal(err)
		}
		if want := 6 * math.Sqrt(design.Rare.Noise()); design.Tolerance != want {
			t.Errorf("%s: the tolerance is %v, want %v", set.Name, design.Tolerance, want)
		}
		c := packedContext(t, design.Params, Short, 2, design.Witnesses)
		server := c.NewServer(design)
		for _, alpha := range []float64{8, 3} {
			rare := largeSum(squareLaws(link.Mu, link.Omega, nil), alpha, 1e-9)
			limit := 6 * math.Sqrt(c.Budget(GainSums{S: rare, Q: rare * rare}, link.noiseVar()).Noise())
			for k := range c.Revealed() {
				for _, x := range []struct {
					value float64
					noise bool
				}{{0.999, true}, {-0.999, true}, {1.001, k < 2}, {-1.001, k < 2}, {1.9, k < 2}} {
					c0, share := c.mod.NewVector(c.Revealed()), c.mod.NewVector(c.Revealed())
					c.addInt128(share, k, encode(x.value*limit, 0))
					err := server.Recover(make([]float64, 2), c0, share, alpha)
					if errors.Is(err, ErrWitness) == x.noise {
						t.Errorf("%s, alpha = %v: coefficient %d at %v times the limit: %v", set.Name, alpha, k, x.value, err)
					}
				}
			}
		}
	}
}
