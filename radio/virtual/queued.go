package virtual

import (
	"context"
	"slices"
	"sync"
)

// Queued gives b itself if it is a Queuer, and otherwise one that hands b's
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
	ctx  context.Context
	data []byte
	done func(n int, err error)
}

func (q *queued) Queue(endpoint byte, data []byte, done func(n int, err error)) (cancel func()) {
	ctx, cancel := context.WithCancel(context.Background())
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[endpoint] = append(q.waiting[endpoint], &waiting{ctx, data, done})
	if len(q.waiting[endpoint]) == 1 {
		go q.work(endpoint)
	}
	return cancel
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
		n, err := 0, t.ctx.Err()
		if err == nil {
			n, err = move(t.ctx, endpoint, t.data)
		}
		t.done(n, err)
		q.mu.Lock()
		q.waiting[endpoint] = slices.Delete(q.waiting[endpoint], 0, 1)
		more = len(q.waiting[endpoint]) > 0
		q.mu.Unlock()
	}
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
