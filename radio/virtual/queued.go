package virtual

import (
	"context"
	"slices"
	"sync"

	"ringwave/radio/life"
)

// Queued returns b itself if it is a Queuer, and otherwise one that hands b's
// transfers over one after the other. Its goroutines live as long as transfers
// wait.
func Queued(b Board) Queuer {
	if q, ok := b.(Queuer); ok {
		return q
	}
	return &queued{Board: b, waiting: map[byte][]*waiting{}}
}

type queued struct {
	Board
	mu sync.Mutex
	// waiting is by endpoint, the one under way first.
	waiting map[byte][]*waiting
}

// waiting is a transfer that waits for its turn or is under way.
type waiting struct {
	life life.Life // ends when it is cancelled
	data []byte
	done func(n int, err error)
}

func (q *queued) Queue(endpoint byte, data []byte, done func(n int, err error)) (cancel func()) {
	t := &waiting{data: data, done: done}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[endpoint] = append(q.waiting[endpoint], t)
	if len(q.waiting[endpoint]) == 1 {
		go q.work(endpoint)
	}
	return func() { t.life.End(context.Canceled) }
}

// work does the transfers of an endpoint until none is left. One that is cancelled
// while it waits keeps its turn, and each keeps its own until it was told of.
func (q *queued) work(endpoint byte) {
	move := q.Out
	if endpoint&0x80 != 0 {
		move = q.In
	}
	for more := true; more; {
		q.mu.Lock()
		t := q.waiting[endpoint][0]
		q.mu.Unlock()
		t.done(t.move(move, endpoint))
		q.mu.Lock()
		q.waiting[endpoint] = slices.Delete(q.waiting[endpoint], 0, 1)
		more = len(q.waiting[endpoint]) > 0
		q.mu.Unlock()
	}
}

// move does the transfer, unless it is cancelled.
func (t *waiting) move(by func(context.Context, byte, []byte) (int, error), endpoint byte) (int, error) {
	ctx, release := t.life.Join(context.Background())
	defer release()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return by(ctx, endpoint, t.data)
}

// Halter is a Board that keeps an endpoint halted after a stall until its host
// clears that.
type Halter interface{ ClearHalt(endpoint byte) }

// ClearHalt clears a halt where b keeps one.
func ClearHalt(b Board, endpoint byte) {
	if h, ok := b.(Halter); ok {
		h.ClearHalt(endpoint)
	}
}
