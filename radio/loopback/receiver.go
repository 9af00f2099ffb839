package loopback

import (
	"context"
	"slices"

	"ringwave/radio"
)

// receiver is the medium's receive stream; the medium's lock guards it.
type receiver struct {
	m     *Medium
	state radio.State
	start radio.SampleIndex // what comes before is not given
	lost  radio.SampleCount // since the last sample given
	waste []complex64
}

func (m *Medium) openReceiver(start radio.SampleIndex) (*receiver, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, radio.ErrClosed
	}
	if m.rx != nil {
		return nil, radio.ErrBusy
	}
	m.rx = &receiver{m: m, start: start}
	m.rxEpoch++
	return m.rx, nil
}

// Start lets samples flow, in real time from now on.
func (r *receiver) Start(context.Context) error {
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.state {
	case radio.Closed:
		return radio.ErrClosed
	case radio.Running:
		return radio.ErrBusy
	}
	r.state = radio.Running
	if m.cfg.Clock != nil {
		r.start = max(r.start, m.now())
	}
	return nil
}

func (r *receiver) State() radio.State {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return r.state
}

func (r *receiver) Epoch() radio.Epoch {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return r.m.rxEpoch
}

func (r *receiver) Close() error {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	r.close()
	return nil
}

func (r *receiver) close() {
	if r.state == radio.Closed {
		return
	}
	r.state = radio.Closed
	r.m.rx = nil
	r.m.wake()
}

// ready returns the error of a read in the present state.
func (r *receiver) ready(ctx context.Context) error {
	switch r.state {
	case radio.Closed:
		return radio.ErrClosed
	case radio.Ready, radio.Armed:
		return radio.ErrNotStarted
	}
	return ctx.Err()
}

// Read fills dst whole if it does not fail.
func (r *receiver) Read(ctx context.Context, dst []complex64) (n int, meta radio.Meta, err error) {
	return r.ReadUntil(ctx, dst, radio.Forever)
}

// ClipLevel is that of the medium's converter: radio.Ranged.
func (r *receiver) ClipLevel() radio.Amplitude {
	if c, ok := r.m.cfg.Converter.(interface{ ClipLevel() radio.Amplitude }); ok {
		return c.ClipLevel()
	}
	return 0
}

// ReadUntil fills dst whole, or up to index until: radio.Bounded. It waits for no
// device beyond until.
func (r *receiver) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (n int, meta radio.Meta, err error) {
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.ready(ctx); err != nil {
		return 0, meta, err
	}
	if err := r.idle(ctx); err != nil {
		return 0, meta, err
	}
	for n < len(dst) && m.next < until {
		r.overrun()
		m.passTurns()
		size, keep := r.chunk(len(dst)-n, until, m.block())
		if err := r.await(ctx, size); err != nil {
			return n, meta, err
		}
		if !keep {
			r.waste = slices.Grow(r.waste[:0], size)[:size]
			m.mix(r.waste, m.rxTurn)
			r.forget(size)
			continue
		}
		r.describe(&meta, n)
		clipped := m.mix(dst[n:n+size], m.rxTurn)
		if clipped > 0 {
			meta.Clipped += radio.SampleCount(clipped)
			meta.Flags |= radio.Clipped
		}
		n += size
	}
	return n, meta, nil
}

// block returns the number of samples to mix next: a long stretch, for several cores,
// where all of it was written, and else as few as keep no writer waiting.
func (m *Medium) block() radio.SampleIndex {
	long := radio.SampleIndex(max(mixBlock, mixStretch/len(m.lines)/mixBlock*mixBlock))
	if m.cfg.Clock != nil || !m.written(m.next+long) {
		return mixBlock
	}
	return long
}

// chunk returns the number of samples to mix next, at most a block and none from
// index until on, and whether they are kept. It is cut where samples begin or cease
// to be lost and where the receiver is retuned.
func (r *receiver) chunk(want int, until, block radio.SampleIndex) (size int, keep bool) {
	m := r.m
	end := min(m.next+block, until)
	switch {
	case m.next < r.start:
		return int(min(end, r.start) - m.next), false
	case len(m.drops) > 0 && m.drops[0].first <= m.next:
		return int(min(end, m.drops[0].end) - m.next), false
	}
	end = min(end, m.next+radio.SampleIndex(want))
	if len(m.drops) > 0 {
		end = min(end, m.drops[0].first)
	}
	if len(m.rxTurns) > 0 {
		end = min(end, m.rxTurns[0].at)
	}
	return int(end - m.next), true
}

// forget counts samples that were mixed and not given, unless they came before
// the start.
func (r *receiver) forget(n int) {
	m := r.m
	r.lost += radio.SampleCount(max(0, min(radio.SampleIndex(n), m.next-r.start)))
	for len(m.drops) > 0 && m.drops[0].end <= m.next {
		m.drops = slices.Delete(m.drops, 0, 1)
	}
}

// describe tells of the chunk that begins at m.next and at position n.
func (r *receiver) describe(meta *radio.Meta, n int) {
	m := r.m
	if n == 0 {
		meta.First, meta.Epoch = m.next, m.rxEpoch
	} else if meta.EpochAt(n) != m.rxEpoch {
		meta.Changes = append(meta.Changes, radio.EpochChange{At: n, Epoch: m.rxEpoch})
	}
	if r.lost > 0 {
		meta.Gaps = append(meta.Gaps, radio.Gap{At: n, Length: r.lost, Exact: true})
		meta.Flags |= radio.Overrun
		r.lost = 0
	}
}

// await waits until the next n samples can be mixed.
func (r *receiver) await(ctx context.Context, n int) error {
	m := r.m
	end := m.next + radio.SampleIndex(n)
	if m.cfg.Clock != nil {
		return r.awaitClock(ctx, end)
	}
	for {
		// A read that has no need to wait must notice too.
		if err := r.ready(ctx); err != nil {
			return err
		}
		if m.written(end) {
			return nil
		}
		m.wait(ctx)
	}
}

// idle waits until no other reader computes.
func (r *receiver) idle(ctx context.Context) error {
	for r.m.mixing {
		r.m.wait(ctx)
		if err := r.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// written reports whether all devices are known up to receive index end.
func (m *Medium) written(end radio.SampleIndex) bool {
	for _, l := range m.lines {
		if !l.done && l.pos < end-l.delay {
			return false
		}
	}
	return true
}

func (r *receiver) awaitClock(ctx context.Context, end radio.SampleIndex) error {
	m := r.m
	at := m.cfg.Rate.Duration(radio.SampleCount(end))
	for m.cfg.Clock.Now() < at {
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed := m.changed
		m.mu.Unlock()
		// A close must end the wait; a write only makes it look again.
		m.cfg.Clock.Wait(ctx, at, changed)
		m.mu.Lock()
		if err := r.ready(ctx); err != nil {
			return err
		}
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	for _, l := range m.lines {
		l.starve(end - l.delay)
	}
	return nil
}

// now returns the index that the clock has reached.
func (m *Medium) now() radio.SampleIndex {
	if m.cfg.Clock == nil {
		return m.next
	}
	return radio.SampleIndex(m.cfg.Rate.Samples(m.cfg.Clock.Now()))
}

// overrun drops what a reader in real time came too late for.
func (r *receiver) overrun() {
	m := r.m
	if m.cfg.Clock == nil {
		return
	}
	from := max(m.next, r.start)
	if kept := m.now() - radio.SampleIndex(m.cfg.ReceiveBuffer); kept > from {
		m.drops = insertSpan(m.drops, span{from, kept})
	}
}

// passTurns applies the retunes of the receiver that are due.
func (m *Medium) passTurns() {
	for len(m.rxTurns) > 0 && m.rxTurns[0].at <= m.next {
		m.rxTurn *= m.rxTurns[0].turn
		m.rxEpoch++
		m.rxTurns = slices.Delete(m.rxTurns, 0, 1)
	}
}
