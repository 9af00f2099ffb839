package array

import (
	"context"
	"fmt"
	"slices"

	"ringwave/radio"
)

// located reports whether transmitters are found by Config.Locate.
func (a *Array) located() bool { return a.cfg.Trigger == SoundedStart && a.cfg.Locate != nil }

// checkPaced wants transmitters that are to be located to go on by themselves: the index of
// others stands still while nothing is written.
func (a *Array) checkPaced() error {
	if !a.located() {
		return nil
	}
	for _, m := range a.transmitters() {
		if _, ok := m.tx.(radio.Pacer); !ok {
			return incoherent("%s, %s, is not fed while nothing is written, so that it cannot be located by soundings", m.role, m.uri)
		}
	}
	return nil
}

// unlocatedError is for transmitters that may have lost samples while they were located, which
// nobody tells of.
type unlocatedError struct{ err error }

// Error returns one sentence.
func (e *unlocatedError) Error() string { return e.err.Error() }

// Unwrap returns what Config.Locate said.
func (e *unlocatedError) Unwrap() error { return e.err }

// locate gives the running transmitters the index that they have in common.
func (a *Array) locate(ctx context.Context) error {
	var own []radio.Transmitter
	for _, m := range a.transmitters() {
		m.common = m.tx
		own = append(own, m.tx)
	}
	if !a.located() {
		return a.measure(ctx, own)
	}
	offsets, err := a.cfg.Locate(ctx, own, a.Receiver())
	if err != nil {
		err = fmt.Errorf("locating the transmitters by soundings: %w", err)
		if slices.ContainsFunc(own, func(t radio.Transmitter) bool { return radio.LosesSilently(t) }) {
			return &unlocatedError{err}
		}
		return err
	}
	if len(offsets) != len(own) {
		return fmt.Errorf("locating the transmitters by soundings: there are %d offsets for %d", len(offsets), len(own))
	}
	for i, m := range a.transmitters() {
		m.offset = offsets[i]
		if m.common, err = radio.Shift(m.tx, m.offset); err != nil {
			return fmt.Errorf("%s: %w", m.role, err)
		}
	}
	return nil
}
