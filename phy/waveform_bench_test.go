package phy

import (
	"context"
	"math/rand/v2"
	"testing"

	"ringwave/radio"
)

// leanPrime and leanLengths are lean-2048's: b and c1 whole, of c0 and D the
// scalar and its witness.
const leanPrime = 0x3ffffffffed001

var leanLengths = [Transmissions]int{2048, 2, 2048, 2}

// airRate is that of the bench in memory, in samples a microsecond.
const airRate = 10

func reportRate(b *testing.B, samples int) {
	b.SetBytes(8 * int64(samples)) // a sample is a complex64
	b.ReportMetric(float64(samples)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Msamples/s")
}

// BenchmarkWaveformTransmit is all that one device does for a frame: checks,
// digits, symbols, samples.
func BenchmarkWaveformTransmit(b *testing.B) {
	m := newModulus(b, leanPrime)
	a := newAir(b, 1, scene{bits: 0})
	w := newWaveform(b, a, m, nil)
	x := randomPayloads(m, 1, 2048, rand.New(rand.NewPCG(1, 1)))
	if err := w.Open(Slot{}, 2048); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := w.Transmit(0, x[0]); err != nil {
			b.Fatal(err)
		}
		w.modulate(0, w.groups[0], 0)
	}
	reportRate(b, len(w.devices[0].samples))
}

// BenchmarkWaveformReceive is the receiver's chain on one frame of three devices
// at 50 dB: preamble, filter, lattice, digits, checks. The scale is searched.
func BenchmarkWaveformReceive(b *testing.B) {
	m := newModulus(b, leanPrime)
	a := fadingAir(b, 3, 0.3, 50)
	w := newWaveform(b, a, m, nil)
	rnd := rand.New(rand.NewPCG(2, 2))
	rx := Reception{Y: m.NewVector(2048), Pattern: make([]int64, w.PatternSymbols())}
	for k := uint32(0); !rx.CheckPassed; k++ {
		sendOver(b, w, Slot{Round: k}, randomPayloads(m, 3, 2048, rnd), &rx)
	}
	g := w.groups[0]
	for b.Loop() {
		g.held, g.alpha = false, 0
		if failure := w.demodulate(0, g, 0, 0); failure != "" {
			b.Fatal(failure)
		}
		copy(g.sum, g.soft)
		if failure := w.decode(g); failure != "" {
			b.Fatal(failure)
		}
	}
	reportRate(b, len(w.capture))
}

// counting counts the samples that were read.
type counting struct {
	radio.Receiver
	samples int
}

func (c *counting) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	n, meta, err := c.Receiver.Read(ctx, dst)
	c.samples += n
	return n, meta, err
}

// BenchmarkWaveformRound is the four transmissions of lean-2048 in the short form,
// three devices, 8 samples a symbol, with fractional delays and noise, through the
// bench in memory. The airtime ratio is its time over that of its samples at
// 10 Msps.
func BenchmarkWaveformRound(b *testing.B) {
	m := newModulus(b, leanPrime)
	a := fadingAir(b, 3, 0.3, 50)
	source := &counting{}
	w := newWaveform(b, a, m, func(c *WaveformConfig) {
		source.Receiver = c.Receiver
		c.Receiver = source
	})
	rnd := rand.New(rand.NewPCG(3, 3))
	rx := [Transmissions]Reception{}
	for t, n := range leanLengths {
		rx[t] = Reception{Y: m.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
	}
	long, short := randomPayloads(m, 3, 2048, rnd), randomPayloads(m, 3, 2, rnd)
	refused, k := 0, uint32(0)
	for b.Loop() {
		for t, n := range leanLengths {
			x := long
			if n == 2 {
				x = short
			}
			sendOver(b, w, Slot{Round: k, Transmission: Transmission(t)}, x, &rx[t])
			if !rx[t].CheckPassed {
				refused++
			}
		}
		k++
	}
	airtime := float64(source.samples) / airRate / 1e6
	b.ReportMetric(b.Elapsed().Seconds()/airtime, "airtime-ratio")
	b.ReportMetric(float64(refused)/float64(b.N), "refused/op")
	b.SetBytes(8 * int64(source.samples/b.N))
}
