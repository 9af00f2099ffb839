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

// AfterLoss implements radio.Watch.
func (g StandingGuard) AfterLoss(func()) (stop func() bool) { return func() bool { return true } }

// Release implements radio.Watch.
func (g StandingGuard) Release() {}

// Err implements radio.Watch.
func (g StandingGuard) Err() error {
	if g.Stood.Load() {
		return radio.ErrGuard
	}
	return nil
}
