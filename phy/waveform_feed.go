package phy

import (
	"context"
	"fmt"

	"ringwave/radio"
)

// Feed is the stream of a receiver that is elsewhere, as on the air of a simulation: frames
// are given to it whole, before they are read. It is for one goroutine.
type Feed struct {
	// Clip is the amplitude that only samples at the receiver's limit reach, 0 for none.
	Clip radio.Amplitude

	samples []complex64 // not read yet
	next    radio.SampleIndex
	clipped radio.SampleCount // of samples, not told yet
	closed  bool
}

// Give has the next samples be those of a frame, from index first on, of which so many were
// clipped. They must not change until the next frame; what was not read of the one before is
// dropped.
func (f *Feed) Give(first radio.SampleIndex, samples []complex64, clipped radio.SampleCount) {
	f.samples, f.next, f.clipped = samples, first, clipped
}

// Start, State, Epoch and Close implement radio.Stream: it runs from the beginning, in one
// epoch.
func (f *Feed) Start(context.Context) error { return radio.ErrBusy }
func (f *Feed) State() radio.State {
	if f.closed {
		return radio.Closed
	}
	return radio.Running
}
func (f *Feed) Epoch() radio.Epoch { return 1 }
func (f *Feed) Close() error {
	f.closed, f.samples = true, nil
	return nil
}

// ClipLevel implements radio.Ranged.
func (f *Feed) ClipLevel() radio.Amplitude { return f.Clip }

// Read implements radio.Receiver.
func (f *Feed) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return f.ReadUntil(ctx, dst, radio.Forever)
}

// ReadUntil implements radio.Bounded. What nobody has given does not come.
func (f *Feed) ReadUntil(_ context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	if f.closed {
		return 0, radio.Meta{}, radio.ErrClosed
	}
	if len(f.samples) == 0 {
		return 0, radio.Meta{}, fmt.Errorf("nothing was given behind index %d", f.next)
	}
	n := int(min(radio.SampleIndex(len(dst)), radio.SampleIndex(len(f.samples)), max(0, until-f.next)))
	meta := radio.Meta{First: f.next, Epoch: f.Epoch()}
	if n > 0 {
		meta.Clipped, f.clipped = f.clipped, 0
		if meta.Clipped > 0 {
			meta.Flags |= radio.Clipped
		}
	}
	copy(dst, f.samples[:n])
	f.samples, f.next = f.samples[n:], f.next+radio.SampleIndex(n)
	return n, meta, nil
}
