package round

import (
	"reflect"
	"slices"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/slot"
)

// An attempt that is not admitted ends after b: nothing else is sent and no device
// answers. The next one is as it would have been. Without a hook nothing is asked.
func TestAdmit(t *testing.T) {
	const rounds = 6
	var sent []slot.Slot
	ledger := xmkckks.NewLedger(3 * rounds)
	same := setup{params: params(t, "demo-1024"), form: xmkckks.Short, devices: 3, sigma: 1, f: 2, attempts: 3, seed: 5}
	hooked := same
	hooked.guard = ledger
	hooked.wrap = tapped(func(s slot.Slot, _ *phy.Reception) { sent = append(sent, s) })
	plain, b := newBench(t, same), newBench(t, hooked)
	var asked []slot.Slot
	b.engine.cfg.Admit = func(s slot.Slot, rx *phy.Reception) string {
		asked = append(asked, s)
		if len(rx.Pattern) == 0 || !rx.CheckPassed {
			t.Errorf("asked about %+v, which the checks had not passed", s)
		}
		if s.Attempt < s.Round%4 {
			return "for a reason"
		}
		return ""
	}
	answered := 0
	for k := range uint32(rounds) {
		sent, asked = nil, nil
		out, err := b.engine.Run(t.Context(), k, b.deltas())
		if err != nil {
			t.Fatal(err)
		}
		refused := int(k % 4)
		want := []Failure(nil)
		for a := range uint32(refused) {
			want = append(want, Failure{Attempt: a, Check: GainsCheck, Transmission: slot.TxKey, Reason: "for a reason"})
		}
		if !reflect.DeepEqual(out.Failures, want) {
			t.Errorf("round %d: failures %v, want %v", k, out.Failures, want)
		}
		attempts, transmissions := refused+1, refused+slot.Transmissions
		if refused == 3 {
			attempts, transmissions = 3, 3
		} else {
			answered++
		}
		if out.Skipped != (refused == 3) || len(asked) != attempts || len(sent) != transmissions {
			t.Errorf("round %d: skipped %v, asked %d times, %d transmissions: want %d and %d", k, out.Skipped, len(asked), len(sent), attempts, transmissions)
		}
		if slices.ContainsFunc(asked, func(s slot.Slot) bool { return s.Round != k || s.Transmission != slot.TxKey }) {
			t.Errorf("round %d: asked about %+v", k, asked)
		}
		reference, err := plain.engine.Run(t.Context(), k, plain.deltas())
		if err != nil {
			t.Fatal(err)
		}
		if refused == 0 && (!slices.Equal(out.M, reference.M) || len(reference.Failures) != 0) {
			t.Errorf("round %d: M = %v, without a hook %v", k, out.M, reference.M)
		}
	}
	if got := ledger.Answered(0); got != answered {
		t.Errorf("device 1 answered %d attempts, want %d", got, answered)
	}
}

func TestGainsCheckIsNamed(t *testing.T) {
	if got := GainsCheck.String(); got != "gains check" {
		t.Errorf("the check is called %q", got)
	}
}
