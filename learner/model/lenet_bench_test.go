package model

import (
	"math/rand/v2"
	"testing"

	"ringwave/crypto/vector"
	"ringwave/learner/dataset"
	"ringwave/learner/model/kernel"
)

// peakOf returns the most multiplications, each with an addition, that this core does a
// second of its time: the best of twenty tries of some 10 ms.
func peakOf(p vector.Path) float64 {
	best := 0.0
	for range 20 {
		start := processorTime()
		n := kernel.Exercise(p, 60_000_000/kernel.Lanes(p))
		best = max(best, float64(n)/(processorTime()-start).Seconds())
	}
	return best
}

func benchmarkLeNet(b *testing.B, images int, run func(w *lenetWorker, theta, phi []float64, set *dataset.Set, batch []int)) {
	for _, path := range vector.Paths() {
		b.Run(path.String(), func(b *testing.B) {
			if lacking := path.Lacks(); lacking != "" {
				b.Skipf("this processor lacks %s", lacking)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			m := NewLeNet(path, 2)
			set := randomSet(1000, m.Features(), rnd)
			theta, phi := make([]float64, m.Dim()), randomVector(m.Dim(), 1, rnd)
			m.Init(theta, rnd)
			w := m.newWorker()
			batch := rnd.Perm(set.Len())[:128]
			w.pack(theta, phi, 0.01, Want{F: true, Minus: true})
			w.gather(set, batch[:min(len(batch), kernel.Lanes(path))])
			peak := peakOf(path)
			b.ReportAllocs()
			start := processorTime()
			for b.Loop() {
				run(w, theta, phi, set, batch)
			}
			rate := float64(images) * float64(b.N) / (processorTime() - start).Seconds()
			peak = max(peak, peakOf(path))
			b.ReportMetric(rate, "images/s")
			b.ReportMetric(peak/1e9, "peak-GMAC/s")
			b.ReportMetric(100*rate*float64(m.MultiplyAdds())/peak, "%peak")
		})
	}
}

// BenchmarkLeNetForward is the layers alone, on samples and weights that lie ready.
func BenchmarkLeNetForward(b *testing.B) {
	benchmarkLeNet(b, 128, func(w *lenetWorker, _, _ []float64, _ *dataset.Set, batch []int) {
		for from := 0; from < len(batch); from += len(w.index) {
			w.forward(w.weights[0])
		}
	})
}

// BenchmarkLeNetLosses is all that a device does in a round: three points, each on a
// batch of 128.
func BenchmarkLeNetLosses(b *testing.B) {
	benchmarkLeNet(b, 3*128, func(w *lenetWorker, theta, phi []float64, set *dataset.Set, batch []int) {
		w.Losses(theta, phi, 0.01, set, batch)
	})
}
