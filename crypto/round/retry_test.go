package round

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// attempts keeps what the server received of one round, by attempt.
type attempts struct {
	round uint32
	rx    []map[slot.Transmission]zq.Vector
}

func (a *attempts) record(s slot.Slot, rx *phy.Reception) {
	if s.Round != a.round {
		a.round, a.rx = s.Round, nil
	}
	for len(a.rx) <= int(s.Attempt) {
		a.rx = append(a.rx, map[slot.Transmission]zq.Vector{})
	}
	var y zq.Vector
	for _, residues := range rx.Y {
		y = append(y, slices.Clone(residues))
	}
	a.rx[s.Attempt][s.Transmission] = y
}

// maxDifference returns the largest |x - y|, coefficients centred, over q.
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

// drifts reports whether an attempt's gains change on the way: what the channel
// does, and no check.
func (b *bench) drifts(k, attempt uint32) bool {
	first, last := make([]float64, len(b.devices)), make([]float64, len(b.devices))
	b.channel.Scaled(first, k, attempt, int(slot.TxKey))
	b.channel.Scaled(last, k, attempt, int(slot.TxShare))
	return !slices.Equal(first, last)
}

// checkOutcome compares an outcome with the drift: the round ends at the first
// attempt without one, every attempt before it is a recorded failure of the
// given kind, and M has the weights h of that attempt.
func (b *bench) checkOutcome(t *testing.T, k uint32, limit int, out Outcome, delta [][]float64, failed Failure) {
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
		if !out.Skipped || out.Attempts != limit || out.M != nil {
			t.Errorf("round %d: skipped %v, %d attempts, M = %v; want a skipped round without M", k, out.Skipped, out.Attempts, out.M)
		}
		return
	}
	if out.Skipped || out.Attempts != want+1 || out.Attempt != uint32(want) || out.Alpha != b.channel.Alpha() {
		t.Errorf("round %d: %+v, want success at attempt %d", k, out, want)
	}
	h := make([]float64, len(b.devices))
	b.channel.Scaled(h, k, out.Attempt, 0)
	if eps, std := out.M[0]-b.ideal(h, delta, 0), b.design.ConditionalStd(b.ctx, h); math.Abs(eps) > 6*std {
		t.Errorf("round %d: eps = %v, six deviations are %v", k, eps, 6*std)
	}
}

// A round that fails before any share is repeated from fresh randomness, in the same
// fading block or, with FreshOnRetry, in another; and the result is right.
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
					c.DriftAt, c.DriftStd, c.DriftProbability = channel.WithinCiphertext, 0.5, 0.5
					c.FreshOnRetry = tc.fresh
				},
			})
			m := b.ctx.Modulus()
			total, skipped := 0, 0
			const rounds = 300
			for k := range uint32(rounds) {
				delta := b.deltas()
				out, err := b.engine.Run(t.Context(), k, delta)
				if err != nil {
					t.Fatal(err)
				}
				b.checkOutcome(t, k, limit, out, delta, Failure{Check: EqualGains, Transmission: slot.TxC1})
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
					if same := before[slot.TxKey].Equal(now[slot.TxKey]); same == tc.fresh {
						t.Errorf("round %d: b~ of attempts %d and %d equal: %v", k, a-1, a, same)
					}
					if tc.fresh {
						continue
					}
					// With the same v, only the errors would differ; another v
					// leaves a difference uniform modulo q.
					for _, tx := range []slot.Transmission{slot.TxC0, slot.TxC1} {
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
		out, err := b.engine.Run(t.Context(), k, delta)
		if err != nil {
			t.Fatal(err)
		}
		if !out.Skipped {
			t.Errorf("round %d: M = %v", k, out.M)
		}
		b.checkOutcome(t, k, limit, out, delta, Failure{Check: EqualGains, Transmission: slot.TxC1})
	}
}

// No device gives a decryption share in an attempt of which b, c0 or c1 failed a
// check. In the attempt that gets as far as phase 3 each gives one, and that is the
// last attempt: what fails then is sent again.
func TestNoShareAfterAFailedCheck(t *testing.T) {
	// spoil makes the linear check of one transmission fail, two times of three.
	spoil := func(at slot.Transmission) func(*setup) {
		return func(s *setup) {
			s.wrap = tapped(func(tx slot.Slot, rx *phy.Reception) {
				if tx.Transmission == at && (tx.Round+tx.Attempt+uint32(tx.Again))%3 != 0 {
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
		name  string
		apply func(*setup)
		want  Failure
	}{
		{"b damaged", spoil(slot.TxKey), Failure{Check: LinearCheck, Transmission: slot.TxKey}},
		{"c0 damaged", spoil(slot.TxC0), Failure{Check: LinearCheck, Transmission: slot.TxC0}},
		{"c1 damaged", spoil(slot.TxC1), Failure{Check: LinearCheck, Transmission: slot.TxC1}},
		{"drift between b and c0", drift(channel.AfterKey), Failure{Check: EqualGains, Transmission: slot.TxC0}},
		{"drift between c0 and c1", drift(channel.WithinCiphertext), Failure{Check: EqualGains, Transmission: slot.TxC1}},
		{"drift between c1 and D", drift(channel.AfterCiphertext), Failure{Check: EqualGains, Transmission: slot.TxShare}},
		{"D damaged", spoil(slot.TxShare), Failure{Check: LinearCheck, Transmission: slot.TxShare}},
	} {
		t.Run(tc.name, func(t *testing.T) { noShareAfter(t, tc.apply, tc.want) })
	}
}

// noShareAfter goes through rounds in which what apply does to the setup makes the wanted
// check fail.
func noShareAfter(t *testing.T, apply func(*setup), wanted Failure) {
	const devices, limit, rounds = 3, 8, 100
	guard := newTally()
	s := setup{
		params: params(t, "lean-2048"), form: xmkckks.Short, devices: devices, sigma: 1, f: 8,
		attempts: limit, guard: guard, seed: 22,
	}
	apply(&s)
	b := newBench(t, s)
	failures, all := 0, 0
	for k := range uint32(rounds) {
		out, err := b.engine.Run(t.Context(), k, b.deltas())
		if err != nil {
			t.Fatal(err)
		}
		last := uint32(out.Attempts - 1) // attempt in which shares are given
		if wanted.Transmission == slot.TxShare {
			last = 0
		}
		for n, f := range out.Failures {
			failures++
			want := wanted
			if want.Attempt = uint32(n); last == 0 {
				want.Attempt, want.Again = 0, uint8(n)
			}
			if f != want {
				t.Errorf("round %d: %v, want %v", k, f, want)
			}
		}
		given := devices
		if out.Skipped && wanted.Transmission != slot.TxShare {
			given = 0
		}
		all += given
		if got := guard.shares[[2]uint32{k, last}]; got != given {
			t.Errorf("round %d, attempt %d: %d shares given, want %d", k, last, got, given)
		}
	}
	for _, n := range guard.shares {
		all -= n
	}
	if all != 0 {
		t.Errorf("%d shares were given too many or too few", -all)
	}
	if failures < rounds/2 {
		t.Errorf("only %d failed attempts", failures)
	}
	t.Logf("%d failures", failures)
}

// sent is an uplink that keeps what every device sends, and lets a test spoil what
// the server receives.
type sent struct {
	phy.Uplink
	slots   []slot.Slot
	payload [][]zq.Vector // of each slot, each device
	spoil   func(s slot.Slot, rx *phy.Reception)
}

func (l *sent) Open(ctx context.Context, s slot.Slot, n int) error {
	l.slots, l.payload = append(l.slots, s), append(l.payload, nil)
	return l.Uplink.Open(ctx, s, n)
}

func (l *sent) Transmit(i int, x zq.Vector) error {
	var y zq.Vector
	for _, residues := range x {
		y = append(y, slices.Clone(residues))
	}
	last := len(l.payload) - 1
	l.payload[last] = append(l.payload[last], y)
	return l.Uplink.Transmit(i, x)
}

func (l *sent) Receive(ctx context.Context, rx *phy.Reception) error {
	if err := l.Uplink.Receive(ctx, rx); err != nil {
		return err
	}
	l.spoil(l.slots[len(l.slots)-1], rx)
	return nil
}

// onShare voids D as long as it was sent again less than so many times.
func onShare(times uint8, void func(rx *phy.Reception)) func(slot.Slot, *phy.Reception) {
	return func(s slot.Slot, rx *phy.Reception) {
		if s.Transmission == slot.TxShare && s.Again < times {
			void(rx)
		}
	}
}

// resent is what becomes of a round whose link is spoilt.
type resent struct {
	spoil    func(s slot.Slot, rx *phy.Reception)
	attempts int  // in all
	attempt  int  // in which the shares are given
	again    int  // times that D is sent again
	skipped  bool // in the end
}

// A share that was not received is sent again bit for bit: nothing is encrypted
// anew, no device is asked again, and M is that of the attempt.
func TestShareIsSentAgain(t *testing.T) {
	const devices, limit = 3, 6
	void := func(rx *phy.Reception) { rx.CheckPassed = false }
	for name, x := range map[string]resent{
		"received":            {func(slot.Slot, *phy.Reception) {}, 1, 0, 0, false},
		"linear check, twice": {onShare(2, void), 3, 0, 2, false},
		"other gains, once":   {onShare(1, func(rx *phy.Reception) { rx.Pattern[0]++ }), 2, 0, 1, false},
		"another scale, once": {onShare(1, func(rx *phy.Reception) { rx.Alpha *= 1.01 }), 2, 0, 1, false},
		"after two void attempts": {func(s slot.Slot, rx *phy.Reception) {
			if s.Attempt < 2 && s.Transmission == slot.TxC1 {
				void(rx)
			}
			onShare(3, void)(s, rx)
		}, 6, 2, 3, false},
		"never": {func(s slot.Slot, rx *phy.Reception) {
			if s.Attempt < 1 || s.Transmission == slot.TxShare {
				void(rx)
			}
		}, limit, 1, 4, true},
		"witness": {onShare(1, func(rx *phy.Reception) {
			for _, residues := range rx.Y {
				residues[rx.Y.Len()-1] ^= 1 << 40
			}
		}), 1, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			link, guard := &sent{spoil: x.spoil}, newTally()
			b := newBench(t, setup{
				params: params(t, "lean-2048"), form: xmkckks.Short, devices: devices, sigma: 1, f: 8, workers: 1,
				attempts: limit, guard: guard, seed: 23, wrap: func(u phy.Uplink) phy.Uplink { link.Uplink = u; return link },
			})
			for k := range uint32(3) {
				link.slots, link.payload = nil, nil
				delta := b.deltas()
				out, err := b.engine.Run(t.Context(), k, delta)
				if err != nil {
					t.Fatal(err)
				}
				if out.Attempts != x.attempts || out.Skipped != x.skipped {
					t.Errorf("%d attempts, skipped %v: %v", out.Attempts, out.Skipped, out.Failures)
				}
				link.check(t, k, x)
				if got := guard.shares[[2]uint32{k, uint32(x.attempt)}]; got != devices || len(guard.shares) != int(k)+1 {
					t.Errorf("%d shares in attempt %d, and %v", got, x.attempt, guard.shares)
				}
				if x.skipped {
					continue
				}
				h := make([]float64, devices)
				b.channel.Scaled(h, k, out.Attempt, 0)
				if eps, std := out.M[0]-b.ideal(h, delta, 0), b.design.ConditionalStd(b.ctx, h); int(out.Attempt) != x.attempt || math.Abs(eps) > 6*std {
					t.Errorf("round %d: attempt %d, eps = %v, six deviations are %v", k, out.Attempt, eps, 6*std)
				}
			}
		})
	}
}

// check reports an error unless D was sent last in round k, and again as want says,
// always the same.
func (l *sent) check(t *testing.T, k uint32, want resent) {
	t.Helper()
	share := slot.Slot{Round: k, Attempt: uint32(want.attempt), Transmission: slot.TxShare}
	first := slices.Index(l.slots, share)
	if first < 0 || len(l.slots) != first+1+want.again {
		t.Fatalf("sent were %v, want D last and %d times again", l.slots, want.again)
	}
	for n, s := range l.slots[first:] {
		if share.Again = uint8(n); s != share {
			t.Errorf("the share is sent again as %+v", s)
		}
		for i, y := range l.payload[first+n] {
			if !y.Equal(l.payload[first][i]) {
				t.Errorf("device %d sends another share the time %d", i+1, n+1)
			}
		}
	}
}

// Another scale is other gains, even where the pattern is the same.
func TestOtherScale(t *testing.T) {
	for _, at := range []slot.Transmission{slot.TxC0, slot.TxC1, slot.TxShare} {
		b := newBench(t, setup{
			params: params(t, "lean-2048"), form: xmkckks.Short, devices: 2, sigma: 1, f: 8, seed: 24,
			wrap: tapped(func(s slot.Slot, rx *phy.Reception) {
				if s.Transmission == at {
					rx.Alpha = math.Nextafter(rx.Alpha, 0)
				}
			}),
		})
		out, err := b.engine.Run(t.Context(), 1, b.deltas())
		if err != nil {
			t.Fatal(err)
		}
		if want := (Failure{Check: EqualGains, Transmission: at}); !out.Skipped || out.Failures[0] != want {
			t.Errorf("another scale at %v: %+v", at, out)
		}
	}
}

// D is sent again as often as a slot can count, and no more.
func TestSentAgainAtMost(t *testing.T) {
	b := newBench(t, setup{
		params: params(t, "lean-2048"), form: xmkckks.Short, devices: 1, f: 8, attempts: 1000, seed: 25,
		wrap: tapped(func(s slot.Slot, rx *phy.Reception) { rx.CheckPassed = s.Transmission != slot.TxShare }),
	})
	out, err := b.engine.Run(t.Context(), 1, b.deltas())
	if err != nil || !out.Skipped || out.Attempts != slot.MaxAgain+1 || out.Failures[slot.MaxAgain].Again != slot.MaxAgain {
		t.Errorf("%d attempts, %v", out.Attempts, err)
	}
}

// A round ends with its context between two transmissions: no share is given then. Its
// randomness is spent, so that it cannot be run again; the next round can.
func TestRunEndsWithItsContext(t *testing.T) {
	guard := newTally()
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, setup{
		params: params(t, "lean-2048"), form: xmkckks.Short, devices: 3, sigma: 1, f: 2, guard: guard, seed: 50,
		wrap: tapped(func(s slot.Slot, _ *phy.Reception) {
			if s.Transmission == slot.TxC1 {
				cancel()
			}
		}),
	})
	delta := b.deltas()
	if _, err := b.engine.Run(ctx, 1, delta); !errors.Is(err, context.Canceled) || len(guard.shares) != 0 || b.engine.delta != nil {
		t.Errorf("%v, %d shares given", err, len(guard.shares))
	}
	if out, err := b.engine.Run(t.Context(), 2, delta); err != nil || out.Skipped || out.Attempt != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}
