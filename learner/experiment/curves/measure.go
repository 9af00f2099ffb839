package curves

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ringwave/phy/trial"
)

// Watch is told how far a measurement is; its functions may be nil. One call follows
// another.
type Watch struct {
	Trial func()      // a trial of the point at hand is done
	Point func(Point) // a whole point is done, and saved
}

// Measure adds the points that the folder has not got yet, one by one, each saved before
// the next is begun. Where ctx ends first the error is ctx's, and the points that are
// done stay: Open goes on from them.
func (c *Curves) Measure(ctx context.Context, w Watch) error {
	for _, point := range c.grid[len(c.result.Points):] {
		tally, err := measurePoint(ctx, c.options.trials(point), c.options.Blocks, w.Trial)
		if err != nil {
			return err
		}
		point.fill(tally, c.options.Attempts)
		c.result.Points = append(c.result.Points, point)
		if err := c.save(); err != nil {
			return err
		}
		if w.Point != nil {
			w.Point(point)
		}
	}
	if c.result.Complete {
		return nil
	}
	c.result.Complete = true
	return c.save()
}

// measurePoint carries out trials, each worker with a bench of its own. A trial's
// outcome depends on its number alone, so that their share of the work does not
// matter. done is called under a lock.
func measurePoint(ctx context.Context, cfg trial.Config, blocks int, done func()) (*trial.Tally, error) {
	outcomes := make([]trial.Outcome, blocks)
	workers := min(runtime.GOMAXPROCS(0), blocks)
	var mu sync.Mutex
	var next atomic.Int64
	group, working := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() (err error) {
			b, err := trial.New(cfg)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.Close()) }()
			for working.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= blocks {
					return nil
				}
				if outcomes[k], err = b.Trial(working, uint32(k)); err != nil {
					return err
				}
				if done != nil {
					mu.Lock()
					done()
					mu.Unlock()
				}
			}
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("measuring the curves: %w", ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	var tally trial.Tally
	for _, o := range outcomes {
		tally.Add(o)
	}
	return &tally, nil
}
