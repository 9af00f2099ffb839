package heairfed

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/tuneinsight/lattigo/v5/core/rlwe"

	"ringwave/crypto/keystream"
)

func newScheme(t testing.TB) *Scheme {
	t.Helper()
	s, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestModulus(t *testing.T) {
	for p := int64(1<<30 - 1); p > Q; p-- {
		if p%(2*N) == 1 && big.NewInt(p).ProbablyPrime(20) {
			t.Fatalf("%d is a larger prime that is 1 modulo 2n", p)
		}
	}
	if Q%(2*N) != 1 || !big.NewInt(Q).ProbablyPrime(20) {
		t.Fatalf("q = %d is no prime that is 1 modulo 2n", Q)
	}
}

// A sum of ciphertexts decrypts to the sum of the messages, within the noise of
// its closed form, and a decryptor that knows nothing of this package finds the
// same integers.
func TestJudgeAgrees(t *testing.T) {
	const devices = 10
	s := newScheme(t)
	secret, public := s.NewKeys(keystream.FromInteger(1))
	params, err := rlwe.NewParametersFromLiteral(rlwe.ParametersLiteral{LogN: 12, Q: []uint64{Q}, NTTFlag: true})
	if err != nil {
		t.Fatal(err)
	}
	sk := rlwe.NewSecretKey(params)
	copy(sk.Value.Q.Coeffs[0], secret.mont.Coeffs[0])
	decryptor := rlwe.NewDecryptor(params, sk)

	rnd := rand.New(keystream.FromInteger(2).Stream())
	want, got := make([]int64, N), make([]int64, N)
	sum, ct := NewCiphertext(), NewCiphertext()
	for i := range devices {
		message := make([]int64, N)
		for k := range message {
			message[k] = rnd.Int64N(1<<26) - 1<<25
			want[k] += message[k]
		}
		s.NewEncryptor(public, keystream.FromInteger(3).Derive("device", uint64(i))).Encrypt(ct, message, 7, 2)
		s.ring.Add(asPoly(sum.C0), asPoly(ct.C0), asPoly(sum.C0))
		s.ring.Add(asPoly(sum.C1), asPoly(ct.C1), asPoly(sum.C1))
	}
	s.Decrypt(got, sum, secret)

	judged := rlwe.NewCiphertext(params, 1, params.MaxLevel())
	judged.IsNTT = false
	copy(judged.Value[0].Coeffs[0], sum.C0)
	copy(judged.Value[1].Coeffs[0], sum.C1)
	plain := decryptor.DecryptNew(judged)

	square, worst, variance := 0.0, 0.0, devices*EncryptionVariance()
	for k := range got {
		if judge := Centred(plain.Value.Coeffs[0][k]); judge != got[k] {
			t.Fatalf("coefficient %d is %d, the judge says %d", k, got[k], judge)
		}
		e := float64(got[k] - want[k])
		square += e * e / N
		worst = max(worst, math.Abs(e))
	}
	t.Logf("noise: variance %.4f of the closed form, at most %.2f deviations", square/variance, worst/math.Sqrt(variance))
	// One key: sqrt(8/n) is the spread of the variance, as in xmkckks.
	if math.Abs(square/variance-1) > 5*math.Sqrt(8./N) {
		t.Errorf("the noise has %.3f of the closed form's variance", square/variance)
	}
	if worst > 6*math.Sqrt(variance) {
		t.Errorf("the noise reaches %.1f, six deviations are %.1f", worst, 6*math.Sqrt(variance))
	}
}

// Fresh randomness for each round and part: c1 = v a + e1 never comes twice.
func TestRandomnessServesOnce(t *testing.T) {
	s := newScheme(t)
	_, public := s.NewKeys(keystream.FromInteger(1))
	e := s.NewEncryptor(public, keystream.FromInteger(2))
	seen := map[[4]uint64]bool{}
	for i, at := range [][2]uint32{{1, 0}, {1, 1}, {2, 0}, {1, 0}} {
		ct := NewCiphertext()
		e.Encrypt(ct, nil, at[0], at[1])
		key := [4]uint64(ct.C1[:4])
		if seen[key] != (i == 3) {
			t.Errorf("round %d, part %d: c1 seen before is %v", at[0], at[1], seen[key])
		}
		seen[key] = true
	}
}
