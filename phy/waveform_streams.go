package phy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ringwave/radio"
)

// ErrStalled: a stream gave or took nothing for as long as the link is patient.
var ErrStalled = errors.New("the radios stand still")

// streams are the radios of a link, which it waits for and asks how they fare.
type streams struct {
	tx       []radio.Transmitter // nil for a link that only listens
	rx       radio.Receiver
	patience time.Duration // 0 for ever
	reach    radio.SampleCount
	unasked  int // samples since transmitters were last looked at
}

// listenOnly reports whether nothing is sent.
func (s *streams) listenOnly() bool { return s.tx == nil }

// patient returns the context of one wait, which is to be released behind it: parent's,
// and no longer than the link is patient.
func (s *streams) patient(parent context.Context) (ctx context.Context, release context.CancelFunc) {
	if s.patience == 0 {
		return parent, func() {}
	}
	return context.WithTimeoutCause(parent, s.patience, ErrStalled)
}

// stalled reports whether a wait ended because the link was patient no longer.
func stalled(ctx context.Context) bool { return context.Cause(ctx) == ErrStalled }

// readUntil is radio.ReadFullUntil of the receiver, whose next sample is next, no longer
// than the link is patient and the transmitters are there.
func (s *streams) readUntil(parent context.Context, dst []complex64, next, until radio.SampleIndex) (int, radio.Meta, error) {
	if err := s.checkSenders(parent, len(dst)); err != nil {
		return 0, radio.Meta{}, err
	}
	ctx, release := s.patient(parent)
	defer release()
	n, meta, err := radio.ReadFullUntil(ctx, s.rx, dst, until)
	if err == nil || !stalled(ctx) {
		return n, meta, err
	}
	if n > 0 {
		next = meta.Index(n-1) + 1
	}
	return n, meta, fmt.Errorf("%w: the receiver gave nothing for %v, after its index %d and before %d; if it waits for what transmitters have not sent, its index differs from theirs by more than the %d samples within which it is looked for: %w",
		ErrStalled, s.patience, next, until, s.reach, err)
}

// write sends a block from device i, no longer than the link is patient.
func (s *streams) write(parent context.Context, i int, block []complex64, meta radio.TxMeta) error {
	ctx, release := s.patient(parent)
	defer release()
	n, err := s.tx[i].Write(ctx, block, meta)
	if err == nil || !stalled(ctx) {
		return err
	}
	return fmt.Errorf("%w: in %v %d of %d samples of a frame found room; if its board waits for others, a whole frame must find room: %w",
		ErrStalled, s.patience, n, len(block), err)
}

// beSilent promises zeros of device i if it does not go on by itself.
func (s *streams) beSilent(ctx context.Context, i int, until radio.SampleIndex) error {
	if _, paced := s.tx[i].(radio.Pacer); paced {
		return nil
	}
	return s.tx[i].(radio.Idler).Idle(ctx, until)
}

// checkSenders looks, every so many samples that are received, whether a transmitter
// has failed: what others have written must not go on being sent until the receiver
// has heard all of it.
func (s *streams) checkSenders(ctx context.Context, samples int) error {
	if s.unasked += samples; s.unasked < skipped {
		return nil
	}
	s.unasked = 0
	for i, tx := range s.tx {
		if t, ok := tx.(radio.Idler); ok {
			if err := t.Idle(ctx, 0); err != nil { // promises nothing
				return fmt.Errorf("device %d: %w", i+1, err)
			}
		}
	}
	return nil
}

// askForLosses asks all boards what they have lost, so that it is known before the
// frame is judged, and hands hear what transmitters have to tell.
func (s *streams) askForLosses(parent context.Context, hear func(device int, e radio.Event)) error {
	ctx, release := s.patient(parent)
	defer release()
	for i, tx := range s.tx {
		if err := checkLoss(ctx, tx); err != nil {
			return fmt.Errorf("asking device %d for its losses: %w", i+1, err)
		}
	}
	if !s.listenOnly() {
		if err := checkLoss(ctx, s.rx); err != nil {
			return fmt.Errorf("asking the receiver for its losses: %w", err)
		}
	}
	s.takeEvents(parent, hear)
	return nil
}

// checkLoss asks a stream that can be asked.
func checkLoss(ctx context.Context, s radio.Stream) error {
	if c, ok := s.(radio.LossChecker); ok {
		return c.CheckLoss(ctx)
	}
	return nil
}

// takeEvents hands hear the events that are there.
func (s *streams) takeEvents(ctx context.Context, hear func(device int, e radio.Event)) {
	poll, cancel := context.WithCancel(ctx)
	cancel() // what is there is given all the same
	for i, tx := range s.tx {
		for {
			e, err := tx.Event(poll)
			if err != nil {
				break
			}
			hear(i, e)
		}
	}
}
