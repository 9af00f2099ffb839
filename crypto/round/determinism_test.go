package round

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
)

// One seed gives one run: every bit that is received, in failed attempts too,
// and every M, on any number of goroutines and cores. A quarter of the rounds with -short.
func TestDeterminism(t *testing.T) {
	rounds := uint32(20)
	if testing.Short() {
		rounds = 5
	}
	for _, link := range []struct {
		set  string
		form xmkckks.Form
		f    int
	}{
		{"demo-1024", xmkckks.Short, 2}, {"lean-2048", xmkckks.Whole, 8}, {"ringwave-4096-100", xmkckks.Short, 8},
	} {
		t.Run(link.set+"/"+link.form.String(), func(t *testing.T) {
			run := func(workers, cores int, seed uint64) string {
				t.Helper()
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
				return digestOf(t, setup{
					params: params(t, link.set), form: link.form, devices: 5, sigma: 1, f: link.f,
					noise: [slot.Transmissions]float64{2, 2, 2, 2}, attempts: 3, workers: workers, seed: seed,
					channel: func(c *channel.Config) {
						c.DriftAt, c.DriftStd, c.DriftProbability = channel.AfterCiphertext, 1, 0.5
					},
				}, rounds)
			}
			want := run(1, 1, 30)
			for _, workers := range []int{0, 1, 2, 5} {
				for _, cores := range []int{1, 2} {
					if got := run(workers, cores, 30); got != want {
						t.Errorf("Workers %d, GOMAXPROCS %d: another run than with 1 and 1", workers, cores)
					}
				}
			}
			if run(1, 1, 31) == want {
				t.Error("another seed gives the same run")
			}
		})
	}
}

// digestOf returns the SHA-256 of all that rounds of a setup receive and give.
func digestOf(t *testing.T, s setup, rounds uint32) string {
	t.Helper()
	digest := sha256.New()
	write := func(v any) {
		if err := binary.Write(digest, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	s.wrap = tapped(func(s slot.Slot, rx *phy.Reception) {
		write([]uint64{uint64(s.Round), uint64(s.Attempt), uint64(s.Transmission), math.Float64bits(rx.Alpha)})
		write(rx.CheckPassed)
		write(rx.Pattern)
		for _, y := range rx.Y {
			write(y)
		}
	})
	b := newBench(t, s)
	retries := 0
	for k := range rounds {
		out, err := b.engine.Run(t.Context(), k, b.deltas())
		if err != nil {
			t.Fatal(err)
		}
		retries += out.Attempts - 1
		write(out.M)
		write([]uint64{uint64(out.Attempts), uint64(out.Attempt)})
		write(out.Skipped)
	}
	if retries == 0 {
		t.Error("no retry: the run shows too little")
	}
	return fmt.Sprintf("%x", digest.Sum(nil))
}
