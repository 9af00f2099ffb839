package bustest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"ringwave/learner/hosts/bus"
)

// Schedule says what share of messages is treated how, from 0 to 1 each. Delayed messages
// are overtaken by others, and so reordered.
type Schedule struct {
	Seed   uint64
	Drop   float64
	Repeat float64 // come twice, the second time as if delayed
	Delay  float64
	// Others is how many others at most overtake a message that is delayed.
	Others int
	// After is when a delayed message goes on at the latest, where none overtake it; 0 is 10 ms.
	// A test of a protocol needs it: the next message may be one that is waited for.
	After time.Duration
}

// Interposer is a bus.Conn that treats what is published through it, and what comes for its
// subscriptions, by schedules. The same seed treats the same sequence of messages alike.
type Interposer struct {
	bus.Conn
	sent  *line
	in    Schedule
	mu    sync.Mutex
	subs  uint64
	cut   bool
	lines []*line
}

// Interpose returns a connection in front of c. The schedules are for what is sent and for
// what comes.
func Interpose(c bus.Conn, out, in Schedule) *Interposer {
	return &Interposer{Conn: c, sent: newLine(out, 0), in: in}
}

// Publish publishes a payload, or not, or twice, or later.
func (i *Interposer) Publish(subject string, payload []byte) error {
	copied := append([]byte(nil), payload...) // it may go later
	return i.pass(i.sent, func() error { return i.Conn.Publish(subject, copied) })
}

// Respond is treated as Publish is.
func (i *Interposer) Respond(to bus.Message, payload []byte) error {
	copied := append([]byte(nil), payload...)
	return i.pass(i.sent, func() error { return i.Conn.Respond(to, copied) })
}

// Ask may be lost, so that no answer comes.
func (i *Interposer) Ask(ctx context.Context, subject string, payload []byte) (bus.Message, error) {
	if i.parted() || i.sent.drops() {
		<-ctx.Done()
		return bus.Message{}, ctx.Err()
	}
	return i.Conn.Ask(ctx, subject, payload)
}

// Subscribe treats each message that comes.
func (i *Interposer) Subscribe(subject string, handle func(bus.Message)) (stop func(), err error) {
	i.mu.Lock()
	i.subs++
	l := newLine(i.in, i.subs)
	i.lines = append(i.lines, l)
	i.mu.Unlock()
	var one sync.Mutex // handlers run one at a time
	return i.Conn.Subscribe(subject, func(m bus.Message) {
		_ = i.pass(l, func() error {
			one.Lock()
			defer one.Unlock()
			copied := m
			copied.Payload = append([]byte(nil), m.Payload...)
			handle(copied)
			return nil
		})
	})
}

// Part cuts the connection off, so that nothing goes through without an error, or joins it
// again.
func (i *Interposer) Part(cut bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cut = cut
}

func (i *Interposer) parted() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cut
}

func (i *Interposer) pass(l *line, deliver func() error) error {
	if i.parted() {
		return nil
	}
	return l.pass(deliver)
}

// Flush sends what is delayed, and flushes.
func (i *Interposer) Flush(ctx context.Context) error {
	i.sent.release()
	return i.Conn.Flush(ctx)
}

// Close drops what is delayed, and closes.
func (i *Interposer) Close() error {
	i.mu.Lock()
	lines := append([]*line{i.sent}, i.lines...)
	i.mu.Unlock()
	for _, l := range lines {
		l.stop()
	}
	return i.Conn.Close()
}

// Counts says what happened to messages in both directions so far.
type Counts struct{ Passed, Dropped, Repeated, Delayed int }

// Counts returns what happened so far.
func (i *Interposer) Counts() (c Counts) {
	i.mu.Lock()
	lines := append([]*line{i.sent}, i.lines...)
	i.mu.Unlock()
	for _, l := range lines {
		l.mu.Lock()
		c.Passed += l.counts.Passed
		c.Dropped += l.counts.Dropped
		c.Repeated += l.counts.Repeated
		c.Delayed += l.counts.Delayed
		l.mu.Unlock()
	}
	return c
}

// line is messages one behind the other.
type line struct {
	schedule Schedule
	mu       sync.Mutex
	random   *rand.Rand
	waiting  []*held
	counts   Counts
	stopped  bool
}

// held is a delayed message.
type held struct {
	deliver func() error
	others  int // that may still overtake it
}

func newLine(s Schedule, number uint64) *line {
	if s.After == 0 {
		s.After = 10 * time.Millisecond
	}
	return &line{schedule: s, random: rand.New(rand.NewPCG(s.Seed, number))}
}

// drops reports whether the next message is lost.
func (l *line) drops() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.random.Float64() < l.schedule.Drop {
		l.counts.Dropped++
		return true
	}
	l.counts.Passed++
	return false
}

// pass treats a message, and then delivers those that enough others have overtaken.
func (l *line) pass(deliver func() error) error {
	now := l.treat(deliver)
	var first error
	for _, d := range now {
		if err := d(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// treat returns what is to be delivered now. A message takes four numbers of the generator,
// whatever comes of it, so that others are not treated differently.
func (l *line) treat(deliver func() error) (now []func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return nil
	}
	drop, repeat, delay, others := l.random.Float64(), l.random.Float64(), l.random.Float64(), l.random.IntN(l.schedule.Others+1)
	for _, h := range l.waiting {
		h.others--
	}
	s := l.schedule
	switch {
	case drop < s.Drop:
		l.counts.Dropped++
	case delay < s.Delay:
		l.counts.Delayed++
		l.hold(deliver, others)
	default:
		l.counts.Passed++
		now = append(now, deliver)
	}
	if drop >= s.Drop && repeat < s.Repeat {
		l.counts.Repeated++
		l.hold(deliver, others)
	}
	return append(now, l.due(func(h *held) bool { return h.others < 0 })...)
}

// hold keeps a message until others have overtaken it, or until its time has come.
func (l *line) hold(deliver func() error, others int) {
	h := &held{deliver: deliver, others: others}
	l.waiting = append(l.waiting, h)
	time.AfterFunc(l.schedule.After, func() {
		l.mu.Lock()
		now := l.due(func(other *held) bool { return other == h })
		l.mu.Unlock()
		for _, d := range now {
			_ = d() // nobody waits for it any more
		}
	})
}

// due takes out what waits no longer.
func (l *line) due(is func(*held) bool) (now []func() error) {
	kept := l.waiting[:0]
	for _, h := range l.waiting {
		if is(h) {
			now = append(now, h.deliver)
		} else {
			kept = append(kept, h)
		}
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
	return now
}

// release delivers all that waits.
func (l *line) release() {
	l.mu.Lock()
	now := l.due(func(*held) bool { return true })
	l.mu.Unlock()
	for _, d := range now {
		_ = d() // as what is delayed has no error
	}
}

// stop drops all that waits, and what comes.
func (l *line) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped, l.waiting = true, nil
}
