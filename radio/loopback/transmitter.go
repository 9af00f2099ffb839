package loopback

import (
	"context"
	"fmt"

	"ringwave/radio"
)

// transmitter is a device's transmit stream; the medium's lock guards it.
type transmitter struct {
	m      *Medium
	line   *line
	state  radio.State
	events *radio.EventQueue
}

func (m *Medium) openTransmitter(device int) (*transmitter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.line(device)
	if err != nil {
		return nil, err
	}
	if l.tx != nil {
		return nil, radio.ErrBusy
	}
	l.tx = &transmitter{m: m, line: l, events: radio.NewEventQueue()}
	l.done, l.inBurst, l.starved = false, false, false
	l.pos = max(l.pos, m.cursor(l))
	l.epoch++
	return l.tx, nil
}

func (t *transmitter) Start(context.Context) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	switch t.state {
	case radio.Closed:
		return radio.ErrClosed
	case radio.Running:
		return radio.ErrBusy
	}
	t.state = radio.Running
	return nil
}

func (t *transmitter) State() radio.State {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.state
}

func (t *transmitter) Epoch() radio.Epoch {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	return t.line.epoch
}

// Close ends the stream; what was written is still sent.
func (t *transmitter) Close() error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.close()
	return nil
}

func (t *transmitter) close() {
	if t.state == radio.Closed {
		return
	}
	t.state = radio.Closed
	t.events.Close()
	t.line.tx, t.line.done, t.line.bursts = nil, true, nil
	t.m.wake()
}

func (t *transmitter) Event(ctx context.Context) (radio.Event, error) { return t.events.Next(ctx) }

func (t *transmitter) ready(ctx context.Context) error {
	switch t.state {
	case radio.Closed:
		return radio.ErrClosed
	case radio.Ready, radio.Armed:
		return radio.ErrNotStarted
	}
	return ctx.Err()
}

// Write appends src, or puts it at its time.
func (t *transmitter) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (n int, err error) {
	m, l := t.m, t.line
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := t.ready(ctx); err != nil {
		return 0, err
	}
	if meta.Timed && meta.Start > lastIndex {
		return 0, fmt.Errorf("loopback %q: a block is to start at index %d; allowed is at most %d", m.cfg.Name, meta.Start, lastIndex)
	}
	// Only in real time, or after a reopening, can the reader be ahead.
	l.pos = max(l.pos, m.cursor(l))
	if meta.Timed && meta.Start < l.pos {
		l.tell(radio.Late, meta.Start, radio.SampleCount(len(src)))
		return len(src), nil
	}
	if meta.Timed {
		l.pos = meta.Start
	}
	for {
		k := min(len(src)-n, m.cfg.Window-l.stored)
		if k > 0 {
			l.store(src[n : n+k])
			l.inBurst, l.starved = true, false
			n += k
		}
		// Blocked writers that woke each other for nothing would spin.
		if k > 0 || n == len(src) {
			m.wake()
		}
		if n == len(src) {
			break
		}
		m.wait(ctx)
		if err := t.ready(ctx); err != nil {
			return n, err
		}
		l.pos = max(l.pos, m.cursor(l))
	}
	if meta.BurstEnd {
		l.inBurst = false
		l.bursts = append(l.bursts, l.pos)
	}
	return n, nil
}

// Idle never waits: zeros take no room.
func (t *transmitter) Idle(ctx context.Context, until radio.SampleIndex) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if err := t.ready(ctx); err != nil {
		return err
	}
	t.line.pos = max(t.line.pos, min(until, lastIndex))
	t.line.inBurst = false
	t.m.wake()
	return nil
}
