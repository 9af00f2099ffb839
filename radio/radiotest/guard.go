package radiotest

import (
	"context"
	"sync/atomic"
	"time"

	"ringwave/radio"
)

// StandingGuard is a guard that knows that the program stood still once Stood is set, and
// has not told yet: nothing but its Err says so.
type StandingGuard struct{ Stood *atomic.Bool }

// Watch implements radio.Guard.
func (g StandingGuard) Watch(context.Context, radio.URI, time.Duration) (radio.Watch, error) {
	return g, nil
}

// Living implements radio.Watch.
func (g StandingGuard) Living() context.Context { return context.Background() }

// Release implements radio.Watch.
func (g StandingGuard) Release() {}

// Err implements radio.Watch.
func (g StandingGuard) Err() error {
	if g.Stood.Load() {
		return radio.ErrGuard
	}
	return nil
}
