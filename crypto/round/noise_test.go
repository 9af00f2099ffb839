package round

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"ringwave/crypto/sampler"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/slot"
)

// The noise budget of Appendix B is an identity, and these tests meet it as one:
// eps^2 over its variance conditional on the gains has mean 1. Not below 1, as a
// bound would allow, and not pooled over the gains, whose heavy-tailed sums would
// drown a missing term.
//
// The budget takes s_i and e_i as random, but a key keeps them, and ||sum H_i
// e_i||^2 of one key is off its mean by several per cent at n = 1024. So the
// devices take new keys every few rounds, the rounds of one key are averaged
// first, and the standard error is that of the keys' averages.

// trials says how many rounds bound a mean how closely.
type trials struct {
	rounds, keyRounds int     // rounds in all, and those of one key
	bound             float64 // how far the mean may be off 1
}

// trialsOf returns the usual trials, or with RINGWAVE_LONG in the environment the long
// ones.
func trialsOf(usual, long trials) trials {
	if os.Getenv("RINGWAVE_LONG") != "" {
		return long
	}
	return usual
}

// Over all coefficients a few hundred rounds bound the mean within 5 %, with a standard
// error of 0.7 % at most. Coefficient 0 alone is one number a round: 2,500 of them leave a
// standard error of 3.3 % at most, and the long form's 20,000 one of 1 %.
func allCoefficients() trials {
	return trialsOf(trials{200, 10, 0.05}, trials{2000, 10, 0.05})
}

func oneCoefficient() trials {
	return trialsOf(trials{2500, 10, 0.15}, trials{20_000, 10, 0.05})
}

// ratio averages eps^2/variance.
type ratio struct{ keys, sum, squares float64 }

// add counts the average over one key.
func (r *ratio) add(x float64) {
	r.keys++
	r.sum += x
	r.squares += x * x
}

func (r *ratio) mean() float64 { return r.sum / r.keys }

// stdErr returns the standard error of the mean.
func (r *ratio) stdErr() float64 {
	m := r.mean()
	return math.Sqrt(math.Max(0, r.squares/r.keys-m*m) / (r.keys - 1))
}

// judge fails the test unless the mean is 1 within the bound, which must be four
// standard errors or more to say something.
func (r *ratio) judge(t *testing.T, bound float64) {
	t.Helper()
	m, e := r.mean(), r.stdErr()
	if 4*e > bound {
		t.Errorf("standard error %.4f: too few rounds for a bound of %v", e, bound)
	}
	t.Logf("%s: ratio %.4f, standard error %.4f, bound %.4f", t.Name(), m, e, bound)
	if !(math.Abs(m-1) <= bound) {
		t.Errorf("mean of eps^2 over its conditional variance: %.4f, want 1 within %.4f", m, bound)
	}
}

// rounds runs rounds with new keys every n.keyRounds of them, which last is called behind; in
// each that is not skipped, look is called with the gains.
func (b *bench) rounds(t *testing.T, n trials, look func(out Outcome, h []float64, delta [][]float64), last func()) {
	t.Helper()
	k := uint32(0)
	for epoch := range uint32(n.rounds / n.keyRounds) {
		if epoch > 0 {
			for _, d := range b.devices {
				if err := d.NewEpoch(epoch); err != nil {
					t.Fatal(err)
				}
			}
		}
		for done := 0; done < n.keyRounds; k++ {
			delta := b.deltas()
			out, err := b.engine.Run(t.Context(), k, delta)
			if err != nil {
				t.Fatal(err)
			}
			if out.Skipped {
				// All gains rounded to 0: there is no round to measure.
				if out.Failures[0].Check != NoSignal {
					t.Fatalf("round %d: %v", k, out.Failures)
				}
				continue
			}
			look(out, b.gains(k), delta)
			done++
		}
		last()
	}
}

// measure runs rounds and averages what eps gives of each, with new keys every
// n.keyRounds rounds.
func measure(t *testing.T, b *bench, n trials, eps func(out Outcome, h []float64, delta [][]float64) float64) {
	t.Helper()
	var r ratio
	sum := 0.0
	b.rounds(t, n, func(out Outcome, h []float64, delta [][]float64) {
		sum += eps(out, h, delta)
	}, func() {
		r.add(sum / float64(n.keyRounds))
		sum = 0
	})
	r.judge(t, n.bound)
}

// silent returns the mean, over the coefficients that carry no message, of the
// square of c~0 + D~ over its variance. The bench must be of the whole form.
func (b *bench) silent() func(Outcome, []float64, [][]float64) float64 {
	noiseVar := ringNoise(b.design.Link.NoiseStd)
	x := make([]float64, b.ctx.Params.N)
	return func(_ Outcome, h []float64, _ [][]float64) float64 {
		b.server.Coefficients(x, b.engine.Received(slot.TxC0).Y, b.engine.Received(slot.TxShare).Y)
		sum := 0.0
		for _, eps := range x[1:] {
			sum += eps * eps
		}
		variance := b.ctx.Budget(xmkckks.SumsOf(h), noiseVar).Noise()
		return sum / float64(len(x)-1) / variance
	}
}

// message returns the square of M's error over its variance: coefficient 0 alone.
func (b *bench) message() func(Outcome, []float64, [][]float64) float64 {
	return func(out Outcome, h []float64, delta [][]float64) float64 {
		eps := (out.M[0] - b.ideal(h, delta, 0)) / b.design.ConditionalStd(b.ctx, h)
		return eps * eps
	}
}

// ringNoise returns the variances of ring noise of the given deviations before
// rounding.
func ringNoise(std [slot.Transmissions]float64) (v [slot.Transmissions]float64) {
	for t, s := range std {
		v[t] = xmkckks.RoundedVariance(s)
	}
	return v
}

// noiseCase is a link at which the budget is measured.
type noiseCase struct {
	set     string
	devices int
	f       int // log2 alpha
}

func noiseCases() []noiseCase {
	return []noiseCase{
		{"demo-1024", 3, 0}, {"demo-1024", 3, 2},
		{"lean-2048", 3, 2}, {"lean-2048", 3, 8},
		{"paper-4096", 2, 2}, {"paper-4096", 2, 8},
	}
}

func (c noiseCase) String() string { return fmt.Sprintf("%s/alpha=%d", c.set, 1<<c.f) }

// setup returns gains N(1, 1) and the given ring noise. The sub-tests run side by
// side, so each has one worker.
func (c noiseCase) setup(t *testing.T, noise [slot.Transmissions]float64) setup {
	return setup{
		params: params(t, c.set), form: xmkckks.Whole, devices: c.devices, sigma: 1, f: c.f,
		noise: noise, workers: 1, guard: openGuard{}, seed: uint64(params(t, c.set).N + c.f),
	}
}

// expected returns E[sum H_i^2].
func (c noiseCase) expected() float64 { return math.Ldexp(2*float64(c.devices), 2*c.f) }

// evenNoise returns ring noise that makes every term it enters as large as the
// term's other part: w_b as e, w_1 as e1, and w_0 and w_D as all of A.
func (c noiseCase) evenNoise(t *testing.T) [slot.Transmissions]float64 {
	p, s := params(t, c.set), c.expected()
	a := float64(p.N) * p.Ephemeral.Variance() * p.KeyError.Variance() * s * s
	return [slot.Transmissions]float64{
		slot.TxKey:   math.Sqrt(p.KeyError.Variance() * s),
		slot.TxC0:    math.Sqrt(a),
		slot.TxC1:    math.Sqrt(p.Error1.Variance() * s),
		slot.TxShare: math.Sqrt(a),
	}
}

// All terms together, over all coefficients that carry no message, with and
// without ring noise.
func TestNoiseOfAllCoefficients(t *testing.T) {
	for _, c := range noiseCases() {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.setup(t, [slot.Transmissions]float64{}))
			measure(t, b, allCoefficients(), b.silent())
		})
		t.Run(c.String()+"/w", func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.setup(t, c.evenNoise(t)))
			measure(t, b, allCoefficients(), b.silent())
		})
	}
}

// The noise of the sets for the newer tables is their flooding, e* of deviation 2^55
// and 2^76, which no other case has.
func TestNoiseOfFlooding(t *testing.T) {
	for _, name := range []string{"ringwave-4096-100", "ringwave-8192-200"} {
		t.Run(name+"/all coefficients", func(t *testing.T) {
			t.Parallel()
			b := newBench(t, noiseCase{name, 2, 8}.setup(t, [slot.Transmissions]float64{}))
			measure(t, b, allCoefficients(), b.silent())
		})
	}
	c := noiseCase{"ringwave-4096-100", 2, 8}
	t.Run("message", func(t *testing.T) {
		t.Parallel()
		s := c.setup(t, [slot.Transmissions]float64{})
		s.form = xmkckks.Short
		b := newBench(t, s)
		measure(t, b, oneCoefficient(), b.message())
	})
}

// The decoded scalar's error: coefficient 0 alone, the rounding of m_i included.
//
// The short form computes this one coefficient of the same two products from the
// same draws, and TestFormsAgree finds the same M to the last bit; it only costs
// less.
func TestNoiseOfTheMessage(t *testing.T) {
	for _, c := range noiseCases() {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			s := c.setup(t, [slot.Transmissions]float64{})
			s.form = xmkckks.Short
			b := newBench(t, s)
			measure(t, b, oneCoefficient(), b.message())
		})
	}
}

// inBothForms returns the outcomes of rounds in the whole and in the short form. M of a round
// is a copy.
func inBothForms(t *testing.T, s setup, rounds int) [][2]Outcome {
	t.Helper()
	outcomes := make([][2]Outcome, rounds)
	s.form = xmkckks.Whole
	whole := newBench(t, s)
	s.form = xmkckks.Short
	short := newBench(t, s)
	for k := range outcomes {
		delta := whole.deltas()
		for i, b := range []*bench{whole, short} {
			out, err := b.engine.Run(t.Context(), uint32(k), delta)
			if err != nil {
				t.Fatal(err)
			}
			out.M = slices.Clone(out.M)
			outcomes[k][i] = out
		}
	}
	return outcomes
}

// The two forms of a round give the same M bit for bit: the revealed
// coefficients of the short one are those of the whole one, ring noise and all.
func TestFormsAgree(t *testing.T) {
	for _, c := range noiseCases() {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			s := c.setup(t, c.evenNoise(t))
			for k, forms := range inBothForms(t, s, 20) {
				a, b := forms[0], forms[1]
				if a.Skipped != b.Skipped || !slices.Equal(a.M, b.M) {
					t.Errorf("round %d: M = %v in the whole form, %v in the short one", k, a.M, b.M)
				}
			}
		})
	}
}

// smallNoise is a ring noise whose rounding to integers counts: variance
// 1 + 1/12.
const smallNoise = 1

// noiseTerm isolates a term: errors says which of the samplers stay, the others
// give zeros.
type noiseTerm struct {
	name             string
	e, e0, e1, eStar bool
	noise            func(c noiseCase, t *testing.T) [slot.Transmissions]float64
	of               func(xmkckks.Budget) float64
}

// at returns small ring noise in one transmission.
func at(tx slot.Transmission) func(noiseCase, *testing.T) [slot.Transmissions]float64 {
	return func(noiseCase, *testing.T) (w [slot.Transmissions]float64) {
		w[tx] = smallNoise
		return w
	}
}

// evenAt gives, in one transmission, ring noise as large as the errors.
func evenAt(tx slot.Transmission) func(noiseCase, *testing.T) [slot.Transmissions]float64 {
	return func(c noiseCase, t *testing.T) (w [slot.Transmissions]float64) {
		w[tx] = c.evenNoise(t)[tx]
		return w
	}
}

func noiseTerms() []noiseTerm {
	a := func(b xmkckks.Budget) float64 { return b.A }
	c := func(b xmkckks.Budget) float64 { return b.C1 + b.C2 }
	return []noiseTerm{
		{name: "A", e: true, noise: evenAt(slot.TxKey), of: a},
		{name: "A, e", e: true, of: a},
		{name: "A, w", noise: at(slot.TxKey), of: a},
		{name: "B1", e0: true, of: func(b xmkckks.Budget) float64 { return b.B1 }},
		{name: "B2", noise: at(slot.TxC0), of: func(b xmkckks.Budget) float64 { return b.B2 }},
		{name: "C", e1: true, noise: evenAt(slot.TxC1), of: c},
		{name: "C1", e1: true, of: func(b xmkckks.Budget) float64 { return b.C1 }},
		{name: "C2", noise: at(slot.TxC1), of: func(b xmkckks.Budget) float64 { return b.C2 }},
		{name: "D", noise: at(slot.TxShare), of: func(b xmkckks.Budget) float64 { return b.D }},
		{name: "E", eStar: true, of: func(b xmkckks.Budget) float64 { return b.E }},
	}
}

// Each term of the budget alone.
func TestNoiseOfEachTerm(t *testing.T) {
	for _, c := range noiseCases() {
		for _, term := range noiseTerms() {
			t.Run(c.String()+"/"+term.name, func(t *testing.T) {
				t.Parallel()
				s := c.setup(t, [slot.Transmissions]float64{})
				if term.noise != nil {
					s.noise = term.noise(c, t)
				}
				for _, x := range []struct {
					on   bool
					dist *sampler.Distribution
				}{
					{term.e, &s.params.KeyError}, {term.e0, &s.params.Error0},
					{term.e1, &s.params.Error1}, {term.eStar, &s.params.ShareError},
				} {
					if !x.on {
						*x.dist = sampler.Zero
					}
				}
				b := newBench(t, s)
				one := b.ctx.Budget(xmkckks.GainSums{S: 3, Q: 9}, ringNoise(s.noise))
				if term.of(one) == 0 || term.of(one) != one.Noise() {
					t.Fatalf("%s is not alone: %+v", term.name, one)
				}
				// Each round has n-1 coefficients and keys of its own, so that 80
				// rounds bound the mean with a standard error below 1 %.
				measure(t, b, trialsOf(trials{80, 1, 0.05}, trials{2000, 1, 0.05}), b.silent())
			})
		}
		// No noise at all but the rounding of m_i, which only coefficient 0 has.
		t.Run(c.String()+"/R", func(t *testing.T) {
			t.Parallel()
			s := c.setup(t, [slot.Transmissions]float64{})
			s.form = xmkckks.Short
			s.params.KeyError, s.params.Error0, s.params.Error1, s.params.ShareError = sampler.Zero, sampler.Zero, sampler.Zero, sampler.Zero
			b := newBench(t, s)
			measure(t, b, trialsOf(trials{1500, 10, 0.15}, trials{10_000, 50, 0.05}), b.message())
		})
	}
}
