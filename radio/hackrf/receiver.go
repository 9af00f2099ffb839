package hackrf

import (
	"context"
	"io"
	"slices"

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
	pump            // its lock guards what follows, too
	marks    []mark // ascending, none of them read yet
	pos      int64  // the byte to be read next, counting what was dropped here
	unlocked bool

	in usb.InStream // set by Start; its blocks are the reader's

	// What follows belongs to the reader, but for Start, which comes before.
	rest      []byte // of the block that is being read
	odd       []byte // half a sample that ended a block
	ring      int    // transfers that it holds until they are read
	index     radio.SampleIndex
	readEpoch radio.Epoch
	lost      radio.SampleCount // dropped here before pos
}

func newReceiver(d *Device) *receiver {
	r := &receiver{}
	r.init(d, inwards, r.look)
	r.readEpoch = r.epoch
	return r
}

// Start queues transfers and switches the board to receive, or arms it.
func (r *receiver) Start(ctx context.Context) error {
	return r.start(ctx, func() error { return nil }, r.open)
}

func (r *receiver) open() (_ io.Closer, err error) {
	o := r.d.opts
	r.ring = o.ring
	if o.transfer == 0 { // smaller ones are to hold as much
		r.ring = min(o.ring*usualTransfer/r.size, maxRing)
	}
	r.in, err = r.d.transport.OpenIn(usb.InConfig{
		Endpoint: endpointIn, Size: r.size, Count: o.queue, Ring: r.ring, Hold: o.hold,
	})
	return r.in, err
}

// ClipLevel is that of the board's converter: radio.Ranged.
func (r *receiver) ClipLevel() radio.Amplitude { return clipLevel }

// Close switches the board off and waits until all transfers are back.
func (r *receiver) Close() error {
	return r.close(func(bool) error { return nil }) // what nobody has read is dropped
}

// Read returns what is left of the oldest block.
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
func (r *receiver) await(ctx context.Context) (b usb.Block, err error) {
	err = r.move(ctx, func(wait context.Context) (err error) {
		b, err = r.in.Next(wait)
		return err
	})
	switch {
	case err == nil:
		return b, nil
	case ctx.Err() != nil:
		return b, ctx.Err()
	}
	return b, r.fail(err)
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

// steps returns the index that the next sample has with the marks that are due.
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

// untilMark returns the number of samples before the next mark, at least one.
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

// counted returns how far the board has got.
func (r *receiver) counted() counted {
	_, pos := r.position()
	if n, ok := r.count(); ok {
		return counted{ahead(pos, n), true}
	}
	return counted{pos, false}
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
		to.bytes += int64(r.ring+2+r.d.opts.queue)*int64(r.size) + int64(r.d.flush)
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

// look asks the board what it has lost.
func (r *receiver) look() error {
	state, pos := r.position()
	if state == radio.Armed && r.in.Waiting() { // older firmware tells of the trigger in no other way
		r.began()
	}
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
	return r.halt(news.state)
}
