package attack

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/zq"
)

// xmkckksClient: a client hears another's whole ciphertext, without noise, and
// tries its own key. The control has the sum of all keys, which nobody has.
func xmkckksClient(ctx context.Context, seed keystream.Seed) (results []Result, err error) {
	for _, p := range xmkckks.Sets() {
		r, err := clientAgainst(ctx, p, seed.Derive(p.Name))
		if err != nil {
			return nil, fmt.Errorf("parameter set %s: %w", p.Name, err)
		}
		results = append(results, r)
	}
	return results, nil
}

func clientAgainst(ctx context.Context, p xmkckks.Params, seed keystream.Seed) (Result, error) {
	const rounds = 400
	q, err := newParty(p, p.Form, 3, rounds, seed)
	if err != nil {
		return Result{}, err
	}
	defer q.close()
	w := q.bench
	var keys [][]int8
	for _, s := range q.seeds {
		own, _ := w.ownKey(s)
		keys = append(keys, own)
	}
	client, all := firstOf(w, keys[1]), firstOf(w, added(keys...))
	delta := scalars(rand.New(seed.Derive("scalars").Stream()), rounds)
	tried, opened := make([]float64, rounds), make([]float64, rounds)
	for k, x := range delta {
		if err := ended(ctx, k); err != nil {
			return Result{}, err
		}
		c0, c1, err := q.encrypt(0, uint32(k+1), x)
		if err != nil {
			return Result{}, err
		}
		tried[k], opened[k] = w.open(c0, c1, client), w.open(c0, c1, all)
	}
	tolerance := 6 * w.openingStd(len(keys))
	r := Result{
		Target:  describe(p),
		Attack:  measure("a client with its own key", tried, delta, tolerance),
		Control: measure("the sum of all keys, which nobody has", opened, delta, tolerance),
	}
	r.AsStated = r.Attack.chance() && r.Control.recovers()
	r.Verdict = verdict(r.AsStated, "a client's own key opens nobody else's ciphertext")
	return r, nil
}

// collude is N of colludingClients.
const collude = 5

// colludingClients: N - 2 clients put their keys together and hear each
// ciphertext alone. What the sum M tells them of the other two is their sum, by
// design; the truth asked for is which of the two has what, their difference.
func colludingClients(ctx context.Context, seed keystream.Seed) ([]Result, error) {
	const rounds = 300
	p, err := set("ringwave-4096-100")
	if err != nil {
		return nil, err
	}
	q, err := newParty(p, p.Form, collude, rounds, seed)
	if err != nil {
		return nil, err
	}
	defer q.close()
	var keys [][]int8
	for _, s := range q.seeds {
		own, _ := q.bench.ownKey(s)
		keys = append(keys, own)
	}
	pooled := firstOf(q.bench, added(keys[2:]...))
	rnd := rand.New(seed.Derive("scalars").Stream())
	var opened, halves, differences, rests, firsts []float64
	for k := range rounds {
		if err := ended(ctx, k); err != nil {
			return nil, err
		}
		delta := scalars(rnd, collude)
		m, err := q.round(uint32(k+1), delta, func(i int, c0, c1 zq.Vector) {
			if i == 0 {
				opened = append(opened, q.bench.open(c0, c1, pooled))
			}
		})
		if err != nil {
			return nil, err
		}
		differences, firsts = append(differences, delta[0]-delta[1]), append(firsts, delta[0])
		two := m - delta[2] - delta[3] - delta[4]
		halves, rests = append(halves, two/2), append(rests, two-delta[1])
	}
	tolerance := 6 * q.design.DecodedStd()
	r := Result{
		Target:  describe(p) + fmt.Sprintf(", N = %d", collude),
		Attack:  measure("N - 2 with their keys, on a ciphertext", opened, differences, tolerance),
		Control: measure("N - 1, from the sum", rests, firsts, tolerance),
	}
	half := correlation(halves, differences)
	r.AsStated = r.Attack.chance() && math.Abs(half) < 5/math.Sqrt(rounds) && r.Control.recovers()
	r.Verdict = verdict(r.AsStated, fmt.Sprintf("N - 2 clients learn the sum of the other two and nothing of who has what (correlation %.2f from the sum); N - 1 learn the last value from the sum, as with every scheme of this kind", half))
	return []Result{r}, nil
}
