package attack

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/zq"
)

// answers is a device without a guard, made again: it answers one c~1 as often as
// it is asked, with fresh small e*.
type answers struct {
	w      *workbench
	exact  zq.Vector // s c~1
	stream *keystream.Stream
	// e* is sum_i factors[i] x_i with independent x_i of sigma = 3.2.
	factors []int64
	x       []int8
	last    []int64 // e* of the last answer
}

// newAnswers makes it for a secret and a c~1 given by its transform.
func newAnswers(w *workbench, s []int8, c1 zq.Vector, factors []int64, seed keystream.Seed) *answers {
	return &answers{
		w: w, exact: w.multiply(c1, w.transform(lift(w, s))), stream: seed.Derive("e*").Stream(),
		factors: factors, x: make([]int8, w.params.N), last: make([]int64, w.params.N),
	}
}

// next writes the residues of one more answer modulo the first prime.
func (a *answers) next(dst []uint64) error {
	clear(a.last)
	for _, f := range a.factors {
		sampler.Gaussian.Sample(a.x, a.stream)
		for k, x := range a.x {
			a.last[k] += f * int64(x)
		}
	}
	p := int64(a.w.params.Primes[0])
	for k, e := range a.last {
		dst[k] = uint64((int64(a.exact[0][k]) + e + p) % p)
	}
	return nil
}

// sigma returns the deviation of e*.
func (a *answers) sigma() float64 {
	sum := 0.0
	for _, f := range a.factors {
		sum += float64(f * f)
	}
	return math.Sqrt(sum * sampler.Gaussian.Variance())
}

// asked returns what the attacker makes of so many answers: its estimate of e* in
// the first, the true one, and the first answer.
func (a *answers) asked(ctx context.Context, times int) (estimate []float64, truth []int64, err error) {
	first := make([]uint64, a.w.params.N)
	if err := a.next(first); err != nil {
		return nil, nil, err
	}
	truth = append(truth, a.last...)
	step := 0
	estimate, err = a.w.average(first, times-1, func(dst []uint64) error {
		step++
		if err := ended(ctx, step); err != nil {
			return err
		}
		return a.next(dst)
	})
	return estimate, truth, err
}

// secretFrom returns s = (answer - e*)/c~1, from the first answer, which is
// s c~1 + truth, and what the attacker takes e* for.
func (a *answers) secretFrom(truth, estimate []int64, c1 zq.Vector) []float64 {
	off := make([]int64, len(truth))
	for k := range off {
		off[k] = truth[k] - estimate[k]
	}
	y := a.w.mod.NewVector(a.w.params.N)
	a.w.mod.Add(y, a.exact, lift(a.w, off))
	return a.w.centred(a.w.divide(y, c1))
}

// someC1 draws a c~1, uniform as honest ones are, as its transform.
func someC1(w *workbench, seed keystream.Seed) zq.Vector {
	c1, stream := w.mod.NewVector(w.params.N), seed.Derive("c1").Stream()
	for j, p := range w.params.Primes {
		stream.Uniform(c1[j], p)
	}
	return c1
}

// victim returns the workbench of a set, and the key of who is to answer.
func victim(name string, seed keystream.Seed) (*workbench, []int8, error) {
	p, err := set(name)
	if err != nil {
		return nil, nil, err
	}
	w, err := newWorkbench(p, seed.Derive("public"))
	if err != nil {
		return nil, nil, err
	}
	s, _ := w.ownKey(seed.Derive("victim"))
	return w, s, nil
}

// smallShareNoise: with sigma* = 3.2, 1,600 answers to one c~1 average e* away, and
// s c~1 divided by c~1 is s. The control has one answer.
func smallShareNoise(ctx context.Context, seed keystream.Seed) ([]Result, error) {
	const times = 1600
	w, s, err := victim("paper-4096", seed)
	if err != nil {
		return nil, err
	}
	p := w.params
	c1 := someC1(w, seed)
	a := newAnswers(w, s, c1, []int64{1}, seed)
	estimate, e, err := a.asked(ctx, times)
	if err != nil {
		return nil, err
	}
	guard, refused, err := answeredAgain(p, seed)
	if err != nil {
		return nil, err
	}
	r := Result{
		Target:  describe(p) + ", the key s",
		Attack:  measure(fmt.Sprintf("%d answers at sigma* = %.1f", times, a.sigma()), a.secretFrom(e, rounded(estimate), c1), floats(s), 0),
		Control: measure("one answer", a.secretFrom(e, make([]int64, len(e)), c1), floats(s), 0),
		Guard:   guard,
	}
	r.AsStated = r.Attack.recovers() && r.Control.chance() && refused
	r.Verdict = verdict(r.AsStated, "with small e* a c~1 that is answered again and again gives the whole key; one answer gives nothing, and the guard allows one")
	return []Result{r}, nil
}

// answeredAgain asks the library for a second share of a c~1, in a later round, and
// gives the guard's words.
func answeredAgain(p xmkckks.Params, seed keystream.Seed) (words string, refused bool, err error) {
	q, err := newParty(p, p.Form, 2, 4, seed.Derive("guarded"))
	if err != nil {
		return "", false, err
	}
	defer q.close()
	if _, err := q.round(1, []float64{0.1, 0.2}); err != nil {
		return "", false, err
	}
	if _, _, err := q.encrypt(0, 2, 0.1); err != nil {
		return "", false, err
	}
	_, err = q.devices[0].Share(q.c1)
	return refusal(err, xmkckks.ErrAnswered)
}

// refusal returns the words of a guard's error, and whether it is the one expected.
func refusal(err, want error) (words string, refused bool, none error) {
	if err == nil {
		return "", false, nil
	}
	return err.Error(), errors.Is(err, want), nil
}

// manyAnswers: at sigma* = 16, 4,097 answers leave a deviation of a quarter: 95 % of
// s c~1 are exact. The control takes the one answer for s c~1.
func manyAnswers(ctx context.Context, seed keystream.Seed) ([]Result, error) {
	const times = 4097
	w, s, err := victim("ringwave-4096-100", seed)
	if err != nil {
		return nil, err
	}
	p := w.params
	// 3 x + 4 x' has sigma = 5 * 3.2 = 16.
	a := newAnswers(w, s, someC1(w, seed), []int64{3, 4}, seed)
	estimate, e, err := a.asked(ctx, times)
	if err != nil {
		return nil, err
	}
	guard, refused, err := answeredAgain(p, seed)
	if err != nil {
		return nil, err
	}
	r := Result{
		Target:  describe(p) + ", e* and with it s c~1",
		Attack:  measure("4,097 answers at sigma* = 16", floats(rounded(estimate)), floats(e), 0),
		Control: measure("one answer, e* taken for 0", make([]float64, len(e)), floats(e), 0),
		Guard:   guard,
	}
	// P(|N(0, 1/4)| < 1/2) = 0.9545 and P(e* = 0) = 0.0249 at sigma = 16.
	n := float64(len(e))
	five := func(p float64) float64 { return 5 * math.Sqrt(p*(1-p)/n) }
	r.AsStated = math.Abs(r.Attack.Exact-0.9545) < five(0.9545) && math.Abs(r.Control.Exact-0.0249) < five(0.0249) && refused
	r.Verdict = verdict(r.AsStated, fmt.Sprintf("noise of deviation 16 is averaged away: %.1f %% of the coefficients of s c~1 are exact after 4,097 answers (expected 95.4), %.1f %% after one (expected 2.5)", 100*r.Attack.Exact, 100*r.Control.Exact))
	return []Result{r}, nil
}

// nearbyC1: the full flooding of the program's own set, answered for c~1 and for
// c~1 + 2^62 in the same round: the difference is 2^62 s and noise that is far
// smaller. The control has one of the answers.
func nearbyC1(_ context.Context, seed keystream.Seed) ([]Result, error) {
	const step = 62
	p, err := set("ringwave-4096-100")
	if err != nil {
		return nil, err
	}
	q, err := newParty(p, xmkckks.Whole, 2, 4, seed)
	if err != nil {
		return nil, err
	}
	defer q.close()
	w := q.bench
	s, _ := w.ownKey(q.seeds[0])
	flood, err := sampler.NewFlood(math.Exp2(w.params.LogFlood))
	if err != nil {
		return nil, err
	}
	stream := seed.Derive("e*").Stream()
	c1 := someC1(w, seed)
	near := w.mod.NewVector(p.N)
	w.ring.INTT(poly(c1), poly(near))
	w.mod.AddInt(near, 0, 1<<step)
	answer := func(c1 zq.Vector) (zq.Vector, error) {
		d := w.multiply(c1, w.transform(lift(w, s)))
		e := make([]sampler.Int128, p.N)
		flood.Sample(e, stream)
		return d, w.addWide(d, e)
	}
	first, err := answer(c1)
	if err != nil {
		return nil, err
	}
	second, err := answer(w.transform(near))
	if err != nil {
		return nil, err
	}
	difference := w.mod.NewVector(p.N)
	w.mod.AddScaled(difference, -1, first)
	w.mod.Add(difference, difference, second)
	read := func(d zq.Vector) []float64 {
		x := w.centred(d)
		for k := range x {
			x[k] = math.Round(x[k] / (1 << step))
		}
		return x
	}
	guard, refused, err := answeredAfterRestart(q)
	if err != nil {
		return nil, err
	}
	r := Result{
		Target:  describe(p) + fmt.Sprintf(", sigma* = 2^%.1f, the key s", math.Log2(flood.Std())),
		Attack:  measure("two answers, 2^62 apart in one coefficient", read(difference), floats(s), 0),
		Control: measure("one answer", read(second), floats(s), 0),
		Guard:   guard,
	}
	r.AsStated = r.Attack.recovers() && r.Control.chance() && refused
	r.Verdict = verdict(r.AsStated, "flooding made for one answer does not hide the key from a second one for a c~1 nearby; the guard refuses it even to a device that was restarted")
	return []Result{r}, nil
}

// answeredAfterRestart carries a round, makes device 1 anew from its seed, and asks
// it for a share of a c~1 nearby in the same round.
func answeredAfterRestart(q *party) (words string, refused bool, err error) {
	if _, err := q.round(1, []float64{0.1, 0.2}); err != nil {
		return "", false, err
	}
	q.ctx.Modulus().AddInt(q.sumC1, 0, 1<<62)
	q.ctx.SetC1(q.c1, q.sumC1)
	again, err := q.newDevice(0)
	if err != nil {
		return "", false, err
	}
	defer again.Close()
	if err := again.Prepare(1, 0); err != nil {
		return "", false, err
	}
	if _, err := again.Encrypt(q.key, []float64{0.1}); err != nil {
		return "", false, err
	}
	_, err = again.Share(q.c1)
	return refusal(err, xmkckks.ErrAnswered)
}
