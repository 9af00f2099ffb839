package loopback

import (
	"fmt"
	"math"
	"sort"

	"ringwave/radio"
)

// Radians is an angle.
type Radians float64

func (a Radians) turn() complex64 {
	sin, cos := math.Sincos(float64(a))
	return complex(float32(cos), float32(sin))
}

// insertSpan adds s to ascending spans and joins those that touch.
func insertSpan(spans []span, s span) []span {
	spans = append(spans, s)
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].first < spans[j].first })
	joined := spans[:1]
	for _, s := range spans[1:] {
		if last := &joined[len(joined)-1]; s.first <= last.end {
			last.end = max(last.end, s.end)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

func (m *Medium) passed(what string, at, limit radio.SampleIndex) error {
	if at < limit || at > lastIndex {
		return fmt.Errorf("loopback %q: %s is to happen at index %d; allowed is %d to %d", m.cfg.Name, what, at, limit, lastIndex)
	}
	return nil
}

func (m *Medium) length(what string, n radio.SampleCount) error {
	if n < 1 || n > MaxDelay {
		return fmt.Errorf("loopback %q: %s is to last %d samples; allowed is 1 to %d", m.cfg.Name, what, n, MaxDelay)
	}
	return nil
}

// Drop makes the receiver lose n samples (1 to MaxDelay) from receive index at on:
// an overrun with a gap.
func (m *Medium) Drop(at radio.SampleIndex, n radio.SampleCount) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.passed("a loss of samples", at, m.next); err != nil {
		return err
	}
	if err := m.length("a loss of samples", n); err != nil {
		return err
	}
	m.drops = insertSpan(m.drops, span{at, at + radio.SampleIndex(n)})
	return nil
}

// Underrun makes device i send n zeros (1 to MaxDelay) in place of what it wrote,
// from its transmit index at on, with an event.
func (m *Medium) Underrun(i int, at radio.SampleIndex, n radio.SampleCount) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.line(i)
	if err != nil {
		return err
	}
	if err := m.passed("an underrun", at, m.cursor(l)); err != nil {
		return err
	}
	if err := m.length("an underrun", n); err != nil {
		return err
	}
	l.underruns = insertSpan(l.underruns, span{at, at + radio.SampleIndex(n)})
	return nil
}

// Retune turns the phase of device i from its transmit index at on, which begins
// an epoch of the device with an event: a clock that was lost, say.
func (m *Medium) Retune(i int, at radio.SampleIndex, turn Radians) error {
	return m.change(i, "a retune", step{at: at, turn: turn.turn(), epoch: true})
}

// SetGain returns device i a new gain from its transmit index at on. It is the
// channel that changes, and the device does not know: the epoch stays.
func (m *Medium) SetGain(i int, at radio.SampleIndex, gain complex64) error {
	return m.change(i, "a change of gain", step{at: at, set: true, gain: gain, turn: 1})
}

func (m *Medium) change(i int, what string, s step) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.line(i)
	if err != nil {
		return err
	}
	if err := m.passed(what, s.at, m.cursor(l)); err != nil {
		return err
	}
	l.steps = insert(l.steps, s)
	return nil
}

// RetuneReceiver turns the phase of the receiver from receive index at on, which
// begins an epoch of its stream.
func (m *Medium) RetuneReceiver(at radio.SampleIndex, turn Radians) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.passed("a retune of the receiver", at, m.next); err != nil {
		return err
	}
	m.rxTurns = insert(m.rxTurns, step{at: at, turn: turn.turn()})
	return nil
}
