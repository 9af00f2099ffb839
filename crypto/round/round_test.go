package round

import (
	"math"
	"slices"
	"testing"

	"ringwave/crypto/xmkckks"
)

// Every parameter set, both forms: M is the weighted sum within six deviations
// conditional on the gains, in every round.
func TestRecovery(t *testing.T) {
	for _, p := range xmkckks.Sets() {
		for _, form := range []xmkckks.Form{xmkckks.Whole, xmkckks.Short} {
			t.Run(p.Name+"/"+form.String(), func(t *testing.T) {
				f := 8
				if p.N == 1024 {
					f = 2
				}
				b := newBench(t, setup{params: p, form: form, devices: 3, sigma: 1, f: f, seed: 1})
				for k := range uint32(20) {
					delta := b.deltas()
					out, err := b.engine.Run(k, delta)
					if err != nil {
						t.Fatal(err)
					}
					if out.Skipped {
						t.Fatalf("round %d: %v", k, out.Failures)
					}
					h := b.gains(k)
					eps, std := out.M-b.ideal(h, delta), b.design.ConditionalStd(b.ctx, h)
					if math.Abs(eps) > 6*std+math.Abs(out.M)*0x1p-50 {
						t.Errorf("round %d: eps = %v, six deviations are %v", k, eps, 6*std)
					}
				}
			})
		}
	}
}

// What devices train on is not left in the engine.
func TestCloseForgetsScalars(t *testing.T) {
	set, _ := xmkckks.Lookup("demo-1024")
	b := newBench(t, setup{params: set, form: xmkckks.Short, devices: 3, f: 2, seed: 1})
	e, err := New(Config{Context: b.ctx, Devices: b.devices, Server: b.server, Uplink: b.engine.cfg.Uplink, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(0, b.deltas()); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(e.delta, func(x []float64) bool { return x[0] == 0 }) {
		t.Fatal("the engine keeps its scalars elsewhere")
	}
	e.Close()
	if slices.ContainsFunc(e.delta, func(x []float64) bool { return x[0] != 0 }) || e.one[0] != nil {
		t.Errorf("after Close the engine holds %v, %v", e.delta, e.one)
	}
}
