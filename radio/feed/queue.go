// Package feed holds what a program writes to a transmitter until its board takes it.
//
// It takes in blocks of samples with the indices at which they are to be sent, and gives bytes
// for the board, in order: with zeros where nothing was written, for a board that is kept
// fed, or burst by burst, for one that is told when each begins. It knows nothing of boards.
package feed

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ringwave/radio"
	"ringwave/radio/iq"
)

// LastIndex bounds indices, so that sums of them and lengths do not overflow.
const LastIndex radio.SampleIndex = 1 << 60

// Config describes a Queue.
type Config struct {
	Codec       *iq.Codec
	SampleBytes int
	// Window is the number of samples that may wait, 1 or more; there is room for more.
	Window int
	// Strict hands over what was written or promised and no zeros beyond.
	Strict bool
	// What Take hands over is a multiple of Packet samples, and what it has handed over at
	// the end one of Block, a multiple of Packet; 1 or more.
	Packet, Block radio.SampleIndex
}

// stretch is a range of indices, first to before end.
type stretch struct{ first, end radio.SampleIndex }

// Queue holds what was written until it is handed to the board. One goroutine
// writes and one takes; others may look.
type Queue struct {
	cfg        Config
	room, more chan struct{}

	// ring is a power of two bytes long. What of it is free belongs to the writer.
	ring []byte

	mu         sync.Mutex
	head, tail int64             // bytes ever taken out of the ring and put in
	spans      []stretch         // where they belong; what no span covers is zero
	pos        radio.SampleIndex // next to be written or promised
	sent       radio.SampleIndex // next to be handed over
	written    radio.SampleIndex // the end of what was ever written
	// inBurst: what was written last was no end of a burst. starved: the underrun
	// that goes on was told.
	inBurst, starved bool
	open             bool              // TakeBurst has given no end since it gave samples
	finish           radio.SampleIndex // hand over up to here and end; 0 while open
}

// NewQueue makes a queue whose window is a power of two.
func NewQueue(cfg Config) *Queue {
	size := 1
	for size < cfg.Window {
		size *= 2
	}
	return &Queue{
		cfg: cfg, room: make(chan struct{}, 1), more: make(chan struct{}, 1),
		ring: make([]byte, cfg.SampleBytes*size),
	}
}

// Room and More return channels that hold a token when something was taken and put in.
func (q *Queue) Room() <-chan struct{} { return q.room }
func (q *Queue) More() <-chan struct{} { return q.more }

// Strict reports whether the queue is so.
func (q *Queue) Strict() bool { return q.cfg.Strict }

// Window returns the most samples that can wait.
func (q *Queue) Window() int { return len(q.ring) / q.cfg.SampleBytes }

// signal leaves a token; one that is there already will do.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Free returns the number of samples that can be put in, and the least index that
// they can have.
func (q *Queue) Free() (samples int, earliest radio.SampleIndex) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return (len(q.ring) - int(q.tail-q.head)) / q.cfg.SampleBytes, max(q.pos, q.sent)
}

// Put encodes src, for which there is room, and gives it to the board at index at,
// or behind what was written if at is negative. burstEnd says that nothing need
// follow. late says that the index had gone by, and nothing was put in; end is the
// index behind src.
func (q *Queue) Put(src []complex64, at radio.SampleIndex, burstEnd bool) (end radio.SampleIndex, clipped int, late bool) {
	// Outside the lock: the board must be fed meanwhile. Only this goroutine moves
	// the tail.
	q.mu.Lock()
	start := int(q.tail) & (len(q.ring) - 1)
	q.mu.Unlock()
	first := min(len(src), (len(q.ring)-start)/q.cfg.SampleBytes)
	clipped = q.cfg.Codec.Encode(q.ring[start:], src[:first]).Limited
	clipped += q.cfg.Codec.Encode(q.ring, src[first:]).Limited

	q.mu.Lock()
	defer q.mu.Unlock()
	q.pos = max(q.pos, q.sent)
	if at >= 0 {
		if at < q.pos {
			return 0, 0, true
		}
		q.pos = at
	}
	q.tail += int64(q.cfg.SampleBytes * len(src))
	end = q.pos + radio.SampleIndex(len(src))
	if k := len(q.spans); k > 0 && q.spans[k-1].end == q.pos {
		q.spans[k-1].end = end
	} else if len(src) > 0 {
		q.spans = append(q.spans, stretch{q.pos, end})
	}
	q.pos, q.written = end, end
	q.inBurst, q.starved = !burstEnd, false
	signal(q.more)
	return end, clipped, false
}

// Written is what became of a block.
type Written struct {
	N       int // samples that were taken
	Clipped int // of them, those that were limited
	// End is the index behind the last; Late says that the block's time had passed, and that
	// none of it will be sent, though all counts as taken.
	End  radio.SampleIndex
	Late bool
}

// Write takes src in whole, as far as there is room, so that a block shorter than the window
// never has an underrun within. It waits for room until ctx or the stream ends: ready returns
// the error of that, and cut is closed when it is to be asked.
func (q *Queue) Write(ctx context.Context, src []complex64, meta radio.TxMeta, cut <-chan struct{}, ready func(context.Context) error) (w Written, err error) {
	if err := ready(ctx); err != nil {
		return w, err
	}
	at := radio.SampleIndex(-1)
	switch {
	case !meta.Timed:
	case meta.Start > LastIndex:
		return w, fmt.Errorf("a block is to start at index %d; allowed is at most %d", meta.Start, LastIndex)
	case meta.Start < 0:
		return Written{N: len(src), Late: true}, nil
	default:
		at = meta.Start
	}
	for {
		k, err := q.wait(ctx, min(len(src)-w.N, q.Window()), at, cut, ready)
		if err != nil {
			return w, err
		}
		end, clipped, late := q.Put(src[w.N:w.N+k], at, meta.BurstEnd && w.N+k == len(src))
		if late {
			return Written{N: len(src), Late: true}, nil
		}
		w.Clipped += clipped
		w.End = end
		if w.N += k; w.N == len(src) {
			return w, nil
		}
		at = -1
	}
}

// wait waits until want samples fit; for a block that is late already it does not.
func (q *Queue) wait(ctx context.Context, want int, at radio.SampleIndex, cut <-chan struct{}, ready func(context.Context) error) (int, error) {
	for {
		free, earliest := q.Free()
		if free >= want || at >= 0 && at < earliest {
			return min(free, want), nil
		}
		select {
		case <-q.room:
		case <-cut:
		case <-ctx.Done():
		}
		if err := ready(ctx); err != nil {
			return 0, err
		}
	}
}

// Idle promises zeros before index until.
func (q *Queue) Idle(until radio.SampleIndex) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pos = max(q.pos, min(until, LastIndex))
	q.inBurst = false
	signal(q.more)
}

// End lets the taker hand over what was written and flush samples more, up to a
// whole block. It gives the number of samples that are left to be handed over.
func (q *Queue) End(flush radio.SampleIndex) radio.SampleCount {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inBurst = false
	q.finish = max(1, q.sent)
	if q.written > 0 {
		q.finish = max(q.finish, roundUp(q.written+flush, q.cfg.Block))
	}
	signal(q.more)
	return radio.SampleCount(q.finish - q.sent)
}

// LastWritten returns the index after the last sample that was ever written.
func (q *Queue) LastWritten() radio.SampleIndex {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.written
}

// Handed returns the index of the next sample to be handed over.
func (q *Queue) Handed() radio.SampleIndex {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sent
}

func roundUp(n, to radio.SampleIndex) radio.SampleIndex { return (n + to - 1) / to * to }

// Taken is what Take gave.
type Taken struct {
	Bytes    int               // of whole packets; 0 where there is nothing yet
	Starved  bool              // an underrun began
	At       radio.SampleIndex // where
	Finished bool              // nothing comes after
}

// Take fills dst, a multiple of a packet long, with what goes next.
func (q *Queue) Take(dst []byte) Taken {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := radio.SampleIndex(len(dst) / q.cfg.SampleBytes)
	switch {
	case q.finish > 0:
		left := max(0, q.finish-q.sent)
		n = min(n, roundUp(left, q.cfg.Packet))
	case q.cfg.Strict:
		n = min(n, max(0, q.pos-q.sent)/q.cfg.Packet*q.cfg.Packet)
	}
	t := Taken{Bytes: q.cfg.SampleBytes * int(n)}
	end := q.sent + n
	if q.inBurst && !q.starved && q.pos < end {
		q.starved = true
		t.Starved, t.At = true, max(q.pos, q.sent)
	}
	q.fetch(dst[:t.Bytes], end)
	q.sent = end
	t.Finished = q.finish > 0 && q.sent >= q.finish
	if t.Bytes > 0 {
		signal(q.room)
	}
	return t
}

// fetch puts what belongs to [sent, end) into dst.
func (q *Queue) fetch(dst []byte, end radio.SampleIndex) {
	pos, used := q.sent, 0
	for pos < end && used < len(q.spans) && q.spans[used].first < end {
		s := &q.spans[used]
		if s.first > pos {
			zeros := q.cfg.SampleBytes * int(s.first-pos)
			clear(dst[:zeros])
			dst, pos = dst[zeros:], s.first
		}
		n := min(s.end, end) - pos
		q.copyOut(dst[:q.cfg.SampleBytes*int(n)])
		dst, pos = dst[q.cfg.SampleBytes*int(n):], pos+n
		if s.first = pos; s.first == s.end {
			used++
		}
	}
	clear(dst)
	q.spans = slices.Delete(q.spans, 0, used)
}

// copyOut takes the oldest bytes out of the ring.
func (q *Queue) copyOut(dst []byte) {
	n := copy(dst, q.ring[int(q.head)&(len(q.ring)-1):])
	copy(dst[n:], q.ring)
	q.head += int64(len(dst))
}

// Burst is what TakeBurst gave.
type Burst struct {
	Bytes int               // of whole samples; 0 where there is nothing
	At    radio.SampleIndex // of the first
	// Ends says that nothing follows behind these at once, and Finished that nothing comes
	// at all any more.
	Ends, Finished bool
}

// TakeBurst fills dst, of one sample or more, with what goes next and follows each other. A
// burst that was taken before its end was known ends with 0 bytes.
func (q *Queue) TakeBurst(dst []byte) Burst {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := Burst{At: q.sent, Finished: q.finish > 0 && len(q.spans) == 0}
	if len(q.spans) == 0 {
		b.Ends = q.open && !(q.inBurst && q.pos == q.sent)
		q.open = q.open && !b.Ends
		return b
	}
	s := &q.spans[0]
	if q.open && s.first > q.sent {
		q.open, b.Ends = false, true
		return b
	}
	n := min(s.end-s.first, radio.SampleIndex(len(dst)/q.cfg.SampleBytes))
	b.At, b.Bytes = s.first, q.cfg.SampleBytes*int(n)
	q.copyOut(dst[:b.Bytes])
	s.first += n
	q.sent = s.first
	if s.first == s.end {
		q.spans = slices.Delete(q.spans, 0, 1)
		b.Ends = len(q.spans) > 0 || !q.inBurst || q.pos > q.sent
	}
	q.open = !b.Ends
	b.Finished = q.finish > 0 && len(q.spans) == 0 && b.Ends
	signal(q.room)
	return b
}

// Reach moves a queue that hands over bursts on to an index that time has reached: what is
// put in before it is late.
func (q *Queue) Reach(index radio.SampleIndex) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.spans) == 0 && !q.open {
		q.sent = max(q.sent, index)
	}
}
