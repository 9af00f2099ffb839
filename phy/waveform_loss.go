package phy

import (
	"context"
	"errors"
	"fmt"

	"ringwave/radio"
)

// askForLosses asks all boards what they have lost, so that it is known before the
// frame is judged, and takes what transmitters have to tell.
func (w *Waveform) askForLosses(parent context.Context) error {
	ctx, release := w.patient(parent)
	defer release()
	for i, tx := range w.cfg.Transmitters {
		if err := checkLoss(ctx, tx); err != nil {
			return fmt.Errorf("asking device %d for its losses: %w", i+1, err)
		}
	}
	if w.cfg.Transmitters != nil {
		if err := checkLoss(ctx, w.cfg.Receiver); err != nil {
			return fmt.Errorf("asking the receiver for its losses: %w", err)
		}
	}
	w.takeEvents(parent)
	return nil
}

// checkLoss asks a stream that can be asked.
func checkLoss(ctx context.Context, s radio.Stream) error {
	if c, ok := s.(radio.LossChecker); ok {
		return c.CheckLoss(ctx)
	}
	return nil
}

// checkPresent makes the attempt void if the receiver has lost something since: what
// was read already does not say so.
func (w *Waveform) checkPresent() {
	_, asked := w.cfg.Receiver.(radio.LossChecker)
	if asked && w.rxKnown && w.cfg.Receiver.Epoch() != w.rxEpoch {
		w.spoil("the receiver's tuning epoch changed, as by a loss of samples")
	}
}

// takeEvents takes what transmitters have to tell, and makes the attempt void by it.
func (w *Waveform) takeEvents(ctx context.Context) {
	poll, cancel := context.WithCancel(ctx)
	cancel() // what is there is given all the same
	for i, tx := range w.cfg.Transmitters {
		for {
			e, err := tx.Event(poll)
			if err != nil {
				break
			}
			w.hearOf(i, e)
		}
	}
}

// hearOf takes in an event of device i.
func (w *Waveform) hearOf(i int, e radio.Event) {
	switch e.Kind {
	case radio.Late:
		w.spoil(fmt.Sprintf("device %d was late: its frame came after the board had passed its time", i+1))
	case radio.Underrun:
		w.spoil(fmt.Sprintf("device %d had an underrun", i+1))
		if !e.Exact {
			w.uncounted = fmt.Sprintf("device %d lost count of its samples in an underrun: its streams must be opened anew", i+1)
		}
	case radio.EventsLost:
		w.spoil(fmt.Sprintf("%d events of device %d were lost", e.Count, i+1))
	}
}

// recount brings transmitters that have lost count to a common one, before an
// attempt. It leaves the reason where it cannot.
func (w *Waveform) recount(ctx context.Context) error {
	if err := w.askForLosses(ctx); err != nil {
		return err
	}
	switch {
	case w.uncounted == "":
		return nil
	case w.cfg.Restart != nil:
		return w.restart(ctx)
	case len(w.cfg.Transmitters) == 1:
		// The receiver's index is all that can differ.
		w.uncounted = ""
		w.loseTrace()
	}
	return nil
}

// ErrAgain: new streams were of no use, as they lost count before anything was made of
// them. They may begin anew once more.
var ErrAgain = errors.New("the streams must begin anew")

// restartTries is how many times streams begin anew, one right after the other.
const restartTries = 4

// restart takes up new streams, and others while those are of no use.
func (w *Waveform) restart(ctx context.Context) error {
	for try := 1; ; try++ {
		err := w.beginAnew(ctx)
		if try == restartTries || !errors.Is(err, ErrAgain) {
			return err
		}
	}
}

// beginAnew takes up new streams.
func (w *Waveform) beginAnew(ctx context.Context) error {
	tx, rx, err := w.cfg.Restart(ctx)
	if err != nil {
		return fmt.Errorf("beginning anew, as %s: %w", w.uncounted, err)
	}
	if len(tx) != len(w.devices) || rx == nil {
		return fmt.Errorf("beginning anew, as %s: there are %d transmitters and a receiver %v for %d devices", w.uncounted, len(tx), rx, len(w.devices))
	}
	if err := idle(tx); err != nil {
		return err
	}
	w.cfg.Transmitters, w.cfg.Receiver = tx, rx
	w.cursor, w.sent, w.next, w.offset = w.cfg.Start, w.cfg.Start, w.cfg.Start, 0
	w.loseTrace()
	w.hasTimed = false
	if err := w.remeasure(ctx); err != nil {
		return err
	}
	w.uncounted = ""
	return nil
}

// remeasure has devices make up for what new streams ask for.
func (w *Waveform) remeasure(ctx context.Context) (err error) {
	if w.cfg.Remeasure == nil {
		return nil
	}
	if w.cfg.Trim, w.cfg.Advance, w.cursor, err = w.cfg.Remeasure(ctx); err != nil {
		return fmt.Errorf("measuring the phases of new streams: %w", err)
	}
	if err := w.cfg.validateTrims(); err != nil {
		return err
	}
	w.sent, w.next = w.cursor, w.cursor
	for i, d := range w.devices {
		if d.modulator, err = w.modulatorOf(i); err != nil {
			return err
		}
	}
	return nil
}
