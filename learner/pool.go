package learner

import (
	"runtime"
	"sync"
	"sync/atomic"

	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// evaluationBlock is the number of samples that one goroutine evaluates at a
// time. The losses are summed within a block and then over the blocks in their
// order, so this number, and not the number of goroutines, decides the rounding.
const evaluationBlock = 128

// pool shares numbered items of work among goroutines, each with a model.Worker
// of its own. Which goroutine takes an item is left to chance; what it computes
// is stored by the item's number, so that results do not depend on it.
type pool struct {
	workers []model.Worker
	// loops are made once: starting a stored function allocates nothing.
	loops []func()
	wait  sync.WaitGroup

	next  atomic.Int64
	items int
	do    func(w model.Worker, item int)

	blocks []blockSum
}

// blockSum is what Worker.Evaluate gave for one block.
type blockSum struct {
	loss    float64
	correct int
}

func newPool(m model.Model, workers int) *pool {
	p := &pool{}
	for range workers {
		w := m.NewWorker()
		p.workers = append(p.workers, w)
		p.loops = append(p.loops, func() {
			defer p.wait.Done()
			p.take(w)
		})
	}
	return p
}

// run does the items 0..items-1 and returns when all are done.
func (p *pool) run(items int, do func(w model.Worker, item int)) {
	p.items, p.do = items, do
	p.next.Store(0)
	helpers := min(len(p.workers), items) - 1
	if helpers > 0 {
		p.wait.Add(helpers)
		for _, loop := range p.loops[1 : helpers+1] {
			go loop()
		}
	}
	p.take(p.workers[0])
	p.wait.Wait()
	p.do = nil
}

// take does items until there are none left.
func (p *pool) take(w model.Worker) {
	for {
		item := int(p.next.Add(1)) - 1
		if item >= p.items {
			return
		}
		p.do(w, item)
	}
}

// Evaluate returns the mean loss of a model over a set, and the share of its samples that
// are decided correctly, on all processors.
func Evaluate(m model.Model, theta []float64, set *dataset.Set) (loss, accuracy float64) {
	return newPool(m, runtime.GOMAXPROCS(0)).evaluate(theta, set)
}

// evaluate returns the mean loss and the share of correct predictions over a set.
func (p *pool) evaluate(theta []float64, set *dataset.Set) (loss, accuracy float64) {
	n := set.Len()
	blocks := (n + evaluationBlock - 1) / evaluationBlock
	if cap(p.blocks) < blocks {
		p.blocks = make([]blockSum, blocks)
	}
	sums := p.blocks[:blocks]
	p.run(blocks, func(w model.Worker, b int) {
		from := b * evaluationBlock
		sums[b].loss, sums[b].correct = w.Evaluate(theta, set, from, min(from+evaluationBlock, n))
	})
	correct := 0
	for _, s := range sums {
		loss += s.loss
		correct += s.correct
	}
	return loss / float64(n), float64(correct) / float64(n)
}

// Confusion returns how many samples of each class a model takes for each: counts[y][c] of
// class y for class c; nil of a model that does not say what it takes a sample for.
func Confusion(m model.Model, theta []float64, set *dataset.Set) (counts [][]int) {
	p := newPool(m, runtime.GOMAXPROCS(0))
	if _, ok := model.ClassifierOf(p.workers[0]); !ok {
		return nil
	}
	n := set.Len()
	taken := make([]uint8, n)
	p.run((n+evaluationBlock-1)/evaluationBlock, func(w model.Worker, b int) {
		from, to := b*evaluationBlock, min((b+1)*evaluationBlock, n)
		c, _ := model.ClassifierOf(w)
		c.Classify(taken[from:to], theta, set, from, to)
	})
	for range set.Classes {
		counts = append(counts, make([]int, len(set.Classes)))
	}
	for i, c := range taken {
		counts[set.Y[i]][c]++
	}
	return counts
}
