package round

import (
	"context"
	"sync"
	"sync/atomic"
)

// pool runs one task for every device on a fixed set of goroutines. A run
// allocates nothing.
type pool struct {
	work []chan struct{}
	task func(ctx context.Context, i int)
	ctx  context.Context // of the run at hand
	n    int
	next atomic.Int64
	done sync.WaitGroup
}

func newPool(workers int) *pool {
	p := &pool{}
	for range workers {
		start := make(chan struct{}, 1)
		p.work = append(p.work, start)
		go p.serve(start)
	}
	return p
}

func (p *pool) serve(start <-chan struct{}) {
	for range start {
		for i := p.next.Add(1) - 1; i < int64(p.n); i = p.next.Add(1) - 1 {
			p.task(p.ctx, int(i))
		}
		p.done.Done()
	}
}

// run calls task(0) to task(n-1), in any order and side by side, and returns
// when all have returned.
func (p *pool) run(ctx context.Context, n int, task func(ctx context.Context, i int)) {
	p.n, p.task, p.ctx = n, task, ctx
	p.next.Store(0)
	p.done.Add(len(p.work))
	for _, start := range p.work {
		start <- struct{}{}
	}
	p.done.Wait()
}

func (p *pool) close() {
	for _, start := range p.work {
		close(start)
	}
}
