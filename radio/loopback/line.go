package loopback

import (
	"slices"
	"sort"

	"ringwave/radio"
)

// span is a stretch of indices, first to before end.
type span struct{ first, end radio.SampleIndex }

// step is a change at an index.
type step struct {
	at radio.SampleIndex
	// gain is set where set is; the phase is turned by turn in any case.
	set        bool
	gain, turn complex64
	// epoch begins a new one.
	epoch bool
}

// insert puts s behind all steps that are not later.
func insert(steps []step, s step) []step {
	i := sort.Search(len(steps), func(i int) bool { return steps[i].at > s.at })
	return slices.Insert(steps, i, s)
}

// piece is a number of samples at one gain.
type piece struct {
	n    int
	gain complex64
}

// line is what one device has written and was not mixed. Its indices are the
// transmitter's; the medium's lock guards it.
type line struct {
	delay radio.SampleIndex
	path  Path

	tx   *transmitter // the open one, or nil
	done bool         // muted, or closed: zeros from pos on
	// pos is the next index to be written or promised.
	pos radio.SampleIndex
	// inBurst: what was written last was no end of a burst. starved: the underrun
	// that goes on was told.
	inBurst, starved bool
	bursts           []radio.SampleIndex // ends of bursts not yet mixed

	// ring holds stored samples from head on, a power of two long; spans say
	// where they belong. What no span covers is zero.
	ring   []complex64
	head   int
	stored int
	spans  []span

	gain, turn complex64
	steps      []step
	underruns  []span
	epoch      radio.Epoch
	frequency  radio.Hertz

	// What the mixer works on, outside the lock: what was sent, and what arrives of it.
	scratch, distorted []complex64
	pieces             []piece
}

// room makes room for n samples to be mixed.
func (l *line) room(n int) {
	if len(l.scratch) >= n {
		return
	}
	l.scratch = make([]complex64, n)
	if l.path != nil {
		l.distorted = make([]complex64, n)
	}
}

// minRing is the first size of a ring.
const minRing = 1 << 12

// store appends samples at pos, growing the ring as needed.
func (l *line) store(src []complex64) {
	if len(src) == 0 {
		return
	}
	l.grow(l.stored + len(src))
	at := (l.head + l.stored) & (len(l.ring) - 1)
	n := copy(l.ring[at:], src)
	copy(l.ring, src[n:])
	l.stored += len(src)
	end := l.pos + radio.SampleIndex(len(src))
	if k := len(l.spans); k > 0 && l.spans[k-1].end == l.pos {
		l.spans[k-1].end = end
	} else {
		l.spans = append(l.spans, span{l.pos, end})
	}
	l.pos = end
}

func (l *line) grow(need int) {
	size := max(len(l.ring), minRing)
	for size < need {
		size *= 2
	}
	if size == len(l.ring) {
		return
	}
	bigger := make([]complex64, size)
	n := copy(bigger, l.ring[l.head:])
	copy(bigger[n:], l.ring[:l.head])
	l.ring, l.head = bigger, 0
}

// fetch takes the samples from index first on out of the store into dst.
func (l *line) fetch(dst []complex64, first radio.SampleIndex) {
	pos, end, used := first, first+radio.SampleIndex(len(dst)), 0
	for pos < end && used < len(l.spans) && l.spans[used].first < end {
		s := &l.spans[used]
		if s.first > pos {
			clear(dst[pos-first : s.first-first])
			pos = s.first
		}
		n := min(s.end, end) - pos
		l.take(dst[pos-first : pos-first+n])
		pos += n
		s.first = pos
		if s.first == s.end {
			used++
		}
	}
	clear(dst[pos-first:])
	l.spans = slices.Delete(l.spans, 0, used)
}

// take moves the oldest samples out of the ring.
func (l *line) take(dst []complex64) {
	n := copy(dst, l.ring[l.head:])
	copy(dst[n:], l.ring)
	l.head = (l.head + len(dst)) & (len(l.ring) - 1)
	l.stored -= len(dst)
}

// tell pushes an event at an exact index to the open transmitter.
func (l *line) tell(kind radio.EventKind, at radio.SampleIndex, n radio.SampleCount) {
	if l.tx != nil {
		l.tx.events.Push(radio.Event{Kind: kind, Index: at, Exact: true, Count: n, Epoch: l.epoch})
	}
}

// starve makes zeros of what was not written before end.
func (l *line) starve(end radio.SampleIndex) {
	if l.pos >= end {
		return
	}
	if l.inBurst && !l.starved && !l.done {
		l.tell(radio.Underrun, l.pos, 0)
		l.starved = true
	}
	l.pos = end
}

// load readies the samples from index first on for the mixer: samples, injected
// underruns and gains; it tells what happened to them.
func (l *line) load(first radio.SampleIndex, n int) {
	end := first + radio.SampleIndex(n)
	l.room(n)
	l.fetch(l.scratch[:n], first)
	l.blank(first, end)
	l.plan(first, end)
	for len(l.bursts) > 0 && l.bursts[0] <= end {
		l.tell(radio.BurstSent, l.bursts[0], 0)
		l.bursts = slices.Delete(l.bursts, 0, 1)
	}
}

// blank clears what injected underruns hit in [first, end).
func (l *line) blank(first, end radio.SampleIndex) {
	for len(l.underruns) > 0 && l.underruns[0].first < end {
		u := &l.underruns[0]
		if u.first >= first {
			l.tell(radio.Underrun, u.first, radio.SampleCount(u.end-u.first))
		}
		clear(l.scratch[max(u.first, first)-first : min(u.end, end)-first])
		if u.end > end {
			return
		}
		l.underruns = slices.Delete(l.underruns, 0, 1)
	}
}

// plan cuts [first, end) where the gain changes.
func (l *line) plan(first, end radio.SampleIndex) {
	l.pieces = l.pieces[:0]
	pos, used := first, 0
	for used < len(l.steps) && l.steps[used].at < end {
		s := l.steps[used]
		if s.at > pos {
			l.pieces = append(l.pieces, piece{int(s.at - pos), l.gain * l.turn})
			pos = s.at
		}
		l.apply(s)
		used++
	}
	l.steps = slices.Delete(l.steps, 0, used)
	l.pieces = append(l.pieces, piece{int(end - pos), l.gain * l.turn})
}

func (l *line) apply(s step) {
	if s.set {
		l.gain = s.gain
	}
	l.turn *= s.turn
	if s.epoch {
		l.epoch++
		l.tell(radio.EpochChanged, s.at, 0)
	}
}
