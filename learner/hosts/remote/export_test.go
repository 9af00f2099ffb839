package remote

import (
	"context"
	"time"

	"ringwave/radio"
)

// What tests ask for in place of Open, and of a host.

// OpenTimed is Open with another clock, that asks a stream how it does so often.
func OpenTimed(ctx context.Context, c Caller, index int, now func() time.Time, every time.Duration) (radio.Device, error) {
	return open(ctx, c, index, timing{now: now, every: every})
}

// Expire looks once whether too long nothing was asked.
func (h *Host) Expire() { h.expire() }

// Kept returns how many bursts the host has.
func (h *Host) Kept() int { return len(h.bursts.all) }

// KeptBursts is what a host keeps at most.
const KeptBursts = keptBursts
