package curves

import (
	"context"
	"fmt"

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

// measurePoint carries out trials. done is called under a lock.
func measurePoint(ctx context.Context, b trial.Blocks, blocks int, done func()) (*trial.Tally, error) {
	cfg, err := b.Config()
	if err != nil {
		return nil, err
	}
	outcomes, err := trial.Simulate(ctx, cfg, trial.Effort{Most: blocks, Done: done})
	if err != nil {
		return nil, fmt.Errorf("measuring the curves: %w", err)
	}
	var tally trial.Tally
	for _, o := range outcomes {
		tally.Add(o)
	}
	return &tally, nil
}
