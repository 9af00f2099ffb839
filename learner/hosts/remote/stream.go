package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
)

// stream is a transmit stream at its host.
type stream struct {
	tx     radio.Transmitter
	number uint64
	why    error // of a stream that the host has closed

	// events are those that the proxy was not heard to have, the first being number seen.
	events []radio.Event
	seen   uint64

	closing sync.Once
	over    chan struct{} // closed with the stream
	closed  error         // of closing
}

// maxHeld bounds the events that are held for a proxy: beyond, the driver holds them, and
// counts what is too much for it.
const maxHeld = 1024

// close closes the stream once.
func (s *stream) close() error {
	s.closing.Do(func() {
		s.closed = s.tx.Close()
		close(s.over)
	})
	return s.closed
}

// ended reports whether the stream was closed.
func (s *stream) ended() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// status tells how the stream does, to a proxy that has the first seen of its events.
func (s *stream) status(seen uint64) *status {
	if seen > s.seen && seen-s.seen <= uint64(len(s.events)) {
		s.events = append(s.events[:0], s.events[seen-s.seen:]...)
		s.seen = seen
	}
	for len(s.events) < maxHeld {
		e, err := s.tx.Event(life.Ended())
		if err != nil {
			break
		}
		s.events = append(s.events, e)
	}
	n := min(len(s.events), maxEvents)
	all := &status{
		Number: s.number, State: s.tx.State(), Epoch: s.tx.Epoch(),
		First: s.seen, Events: s.events[:n], Left: len(s.events) - n,
	}
	s.can(all)
	return all
}

// can fills in what depends on the stream's capabilities.
func (s *stream) can(all *status) {
	if p, ok := s.tx.(radio.Pacer); ok {
		all.Paces, all.Earliest = true, p.Earliest()
	}
	if c, ok := s.tx.(radio.ClipCounter); ok {
		all.Counts, all.Clipped = true, c.Clipped()
	}
	_, all.Idles = s.tx.(radio.Idler)
	_, all.Checks = s.tx.(radio.LossChecker)
}

const (
	// look is how often a board is looked at that waits for its trigger.
	look = 20 * time.Millisecond
	// settled is for how many looks a board has taken no more samples that is full.
	settled = 5
	// filling is how long it may take to be.
	filling = 5 * time.Second
)

// filled waits until a board that waits for its trigger has all the samples that it can
// hold, so that its index stands still when the proxy hears of it. Whoever waits for the
// same there learns of an index only when it asks.
func (s *stream) filled(ctx context.Context) {
	p, ok := s.tx.(radio.Pacer)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, filling)
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for handed, same := radio.SampleIndex(0), 0; same < settled && s.tx.State() == radio.Armed; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := p.Earliest()
		if same++; now != handed || now == 0 {
			handed, same = now, 0
		}
	}
}

// onStream does what is asked of a stream.
func (h *Host) onStream(ctx context.Context, r *request, a *answer) error {
	s := h.stream
	switch {
	case s == nil || s.number != r.Stream:
		return radio.ErrClosed
	case r.Op == opClose:
		return s.close()
	case s.why != nil:
		return s.why
	case r.Op == opStatus:
		return nil
	}
	switch r.Op {
	case opStart:
		if err := s.tx.Start(ctx); err != nil {
			return err
		}
		s.filled(ctx)
		return nil
	case opWrite:
		return h.write(ctx, r.Burst, r, a)
	case opIdle:
		i, ok := s.tx.(radio.Idler)
		if !ok {
			return errors.New("the radio does not send zeros without being given them")
		}
		return i.Idle(ctx, r.Index)
	case opLosses:
		c, ok := s.tx.(radio.LossChecker)
		if !ok {
			return errors.New("the radio cannot be asked for what it has lost")
		}
		return c.CheckLoss(ctx)
	case opDo:
		return h.own(ctx, r, a)
	}
	return fmt.Errorf("a request to %q; the radio's host does not know it", printable(string(r.Op)))
}

// own does an operation of the application's own.
func (h *Host) own(ctx context.Context, r *request, a *answer) (err error) {
	if h.cfg.Do == nil {
		return fmt.Errorf("a request to do %q; the radio's host has no operations of its own", printable(r.Name))
	}
	a.payload, err = h.cfg.Do(ctx, h.stream.tx, r.Name, r.payload)
	if err == nil && len(a.payload) > maxPayload {
		a.payload, err = nil, fmt.Errorf("the answer to %q has %d bytes; allowed is %d", printable(r.Name), len(a.payload), maxPayload)
	}
	return err
}

// write has the stream take a burst, or what is left of it.
func (h *Host) write(ctx context.Context, x *burst, r *request, a *answer) error {
	b, ok := h.bursts.find([32]byte(x.Digest))
	if x.Whole {
		y, err := samples(r.payload)
		if err != nil {
			return err
		}
		b = keptBurst{digest: digest(y), samples: len(y), x: y}
		if b.digest != [32]byte(x.Digest) {
			return errors.New("a burst has another digest than its request says")
		}
		h.bursts.add(b)
	} else if !ok || b.samples != x.Samples {
		a.Missing = true
		return nil
	}
	n, err := h.stream.tx.Write(ctx, b.x[x.From:], radio.TxMeta{Timed: x.Timed, Start: r.Index, BurstEnd: x.End})
	a.Taken = n
	if errors.Is(err, context.DeadlineExceeded) && context.Cause(ctx) == errPatience {
		a.Again = true
		return nil
	}
	return err
}
