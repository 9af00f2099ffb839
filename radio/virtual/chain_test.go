package virtual_test

import (
	"bytes"
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	"ringwave/radio"
	"ringwave/radio/virtual"
)

// adds returns a chain that adds a constant times the number of the start, once it has
// seen the rate that it expects.
func adds(t *testing.T, value complex64) virtual.Chain {
	return func(rate radio.Hertz, n uint64) func([]complex64) {
		if rate != 8e6 {
			t.Errorf("a stream at %v, want 8 MHz", rate)
		}
		return func(x []complex64) {
			for k := range x {
				x[k] += value * complex(float32(n), 0)
			}
		}
	}
}

// TestChains: what a board's hardware does is done to what it sends, before gains and
// delays, or to what it hears, and not while it does the other or nothing.
func TestChains(t *testing.T) {
	const leak, spike = 0.125i, -0.25
	a := newAir(t, 2, func(c *virtual.Config) {
		for i := range c.Boards[:2] {
			c.Boards[i].Transmit, c.Boards[i].Receive = adds(t, leak), adds(t, 1)
		}
		c.Boards[2].Transmit, c.Boards[2].Receive = adds(t, 1), adds(t, spike)
		c.Links[0].Gain, c.Links[1].Gain = 0.5, 1i
	})
	a.start()
	data := [][]byte{quiet(64<<10, 1), quiet(64<<10, 2)}
	got := a.pass(data...)
	compare(t, "chains", got, expect(len(got), func(k int) complex128 {
		return 0.5*(at(data[0], k)+leak) + 1i*(at(data[1], k)+leak) + spike
	}))
}

// TestSamplingClocks: a tone from a board whose sampling clock is off, or to one, has the
// frequency that the clock makes of it, for as long as the stream goes on; a board on the
// common reference has none of it.
func TestSamplingClocks(t *testing.T) {
	const cycles, ppm = 0.05, 1000
	data := make([]byte, 1<<20)
	for k := range len(data) / 2 {
		x := cmplx.Rect(100, 2*math.Pi*cycles*float64(k))
		data[2*k], data[2*k+1] = byte(int8(math.Round(real(x)))), byte(int8(math.Round(imag(x))))
	}
	for _, c := range []struct {
		board     int
		reference bool
		want      float64
	}{{0, false, cycles * (1 + ppm*1e-6)}, {1, false, cycles / (1 + ppm*1e-6)}, {0, true, cycles}, {1, true, cycles}} {
		t.Run(fmt.Sprint(c.board, c.reference), func(t *testing.T) {
			a := newAir(t, 1, func(cfg *virtual.Config) {
				cfg.Boards[c.board].SamplePPM, cfg.Boards[c.board].Reference = ppm, c.reference
			})
			a.start()
			got := a.pass(data)
			if c.reference && bytes.Equal(got, make([]byte, len(got))) {
				t.Fatal("nothing was received")
			}
			// The phase from one stretch to another far behind it, against what is wanted.
			const stretch, apart = 1000, 400_000
			turn := func(first int) (sum complex128) {
				for k := first; k < first+stretch; k++ {
					_, turns := math.Modf(c.want * float64(k))
					sum += at(got, k) * cmplx.Rect(1, -2*math.Pi*turns)
				}
				return sum / stretch
			}
			early, late := turn(1000), turn(1000+apart)
			if size := cmplx.Abs(late); math.Abs(size-100.0/128) > 0.01 {
				t.Errorf("the tone has the amplitude %.3g at %v cycles, want 0.781", size, c.want)
			}
			if d := cmplx.Phase(late / early); math.Abs(d) > 0.01 {
				t.Errorf("the tone turns by %.3g rad against one of %v cycles a sample", d, c.want)
			}
		})
	}
}
