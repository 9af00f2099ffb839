package round

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
)

// mostMessages returns P = n - W.
func mostMessages(t *testing.T, s setup) int {
	t.Helper()
	return s.params.N - newBench(t, s).design.Witnesses
}

// packedRatios runs rounds with new keys every few of them, and gives eps_p^2 over its
// conditional variance for each message p, and the mean product of eps of neighbouring
// messages over that variance.
func packedRatios(t *testing.T, b *bench, n trials) (each []ratio, products ratio) {
	t.Helper()
	each = make([]ratio, b.ctx.Messages)
	squares, product := make([]float64, len(each)), 0.0
	b.rounds(t, n, func(out Outcome, h []float64, delta [][]float64) {
		before, std := 0.0, b.design.ConditionalStd(b.ctx, h)
		for p, m := range out.M {
			eps := (m - b.ideal(h, delta, p)) / std
			squares[p] += eps * eps
			if p > 0 {
				product += eps * before / float64(len(out.M)-1)
			}
			before = eps
		}
	}, func() {
		for p := range each {
			each[p].add(squares[p] / float64(n.keyRounds))
		}
		products.add(product / float64(n.keyRounds))
		clear(squares)
		product = 0
	})
	return each, products
}

// The noise budget holds for every message of the short form: eps^2 over its variance
// conditional on the gains has mean 1, for each coefficient alone within the bound of
// one coefficient, and over all of them within 6 %, five standard errors or so; and eps
// of neighbours are uncorrelated. The standard errors are those found, of at most 3.7 %
// for one of eight coefficients.
func TestNoiseOfPackedMessages(t *testing.T) {
	for _, c := range []noiseCase{{"demo-1024", 3, 0}, {"lean-2048", 3, 2}, {"ringwave-4096-100", 2, 8}} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			s := c.setup(t, [slot.Transmissions]float64{})
			s.form, s.messages = xmkckks.Short, 8
			n := oneCoefficient()
			if s.params.N == 4096 {
				n.rounds /= 2 // each takes longer
				n.bound *= 1.4
			}
			each, products := packedRatios(t, newBench(t, s), n)
			mean := 0.0
			for p := range each {
				mean += each[p].mean() / float64(len(each))
				if e := each[p].stdErr(); 4*e > n.bound || math.Abs(each[p].mean()-1) > n.bound {
					t.Errorf("message %d: mean of eps^2 over its conditional variance %.4f, standard error %.4f, want 1 within %.4f", p, each[p].mean(), e, n.bound)
				}
			}
			t.Logf("over all messages %.4f, products of neighbours %.4f +- %.4f", mean, products.mean(), products.stdErr())
			if math.Abs(mean-1) > n.bound*0.4 {
				t.Errorf("over all messages the mean is %.4f", mean)
			}
			if math.Abs(products.mean()) > 5*products.stdErr() {
				t.Errorf("eps of neighbours correlate: %.4f, standard error %.4f", products.mean(), products.stdErr())
			}
		})
	}
}

// In the whole form n - W messages leave no coefficient to noise but the witnesses. In R
// rounds the mean square of one has a standard error of sqrt(2/R) and, as chi-square is
// skewed, is off by more than seven of them in no more than one of 10^7 coefficients;
// all together are within 5 %.
func TestNoiseOfAsManyMessagesAsFit(t *testing.T) {
	for _, c := range []noiseCase{{"demo-1024", 3, 0}, {"lean-2048", 3, 8}} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			s := c.setup(t, [slot.Transmissions]float64{})
			s.messages = mostMessages(t, s)
			n := trialsOf(trials{300, 3, 0.05}, trials{3000, 3, 0.05})
			each, products := packedRatios(t, newBench(t, s), n)
			bound := 7 * math.Sqrt(2/float64(n.rounds))
			mean, least, most := 0.0, math.Inf(1), 0.0
			for p := range each {
				m := each[p].mean()
				mean, least, most = mean+m/float64(len(each)), min(least, m), max(most, m)
				if math.Abs(m-1) > bound {
					t.Errorf("message %d: mean of eps^2 over its conditional variance %.4f, want 1 within %.4f", p, m, bound)
				}
			}
			t.Logf("P = %d: mean %.4f, from %.4f to %.4f, bound %.4f; products of neighbours %.5f +- %.5f", len(each), mean, least, most, bound, products.mean(), products.stdErr())
			if math.Abs(mean-1) > n.bound {
				t.Errorf("over all messages the mean is %.4f", mean)
			}
			if math.Abs(products.mean()) > 5*products.stdErr() {
				t.Errorf("eps of neighbours correlate: %.5f, standard error %.5f", products.mean(), products.stdErr())
			}
		})
	}
}

// The forms give the same M of every message bit for bit, ring noise and all.
func TestPackedFormsAgree(t *testing.T) {
	for _, messages := range []int{1, 4, 40} {
		c := noiseCase{"lean-2048", 3, 2}
		s := c.setup(t, c.evenNoise(t))
		s.messages = messages
		for k, forms := range inBothForms(t, s, 20) {
			a, b := forms[0], forms[1]
			if a.Skipped || len(a.M) != messages || !slices.Equal(a.M, b.M) {
				t.Errorf("P = %d, round %d: M = %v in the whole form, %v in the short one", messages, k, a.M, b.M)
			}
		}
	}
}

// Every fault is found with several messages by the check that finds it with one, and
// by the witnesses behind the messages where the patterns are hidden.
func TestFaultsAreFoundBehindMessages(t *testing.T) {
	for _, form := range []xmkckks.Form{xmkckks.Short, xmkckks.Whole} {
		for _, f := range faults() {
			for _, hide := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v/%s/%v", form, f.name, hide), func(t *testing.T) {
					t.Parallel()
					s := setup{
						params: params(t, "lean-2048"), form: form, messages: 6, devices: 3, sigma: 1, f: 8,
						workers: 1, guard: openGuard{}, seed: 12,
					}
					var after []func(slot.Slot, *phy.Reception)
					f.apply(&s, &after)
					want := f.seen
					if hide {
						after, want = append(after, hidePattern), f.hidden
					}
					s.wrap = tapped(after...)
					b := newBench(t, s)
					for k := range uint32(11) {
						out, err := b.engine.Run(t.Context(), k, b.deltas())
						if err != nil {
							t.Fatal(err)
						}
						if k > 0 && (!out.Skipped || out.M != nil || out.Failures[0] != want) {
							t.Errorf("round %d: %+v, want %v", k, out, want)
						}
					}
				})
			}
		}
	}
}

// A round of several messages that succeeds allocates nothing, either.
func TestPackedRoundAllocatesNothing(t *testing.T) {
	for _, form := range []xmkckks.Form{xmkckks.Whole, xmkckks.Short} {
		for _, messages := range []int{4, 64} {
			b := newBench(t, setup{
				params: params(t, "ringwave-4096-100"), form: form, messages: messages, devices: 3, sigma: 1, f: 8,
				guard: xmkckks.NewLedger(100), seed: 41,
			})
			delta := b.deltas()
			k := uint32(0)
			allocs := testing.AllocsPerRun(1, func() {
				for range 20 {
					if out, err := b.engine.Run(t.Context(), k, delta); err != nil || out.Skipped {
						t.Fatalf("round %d: %v, %v", k, out.Failures, err)
					}
					k++
				}
			})
			if allocs != 0 {
				t.Errorf("%v, P = %d: %v allocations in 20 rounds", form, messages, allocs)
			}
		}
	}
}

// Retries and all, P = 4 gives the same bits on any number of goroutines and cores.
func TestPackedDeterminism(t *testing.T) {
	run := func(workers, cores int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		digest := sha256.New()
		b := newBench(t, setup{
			params: params(t, "lean-2048"), form: xmkckks.Short, messages: 4, devices: 5, sigma: 1, f: 2,
			noise: [slot.Transmissions]float64{2, 2, 2, 2}, attempts: 3, workers: workers, seed: 30,
			channel: func(c *channel.Config) {
				c.DriftAt, c.DriftStd, c.DriftProbability = channel.AfterCiphertext, 1, 0.5
			},
			wrap: tapped(func(_ slot.Slot, rx *phy.Reception) {
				for _, y := range rx.Y {
					_ = binary.Write(digest, binary.LittleEndian, y) // a hash does not fail
				}
			}),
		})
		retries := 0
		for k := range uint32(20) {
			out, err := b.engine.Run(t.Context(), k, b.deltas())
			if err != nil {
				t.Fatal(err)
			}
			retries += out.Attempts - 1
			_ = binary.Write(digest, binary.LittleEndian, out.M)
		}
		if retries == 0 {
			t.Error("no retry: the run shows too little")
		}
		return fmt.Sprintf("%x", digest.Sum(nil))
	}
	want := run(1, 1)
	for _, workers := range []int{0, 2, 5} {
		for _, cores := range []int{1, 2} {
			if got := run(workers, cores); got != want {
				t.Errorf("Workers %d, GOMAXPROCS %d: another run than with 1 and 1", workers, cores)
			}
		}
	}
}

// Messages are clipped and counted one by one, over devices and directions; and what is
// no round of P messages is refused.
func TestPackedClippingAndRefusals(t *testing.T) {
	b := newBench(t, setup{params: params(t, "lean-2048"), form: xmkckks.Short, messages: 3, devices: 2, f: 2, seed: 13})
	out, err := b.engine.Run(t.Context(), 1, [][]float64{{0.5, -3, 0.25}, {2, 4, -0.75}})
	if err != nil || out.Skipped || out.Clipped != 3 {
		t.Fatalf("%+v, %v: three messages are beyond 1", out, err)
	}
	for p, want := range []float64{1.5, 0, -0.5} {
		if got := out.M[p]; math.Abs(got-want) > 1e-3 {
			t.Errorf("message %d is %v, expected %v", p, got, want)
		}
	}
	for want, delta := range map[string][][]float64{
		"device 2 has scalars along 2 directions where a ciphertext carries 3": {{1, 1, 1}, {1, 1}},
		"device 1 has scalars along 4 directions":                              {{1, 1, 1, 1}, {1, 1, 1, 1}},
		"device 1 has scalars along 0 directions":                              {nil, {1, 1, 1}},
		"scalars of 1 devices where there are 2":                               {{1, 1, 1}},
		"scalars of 3 devices where there are 2":                               {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
	} {
		if _, err := b.engine.Run(t.Context(), 2, delta); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	// The next good round is carried: a refusal spends nothing.
	if out, err := b.engine.Run(t.Context(), 2, [][]float64{{0, 0, 0}, {0, 0, 0}}); err != nil || out.Skipped || out.Clipped != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}
