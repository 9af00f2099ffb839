package round

import (
	"math"
	"strings"
	"testing"

	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// Measure goes through all transmissions once and decodes, whatever fails, and names
// the check by which Refuse, on the same seeds, declares the attempt void and sends no
// more.
func TestMeasure(t *testing.T) {
	set := params(t, "lean-2048")
	for name, x := range map[string]struct {
		damage func(s slot.Slot, rx *phy.Reception)
		want   Failure
		sent   int // transmissions under Refuse
		wrong  bool
	}{
		"nothing": {func(slot.Slot, *phy.Reception) {}, Failure{}, 4, false},
		"c0": {func(s slot.Slot, rx *phy.Reception) {
			if s.Transmission == slot.TxC0 {
				rx.CheckPassed, rx.Reason = false, "noise"
			}
		}, Failure{Check: LinearCheck, Transmission: slot.TxC0, Reason: "noise"}, 2, false},
		"c1 and D": {func(s slot.Slot, rx *phy.Reception) {
			if s.Transmission >= slot.TxC1 {
				rx.Pattern[0] += 2
			}
		}, Failure{Check: EqualGains, Transmission: slot.TxC1}, 3, false},
		"silence": {func(_ slot.Slot, rx *phy.Reception) { clear(rx.Pattern) }, Failure{Check: NoSignal}, 1, false},
		"witnesses": {func(s slot.Slot, rx *phy.Reception) {
			if s.Transmission == slot.TxShare {
				halve(rx.Y)
			}
		}, Failure{Check: Witness, Transmission: slot.TxShare}, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			var sent [2]int
			var got [2]Outcome
			for policy := range sent {
				b := newBench(t, setup{params: set, devices: 3, sigma: 0.3, f: 8, seed: 50, policy: Policy(policy),
					wrap: tapped(x.damage, func(slot.Slot, *phy.Reception) { sent[policy]++ })})
				delta := b.deltas()
				var err error
				if got[policy], err = b.engine.Run(t.Context(), 1, delta); err != nil {
					t.Fatal(err)
				}
				if Policy(policy) == Refuse {
					continue
				}
				b.checkMeasured(t, got[policy], delta, x.wrong)
			}
			for policy, out := range got {
				var f Failure
				if len(out.Failures) > 0 {
					f = out.Failures[0]
				}
				if f != x.want || len(out.Failures) > 1 {
					t.Errorf("policy %d: %v, not %v", policy, out.Failures, x.want)
				}
			}
			if sent != [2]int{x.sent, 4} {
				t.Errorf("%d transmissions where refused, %d where measured", sent[Refuse], sent[Measure])
			}
			if refused := x.want.Check != 0; got[Refuse].Skipped != refused {
				t.Errorf("refused: %+v", got[Refuse])
			}
		})
	}
}

func halve(v zq.Vector) {
	for _, y := range v {
		for k := range y {
			y[k] /= 2
		}
	}
}

// checkMeasured reports an error unless M of round 1 is what was received, and far from
// the ideal exactly if it is to be wrong.
func (b *bench) checkMeasured(t *testing.T, out Outcome, delta [][]float64, wrong bool) {
	t.Helper()
	if out.Skipped || len(out.M) != 1 || out.Attempts != 1 {
		t.Fatalf("measured: %+v", out)
	}
	c0, share := b.engine.Received(slot.TxC0), b.engine.Received(slot.TxShare)
	decoded := make([]float64, 1)
	b.server.Coefficients(decoded, c0.Y, share.Y)
	if want := decoded[0] / (out.Alpha * b.ctx.Params.Lambda()); out.M[0] != want {
		t.Errorf("M is %v, not the %v that was received", out.M[0], want)
	}
	if err := math.Abs(out.M[0] - b.ideal(b.gains(1), delta, 0)); (err > 1e-3) != wrong {
		t.Errorf("M is off by %v", err)
	}
}

// Keys are aggregated once where they are used again, and nobody refuses what follows.
func TestKeyRound(t *testing.T) {
	var keys []uint32
	b := newBench(t, setup{params: params(t, "lean-2048"), devices: 2, sigma: 0, f: 8, seed: 51, policy: Measure, keyRound: 7,
		wrap: tapped(func(s slot.Slot, _ *phy.Reception) {
			if s.Transmission == slot.TxKey {
				keys = append(keys, s.Round)
			}
		})})
	for k := range uint32(3) {
		if out, err := b.engine.Run(t.Context(), k+1, b.deltas()); err != nil || len(out.Failures) > 0 {
			t.Errorf("round %d: %+v, %v", k+1, out, err)
		}
	}
	if len(keys) != 1 || keys[0] != 7 {
		t.Errorf("keys were aggregated in rounds %d, not once in 7", keys)
	}
	cfg := b.engine.cfg
	cfg.Policy = Refuse
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "the keys of round 7") {
		t.Errorf("keys used again, and what they break refused: %v", err)
	}
}
