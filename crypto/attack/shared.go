package attack

import (
	"context"
	"math"
	"math/rand/v2"

	"ringwave/crypto/airhe"
	"ringwave/crypto/heairfed"
	"ringwave/crypto/keystream"
)

// sharedDevices is N of the systems with one key, in these attacks.
const sharedDevices = 5

// heairfedClient: the client hears another's gradient alone, 120 dB over the
// noise, and decrypts it with the key that all share. It takes a round in which
// its channels do not raise the noise by more than 20 dB, as all but one in a
// hundred. The control hears the same with another key.
func heairfedClient(_ context.Context, seed keystream.Seed) ([]Result, error) {
	const noise = 1e-6
	scheme, err := heairfed.NewScheme()
	if err != nil {
		return nil, err
	}
	secret, public := scheme.NewKeys(seed.Derive("keys"))
	stranger, _ := scheme.NewKeys(seed.Derive("other keys"))
	rnd := rand.New(seed.Derive("gradient and air").Stream())
	gradient := scalars(rnd, heairfed.N)
	const delta = 1 << 26 // what heairfed takes for five devices and components up to 1
	message := make([]int64, len(gradient))
	for k, x := range gradient {
		message[k] = int64(math.Round(delta * x))
	}
	ct := heairfed.NewCiphertext()
	scheme.NewEncryptor(public, seed.Derive("victim")).Encrypt(ct, message, 1, 0)

	// The noise of a coefficient, as the aggregator scales it: q/2 to a unit.
	l := newListener(sharedDevices, 0, noise, rnd)
	for l.std > 10*noise {
		l = newListener(sharedDevices, 0, noise, rnd)
	}
	std := 0.0
	for k := range ct.C0 {
		const unit = heairfed.Q / math.Sqrt2
		y := l.hear(complex(float64(heairfed.Centred(ct.C0[k])), float64(heairfed.Centred(ct.C1[k]))) / unit)
		ct.C0[k], ct.C1[k] = residue(real(y)*unit, heairfed.Q), residue(imag(y)*unit, heairfed.Q)
		std = l.std / math.Sqrt2 * unit
	}
	decrypt := func(key *heairfed.SecretKey) []float64 {
		m := make([]int64, heairfed.N)
		scheme.Decrypt(m, ct, key)
		x := make([]float64, len(m))
		for k := range m {
			x[k] = float64(m[k]) / delta
		}
		return x
	}
	tolerance := 6 * math.Sqrt(heairfed.EncryptionVariance()+(1+2*heairfed.N/3.)*(std*std+1./12)) / delta
	r := Result{
		Target:  "heairfed (4096, 30), a gradient of 4,096 components",
		Attack:  measure("a client with the shared key", decrypt(secret), gradient, tolerance),
		Control: measure("a listener without it", decrypt(stranger), gradient, tolerance),
	}
	r.AsStated = r.Attack.recovers() && r.Control.chance()
	r.Verdict = verdict(r.AsStated, "every client reads every other client's gradient: one key for all is no protection among them")
	return []Result{r}, nil
}

// residue returns the integer nearest to x modulo q.
func residue(x float64, q int64) uint64 {
	r := int64(math.Round(x)) % q
	if r < 0 {
		r += q
	}
	return uint64(r)
}

// airheClient: the client hears another's digits, 40 dB over the noise.
func airheClient(_ context.Context, seed keystream.Seed) ([]Result, error) {
	const rounds, noise, scale = 1000, 0.01, 600.0 // about airhe's for five devices and scalars up to 1
	key, stranger := airhe.NewSecretKey(seed.Derive("key")), airhe.NewSecretKey(seed.Derive("other key"))
	victim := airhe.NewEncryptor(key, seed.Derive("victim"))
	rnd := rand.New(seed.Derive("scalars and air").Stream())
	delta := scalars(rnd, rounds)
	known, guessed := make([]float64, rounds), make([]float64, rounds)
	for k, x := range delta {
		ct := victim.Encrypt(int64(math.Round(scale*x)), uint32(k+1), 0)
		l := newListener(sharedDevices, 0, noise, rnd)
		var heard airhe.Ciphertext
		for j := range ct {
			var digits [airhe.Digits]int8
			var y [airhe.Digits]int64
			airhe.Split(&digits, ct[j])
			for i, d := range digits {
				// A real symbol: the other branch is left unused. No trit is beyond 1.
				y[i] = int64(math.Max(-1, math.Min(1, math.Round(real(l.hear(complex(float64(d), 0)))))))
			}
			heard[j] = airhe.Join(&y)
		}
		known[k], guessed[k] = float64(airhe.Decrypt(&heard, key))/scale, float64(airhe.Decrypt(&heard, stranger))/scale
	}
	const tolerance = 6 * 3.2 / scale
	r := Result{
		Target:  "airhe (9, 6560), 1,000 scalars",
		Attack:  measure("a client with the shared key", known, delta, tolerance),
		Control: measure("a listener without it", guessed, delta, tolerance),
	}
	// Correlation is no measure here: a scalar with a misread digit is uniform modulo
	// q, twenty times as wide as the scalars, and a few of them rule it.
	wrong := misread(noise, airhe.Elements*airhe.Digits)
	r.AsStated = 1-r.Attack.Exact <= wrong+5*math.Sqrt(wrong/rounds) && r.Control.chance()
	r.Verdict = verdict(r.AsStated, "every client reads every other client's scalar: one key for all is no protection among them")
	return []Result{r}, nil
}

// misread returns the probability that a listener misreads at least one of so many
// trits in a round, all heard over the same channels. What is left of the target's
// Rayleigh channel across those of all others has the power E, exponential of mean
// 1, and the noise grows by 1/sqrt E. The outer trits are misread to one side only:
// 4/3 Q(1/(2 std)) on average.
func misread(noiseStd float64, trits int) float64 {
	const step = 1e-3 // in log E
	sum := 0.0
	for logE := math.Log(1e-12); logE < math.Log(50); logE += step {
		e := math.Exp(logE)
		std := noiseStd / math.Sqrt(2*e)
		each := 2. / 3 * math.Erfc(0.5/(std*math.Sqrt2))
		sum += (1 - math.Pow(1-each, float64(trits))) * math.Exp(-e) * e * step
	}
	return sum
}

// verdict returns the sentence, or says that it does not hold.
func verdict(asStated bool, sentence string) string {
	if asStated {
		return sentence
	}
	return "did not come out as stated; expected was: " + sentence
}
