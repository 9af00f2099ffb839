package round

import (
	"math"
	"os"
	"slices"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
)

// fault is a way for a round to go wrong.
type fault struct {
	name  string
	apply func(s *setup, after *[]func(slot.Slot, *phy.Reception))
	// seen is the check that finds it, hidden the one that does when the patterns
	// show nothing.
	seen, hidden Failure
}

// drift changes all gains at a place in every round, by half their deviation.
func drift(at channel.Boundary) func(*setup, *[]func(slot.Slot, *phy.Reception)) {
	return func(s *setup, _ *[]func(slot.Slot, *phy.Reception)) {
		s.channel = func(c *channel.Config) { c.DriftAt, c.DriftStd, c.DriftProbability = at, 0.5, 1 }
	}
}

// step changes one device's H by one step of the lattice in the given
// transmissions; the device and the direction go in turn.
func step(in ...slot.Transmission) func(*setup, *[]func(slot.Slot, *phy.Reception)) {
	return func(s *setup, _ *[]func(slot.Slot, *phy.Reception)) {
		s.gains = func(g phy.Gains) phy.Gains {
			return &altered{g, func(h []float64, round, _ uint32, t slot.Transmission) {
				if slices.Contains(in, t) {
					h[int(round)%len(h)] += float64(1 - 2*(int(round)/len(h)%2))
				}
			}}
		}
	}
}

// stale returns the server round 0's b~ in all later rounds, with its pattern or
// with the current one.
func stale(withPattern bool) func(*setup, *[]func(slot.Slot, *phy.Reception)) {
	return func(_ *setup, after *[]func(slot.Slot, *phy.Reception)) {
		var old phy.Reception
		*after = append(*after, func(s slot.Slot, rx *phy.Reception) {
			if s.Transmission != slot.TxKey {
				return
			}
			if s.Round == 0 {
				for _, y := range rx.Y {
					old.Y = append(old.Y, slices.Clone(y))
				}
				old.Pattern = slices.Clone(rx.Pattern)
				return
			}
			rx.Y.Copy(old.Y)
			if withPattern {
				copy(rx.Pattern, old.Pattern)
			}
		})
	}
}

// continuous leaves the gains off the lattice.
func continuous(s *setup, _ *[]func(slot.Slot, *phy.Reception)) {
	s.channel = func(c *channel.Config) { c.Continuous = true }
}

// continuousUnchecked is a server that also ignores the linear check.
func continuousUnchecked(s *setup, after *[]func(slot.Slot, *phy.Reception)) {
	continuous(s, after)
	*after = append(*after, func(_ slot.Slot, rx *phy.Reception) { rx.CheckPassed = true })
}

func faults() []fault {
	const key, c0, c1, share = slot.TxKey, slot.TxC0, slot.TxC1, slot.TxShare
	linear := func(t slot.Transmission) Failure { return Failure{Check: LinearCheck, Transmission: t} }
	gains := func(t slot.Transmission) Failure { return Failure{Check: EqualGains, Transmission: t} }
	witness := Failure{Check: Witness, Transmission: share}
	return []fault{
		{"continuous gains", continuous, linear(key), linear(key)},
		{"continuous gains, linear check ignored", continuousUnchecked, witness, witness},
		{"stale key with its pattern", stale(true), gains(c0), witness},
		{"stale key with the round's pattern", stale(false), witness, witness},
		{"drift between b and c0", drift(channel.AfterKey), gains(c0), witness},
		{"drift between c0 and c1", drift(channel.WithinCiphertext), gains(c1), witness},
		{"drift between c1 and D", drift(channel.AfterCiphertext), gains(share), witness},
		{"step between b and c0", step(c0, c1, share), gains(c0), witness},
		{"step between c0 and c1", step(c1, share), gains(c1), witness},
		{"step between c1 and D", step(share), gains(share), witness},
		{"step in b", step(key), gains(c0), witness},
		{"step in c0", step(c0), gains(c0), witness},
		{"step in c1", step(c1), gains(c1), witness},
	}
}

// hidePattern makes all patterns look the same.
func hidePattern(_ slot.Slot, rx *phy.Reception) {
	for i := range rx.Pattern {
		rx.Pattern[i] = 1
	}
}

// manyRounds is how many rounds a test that counts runs: all of them with RINGWAVE_LONG
// in the environment, else a tenth.
func manyRounds(t *testing.T, n int) int {
	if os.Getenv("RINGWAVE_LONG") == "" {
		n /= 10
		t.Logf("%d rounds; RINGWAVE_LONG=1 runs ten times as many", n)
	}
	return n
}

// Every fault is found in every round, by the check that is made for it; and
// with the patterns hidden the witnesses alone find it.
func TestFaultsAreFound(t *testing.T) {
	for _, link := range []struct {
		set    string
		form   xmkckks.Form
		rounds int
	}{
		{"lean-2048", xmkckks.Short, 1000},
		{"paper-4096", xmkckks.Whole, 200},
	} {
		for _, f := range faults() {
			for _, mode := range []struct {
				name string
				hide bool
				want Failure
			}{
				{"patterns seen", false, f.seen},
				{"patterns hidden", true, f.hidden},
			} {
				t.Run(link.set+"/"+f.name+"/"+mode.name, func(t *testing.T) {
					t.Parallel()
					s := setup{
						params: params(t, link.set), form: link.form, devices: 3, sigma: 1, f: 8,
						workers: 1, guard: openGuard{}, seed: 10,
					}
					var after []func(slot.Slot, *phy.Reception)
					f.apply(&s, &after)
					if mode.hide {
						after = append(after, hidePattern)
					}
					s.wrap = tapped(after...)
					b := newBench(t, s)
					// Round 0 is there for its b~ to grow stale.
					rounds := manyRounds(t, link.rounds)
					found := 0
					for k := range uint32(rounds + 1) {
						out, err := b.engine.Run(t.Context(), k, b.deltas())
						if err != nil {
							t.Fatal(err)
						}
						if k == 0 {
							continue
						}
						if !out.Skipped {
							t.Errorf("round %d: not found, M = %v", k, out.M)
							continue
						}
						if out.Failures[0] != mode.want {
							t.Errorf("round %d: %v; want %v", k, out.Failures[0], mode.want)
							continue
						}
						found++
					}
					t.Logf("%s: found by the %v at %v in %d of %d rounds", t.Name(), mode.want.Check, mode.want.Transmission, found, rounds)
				})
			}
		}
	}
}

// Other gains in phase 2, the same for c0 and c1, cancel: the witnesses see
// nothing, and M has phase 2's weights in place of phase 1's. Only the pattern
// tells.
func TestOtherGainsInPhase2(t *testing.T) {
	phase2 := []slot.Transmission{slot.TxC0, slot.TxC1}
	step2 := setup{}
	step(phase2...)(&step2, nil)
	for _, change := range []struct {
		name  string
		gains func(phy.Gains) phy.Gains
	}{
		{"another block's gains", func(g phy.Gains) phy.Gains {
			return &altered{g, func(h []float64, round, attempt uint32, t slot.Transmission) {
				if slices.Contains(phase2, t) {
					g.Scaled(h, round+1<<20, attempt, int(t))
				}
			}}
		}},
		{"one step", step2.gains},
	} {
		for _, hide := range []bool{true, false} {
			name := change.name + "/patterns seen"
			if hide {
				name = change.name + "/patterns hidden"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				otherGains(t, change.gains, hide)
			})
		}
	}
}

// otherGains goes through rounds of which phase 2 has the gains that change gives, with
// patterns hidden or not.
func otherGains(t *testing.T, change func(phy.Gains) phy.Gains, hide bool) {
	var gains phy.Gains
	// At alpha = 16 one step of one gain is far above the noise.
	s := setup{
		params: params(t, "lean-2048"), form: xmkckks.Short, devices: 3, sigma: 1, f: 4,
		workers: 1, guard: openGuard{}, seed: 11,
		gains: func(g phy.Gains) phy.Gains { gains = change(g); return gains },
	}
	if hide {
		s.wrap = tapped(hidePattern)
	}
	b := newBench(t, s)
	h1, h2 := make([]float64, 3), make([]float64, 3)
	rounds := manyRounds(t, 1000)
	for k := range uint32(rounds) {
		delta := b.deltas()
		for i := range delta {
			delta[i][0] = math.Copysign(0.25+math.Abs(delta[i][0])/2, delta[i][0])
		}
		out, err := b.engine.Run(t.Context(), k, delta)
		if err != nil {
			t.Fatal(err)
		}
		if !hide {
			if want := (Failure{Check: EqualGains, Transmission: slot.TxC0}); !out.Skipped || out.Failures[0] != want {
				t.Errorf("round %d: %v; want %v", k, out.Failures, want)
			}
			continue
		}
		if out.Skipped {
			t.Fatalf("round %d: %v", k, out.Failures)
		}
		gains.Scaled(h1, k, 0, int(slot.TxKey))
		gains.Scaled(h2, k, 0, int(slot.TxC0))
		// V and the e_i^(0), e_i^(1) have phase 2's gains, S~, E~ and the
		// e_j* phase 1's and 3's: Q is the product of the two sums.
		s1, s2 := xmkckks.SumsOf(h1).S, xmkckks.SumsOf(h2).S
		budget := b.ctx.Budget(xmkckks.GainSums{S: max(s1, s2), Q: s1 * s2}, [slot.Transmissions]float64{})
		bound := 6 * b.ctx.DecodedStd(budget, b.channel.Alpha())
		if off := math.Abs(out.M[0] - b.ideal(h2, delta, 0)); off > bound {
			t.Errorf("round %d: M = %v is %v off phase 2's weighting, six deviations are %v", k, out.M[0], off, bound)
		}
		if off := math.Abs(out.M[0] - b.ideal(h1, delta, 0)); off <= bound {
			t.Errorf("round %d: M = %v is only %v off phase 1's weighting", k, out.M[0], off)
		}
	}
	t.Logf("%s: %d rounds", t.Name(), rounds)
}

// With nothing wrong no round is rejected, and every M is within six deviations
// conditional on the gains.
func TestNoFalseAlarms(t *testing.T) {
	for _, link := range []struct {
		name    string
		devices int
		sigma   float64
		noise   float64
	}{
		{"N=3, sigma=1", 3, 1, 0},
		{"N=10, sigma=10", 10, 10, 0},
		{"N=3, sigma=1, ring noise", 3, 1, 1000},
	} {
		t.Run(link.name, func(t *testing.T) {
			t.Parallel()
			w := link.noise
			b := newBench(t, setup{
				params: params(t, "lean-2048"), form: xmkckks.Short, devices: link.devices, sigma: link.sigma, f: 8,
				noise: [slot.Transmissions]float64{w, w, w, w}, workers: 1, guard: openGuard{}, seed: 12,
			})
			rounds := manyRounds(t, 10_000)
			rejected := 0
			for k := range uint32(rounds) {
				delta := b.deltas()
				out, err := b.engine.Run(t.Context(), k, delta)
				if err != nil {
					t.Fatal(err)
				}
				if out.Skipped {
					rejected++
					t.Errorf("round %d: %v", k, out.Failures)
					continue
				}
				h := b.gains(k)
				if eps, std := out.M[0]-b.ideal(h, delta, 0), b.design.ConditionalStd(b.ctx, h); math.Abs(eps) > 6*std {
					t.Errorf("round %d: eps = %v, six deviations are %v", k, eps, 6*std)
				}
			}
			t.Logf("%s: %d of %d rounds rejected", t.Name(), rejected, rounds)
		})
	}
}
