package phy

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/iq"
)

// leanPrime and leanLengths are lean-2048's: b and c1 whole, of c0 and D the
// scalar and its witness.
const leanPrime = 0x3ffffffffed001

var leanLengths = [slot.Transmissions]int{2048, 2, 2048, 2}

// airRate is that of the bench in memory, in samples a microsecond.
const airRate = 10

// clock takes the time of each run of what is benchmarked, to give the best beside
// the mean: what else the machine does slows the mean only.
type clock struct{ best time.Duration }

func (c *clock) time(f func()) {
	start := time.Now()
	f()
	if d := time.Since(start); c.best == 0 || d < c.best {
		c.best = d
	}
}

// timed benchmarks f, and reports its speed in samples.
func timed(b *testing.B, samples int, f func()) clock {
	var c clock
	for b.Loop() {
		c.time(f)
	}
	b.SetBytes(8 * int64(samples)) // a sample is a complex64
	b.ReportMetric(float64(samples)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Msamples/s")
	b.ReportMetric(float64(samples)/c.best.Seconds()/1e6, "best-Msamples/s")
	return c
}

// besideCopy benchmarks a chain that makes or reads samples, and a plain copy of
// them. The chain's ratio is its best time over the best of as many copies, made
// right after it.
func besideCopy(b *testing.B, samples []complex64, chain func()) {
	other := make([]complex64, len(samples))
	b.Run("copy", func(b *testing.B) { timed(b, len(samples), func() { copy(other, samples) }) })
	b.Run("chain", func(b *testing.B) {
		took := timed(b, len(samples), chain)
		var plain clock
		for range max(b.N, 100) {
			plain.time(func() { copy(other, samples) })
		}
		b.ReportMetric(float64(took.best)/float64(plain.best), "times-copy")
	})
}

// benchPulses are a pulse whose receiver integrates and one with a matched filter.
var benchPulses = []struct {
	name string
	cfg  modem.Config
}{{"flat-top", flatTop}, {"root-raised-cosine", rootRaised}}

// BenchmarkWaveformTransmit is all that one device does for lean-2048's b: checks,
// digits, symbols, samples, and 8-bit codes. It runs on one core.
func BenchmarkWaveformTransmit(b *testing.B) {
	for _, pulse := range benchPulses {
		b.Run(pulse.name, func(b *testing.B) {
			m := newModulus(b, leanPrime)
			w := newWaveform(b, newAir(b, 1, scene{bits: 0}), m, func(c *WaveformConfig) { c.Modem = pulse.cfg })
			x := randomPayloads(m, 1, leanLengths[slot.TxKey], rand.New(rand.NewPCG(1, 1)))
			if err := w.Open(b.Context(), slot.Slot{}, leanLengths[slot.TxKey]); err != nil {
				b.Fatal(err)
			}
			chain := func() {
				if err := w.Transmit(0, x[0]); err != nil {
					b.Fatal(err)
				}
				w.modulate(w.groups[0], w.expect(w.groups[0], 0))
			}
			chain()
			samples := w.sender.devices[0].samples
			b.Run("complex64", func(b *testing.B) { besideCopy(b, samples, chain) })
			codes := make([]byte, 2*len(samples))
			b.Run("int8", func(b *testing.B) {
				besideCopy(b, samples, func() {
					chain()
					converter.Encode(codes, w.sender.devices[0].samples)
				})
			})
		})
	}
}

// BenchmarkWaveformReceive is the receiver's chain on one frame of three devices
// at 50 dB and 8 bits, lean-2048's b: from the converter's codes or from samples
// over preamble, timing, filter, tracking and a search of the scale to ring elements
// that passed their checks. It runs on one core.
func BenchmarkWaveformReceive(b *testing.B) {
	for _, pulse := range benchPulses {
		b.Run(pulse.name, func(b *testing.B) {
			w, codes := heardFrame(b, pulse.cfg)
			chain := func() {
				if failure := readAgain(w); failure != "" {
					b.Fatal(failure)
				}
			}
			b.Run("complex64", func(b *testing.B) { besideCopy(b, w.finder.capture.samples, chain) })
			b.Run("int8", func(b *testing.B) {
				besideCopy(b, w.finder.capture.samples, func() {
					converter.Decode(w.finder.capture.samples, codes)
					chain()
				})
			})
		})
	}
}

// BenchmarkWaveformReceiveFaults is BenchmarkWaveformReceive on a frame that has a carrier
// offset, an echo, and the receiver's own offset and image.
func BenchmarkWaveformReceiveFaults(b *testing.B) {
	for _, pulse := range benchPulses {
		b.Run(pulse.name, func(b *testing.B) {
			w, _ := heardFrame(b, pulse.cfg)
			samples := w.finder.capture.samples
			clean := slices.Clone(samples)
			for n := range samples {
				x := complex128(clean[n])
				if n >= 8 {
					x += 0.05 * complex128(clean[n-8])
				}
				x *= cmplx.Rect(1, 2*math.Pi*2e-5*float64(n))
				samples[n] = complex64(x + 0.01*cmplx.Conj(x) + 0.01)
			}
			besideCopy(b, samples, func() {
				if failure := readAgain(w); failure != "" {
					b.Fatal(failure)
				}
			})
		})
	}
}

// readAgain reads the capture of phase 1 as if it were new.
func readAgain(w *Waveform) (failure string) {
	g := w.groups[0]
	g.held.timed, g.alpha = false, 0
	e := w.expect(g, 0)
	if failure := w.reader.demodulate(&w.finder.capture, g, e); failure != "" {
		return failure
	}
	g.read.begin(e.payload.Blocks())
	w.reader.combine(g, e)
	return w.reader.decode(g, e, &w.report)
}

// converter is of 8 bits, signed.
var converter = iq.New(iq.Config{Format: iq.CI8, Step: 1.0 / 127})

// heardFrame returns a link whose capture is of 8 bits, and readable, and its codes.
func heardFrame(b *testing.B, cfg modem.Config) (w *Waveform, codes []byte) {
	const devices, level = 3, 1.0 / 4
	m := newModulus(b, leanPrime)
	a := newAir(b, devices, scene{sigma: 0.3, bits: -1, noiseStd: level * noiseFor(cfg, 50)})
	w = newWaveform(b, a, m, func(c *WaveformConfig) {
		c.Modem, c.Receive = cfg, modem.Receive{Clip: 126.5 / 127}
		c.OnTransmission = func(_ context.Context, s slot.Slot, at radio.SampleIndex) error {
			a.gains.Scaled(a.h, s.Round, s.Attempt, int(s.Transmission))
			for i, h := range a.h {
				if err := a.medium.SetGain(i, at, complex(float32(level*h), 0)); err != nil {
					return err
				}
			}
			return nil
		}
	})
	rnd := rand.New(rand.NewPCG(2, 2))
	rx := Reception{Y: m.NewVector(leanLengths[slot.TxKey]), Pattern: make([]int64, w.PatternSymbols())}
	for k := range uint32(20) {
		sendOver(b, w, slot.Slot{Round: k}, randomPayloads(m, devices, leanLengths[slot.TxKey], rnd), &rx)
		codes = make([]byte, 2*len(w.finder.capture.samples))
		clipped := converter.Encode(codes, w.finder.capture.samples).Clipped
		converter.Decode(w.finder.capture.samples, codes)
		if clipped == 0 && readAgain(w) == "" {
			return w, codes
		}
	}
	b.Fatal("of 20 frames none was read")
	return nil, nil
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
// bench in memory, on all cores. round/airtime is its time over that of its samples
// at 10 Msps, in the mean and of the best round. Nothing is sent again; a round that
// is refused, as its gains allow no lattice, counts like the others and is reported.
func BenchmarkWaveformRound(b *testing.B) {
	m := newModulus(b, leanPrime)
	a := fadingAir(b, 3, 0.3, 50)
	source := &counting{}
	w := newWaveform(b, a, m, func(c *WaveformConfig) {
		source.Receiver = c.Receiver
		c.Receiver = source
	})
	rnd := rand.New(rand.NewPCG(3, 3))
	rx := [slot.Transmissions]Reception{}
	for t, n := range leanLengths {
		rx[t] = Reception{Y: m.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
	}
	long, short := randomPayloads(m, 3, 2048, rnd), randomPayloads(m, 3, 2, rnd)
	refused, k := 0, uint32(0)
	round := func() {
		good := true
		for t, n := range leanLengths {
			x := long
			if n == 2 {
				x = short
			}
			sendOver(b, w, slot.Slot{Round: k, Transmission: slot.Transmission(t)}, x, &rx[t])
			good = good && rx[t].CheckPassed
		}
		if !good {
			refused++
		}
		k++
	}
	var c clock
	for b.Loop() {
		c.time(round)
	}
	samples := source.samples / int(k)
	airtime := float64(samples) / airRate / 1e6
	b.SetBytes(8 * int64(samples))
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/airtime, "round/airtime")
	b.ReportMetric(c.best.Seconds()/airtime, "best-round/airtime")
	b.ReportMetric(float64(refused)/float64(b.N), "refused/op")
}
