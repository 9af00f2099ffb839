package round

import (
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/phy/slot"
)

// A round that succeeds allocates nothing. AllocsPerRun rounds its average down,
// so one of its runs is many rounds, and not one allocation in all of them is
// allowed.
func TestRoundAllocatesNothing(t *testing.T) {
	for _, set := range []string{"lean-2048", "paper-4096", "ringwave-4096-100"} {
		for _, form := range []xmkckks.Form{xmkckks.Whole, xmkckks.Short} {
			for _, w := range []float64{0, 3} {
				name := set + "/" + form.String()
				if w > 0 {
					name += "/ring noise"
				}
				t.Run(name, func(t *testing.T) {
					b := newBench(t, setup{
						params: params(t, set), form: form, devices: 3, sigma: 1, f: 8,
						noise: [slot.Transmissions]float64{w, w, w, w}, guard: xmkckks.NewLedger(100), seed: 40,
					})
					delta := b.deltas()
					k := uint32(0)
					allocs := testing.AllocsPerRun(1, func() {
						for range 30 {
							out, err := b.engine.Run(t.Context(), k, delta)
							if err != nil {
								t.Fatal(err)
							}
							if out.Skipped {
								t.Fatalf("round %d: %v", k, out.Failures)
							}
							k++
						}
					})
					if allocs != 0 {
						t.Errorf("%v allocations in 30 rounds", allocs)
					}
				})
			}
		}
	}
}
