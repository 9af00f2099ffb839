package sampler

import (
	"testing"

	"ringwave/crypto/keystream"
)

const benchDegree = 4096

func BenchmarkKeystream(b *testing.B) {
	s := keystream.FromInteger(1).Stream()
	dst := make([]byte, 8*benchDegree)
	b.SetBytes(8 * benchDegree)
	for b.Loop() {
		s.Start(0, 0)
		s.Fill(dst)
	}
}

func BenchmarkDistribution(b *testing.B) {
	for _, d := range []Distribution{Ternary, Signs, Binomial, Gaussian} {
		b.Run(d.String(), func(b *testing.B) {
			s := keystream.FromInteger(1).Stream()
			dst := make([]int8, benchDegree)
			b.ReportAllocs()
			for b.Loop() {
				s.Start(0, 0)
				d.Sample(dst, s)
			}
		})
	}
}

func BenchmarkFlood(b *testing.B) {
	for _, sigma := range []float64{1 << 55, 1 << 80} {
		f, err := NewFlood(sigma)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(f.String(), func(b *testing.B) {
			s := keystream.FromInteger(1).Stream()
			dst := make([]Int128, benchDegree)
			b.ReportAllocs()
			for b.Loop() {
				s.Start(0, 0)
				f.Sample(dst, s)
			}
		})
	}
}

func BenchmarkReduce(b *testing.B) {
	f, err := NewFlood(1 << 55)
	if err != nil {
		b.Fatal(err)
	}
	r, err := NewReducer(0x3ffffffffd6001)
	if err != nil {
		b.Fatal(err)
	}
	src := make([]Int128, benchDegree)
	f.Sample(src, keystream.FromInteger(1).Stream())
	dst := make([]uint64, benchDegree)
	b.ReportAllocs()
	for b.Loop() {
		for i, x := range src {
			dst[i] = r.Reduce(x)
		}
	}
}
