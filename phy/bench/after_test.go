package bench_test

import (
	"math"
	"math/cmplx"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
)

// A bench that is later has the phases that its carriers have by then: those of the same
// bench whose samples are passed one by one.
func TestAfter(t *testing.T) {
	const samples = 12345
	imp := channel.Impairments{PhaseRad: 0.5, CarrierOffset: 3.3e-4}
	early, err := channel.NewPath(imp, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	x := make([]complex64, samples+1)
	for k := range x {
		x[k] = 1
	}
	early.Apply(x, x)
	cfg := bench.Config{Devices: []channel.Impairments{imp, {}}}
	later := cfg.After(samples, keystream.FromInteger(2))
	want := cmplx.Phase(complex128(x[samples]))
	if d := math.Remainder(later.Devices[0].PhaseRad-want, 2*math.Pi); math.Abs(d) > 1e-4 {
		t.Errorf("the phase is %v, passed samples have %v", later.Devices[0].PhaseRad, want)
	}
	if later.Devices[1] != cfg.Devices[1] || cfg.Devices[0] != imp {
		t.Error("a bench without an offset, or the one it was, is changed")
	}
	// A Wiener phase of deviation 0.001 a sample has wandered by 0.1 after 10,000.
	sum := 0.0
	for k := range uint64(400) {
		wandered := bench.Config{Devices: []channel.Impairments{{PhaseNoiseStd: 1e-3}}}.After(10_000, keystream.FromInteger(k))
		sum += wandered.Devices[0].PhaseRad * wandered.Devices[0].PhaseRad / 400
	}
	if got := math.Sqrt(sum); math.Abs(got-0.1) > 0.012 { // three deviations
		t.Errorf("phases have wandered by %v, wanted is 0.1", got)
	}
}
