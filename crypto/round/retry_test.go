package round

import (
	"math"
	"slices"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/zq"
)

// attempts keeps what the server received of one round, by attempt.
type attempts struct {
	round uint32
	rx    []map[phy.Transmission]zq.Vector
}

func (a *attempts) record(slot phy.Slot, rx *phy.Reception) {
	if slot.Round != a.round {
		a.round, a.rx = slot.Round, nil
	}
	for len(a.rx) <= int(slot.Attempt) {
		a.rx = append(a.rx, map[phy.Transmission]zq.Vector{})
	}
	var y zq.Vector
	for _, residues := range rx.Y {
		y = append(y, slices.Clone(residues))
	}
	a.rx[slot.Attempt][slot.Transmission] = y
}

// maxDifference gives the largest |x - y|, coefficients centred, over q.
func maxDifference(m *zq.Modulus, x, y zq.Vector) float64 {
	d := m.NewVector(x.Len())
	d.Copy(x)
	m.AddScaled(d, -1, y)
	largest := 0.0
	for k := range d.Len() {
		largest = max(largest, math.Abs(m.Centred(d, k).Float64()))
	}
	return largest / math.Exp2(m.Log2())
}

// drifts tells whether an attempt's gains change on the way: what the channel
// does, and no check.
func (b *bench) drifts(k, attempt uint32) bool {
	first, last := make([]float64, len(b.devices)), make([]float64, len(b.devices))
	b.channel.Scaled(first, k, attempt, int(phy.TxKey))
	b.channel.Scaled(last, k, attempt, int(phy.TxShare))
	return !slices.Equal(first, last)
}

// checkOutcome compares an outcome with the drift: the round ends at the first
// attempt without one, every attempt before it is a recorded failure of the
// given kind, and M has the weights h of that attempt.
func (b *bench) checkOutcome(t *testing.T, k uint32, limit int, out Outcome, delta []float64, failed Failure) {
	t.Helper()
	want := 0
	for want < limit && b.drifts(k, uint32(want)) {
		want++
	}
	if len(out.Failures) != want {
		t.Fatalf("round %d: %d failures, want %d: %v", k, len(out.Failures), want, out.Failures)
	}
	for a, f := range out.Failures {
		failed.Attempt = uint32(a)
		if f != failed {
			t.Errorf("round %d: %v, want %v", k, f, failed)
		}
	}
	if want == limit {
		if !out.Skipped || out.Attempts != limit || out.M != 0 {
			t.Errorf("round %d: skipped %v, %d attempts, M = %v; want a skipped round without M", k, out.Skipped, out.Attempts, out.M)
		}
		return
	}
	if out.Skipped || out.Attempts != want+1 || out.Attempt != uint32(want) || out.Alpha != b.channel.Alpha() {
		t.Errorf("round %d: %+v, want success at attempt %d", k, out, want)
	}
	h := make([]float64, len(b.devices))
	b.channel.Scaled(h, k, out.Attempt, 0)
	if eps, std := out.M-b.ideal(h, delta), b.design.ConditionalStd(b.ctx, h); math.Abs(eps) > 6*std {
		t.Errorf("round %d: eps = %v, six deviations are %v", k, eps, 6*std)
	}
}

// A round that fails is repeated from fresh randomness, in the same fading block
// or, with FreshOnRetry, in another; and the result is right.
func TestRetry(t *testing.T) {
	const limit = 8
	for _, tc := range []struct {
		name  string
		fresh bool
	}{{"the same gains", false}, {"other gains", true}} {
		t.Run(tc.name, func(t *testing.T) {
			seen := &attempts{}
			b := newBench(t, setup{
				params: params(t, "lean-2048"), form: xmkckks.Short, devices: 3, sigma: 1, f: 8,
				attempts: limit, wrap: tapped(seen.record), seed: 20,
				channel: func(c *channel.Config) {
					c.DriftAt, c.DriftStd, c.DriftProbability = channel.AfterCiphertext, 0.5, 0.5
					c.FreshOnRetry = tc.fresh
				},
			})
			m := b.ctx.Modulus()
			total, skipped := 0, 0
			const rounds = 300
			for k := range uint32(rounds) {
				delta := b.deltas()
				out, err := b.engine.Run(k, delta)
				if err != nil {
					t.Fatal(err)
				}
				b.checkOutcome(t, k, limit, out, delta, Failure{Check: EqualGains, Transmission: phy.TxShare})
				total += out.Attempts
				if out.Skipped {
					skipped++
				}
				if len(seen.rx) != out.Attempts {
					t.Fatalf("round %d: %d attempts on the air, %d in the outcome", k, len(seen.rx), out.Attempts)
				}
				for a := 1; a < len(seen.rx); a++ {
					before, now := seen.rx[a-1], seen.rx[a]
					// Each b_i stays, so that b~ tells whether the gains did.
					if same := before[phy.TxKey].Equal(now[phy.TxKey]); same == tc.fresh {
						t.Errorf("round %d: b~ of attempts %d and %d equal: %v", k, a-1, a, same)
					}
					if tc.fresh {
						continue
					}
					// With the same v, only the errors would differ; another v
					// leaves a difference uniform modulo q.
					for _, tx := range []phy.Transmission{phy.TxC0, phy.TxC1} {
						if d := maxDifference(m, before[tx], now[tx]); d < 1.0/1024 {
							t.Errorf("round %d: %v of attempts %d and %d differ by q times %v at most: the same v", k, tx, a-1, a, d)
						}
					}
				}
			}
			if total < rounds*3/2 {
				t.Errorf("%d attempts at %d rounds: hardly a retry", total, rounds)
			}
			t.Logf("%d attempts at %d rounds, %d skipped", total, rounds, skipped)
		})
	}
}

// A round that never succeeds is skipped after the last attempt.
func TestSkippedRound(t *testing.T) {
	const limit = 8
	b := newBench(t, setup{
		params: params(t, "lean-2048"), form: xmkckks.Short, devices: 3, sigma: 1, f: 8,
		attempts: limit, seed: 21,
		channel: func(c *channel.Config) {
			c.DriftAt, c.DriftStd, c.DriftProbability = channel.WithinCiphertext, 0.5, 1
		},
	})
	for k := range uint32(50) {
		delta := b.deltas()
		out, err := b.engine.Run(k, delta)
		if err != nil {
			t.Fatal(err)
		}
		if !out.Skipped {
			t.Errorf("round %d: M = %v", k, out.M)
		}
		b.checkOutcome(t, k, limit, out, delta, Failure{Check: EqualGains, Transmission: phy.TxC1})
	}
}

// No device gives a decryption share in an attempt of which b, c0 or c1 failed a
// check; in an attempt that gets as far as phase 3, each gives one.
func TestNoShareAfterAFailedCheck(t *testing.T) {
	const devices, limit, rounds = 3, 8, 100
	// spoil makes the linear check of one transmission fail, in two attempts of
	// three.
	spoil := func(at phy.Transmission) func(*setup) {
		return func(s *setup) {
			s.wrap = tapped(func(slot phy.Slot, rx *phy.Reception) {
				if slot.Transmission == at && (slot.Round+slot.Attempt)%3 != 0 {
					rx.CheckPassed = false
				}
			})
		}
	}
	drift := func(at channel.Boundary) func(*setup) {
		return func(s *setup) {
			s.channel = func(c *channel.Config) { c.DriftAt, c.DriftStd, c.DriftProbability = at, 0.5, 0.5 }
		}
	}
	for _, tc := range []struct {
		name   string
		apply  func(*setup)
		want   Failure
		shares int // in a failed attempt
	}{
		{"b damaged", spoil(phy.TxKey), Failure{Check: LinearCheck, Transmission: phy.TxKey}, 0},
		{"c0 damaged", spoil(phy.TxC0), Failure{Check: LinearCheck, Transmission: phy.TxC0}, 0},
		{"c1 damaged", spoil(phy.TxC1), Failure{Check: LinearCheck, Transmission: phy.TxC1}, 0},
		{"drift between b and c0", drift(channel.AfterKey), Failure{Check: EqualGains, Transmission: phy.TxC0}, 0},
		{"drift between c0 and c1", drift(channel.WithinCiphertext), Failure{Check: EqualGains, Transmission: phy.TxC1}, 0},
		{"drift between c1 and D", drift(channel.AfterCiphertext), Failure{Check: EqualGains, Transmission: phy.TxShare}, devices},
		{"D damaged", spoil(phy.TxShare), Failure{Check: LinearCheck, Transmission: phy.TxShare}, devices},
	} {
		t.Run(tc.name, func(t *testing.T) {
			guard := newTally()
			s := setup{
				params: params(t, "lean-2048"), form: xmkckks.Short, devices: devices, sigma: 1, f: 8,
				attempts: limit, guard: guard, seed: 22,
			}
			tc.apply(&s)
			b := newBench(t, s)
			failures, answered := 0, 0
			for k := range uint32(rounds) {
				out, err := b.engine.Run(k, b.deltas())
				if err != nil {
					t.Fatal(err)
				}
				for a := range uint32(out.Attempts) {
					got, want := guard.shares[[2]uint32{k, a}], devices
					if int(a) < len(out.Failures) {
						failures++
						want = tc.shares
						tc.want.Attempt = a
						if out.Failures[a] != tc.want {
							t.Errorf("round %d: %v, want %v", k, out.Failures[a], tc.want)
						}
					}
					answered += want
					if got != want {
						t.Errorf("round %d, attempt %d: %d shares given, want %d", k, a, got, want)
					}
				}
			}
			all := 0
			for _, n := range guard.shares {
				all += n
			}
			if all != answered {
				t.Errorf("%d shares given in all, want %d", all, answered)
			}
			if failures < rounds/2 {
				t.Errorf("only %d failed attempts", failures)
			}
			t.Logf("%d failed attempts, %d shares in each", failures, tc.shares)
		})
	}
}
