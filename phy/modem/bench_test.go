package modem

import (
	"fmt"
	"testing"
	"unsafe"
)

// The speeds in MB/s are of complex samples, 8 bytes each: 80 MB/s are 10
// Msamples/s, which is also given. Copying the same samples stands beside them.

const benchSymbols = 8192

type benchCase struct {
	name string
	cfg  Config
}

func benchCases() []benchCase {
	var cases []benchCase
	for _, sps := range []int{2, 4, 8, 16} {
		if sps > 2 {
			cases = append(cases, benchCase{fmt.Sprintf("flat/%d", sps), flatTop(sps, FlatTop{Edge: 1})})
		}
		cases = append(cases, benchCase{fmt.Sprintf("rrc/%d", sps), rootRaised(sps)})
	}
	return cases
}

// over runs f on n samples at a time.
func over(b *testing.B, n int, f func()) {
	b.ReportAllocs()
	b.SetBytes(int64(n) * int64(unsafe.Sizeof(complex64(0))))
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Msamples/s")
}

func BenchmarkCopy(b *testing.B) {
	x, y := make([]complex64, 8*benchSymbols), make([]complex64, 8*benchSymbols)
	over(b, len(x), func() { copy(y, x) })
}

// BenchmarkTransmit shapes digits.
func BenchmarkTransmit(b *testing.B) {
	for _, c := range benchCases() {
		b.Run(c.name, func(b *testing.B) {
			m := mustModulator(b, c.cfg, Drive{Peak: 1, Advance: 0.3})
			d := randomDigits(newRand(1), benchSymbols, 3)
			x := make([]complex64, benchSymbols*m.sps)
			over(b, len(x), func() { m.ModulateDigits(x, d) })
		})
	}
}

func benchCapture(b *testing.B, cfg Config) []complex64 {
	s := newScene(cfg, 1, benchSymbols, 3, device{gain: 0.1, phase: 1}, device{gain: 0.12, phase: 0.8})
	s.noise = 1e-5
	samples, _ := s.capture(b)
	return samples
}

// BenchmarkReceive searches a capture for its frame and demodulates it with
// tracking: the whole receiver.
func BenchmarkReceive(b *testing.B) {
	for _, c := range benchCases() {
		b.Run(c.name, func(b *testing.B) {
			samples := benchCapture(b, c.cfg)
			detector := mustDetector(b, c.cfg, Search{MaxOffset: 1e-5})
			demod := mustDemodulator(b, c.cfg, Receive{Tracking: Follow, Clip: 1})
			y, erased := make([]float32, benchSymbols), make([]bool, benchSymbols)
			over(b, len(samples), func() {
				for _, s := range detector.Find(samples) {
					demod.Demodulate(y, erased, Frame{Samples: samples, Sync: s})
				}
			})
		})
	}
}

// BenchmarkDetect only searches.
func BenchmarkDetect(b *testing.B) {
	for _, c := range benchCases() {
		b.Run(c.name, func(b *testing.B) {
			samples := benchCapture(b, c.cfg)
			detector := mustDetector(b, c.cfg, Search{MaxOffset: 1e-5})
			over(b, len(samples), func() { detector.Find(samples) })
		})
	}
}

// BenchmarkDemodulate only demodulates, its timing being known.
func BenchmarkDemodulate(b *testing.B) {
	for _, c := range benchCases() {
		for name, tracking := range map[string]Tracking{"hold": Hold, "follow": Follow} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				samples := benchCapture(b, c.cfg)
				sync := mustFind(b, mustDetector(b, c.cfg, Search{}), samples)
				demod := mustDemodulator(b, c.cfg, Receive{Tracking: tracking, Clip: 1})
				y, erased := make([]float32, benchSymbols), make([]bool, benchSymbols)
				over(b, len(samples), func() { demod.Demodulate(y, erased, Frame{Samples: samples, Sync: sync}) })
			})
		}
	}
}
