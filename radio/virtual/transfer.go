package virtual

import (
	"context"
	"slices"
)

// transfer is a bulk transfer in a board's queue.
type transfer struct {
	data []byte
	n    int // bytes that have gone
	done func(n int, err error)
}

// queue is what a host has queued at an endpoint, oldest first; the bench's lock
// guards it.
type queue struct{ transfers []*transfer }

// wanted returns the bytes that the host still waits for, or offers.
func (q *queue) wanted() (n int) {
	for _, t := range q.transfers {
		n += len(t.data) - t.n
	}
	return n
}

// fill copies src into transfers to the host and gives how much there was room
// for. A transfer of no bytes ends at once.
func (q *queue) fill(s *Seat, src []byte) (n int) {
	for len(q.transfers) > 0 {
		t := q.transfers[0]
		k := copy(t.data[t.n:], src[n:])
		t.n += k
		n += k
		if t.n < len(t.data) {
			return n
		}
		q.finish(s, nil)
	}
	return n
}

// drain copies from the host's transfers into dst and gives how much there was.
func (q *queue) drain(s *Seat, dst []byte) (n int) {
	for len(q.transfers) > 0 {
		t := q.transfers[0]
		k := copy(dst[n:], t.data[t.n:])
		t.n += k
		n += k
		if t.n < len(t.data) {
			return n
		}
		q.finish(s, nil)
	}
	return n
}

// finish ends the oldest transfer.
func (q *queue) finish(s *Seat, err error) {
	t := q.transfers[0]
	q.transfers = slices.Delete(q.transfers, 0, 1)
	n := t.n
	s.Complete(func() { t.done(n, err) })
}

// fail ends all transfers.
func (q *queue) fail(s *Seat, err error) {
	for len(q.transfers) > 0 {
		q.finish(s, err)
	}
}

// cancel ends t if it has not ended.
func (q *queue) cancel(s *Seat, t *transfer) {
	i := slices.Index(q.transfers, t)
	if i < 0 {
		return
	}
	q.transfers = slices.Delete(q.transfers, i, i+1)
	n := t.n
	s.Complete(func() { t.done(n, context.Canceled) })
}

// transferNow queues one transfer and waits for it: Board's In and Out by Queue.
func transferNow(ctx context.Context, b Queuer, endpoint byte, data []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	ended := make(chan result, 1)
	cancel := b.Queue(endpoint, data, func(n int, err error) { ended <- result{n, err} })
	select {
	case r := <-ended:
		return r.n, r.err
	case <-ctx.Done():
	}
	cancel()
	r := <-ended
	if r.err == context.Canceled {
		r.err = ctx.Err()
	}
	return r.n, r.err
}
