package round

import (
	"math"
	"testing"

	"ringwave/crypto/xmkckks"
)

// Every parameter set, both forms: M is the weighted sum within six deviations
// conditional on the gains, in every round. With -short, as under the race detector, the
// sets of several primes are one: the engine's goroutines are the same.
func TestRecovery(t *testing.T) {
	for _, p := range xmkckks.Sets() {
		if testing.Short() && p.N > 2048 && p.Name != "ringwave-4096-100" {
			continue
		}
		for _, form := range []xmkckks.Form{xmkckks.Whole, xmkckks.Short} {
			t.Run(p.Name+"/"+form.String(), func(t *testing.T) {
				f := 8
				if p.N == 1024 {
					f = 2
				}
				b := newBench(t, setup{params: p, form: form, devices: 3, sigma: 1, f: f, seed: 1})
				for k := range uint32(20) {
					delta := b.deltas()
					out, err := b.engine.Run(t.Context(), k, delta)
					if err != nil {
						t.Fatal(err)
					}
					if out.Skipped {
						t.Fatalf("round %d: %v", k, out.Failures)
					}
					h := b.gains(k)
					eps, std := out.M[0]-b.ideal(h, delta, 0), b.design.ConditionalStd(b.ctx, h)
					if math.Abs(eps) > 6*std+math.Abs(out.M[0])*0x1p-50 {
						t.Errorf("round %d: eps = %v, six deviations are %v", k, eps, 6*std)
					}
				}
			})
		}
	}
}

// What devices train on is not left in the engine, which has no copy of its own.
func TestEngineForgetsScalars(t *testing.T) {
	set, _ := xmkckks.Lookup("demo-1024")
	b := newBench(t, setup{params: set, form: xmkckks.Short, devices: 3, f: 2, seed: 1})
	for k, delta := range [][][]float64{b.deltas(), {{1}}} { // one is refused
		_, err := b.engine.Run(t.Context(), uint32(k), delta)
		if (err != nil) != (k == 1) || b.engine.delta != nil {
			t.Errorf("after round %d (%v) the engine holds %v", k, err, b.engine.delta)
		}
	}
}
