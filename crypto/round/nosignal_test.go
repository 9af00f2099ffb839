package round

import (
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/phy/slot"
)

// A coarse lattice rounds all gains to 0 now and then, here in 6 rounds of 100.
// Such a round carries nothing: b~, c~0 and c~1 are 0. It is a failed round, and
// not a share for the same c~1 = 0 as the last time, which a guard refuses.
func TestNoSignal(t *testing.T) {
	const rounds = 200
	ledger := xmkckks.NewLedger(rounds)
	b := newBench(t, setup{
		params: params(t, "demo-1024"), form: xmkckks.Short, devices: 2, sigma: 1, f: 0,
		attempts: 2, guard: ledger, seed: 8,
	})
	silent := 0
	for k := range uint32(rounds) {
		out, err := b.engine.Run(t.Context(), k, b.deltas())
		if err != nil {
			t.Fatal(err)
		}
		h := b.gains(k)
		if h[0] != 0 || h[1] != 0 {
			if out.Skipped || out.Attempts != 1 {
				t.Errorf("round %d: gains %v: %v", k, h, out.Failures)
			}
			continue
		}
		silent++
		if !out.Skipped || out.Attempts != 2 {
			t.Errorf("round %d: a round without a signal gave M = %v at attempt %d", k, out.M, out.Attempt)
		}
		for a, f := range out.Failures {
			if want := (Failure{Attempt: uint32(a), Check: NoSignal, Transmission: slot.TxKey}); f != want {
				t.Errorf("round %d: %v, want %v", k, f, want)
			}
		}
	}
	if silent < 2 {
		t.Fatalf("%d rounds without a signal: the test needs 2", silent)
	}
	if got := ledger.Answered(0); got != rounds-silent {
		t.Errorf("device 1 answered %d attempts, want %d", got, rounds-silent)
	}
	t.Logf("%d of %d rounds without a signal", silent, rounds)
}
