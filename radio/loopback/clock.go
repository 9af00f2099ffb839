package loopback

import (
	"context"
	"sync"
	"time"
)

// Clock paces a medium in real time. It is safe for use by several goroutines.
type Clock interface {
	// Now returns the time since the clock's zero, which is the medium's index 0.
	Now() time.Duration
	// Wait returns when Now reaches t, when ctx is done, when stop is closed, or
	// sooner.
	Wait(ctx context.Context, t time.Duration, stop <-chan struct{})
}

// WallClock returns the machine's monotonic clock, zero now.
func WallClock() Clock { return wallClock{time.Now()} }

type wallClock struct{ zero time.Time }

func (c wallClock) Now() time.Duration { return time.Since(c.zero) }

func (c wallClock) Wait(ctx context.Context, t time.Duration, stop <-chan struct{}) {
	timer := time.NewTimer(t - c.Now())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-stop:
	}
}

// ManualClock is a Clock that is moved by hand, for tests. The zero value is at
// zero.
type ManualClock struct {
	mu      sync.Mutex
	now     time.Duration
	changed chan struct{} // closed at each Advance; nil while nobody waits
}

// Now returns the sum of the advances.
func (c *ManualClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward by d, 0 or more.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Wait waits for advances.
func (c *ManualClock) Wait(ctx context.Context, t time.Duration, stop <-chan struct{}) {
	c.mu.Lock()
	if c.now >= t {
		c.mu.Unlock()
		return
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	changed := c.changed
	c.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	case <-stop:
	}
}
