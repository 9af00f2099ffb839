package hackrf

import (
	"slices"
	"sync"

	"ringwave/radio"
)

// lastIndex bounds indices, so that sums of them and lengths do not overflow.
const lastIndex radio.SampleIndex = 1 << 60

// packet is the number of samples in a USB packet: what is handed over is a
// multiple of it, because a short packet would end a transfer of the board's.
const packet = 256

// block is the number of samples that the board takes at a time: less than a block
// stays in its buffers for ever.
const block = 8192

// stretch is a range of indices, first to before end.
type stretch struct{ first, end radio.SampleIndex }

// queue holds what was written until it is handed to the board. One goroutine
// writes and one takes; others may look.
type queue struct {
	strict bool
	// room and more hold a token when something was taken or put in.
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
	finish           radio.SampleIndex // hand over up to here and end; 0 while open
}

func newQueue(window int, strict bool) *queue {
	size := minWindow
	for size < window {
		size *= 2
	}
	return &queue{
		strict: strict, room: make(chan struct{}, 1), more: make(chan struct{}, 1),
		ring: make([]byte, sampleBytes*size),
	}
}

// signal leaves a token; one that is there already will do.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// free returns the number of samples that can be put in, and the least index that
// they can have.
func (q *queue) free() (samples int, earliest radio.SampleIndex) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return (len(q.ring) - int(q.tail-q.head)) / sampleBytes, max(q.pos, q.sent)
}

// put encodes src, for which there is room, and gives it to the board at index at,
// or behind what was written if at is negative. burstEnd says that nothing need
// follow. late says that the index had gone by, and nothing was put in; end is the
// index behind src.
func (q *queue) put(src []complex64, at radio.SampleIndex, burstEnd bool) (end radio.SampleIndex, clipped int, late bool) {
	// Outside the lock: the board must be fed meanwhile. Only this goroutine moves
	// the tail.
	q.mu.Lock()
	start := int(q.tail) & (len(q.ring) - 1)
	q.mu.Unlock()
	first := min(len(src), (len(q.ring)-start)/sampleBytes)
	clipped = samples.Encode(q.ring[start:], src[:first]).Limited
	clipped += samples.Encode(q.ring, src[first:]).Limited

	q.mu.Lock()
	defer q.mu.Unlock()
	q.pos = max(q.pos, q.sent)
	if at >= 0 {
		if at < q.pos {
			return 0, 0, true
		}
		q.pos = at
	}
	q.tail += int64(sampleBytes * len(src))
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

// idle promises zeros before index until.
func (q *queue) idle(until radio.SampleIndex) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pos = max(q.pos, min(until, lastIndex))
	q.inBurst = false
	signal(q.more)
}

// end lets the taker hand over what was written and flush samples more, up to a
// whole block. It gives the number of samples that are left to be handed over.
func (q *queue) end(flush radio.SampleIndex) radio.SampleCount {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inBurst = false
	q.finish = max(1, q.sent)
	if q.written > 0 {
		q.finish = max(q.finish, (q.written+flush+block-1)/block*block)
	}
	signal(q.more)
	return radio.SampleCount(q.finish - q.sent)
}

// lastWritten returns the index after the last sample that was ever written.
func (q *queue) lastWritten() radio.SampleIndex {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.written
}

// handed returns the index of the next sample to be handed over.
func (q *queue) handed() radio.SampleIndex {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sent
}

// taken is what take gave.
type taken struct {
	bytes    int               // of whole packets; 0 where there is nothing yet
	starved  bool              // an underrun began
	at       radio.SampleIndex // where
	finished bool              // nothing comes after
}

// take fills dst, a multiple of a packet long, with what goes next.
func (q *queue) take(dst []byte) taken {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := radio.SampleIndex(len(dst) / sampleBytes)
	switch {
	case q.finish > 0:
		left := max(0, q.finish-q.sent)
		n = min(n, (left+packet-1)/packet*packet)
	case q.strict:
		n = min(n, max(0, q.pos-q.sent)/packet*packet)
	}
	t := taken{bytes: sampleBytes * int(n)}
	end := q.sent + n
	if q.inBurst && !q.starved && q.pos < end {
		q.starved = true
		t.starved, t.at = true, max(q.pos, q.sent)
	}
	q.fetch(dst[:t.bytes], end)
	q.sent = end
	t.finished = q.finish > 0 && q.sent >= q.finish
	if t.bytes > 0 {
		signal(q.room)
	}
	return t
}

// fetch puts what belongs to [sent, end) into dst.
func (q *queue) fetch(dst []byte, end radio.SampleIndex) {
	pos, used := q.sent, 0
	for pos < end && used < len(q.spans) && q.spans[used].first < end {
		s := &q.spans[used]
		if s.first > pos {
			zeros := sampleBytes * int(s.first-pos)
			clear(dst[:zeros])
			dst, pos = dst[zeros:], s.first
		}
		n := min(s.end, end) - pos
		q.copyOut(dst[:sampleBytes*int(n)])
		dst, pos = dst[sampleBytes*int(n):], pos+n
		if s.first = pos; s.first == s.end {
			used++
		}
	}
	clear(dst)
	q.spans = slices.Delete(q.spans, 0, used)
}

// copyOut takes the oldest bytes out of the ring.
func (q *queue) copyOut(dst []byte) {
	n := copy(dst, q.ring[int(q.head)&(len(q.ring)-1):])
	copy(dst[n:], q.ring)
	q.head += int64(len(dst))
}
