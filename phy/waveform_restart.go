package phy

import (
	"context"
	"errors"
	"fmt"

	"ringwave/radio"
)

// recount brings transmitters that have lost count to a common one, before an
// attempt. It leaves the reason where it cannot.
func (w *WaveformReceiver) recount(ctx context.Context) error {
	if w.epochs.uncounted == "" {
		w.starved = 0
	}
	if err := w.starve(w.streams.askForLosses(ctx, w.epochs.hear)); err != nil {
		return err
	}
	if w.cfg.Restart != nil && w.epochs.uncounted == "" {
		w.epochs.uncounted = w.suspicion()
	}
	switch {
	case w.epochs.uncounted == "":
		return nil
	case w.cfg.Restart != nil:
		return w.restart(ctx)
	case len(w.streams.tx) == 1:
		// The receiver's index is all that can differ.
		w.epochs.uncounted = ""
		w.time.loseTrace()
	}
	return nil
}

// mostAstray is how many frames are searched for as far as Reach behind a loss of samples that
// nobody has counted, before streams begin anew: it was longer.
const mostAstray = 3

// mostUnread is how many attempts in a row may be void from their b on before streams begin anew
// whose boards lose samples that nobody tells of.
const mostUnread = 2

// suspicion says why counts may be lost although nobody said so, empty where nothing speaks for
// it.
func (w *WaveformReceiver) suspicion() string {
	if w.time.astray >= mostAstray {
		return fmt.Sprintf("the receiver lost samples, and not how many is known: %d frames were not found since", w.time.astray)
	}
	if w.unread < mostUnread {
		return ""
	}
	for i, tx := range w.streams.tx {
		if radio.LosesSilently(tx) {
			return fmt.Sprintf("b was not read in %d attempts in a row, and the radio of device %d does not tell of all that it loses", w.unread, i+1)
		}
	}
	return ""
}

// mostStarved is how many attempts in a row may end as their streams did. A machine that is
// too slow for its boards is so for a moment, or for good.
const mostStarved = 8

// starve takes in a stream that has ended as this machine was too slow for a board, where
// streams can begin anew: the attempt is void, and they begin anew before the next one.
func (w *WaveformReceiver) starve(err error) error {
	if !errors.Is(err, radio.ErrStarved) || w.cfg.Restart == nil {
		return err
	}
	if w.epochs.uncounted == "" || w.starved == 0 {
		w.starved++
	}
	if w.starved > mostStarved {
		return fmt.Errorf("in %d attempts in a row: %w", w.starved, err)
	}
	w.finder.capture.heard = 0
	w.epochs.uncounted = err.Error()
	w.epochs.spoil(err.Error())
	return nil
}

// ErrAgain: new streams were of no use, as they lost count before anything was made of
// them. They may begin anew once more.
var ErrAgain = errors.New("the streams must begin anew")

// restartTries is how many times streams begin anew, one right after the other.
const restartTries = 4

// restart takes up new streams, and others while those are of no use.
func (w *WaveformReceiver) restart(ctx context.Context) error {
	for try := 1; ; try++ {
		err := w.beginAnew(ctx)
		if try == restartTries || !errors.Is(err, ErrAgain) && !errors.Is(err, radio.ErrStarved) {
			return err
		}
	}
}

// beginAnew takes up new streams.
func (w *WaveformReceiver) beginAnew(ctx context.Context) error {
	tx, rx, err := w.cfg.Restart(ctx)
	if err != nil {
		return fmt.Errorf("beginning anew, as %s: %w", w.epochs.uncounted, err)
	}
	if len(tx) != w.cfg.Devices || rx == nil {
		return fmt.Errorf("beginning anew, as %s: there are %d transmitters and a receiver %v for %d devices", w.epochs.uncounted, len(tx), rx, w.cfg.Devices)
	}
	if err := idle(tx); err != nil {
		return err
	}
	w.streams.tx, w.streams.rx = tx, rx
	w.time.begin(w.cfg.Start)
	w.sender.begin()
	if err := w.remeasure(ctx); err != nil {
		return err
	}
	w.epochs.uncounted, w.unread = "", 0
	return nil
}

// remeasure has devices make up for what new streams ask for.
func (w *WaveformReceiver) remeasure(ctx context.Context) error {
	if w.cfg.Remeasure == nil {
		return nil
	}
	a, start, err := w.cfg.Remeasure(ctx)
	if err != nil {
		return fmt.Errorf("measuring the phases of new streams: %w", err)
	}
	if err := a.validate(w.cfg.Devices); err != nil {
		return err
	}
	w.time.moveTo(start)
	if w.unit, err = w.cfg.unit(a); err != nil {
		return err
	}
	return w.sender.adjust(&w.cfg, a)
}
