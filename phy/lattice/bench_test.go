package lattice

import (
	"math"
	"testing"
	"time"
)

// rrcTaps is the length of the filter that a search is measured against, and
// rrcPerSymbol the samples a symbol: 8 symbols.
const rrcTaps, rrcPerSymbol = 64, 8

// rootRaisedCosine returns rrcTaps taps of roll-off 1/4, but for their scale. None of
// them falls on a zero of the denominator.
func rootRaisedCosine() []float32 {
	const b = 0.25
	taps := make([]float32, rrcTaps)
	for n := range taps {
		u := (float64(n) - (rrcTaps-1)/2.0) / rrcPerSymbol
		x := 4 * b * u
		taps[n] = float32((math.Sin(math.Pi*u*(1-b)) + x*math.Cos(math.Pi*u*(1+b))) / (math.Pi * u * (1 - x*x)))
	}
	return taps
}

// matched filters complex samples at the symbols' instants only, a quarter of the
// sums each so that no addition waits for the one before: the fastest that a
// receiver can do with so many taps.
func matched(y, x []complex64, taps []float32) {
	for k := range y {
		part, t := x[k*rrcPerSymbol:][:rrcTaps], taps[:rrcTaps]
		var re0, re1, re2, re3, im0, im1, im2, im3 float32
		for len(part) >= 4 && len(t) >= 4 {
			re0 += real(part[0]) * t[0]
			im0 += imag(part[0]) * t[0]
			re1 += real(part[1]) * t[1]
			im1 += imag(part[1]) * t[1]
			re2 += real(part[2]) * t[2]
			im2 += imag(part[2]) * t[2]
			re3 += real(part[3]) * t[3]
			im3 += imag(part[3]) * t[3]
			part, t = part[4:], t[4:]
		}
		y[k] = complex((re0+re1)+(re2+re3), (im0+im1)+(im2+im3))
	}
}

// BenchmarkSearchAgainstFilter searches a block and filters its samples by turns,
// so that what else the machine does slows both. filter/search is the ratio of the
// best times: above 1 the search costs less. read is a block whose first candidate
// is accepted, as nearly all are; refused one that no candidate reads, after all 16
// were tried.
func BenchmarkSearchAgainstFilter(b *testing.B) {
	taps := rootRaisedCosine()
	for name, n := range lengths() {
		s := superposed(n, 0.008, 1.3, 0.8, 0.5)
		r := newReceiver(b, Options{Symbols: n})
		x, y := make([]complex64, n*rrcPerSymbol+rrcTaps), make([]complex64, n)
		for k := range x {
			x[k] = complex(float32(k%7)-3, float32(k%5)-2)
		}
		for verdict, accept := range map[string]Accept{"read": all, "refused": none} {
			b.Run(verdict+"/"+name, func(b *testing.B) {
				search, filter := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
				for b.Loop() {
					start := time.Now()
					r.Search(s.y, accept)
					between := time.Now()
					matched(y, x, taps)
					search, filter = min(search, between.Sub(start)), min(filter, time.Since(between))
				}
				b.ReportMetric(search.Seconds()*1e6, "best-search-us")
				b.ReportMetric(filter.Seconds()*1e6, "best-filter-us")
				b.ReportMetric(float64(filter)/float64(search), "filter/search")
			})
		}
	}
}
