package phy

import (
	"context"
	"errors"
	"fmt"

	"ringwave/radio"
)

// ErrStalled: a stream gave or took nothing for as long as the link is patient.
var ErrStalled = errors.New("the radios stand still")

// patient returns the context of one wait, which is to be released behind it: parent's,
// and no longer than the link is patient.
func (w *Waveform) patient(parent context.Context) (ctx context.Context, release context.CancelFunc) {
	if w.cfg.Patience == 0 {
		return parent, func() {}
	}
	return context.WithTimeoutCause(parent, w.cfg.Patience, ErrStalled)
}

// stalled reports whether a wait ended because the link was patient no longer.
func stalled(ctx context.Context) bool { return context.Cause(ctx) == ErrStalled }

// readUntil is radio.ReadFullUntil of the receiver, no longer than the link is patient and
// the transmitters are there.
func (w *Waveform) readUntil(parent context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	if err := w.checkSenders(parent, len(dst)); err != nil {
		return 0, radio.Meta{}, err
	}
	ctx, release := w.patient(parent)
	defer release()
	n, meta, err := radio.ReadFullUntil(ctx, w.cfg.Receiver, dst, until)
	if err == nil || !stalled(ctx) {
		return n, meta, err
	}
	next := w.next
	if n > 0 {
		next = meta.Index(n-1) + 1
	}
	return n, meta, fmt.Errorf("%w: the receiver gave nothing for %v, after its index %d and before %d; if it waits for what transmitters have not sent, its index differs from theirs by more than the %d samples within which it is looked for: %w",
		ErrStalled, w.cfg.Patience, next, until, w.cfg.Reach, err)
}

// write sends a block from device i, no longer than the link is patient.
func (w *Waveform) write(parent context.Context, i int, block []complex64, meta radio.TxMeta) error {
	ctx, release := w.patient(parent)
	defer release()
	n, err := w.cfg.Transmitters[i].Write(ctx, block, meta)
	if err == nil || !stalled(ctx) {
		return err
	}
	return fmt.Errorf("%w: in %v %d of %d samples of a frame found room; if its board waits for others, a whole frame must find room: %w",
		ErrStalled, w.cfg.Patience, n, len(block), err)
}

// checkSenders looks, every so many samples that are received, whether a transmitter
// has failed: what others have written must not go on being sent until the receiver
// has heard all of it.
func (w *Waveform) checkSenders(ctx context.Context, samples int) error {
	if w.unasked += samples; w.unasked < skipped {
		return nil
	}
	w.unasked = 0
	for i, tx := range w.cfg.Transmitters {
		if t, ok := tx.(radio.Idler); ok {
			if err := t.Idle(ctx, 0); err != nil { // promises nothing
				return fmt.Errorf("device %d: %w", i+1, err)
			}
		}
	}
	return nil
}
