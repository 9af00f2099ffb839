package attack

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
)

// What the lying servers attack: rounds of three devices over a fading channel, whose
// gains are other ones in each attempt. A value that is known to a thousandth of the
// largest is exact: the receiver's own noise is multiplied by how alike the attempts'
// gains are.
const (
	liedDevices = 3
	liedRounds  = 40
	liedAlpha   = 256
	liedStd     = 0.5
	liedExact   = 1e-3
)

// equation is what an attempt tells a server: sum_i (H_i/alpha) Delta f_i = m.
type equation struct {
	h []float64
	m float64
}

// solved returns the scalars that fit equations best, and the shortest of them where
// there is one equation only.
func solved(equations []equation) []float64 {
	n := len(equations[0].h)
	out := make([]float64, n)
	if len(equations) == 1 {
		e, square := equations[0], 0.0
		for _, h := range e.h {
			square += h * h
		}
		for i, h := range e.h {
			out[i] = h * e.m / square
		}
		return out
	}
	normal := make([][]complex128, n)
	for i := range normal {
		normal[i] = make([]complex128, n+1)
		for _, e := range equations {
			for j, h := range e.h {
				normal[i][j] += complex(e.h[i]*h, 0)
			}
			normal[i][n] += complex(e.h[i]*e.m, 0)
		}
	}
	for i, x := range solve(normal) {
		out[i] = real(x)
	}
	return out
}

// newFadingParty makes three devices; each key gives at most so many shares.
func newFadingParty(p xmkckks.Params, shares int, seed keystream.Seed) (*party, error) {
	link := xmkckks.Link{Alpha: liedAlpha, DeltaMax: 1, Shares: shares}
	for range liedDevices {
		link.Mu, link.Omega = append(link.Mu, 1), append(link.Omega, 1+liedStd*liedStd)
	}
	return newPartyOver(link, p, xmkckks.Short, seed)
}

// fade draws the gains of an attempt for the first so many devices, and aggregates
// their keys; the others are not there. It gives h_i = H_i/alpha.
func (q *party) fade(rnd *rand.Rand, present int) []float64 {
	h := make([]float64, len(q.gains))
	clear(q.gains)
	for i := range present {
		q.gains[i] = int64(math.Round(liedAlpha * (1 + liedStd*rnd.NormFloat64())))
		h[i] = float64(q.gains[i]) / liedAlpha
	}
	q.aggregateKey()
	return h
}

// repeats is a server against devices that answer as often as attempts change: the
// rule of old. The library's devices have it no more; for them here each attempt is a
// round of its own. present says how many devices are there in each attempt.
func repeats(ctx context.Context, p xmkckks.Params, present []int, seed keystream.Seed) (many, one, truth []float64, err error) {
	q, err := newFadingParty(p, liedRounds*len(present), seed)
	if err != nil {
		return nil, nil, nil, err
	}
	defer q.close()
	rnd, label := rand.New(seed.Derive("scalars and gains").Stream()), uint32(0)
	for k := range liedRounds {
		if err := ended(ctx, k); err != nil {
			return nil, nil, nil, err
		}
		delta := scalars(rnd, liedDevices)
		var equations []equation
		for _, devices := range present {
			h := q.fade(rnd, devices)
			label++
			m, err := q.round(label, delta[:devices])
			if err != nil {
				return nil, nil, nil, err
			}
			equations = append(equations, equation{h, m})
		}
		many, one, truth = append(many, solved(equations)...), append(one, solved(equations[:1])...), append(truth, delta...)
	}
	return many, one, truth, nil
}

// askedAgain asks the library's devices for another attempt at a round that they have
// answered, in a key epoch: one that has gone on running, which must not even encrypt,
// and one that was made anew, whose guard must remember.
func askedAgain(p xmkckks.Params, epoch uint32, seed keystream.Seed) (words string, refused bool, err error) {
	q, err := newFadingParty(p, 4, seed.Derive("guarded"))
	if err != nil {
		return "", false, err
	}
	defer q.close()
	rnd := rand.New(seed.Derive("guarded gains").Stream())
	q.fade(rnd, liedDevices)
	if _, err := q.round(1, scalars(rnd, liedDevices)); err != nil {
		return "", false, err
	}
	again, err := q.newDevice(0)
	if err != nil {
		return "", false, err
	}
	defer again.Close()
	if epoch > 0 {
		for _, d := range []*xmkckks.Device{q.devices[0], again} {
			if err := d.NewEpoch(epoch); err != nil {
				return "", false, err
			}
		}
	}
	_, running, err := refusal(q.devices[0].Prepare(1, 1), xmkckks.ErrOrder)
	if err != nil || !running {
		return "", false, err
	}
	q.fade(rnd, 1)
	if err := again.Prepare(1, 1); err != nil {
		return "", false, err
	}
	if _, err := again.Encrypt(q.key, []float64{0.1}); err != nil {
		return "", false, err
	}
	_, c1 := again.Ciphertext()
	q.sumC1.Clear()
	q.ctx.Modulus().AddScaled(q.sumC1, q.gains[0], c1)
	q.ctx.SetC1(q.c1, q.sumC1)
	_, err = again.Share(q.c1)
	return refusal(err, xmkckks.ErrAnswered)
}

// lied makes the result of a server that has a round repeated.
func lied(ctx context.Context, present []int, epoch uint32, what, sentence string, seed keystream.Seed) ([]Result, error) {
	p, err := set("ringwave-4096")
	if err != nil {
		return nil, err
	}
	many, one, truth, err := repeats(ctx, p, present, seed)
	if err != nil {
		return nil, err
	}
	guard, refused, err := askedAgain(p, epoch, seed)
	if err != nil {
		return nil, err
	}
	r := Result{
		Target:  describe(p) + fmt.Sprintf(", N = %d, every Delta f_i", liedDevices),
		Attack:  measure(what, many, truth, liedExact),
		Control: measure("the one attempt that devices answer", one, truth, liedExact),
		Guard:   guard,
	}
	// One equation tells the sum, as it should, and no value of it.
	r.AsStated = r.Attack.recovers() && r.Control.Exact < 0.05 && refused
	r.Verdict = verdict(r.AsStated, sentence)
	return []Result{r}, nil
}

// lyingServer: the server calls good attempts void. Each repeats the same scalars under
// other gains, which the patterns tell, and N + 1 sums give all of them. The control is
// the one sum that a round has.
func lyingServer(ctx context.Context, seed keystream.Seed) ([]Result, error) {
	present := make([]int, liedDevices+1)
	for k := range present {
		present[k] = liedDevices
	}
	return lied(ctx, present, 0, fmt.Sprintf("%d attempts that were called void", len(present)),
		"a server that calls good attempts void solves for every device's value; a device that gives one share a round, whatever the attempt, stops it: what fails after a share is sent again bit for bit, or skipped", seed)
}

// lostDevice: the server calls one device after the other lost when all have answered,
// and those that are left begin a key epoch and repeat the round. The last is alone.
func lostDevice(ctx context.Context, seed keystream.Seed) ([]Result, error) {
	var present []int
	for n := liedDevices; n > 0; n-- {
		present = append(present, n)
	}
	return lied(ctx, present, 1, "the round repeated by all, by N - 1, ..., by one",
		"a server that calls devices lost after phase 3 reads every value from the sums of those that are left; a round that was answered stays answered, whoever takes part and under whatever key", seed)
}

// chosenB: the server broadcasts a b~ of which it knows the secret: 0, whose secret is
// 0, or an RLWE sample of a key of its own, -s a + e. Then c~0 + s c~1 is the message,
// and no device has to answer: attempts are void before any share, the guard is never
// asked, and N + 1 of them give every value. The control is the honest b~.
func chosenB(ctx context.Context, seed keystream.Seed) (results []Result, err error) {
	p, err := set("ringwave-4096")
	if err != nil {
		return nil, err
	}
	for _, choice := range []struct {
		name, sentence string
		zero           bool
	}{
		{"b~ = 0", "with b~ = 0 ciphertexts are messages in the clear, and no share is needed to read them", true},
		{"b~ = -s a + e with the server's own s", "nothing stops it: an RLWE sample of the server's own key serves as well as 0 and looks like any other b~, so that refusing 0 alone would be a fig leaf; a device does not hear what the server received, and the server is trusted to broadcast that", false},
	} {
		seed := seed.Derive(choice.name)
		read, honest, truth, err := openedByServer(ctx, p, choice.zero, seed)
		if err != nil {
			return nil, err
		}
		r := Result{
			Target:  describe(p) + fmt.Sprintf(", N = %d, every Delta f_i", liedDevices),
			Attack:  measure(choice.name+fmt.Sprintf(", %d attempts, no share", liedDevices+1), read, truth, liedExact),
			Control: measure("the honest b~, the same attempts", honest, truth, liedExact),
		}
		r.AsStated = r.Attack.recovers() && r.Control.chance()
		r.Verdict = verdict(r.AsStated, choice.sentence)
		results = append(results, r)
	}
	return results, nil
}

// openedByServer returns what a server solves from attempts at which no device answers,
// after a b~ of its choice, and after an honest one.
func openedByServer(ctx context.Context, p xmkckks.Params, zero bool, seed keystream.Seed) (chosen, honest, truth []float64, err error) {
	q, err := newFadingParty(p, 1, seed)
	if err != nil {
		return nil, nil, nil, err
	}
	defer q.close()
	w := q.bench
	s, e := w.ownKey(seed.Derive("server"))
	own := w.mod.NewVector(p.N)
	if zero {
		clear(s)
	} else {
		w.mod.AddScaled(own, -1, w.multiply(w.a, w.transform(lift(w, s))))
		w.mod.Add(own, own, lift(w, e))
	}
	open := firstOf(w, s)
	rnd := rand.New(seed.Derive("scalars and gains").Stream())
	for k := range liedRounds {
		if err := ended(ctx, k); err != nil {
			return nil, nil, nil, err
		}
		delta := scalars(rnd, liedDevices)
		var equations [2][]equation
		for attempt := range uint32(2 * (liedDevices + 1)) {
			h := q.fade(rnd, liedDevices)
			lies := attempt%2 == 0
			if lies {
				q.ctx.SetKey(q.key, own)
			}
			if err := q.superpose(uint32(k+1), attempt, delta); err != nil {
				return nil, nil, nil, err
			}
			m := w.open(q.sumC0, q.sumC1, open) / liedAlpha
			equations[attempt%2] = append(equations[attempt%2], equation{h, m})
		}
		chosen, honest, truth = append(chosen, solved(equations[0])...), append(honest, solved(equations[1])...), append(truth, delta...)
	}
	return chosen, honest, truth, nil
}
