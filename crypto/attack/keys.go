package attack

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/zq"
)

// refreshedErrors: b sent 1,600 times as -s a + e_t with fresh e_t. The mean is
// -s a, and divided by a gives s. The control is the library's device, whose b is
// the same each time.
func refreshedErrors(ctx context.Context, seed keystream.Seed) ([]Result, error) {
	const times = 1600
	p, err := set("paper-4096")
	if err != nil {
		return nil, err
	}
	q, err := newParty(p, p.Form, 2, times, seed)
	if err != nil {
		return nil, err
	}
	defer q.close()
	w := q.bench
	s, e := w.ownKey(q.seeds[0])
	minus := make([]int8, len(s))
	for k, x := range s {
		minus[k] = -x
	}
	// -s a + e_t, answered for the "c~1" a under the key -s.
	a := newAnswers(w, minus, w.a, []int64{1}, seed)
	estimate, first, err := a.asked(ctx, times)
	if err != nil {
		return nil, err
	}
	refreshed := a.secretFrom(first, rounded(estimate), w.a)

	fixed, err := w.average(q.devices[0].PublicKey()[0], 100, func(dst []uint64) error {
		copy(dst, q.devices[0].PublicKey()[0])
		return nil
	})
	if err != nil {
		return nil, err
	}
	same := a.secretFrom(lifted(e), rounded(fixed), w.a)
	for k := range s { // both found -s
		refreshed[k], same[k] = -refreshed[k], -same[k]
	}
	guard, refused, err := refusal(q.devices[0].NewEpoch(0), xmkckks.ErrOrder)
	if err != nil {
		return nil, err
	}
	r := Result{
		Target:  describe(p) + ", the key s",
		Attack:  measure(fmt.Sprintf("%d times b with fresh errors", times), refreshed, floats(s), 0),
		Control: measure("b as the library sends it, 101 times", same, floats(s), 0),
		Guard:   guard,
	}
	r.AsStated = r.Attack.recovers() && r.Control.chance() && refused
	r.Verdict = verdict(r.AsStated, "fresh errors on the same key average away and give it; the library sends the same b until a new epoch brings a new key, and an epoch comes once")
	return []Result{r}, nil
}

func lifted(x []int8) []int64 { return added(x) }

// chosenC1: the server broadcasts 2^80 in place of c~1. The share of the library's
// own device, flooding and all, is 2^80 s + e*. The control is an honest c~1.
func chosenC1(_ context.Context, seed keystream.Seed) ([]Result, error) {
	const power = 80
	p, err := set("ringwave-4096-100")
	if err != nil {
		return nil, err
	}
	q, err := newParty(p, xmkckks.Whole, 2, 4, seed)
	if err != nil {
		return nil, err
	}
	defer q.close()
	s, _ := q.bench.ownKey(q.seeds[0])
	read := func(round uint32, c1 func(own zq.Vector) zq.Vector) ([]float64, error) {
		_, own, err := q.encrypt(0, round, 0.1)
		if err != nil {
			return nil, err
		}
		q.ctx.SetC1(q.c1, c1(own))
		share, err := q.devices[0].Share(q.c1)
		if err != nil {
			return nil, err
		}
		x := q.bench.centred(share)
		for k := range x {
			x[k] = math.Round(math.Ldexp(x[k], -power))
		}
		return x, nil
	}
	chosen, err := read(1, func(zq.Vector) zq.Vector {
		c1 := q.ctx.Modulus().NewVector(p.N)
		one := q.ctx.Modulus().NewVector(p.N)
		q.ctx.Modulus().AddInt(one, 0, 1<<(power/2))
		q.ctx.Modulus().AddScaled(c1, 1<<(power/2), one)
		return c1
	})
	if err != nil {
		return nil, err
	}
	honest, err := read(2, func(own zq.Vector) zq.Vector { return own })
	if err != nil {
		return nil, err
	}
	r := Result{
		Target:  describe(p) + ", the key s",
		Attack:  measure("one share for a chosen c~1", chosen, floats(s), 0),
		Control: measure("one share for an honest c~1", honest, floats(s), 0),
	}
	r.AsStated = r.Attack.recovers() && r.Control.chance()
	r.Verdict = verdict(r.AsStated, "a server that chooses c~1 reads the whole key from one share, and no guard of a device can tell: the server is trusted to follow the protocol")
	return []Result{r}, nil
}

// unflooded is N of unfloodedRounds, and the rounds that the client listens for.
const (
	unfloodedDevices = 3
	unfloodedCount   = 360
)

// unfloodedRounds: in honest rounds with small e*, all coefficients of c~0 + D~ are
//
//	sum_i m_i + V E~ + sum e0 + S E1~ + sum e*,
//
// over the integers, without modulus. A client knows its own share of it, and that
// S = sum_i s_i is multiplied by its own e1, which is fresh each round: regression
// gives S, and S opens every single ciphertext, for all are under b~ = -S a + E~.
// It needs all of c~0 + D~, as a client that works with the server has. Here the
// gains are 1 in every round; where they change, so does S~, and this does not open
// single ciphertexts. Each coefficient's estimate has the variance 11.3/rounds at
// N = 3 (about 5/3 N^2/rounds), and sums of signs are 2 apart. The control is the
// same with the program's own flooded set.
func unfloodedRounds(ctx context.Context, seed keystream.Seed) ([]Result, error) {
	paper, err := set("paper-4096")
	if err != nil {
		return nil, err
	}
	own, err := set("ringwave-4096-100")
	if err != nil {
		return nil, err
	}
	attack, opened, err := listenToRounds(ctx, paper, seed.Derive("paper"))
	if err != nil {
		return nil, err
	}
	control, _, err := listenToRounds(ctx, own, seed.Derive("flooded"))
	if err != nil {
		return nil, err
	}
	attack.What = fmt.Sprintf("one client and the server, %d honest rounds, the sum of the other keys", unfloodedCount)
	control.What = fmt.Sprintf("the same with %s", own.Name)
	r := Result{Target: describe(paper) + fmt.Sprintf(", N = %d, whole form", unfloodedDevices), Attack: attack, Control: control}
	r.AsStated = attack.recovers() && opened.recovers() && control.chance()
	r.Verdict = verdict(r.AsStated, fmt.Sprintf("where gains stay as they are, sigma_phi = 3.2 does not protect against a client that works with the server: %d rounds give the sum of all keys, which opens single ciphertexts (correlation %.3f over %d); flooding stops it, or a new key epoch in time", unfloodedCount, opened.Correlation, opened.Samples))
	return []Result{r}, nil
}

// nearestSums returns the nearest values that a sum of so many secrets can have: with
// signs it is as odd or even as their number.
func nearestSums(x []float64, law sampler.Distribution, keys int) []int64 {
	if law != sampler.Signs {
		return rounded(x)
	}
	y := make([]int64, len(x))
	for k, v := range x {
		y[k] = 2*int64(math.Round((v-float64(keys))/2)) + int64(keys)
	}
	return y
}

// listenToRounds runs the rounds and gives how well client 0 learns the sum of the
// others' keys, and what it then opens of device 1's ciphertexts.
func listenToRounds(ctx context.Context, p xmkckks.Params, seed keystream.Seed) (key, opened Measure, err error) {
	const after = 50
	q, err := newParty(p, xmkckks.Whole, unfloodedDevices, unfloodedCount, seed)
	if err != nil {
		return key, opened, err
	}
	defer q.close()
	var keys [][]int8
	var e []int8
	for i, s := range q.seeds {
		own, ownE := q.bench.ownKey(s)
		keys = append(keys, own)
		if i == 0 {
			e = ownE
		}
	}
	r := newRegression(p.N)
	rnd := rand.New(seed.Derive("scalars").Stream())
	noise := make([]float64, p.N)
	for k := range uint32(unfloodedCount) {
		if err := ended(ctx, int(k)); err != nil {
			return key, opened, err
		}
		if _, err := q.round(k+1, scalars(rnd, unfloodedDevices)); err != nil {
			return key, opened, err
		}
		q.server.Coefficients(noise, q.sumC0, q.sumShare)
		noise[0] = 0 // holds M
		v, _, e1 := q.bench.ownRandomness(q.seeds[0], k+1)
		r.add(noise, e1, [2][]int8{v, e}, [2][]int8{keys[0], e1})
	}
	found := nearestSums(r.solve(), p.Secret, len(keys)-1)
	key = measure("", floats(found), floats(added(keys[1:]...)), 0)

	for k, x := range keys[0] {
		found[k] += int64(x)
	}
	all, tried := firstOf(q.bench, found), make([]float64, after)
	delta := scalars(rnd, after)
	for k, x := range delta {
		c0, c1, err := q.encrypt(1, uint32(unfloodedCount+1+k), x)
		if err != nil {
			return key, opened, err
		}
		tried[k] = q.bench.open(c0, c1, all)
	}
	return key, measure("", tried, delta, 6*q.bench.openingStd(unfloodedDevices)), nil
}
