package model

import "ringwave/learner/dataset"

// BatchSum returns m with the losses at theta +- gamma*phi as sums over the batch in place
// of means, which makes the two-point difference as many times larger as a batch has
// samples. The loss at theta, which only goes into the record, stays a mean, and
// Evaluate is m's.
func BatchSum(m Model) Model { return batchSum{m} }

type batchSum struct{ Model }

func (m batchSum) NewWorker() Worker { return batchSumWorker{m.Model.NewWorker()} }

type batchSumWorker struct{ Worker }

func (w batchSumWorker) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	return w.Partial(Want{F: true, Minus: true}, theta, phi, gamma, set, batch)
}

func (w batchSumWorker) Partial(want Want, theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	f, plus, minus = Partial(w.Worker, want, theta, phi, gamma, set, batch)
	n := float64(len(batch))
	return f, n * plus, n * minus
}

func (w batchSumWorker) Batches(at Point, set *dataset.Set, batches []Batch, want Want) {
	Batches(w.Worker, at, set, batches, want)
	for i := range batches {
		b := &batches[i]
		n := float64(len(b.Samples))
		b.Plus, b.Minus, b.Sum = n*b.Plus, n*b.Minus, true
	}
}

func (w batchSumWorker) Together() int {
	if many, ok := w.Worker.(BatchesWorker); ok {
		return many.Together()
	}
	return 1
}
