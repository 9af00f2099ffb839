package hackrf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/usb"
)

// counted is a position in a stream in bytes. Without exact the board could not be
// asked: it is what this side knows.
type counted struct {
	bytes int64
	exact bool
}

// mark is something that begins at a position of a receive stream.
type mark struct {
	at    int64             // in bytes
	epoch radio.Epoch       // 0 for none
	gap   bool              // samples were lost before it
	lost  radio.SampleCount // an estimate, 0 for none
}

// receiver is the receive stream of a device.
type receiver struct {
	d *Device

	status          // its lock guards what follows, too
	marks    []mark // ascending, none of them read yet
	pos      int64  // the byte to be read next, counting what was dropped here
	unlocked bool

	// What follows belongs to the reader, but for Start, which comes before.
	in        usb.InStream
	rest      []byte // of the block that is being read
	odd       []byte // half a sample that ended a block
	index     radio.SampleIndex
	readEpoch radio.Epoch
	lost      radio.SampleCount // dropped here before pos
	patience  time.Time         // when waiting for data ends; zero while not waiting

	done     chan struct{}   // closed by Close
	broken   context.Context // done once failed is set
	breakOff context.CancelFunc
	closer   sync.Once
	watch    sync.WaitGroup
	result   error // of Close
}

func newReceiver(d *Device) *receiver {
	e := d.nextEpoch()
	r := &receiver{d: d, status: status{epoch: e}, readEpoch: e, done: make(chan struct{})}
	r.broken, r.breakOff = context.WithCancel(context.Background())
	return r
}

func (r *receiver) direction() radio.Direction { return radio.Receive }

// Start queues transfers and switches the board to receive, or arms it.
func (r *receiver) Start(ctx context.Context) error {
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	switch state := r.State(); {
	case state == radio.Closed:
		return radio.ErrClosed
	case state != radio.Ready:
		return radio.ErrBusy
	}
	if err := d.usable(ctx); err != nil {
		return err
	}
	if err := d.arm(ctx, radio.Receive); err != nil {
		return r.startFailed(err)
	}
	// Transfers first: a board that streams is not waited for with nothing queued.
	in, err := d.transport.OpenIn(usb.InConfig{
		Endpoint: endpointIn, Size: d.opts.transfer, Count: d.opts.queue, Ring: d.opts.ring, Hold: d.opts.hold,
	})
	if err != nil {
		return r.startFailed(err)
	}
	if err := d.send(setMode, modeReceive, 0, nil); err != nil {
		return r.startFailed(errors.Join(err, d.off(), in.Close()))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in, r.state = in, d.startState()
	r.watch.Add(1)
	go func() {
		defer r.watch.Done()
		watch(r.done, d.opts.poll, func() error { return r.CheckLoss(context.Background()) })
	}()
	return nil
}

func (r *receiver) startFailed(err error) error {
	return fmt.Errorf("starting to receive with %s: %w", r.d.info.URI, err)
}

// ClipLevel is that of the board's converter: radio.Ranged.
func (r *receiver) ClipLevel() radio.Amplitude { return clipLevel }

// Close switches the board off and waits until all transfers are back.
func (r *receiver) Close() error {
	r.closer.Do(func() {
		// The device's lock keeps a Start from happening in between.
		r.d.mu.Lock()
		r.mu.Lock()
		in := r.in
		r.state = radio.Closed
		r.mu.Unlock()
		r.d.mu.Unlock()
		close(r.done)
		r.watch.Wait()
		if in != nil {
			// Off first: a board that streams on may keep a cancelled queue busy.
			if err := r.d.off(); !gone(err) {
				r.result = err
			}
			r.result = errors.Join(r.result, in.Close())
		}
		r.breakOff()
		r.d.release(r)
	})
	return r.result
}

// Read gives what is left of the oldest block.
func (r *receiver) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return r.ReadUntil(ctx, dst, radio.Forever)
}

// ReadUntil is radio.Bounded.
func (r *receiver) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (n int, meta radio.Meta, err error) {
	meta.Flags = radio.HostCounted
	if err := r.ready(ctx); err != nil {
		return 0, meta, err
	}
	if len(dst) == 0 {
		return 0, meta, nil
	}
	if r.index+radio.SampleIndex(r.lost) >= until {
		return 0, meta, nil
	}
	if len(r.rest) < sampleBytes {
		if err := r.next(ctx); err != nil {
			return 0, meta, err
		}
	}
	for n < len(dst) && len(r.rest) >= sampleBytes {
		due := r.due()
		if r.steps(due) >= until {
			break
		}
		r.apply(due, &meta, n)
		k := min(len(dst)-n, len(r.rest)/sampleBytes, int(min(until-r.index, 1<<30)), r.untilMark())
		r.take(dst[n:n+k], &meta)
		n += k
	}
	return n, meta, nil
}

// next waits for a block with at least one whole sample.
func (r *receiver) next(ctx context.Context) error {
	for len(r.rest) < sampleBytes {
		b, err := r.await(ctx)
		if err != nil {
			return err
		}
		r.began()
		if b.Lost > 0 {
			r.dropped(b.Lost)
		}
		// Half a sample is nothing a board sends; if one does, I and Q must not
		// change places for ever.
		if len(r.odd) > 0 {
			r.rest = append(slices.Clip(r.odd), b.Data...)
		} else {
			r.rest = b.Data
		}
		r.odd = nil
		if k := len(r.rest) &^ 1; k < len(r.rest) {
			r.odd = []byte{r.rest[k]}
			r.rest = r.rest[:k]
		}
	}
	return nil
}

// dropped counts bytes that were dropped before the block that comes.
func (r *receiver) dropped(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	bytes += int64(len(r.odd))
	r.odd = nil
	r.pos += bytes
	r.lost += radio.SampleCount(bytes / sampleBytes)
}

// await waits for a block, no longer than ctx and the deadline of a stream that
// runs.
func (r *receiver) await(ctx context.Context) (usb.Block, error) {
	for {
		wait, release := r.bounded(ctx)
		b, err := r.in.Next(wait)
		waited := wait.Err()
		release()
		if err == nil {
			r.patience = time.Time{}
			return b, nil
		}
		if caller := ctx.Err(); caller != nil {
			return b, caller
		}
		switch {
		case r.broken.Err() != nil: // another goroutine has seen why
		case waited == nil: // the stream's own error
		case r.State() == radio.Armed:
			continue // a trigger may take as long as it likes
		default:
			err = r.silent()
		}
		return b, r.fail(err)
	}
}

// never is longer than any program runs.
const never = 100 * 365 * 24 * time.Hour

// bounded gives ctx with the deadline that applies to the wait that goes on, and
// with the end of a stream that breaks.
func (r *receiver) bounded(ctx context.Context) (context.Context, func()) {
	if r.patience.IsZero() || r.State() == radio.Armed {
		r.patience = time.Now().Add(r.d.opts.deadline)
	}
	patience := r.patience
	if r.d.opts.deadline == 0 {
		patience = time.Now().Add(never)
	}
	wait, cancel := context.WithDeadline(ctx, patience)
	stop := context.AfterFunc(r.broken, cancel)
	return wait, func() { stop(); cancel() }
}

// silent says why a board that runs sends nothing.
func (r *receiver) silent() error {
	if r.d.api >= apiM0 {
		state, err := r.d.m0()
		switch {
		case err != nil:
			return err
		case state.err == m0RXTimeout:
			return ErrOverrunLimit
		}
	}
	return fmt.Errorf("no samples for %v: %w", r.d.opts.deadline, usb.ErrTimeout)
}

// fail notes why the stream gives no more, unless it was closed.
func (r *receiver) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.state == radio.Closed:
		return radio.ErrClosed
	case r.failed == nil:
		r.failed = fmt.Errorf("receiving with %s: %w", r.d.info.URI, err)
		r.breakOff()
	}
	return r.failed
}

// due takes the marks that the next sample has reached.
func (r *receiver) due() []mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for n < len(r.marks) && r.marks[n].at <= r.pos {
		n++
	}
	return r.marks[:n:n]
}

// steps gives the index that the next sample has with the marks that are due.
func (r *receiver) steps(due []mark) radio.SampleIndex {
	i := r.index + radio.SampleIndex(r.lost)
	for _, m := range due {
		i += radio.SampleIndex(m.lost)
	}
	return i
}

// apply tells in meta what comes before the sample that is n-th of its block.
func (r *receiver) apply(due []mark, meta *radio.Meta, n int) {
	if r.lost > 0 {
		r.step(meta, radio.Gap{At: n, Length: r.lost, Exact: true})
		r.lost = 0
	}
	epoch := r.readEpoch
	for _, m := range due {
		if m.gap {
			r.step(meta, radio.Gap{At: n, Length: m.lost})
		}
		if m.epoch != 0 {
			epoch = m.epoch
		}
	}
	if n == 0 {
		meta.First, meta.Epoch = r.index, epoch
	} else if epoch != r.readEpoch {
		meta.Changes = append(meta.Changes, radio.EpochChange{At: n, Epoch: epoch})
	}
	r.readEpoch = epoch
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = slices.Delete(r.marks, 0, len(due))
	if r.unlocked {
		meta.Flags |= radio.Unlocked
	}
}

func (r *receiver) step(meta *radio.Meta, g radio.Gap) {
	meta.Gaps = append(meta.Gaps, g)
	meta.Flags |= radio.Overrun
	r.index += radio.SampleIndex(g.Length)
}

// untilMark gives the number of samples before the next mark, at least one.
func (r *receiver) untilMark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.marks) == 0 {
		return 1 << 30
	}
	return int(max(1, min(1<<30, (r.marks[0].at-r.pos+1)/sampleBytes)))
}

// take decodes the next samples.
func (r *receiver) take(dst []complex64, meta *radio.Meta) {
	if clipped := samples.Decode(dst, r.rest).Clipped; clipped > 0 {
		meta.Clipped += radio.SampleCount(clipped)
		meta.Flags |= radio.Clipped
	}
	r.rest = r.rest[sampleBytes*len(dst):]
	r.index += radio.SampleIndex(len(dst))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pos += int64(sampleBytes * len(dst))
}

// counted gives how far the board has got.
func (r *receiver) counted() counted {
	state, pos := r.position()
	if state == radio.Ready || r.d.api < apiM0 {
		return counted{pos, false}
	}
	m0, err := r.d.m0()
	if err != nil {
		return counted{pos, false}
	}
	return counted{ahead(pos, m0.bytes), true}
}

func (r *receiver) position() (radio.State, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.pos
}

// ahead makes a position of a count of the board's, which wraps and is not behind
// pos, where the reader was before the board was asked.
func ahead(pos int64, m0 uint32) int64 { return pos + int64(m0-uint32(pos)) }

// disturbed begins epochs at both ends of a stretch, and again a moment later.
func (r *receiver) disturbed(from, to counted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == radio.Ready {
		r.epoch = r.d.nextEpoch()
		r.readEpoch = r.epoch
		return
	}
	settling := int64(limitBytes(settle, r.d.rate))
	if !to.exact {
		// As far ahead of the reader as data can be.
		to.bytes += int64(r.d.opts.ring+2+r.d.opts.queue)*int64(r.d.opts.transfer) + int64(r.d.flush)
	}
	r.mark(from.bytes, to.bytes+settling)
}

// mark begins an epoch at each of two positions. An epoch that was to begin after
// the first begins at the second at the earliest: what comes before is not steady.
// The lock is held.
func (r *receiver) mark(from, to int64) {
	from = max(from, r.pos)
	to = max(to, from)
	kept := r.marks[:0:0]
	for _, m := range r.marks {
		if m.epoch != 0 && m.at >= from {
			to = max(to, m.at)
			m.epoch = 0
		}
		if m.epoch != 0 || m.gap {
			kept = append(kept, m)
		}
	}
	if to > from {
		kept = append(kept, mark{at: from, epoch: r.d.nextEpoch()})
	}
	r.epoch = r.d.nextEpoch()
	r.marks = sorted(append(kept, mark{at: to, epoch: r.epoch}))
}

func sorted(marks []mark) []mark {
	slices.SortStableFunc(marks, func(a, b mark) int { return int(min(1, max(-1, a.at-b.at))) })
	return marks
}

// CheckLoss is radio.LossChecker.
func (r *receiver) CheckLoss(ctx context.Context) error {
	if err := r.ready(ctx); err != nil {
		return err
	}
	if err := r.look(); err != nil {
		return r.fail(err)
	}
	return nil
}

// look asks the board what it has lost.
func (r *receiver) look() error {
	r.watched.mu.Lock()
	defer r.watched.mu.Unlock()
	state, pos := r.position()
	news, err := r.watched.ask(r.d, state == radio.Armed)
	if err != nil || !news.asked {
		return err
	}
	now := ahead(pos, news.state.bytes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if news.state.bytes > 0 && r.state == radio.Armed {
		r.state = radio.Running
	}
	if news.shortfalls > 0 {
		r.mark(r.watched.seen, now)
		r.marks = sorted(append(r.marks, mark{at: max(now, r.pos), gap: true, lost: radio.SampleCount(news.longest / sampleBytes)}))
	}
	if news.clockLost {
		r.mark(r.watched.seen, now)
	}
	r.unlocked = news.unlocked
	r.watched.seen = now
	if news.state.err == m0RXTimeout {
		return ErrOverrunLimit
	}
	return nil
}
