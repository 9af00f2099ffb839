package round

import (
	"fmt"
	"testing"

	"ringwave/crypto/xmkckks"
)

// BenchmarkRound times one round with all its devices in this process, on as
// many goroutines as there are cores. ns/device shows that the cost is linear in
// the number of devices: the server's own part does not grow with it.
func BenchmarkRound(b *testing.B) {
	for _, bm := range []struct {
		set     string
		form    xmkckks.Form
		devices int
		f       int
	}{
		{"paper-4096", xmkckks.Whole, 10, 8},
		{"ringwave-4096-100", xmkckks.Short, 10, 8},
		{"lean-2048", xmkckks.Short, 10, 2},
		{"lean-2048", xmkckks.Short, 100, 2},
		{"lean-2048", xmkckks.Short, 1000, 2},
	} {
		b.Run(fmt.Sprintf("%s/%v/N=%d", bm.set, bm.form, bm.devices), func(b *testing.B) {
			x := newBench(b, setup{
				params: params(b, bm.set), form: bm.form, devices: bm.devices, sigma: 1, f: bm.f,
				guard: openGuard{}, seed: 6,
			})
			delta := x.deltas()
			k := uint32(0)
			one := func() {
				out, err := x.engine.Run(b.Context(), k, delta)
				if err != nil {
					b.Fatal(err)
				}
				if out.Skipped {
					b.Fatalf("round %d: %v", k, out.Failures)
				}
				k++
			}
			one() // the link makes room for its checks in the first round
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bm.devices), "ns/device")
		})
	}
}
