package round

import (
	"context"
	"sync"
	"sync/atomic"
)

// pool runs one task for every device on a fixed set of goroutines. A run
// allocates nothing.
type pool struct {
	starts []func(ctx context.Context) // of the goroutines, for a run each
	ends   []func()
	task   func(ctx context.Context, i int)
	n      int
	next   atomic.Int64
	done   sync.WaitGroup
}

func newPool(workers int) *pool {
	p := &pool{}
	for range workers {
		runs := make(chan context.Context, 1)
		p.starts = append(p.starts, func(ctx context.Context) { runs <- ctx })
		p.ends = append(p.ends, func() { close(runs) })
		go p.serve(runs)
	}
	return p
}

func (p *pool) serve(runs <-chan context.Context) {
	for ctx := range runs {
		for i := p.next.Add(1) - 1; i < int64(p.n); i = p.next.Add(1) - 1 {
			p.task(ctx, int(i))
		}
		p.done.Done()
	}
}

// run calls task(ctx, 0) to task(ctx, n-1), in any order and side by side, and returns
// when all have returned.
func (p *pool) run(ctx context.Context, n int, task func(ctx context.Context, i int)) {
	p.n, p.task = n, task
	p.next.Store(0)
	p.done.Add(len(p.starts))
	for _, start := range p.starts {
		start(ctx)
	}
	p.done.Wait()
}

func (p *pool) close() {
	for _, end := range p.ends {
		end()
	}
}
