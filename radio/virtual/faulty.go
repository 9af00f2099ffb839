package virtual

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Fault is what goes wrong with a control request or a bulk transfer.
type Fault int

const (
	// Stall refuses the request, or halts the endpoint: transfers fail with
	// ErrStall until the halt is cleared.
	Stall Fault = iota
	// Short ends a transfer to the host, or the answer to a request, when half of
	// it is there, rounded down to whole packets of 512 bytes; of an answer, one
	// byte before its end.
	Short
	// Hang never ends, and holds back all that comes after at that endpoint: NAK
	// for ever.
	Hang
	// Late ends only when Release is called, as do those after it.
	Late
	// Vanish unplugs the board.
	Vanish
)

// String returns the fault's name.
func (f Fault) String() string {
	names := [...]string{"stall", "short", "hang", "late", "vanish"}
	if f < 0 || int(f) >= len(names) {
		return "unknown fault"
	}
	return names[f]
}

// Faulty is a Board on which things go wrong as planned. Its faults hit what comes
// after they were planned, each once.
type Faulty struct {
	board Queuer
	// released is closed by Release, and then replaced.
	mu       sync.Mutex
	released chan struct{}
	gone     chan struct{} // closed by Unplug
	vanished bool
	requests []planned
	bulk     []*faultyEndpoint // in the order of their first use
}

// planned is a fault that hits when left comes down to 0.
type planned struct {
	request byte
	left    int
	fault   Fault
}

// faultyEndpoint keeps the order in which its transfers end.
type faultyEndpoint struct {
	address byte
	plans   []planned
	halted  bool
	hangs   bool
	// queue holds transfers, oldest first: one ends when it is ready and the first,
	// and nothing is held up.
	queue      []*faultyTransfer
	delivering bool
}

// faultyTransfer is passed on to the board unless it hangs or is ready at once.
type faultyTransfer struct {
	ready, held, passed bool
	n                   int
	err                 error
	done                func(n int, err error)
}

// NewFaulty makes a Board of b on which nothing goes wrong yet.
func NewFaulty(b Board) *Faulty {
	return &Faulty{board: Queued(b), released: make(chan struct{}), gone: make(chan struct{})}
}

// OnRequest plans a fault for the nth, from 1 on, of the requests of that number
// that come from now on.
func (f *Faulty) OnRequest(number byte, nth int, fault Fault) error {
	if nth < 1 {
		return fmt.Errorf("fault at control request number %d of those to come; allowed is 1 or more", nth)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, planned{number, nth, fault})
	return nil
}

// OnTransfer plans a fault for the nth, from 1 on, of the transfers that are queued
// at that endpoint from now on. Short is for endpoints to the host.
func (f *Faulty) OnTransfer(endpoint byte, nth int, fault Fault) error {
	if nth < 1 {
		return fmt.Errorf("fault at transfer number %d of those to come; allowed is 1 or more", nth)
	}
	if fault == Short && endpoint&0x80 == 0 {
		return fmt.Errorf("a short transfer at endpoint 0x%02x; allowed are endpoints to the host, 0x81 to 0x8f", endpoint)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.endpoint(endpoint)
	e.plans = append(e.plans, planned{left: nth, fault: fault})
	return nil
}

// Release lets end what is late.
func (f *Faulty) Release() {
	f.mu.Lock()
	close(f.released)
	f.released = make(chan struct{})
	for _, e := range f.bulk {
		for _, t := range e.queue {
			t.held = false
		}
	}
	f.mu.Unlock()
	f.deliverAll()
}

// ClearHalt ends the halt of an endpoint.
func (f *Faulty) ClearHalt(endpoint byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endpoint(endpoint).halted = false
}

func (f *Faulty) endpoint(address byte) *faultyEndpoint {
	for _, e := range f.bulk {
		if e.address == address {
			return e
		}
	}
	e := &faultyEndpoint{address: address}
	f.bulk = append(f.bulk, e)
	return e
}

// Descriptors returns the board's.
func (f *Faulty) Descriptors() Descriptors { return f.board.Descriptors() }

// due counts down the plans for a request and gives the fault that hits it: of
// several, the one planned first.
func due(plans *[]planned, request byte) (fault Fault, hit bool) {
	*plans = slices.DeleteFunc(*plans, func(p planned) bool { return p.left == 0 })
	for i := range *plans {
		p := &(*plans)[i]
		if p.request != request {
			continue
		}
		if p.left--; p.left == 0 && !hit {
			fault, hit = p.fault, true
		}
	}
	return fault, hit
}

// Control makes the request, or lets it go wrong.
func (f *Faulty) Control(ctx context.Context, s Setup, data []byte) (int, error) {
	f.mu.Lock()
	released := f.released
	fault, hit := Fault(0), false
	if s.RequestType&typeBits != 0 {
		fault, hit = due(&f.requests, s.Request)
	}
	f.mu.Unlock()
	if !hit {
		return f.board.Control(ctx, s, data)
	}
	switch fault {
	case Stall:
		return 0, ErrStall
	case Short:
		n, err := f.board.Control(ctx, s, data)
		return max(0, n-1), err
	case Hang:
		released = nil
	case Vanish:
		f.Unplug()
		return 0, ErrUnplugged
	}
	select {
	case <-released:
		return f.board.Control(ctx, s, data)
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-f.gone:
		return 0, ErrUnplugged
	}
}

// In waits for a bulk transfer to the host.
func (f *Faulty) In(ctx context.Context, endpoint byte, dst []byte) (int, error) {
	return transferNow(ctx, f, endpoint, dst)
}

// Out waits for a bulk transfer from the host.
func (f *Faulty) Out(ctx context.Context, endpoint byte, src []byte) (int, error) {
	return transferNow(ctx, f, endpoint, src)
}

// Queue queues a transfer, or lets it go wrong.
func (f *Faulty) Queue(endpoint byte, data []byte, done func(n int, err error)) (cancel func()) {
	t := &faultyTransfer{done: done}
	f.mu.Lock()
	e := f.endpoint(endpoint)
	e.queue = append(e.queue, t)
	vanish := f.begin(e, t, &data)
	t.passed = !t.ready && !e.hangs
	f.deliver(e)
	f.mu.Unlock()
	if vanish {
		f.Unplug()
	}
	if !t.passed {
		return func() { f.cancel(e, t) }
	}
	give := f.board.Queue(endpoint, data, func(n int, err error) { f.end(e, t, n, err) })
	return func() {
		f.cancel(e, t)
		give()
	}
}

// begin decides what becomes of a transfer, with the lock held.
func (f *Faulty) begin(e *faultyEndpoint, t *faultyTransfer, data *[]byte) (vanish bool) {
	fault, hit := due(&e.plans, 0)
	if hit {
		switch fault {
		case Stall:
			e.halted = true
		case Hang:
			e.hangs = true
		case Late:
			t.held = true
		case Vanish:
			vanish = true
		case Short:
			*data = (*data)[:len(*data)/2&^511]
		}
	}
	switch {
	case f.vanished || vanish:
		t.ready, t.err = true, ErrUnplugged
	case e.halted:
		t.ready, t.err = true, ErrStall
	}
	return vanish
}

// end notes what a transfer ended in. A cancelled one ends out of turn.
func (f *Faulty) end(e *faultyEndpoint, t *faultyTransfer, n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.ready, t.n, t.err = true, n, err
	if err == context.Canceled {
		f.pull(e, t)
	}
	f.deliver(e)
}

// pull takes t out of the queue, if it is still in it, and tells of it, giving up
// the lock meanwhile.
func (f *Faulty) pull(e *faultyEndpoint, t *faultyTransfer) {
	i := slices.Index(e.queue, t)
	if i < 0 {
		return
	}
	e.queue = slices.Delete(e.queue, i, i+1)
	f.tell(t)
}

// tell tells of a transfer that was taken out of its queue, giving up the lock
// meanwhile.
func (f *Faulty) tell(t *faultyTransfer) {
	n, err := t.n, t.err
	f.mu.Unlock()
	t.done(n, err)
	f.mu.Lock()
}

// deliver tells of what has ended, in order; it gives up the lock meanwhile.
func (f *Faulty) deliver(e *faultyEndpoint) {
	if e.delivering {
		return
	}
	e.delivering = true
	for len(e.queue) > 0 && e.queue[0].ready && !e.queue[0].held {
		t := e.queue[0]
		e.queue = slices.Delete(e.queue, 0, 1)
		f.tell(t)
	}
	e.delivering = false
}

// cancel returns a transfer up that does not lie with the board.
func (f *Faulty) cancel(e *faultyEndpoint, t *faultyTransfer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.passed && !t.ready {
		return
	}
	t.err = context.Canceled
	f.pull(e, t)
	f.deliver(e)
}

// Unplug takes the board away.
func (f *Faulty) Unplug() {
	f.mu.Lock()
	if !f.vanished {
		f.vanished = true
		close(f.gone)
	}
	for _, e := range f.bulk {
		for _, t := range e.queue {
			t.held = false
			if !t.passed && !t.ready {
				t.ready, t.err = true, ErrUnplugged
			}
		}
	}
	f.mu.Unlock()
	f.board.Unplug()
	f.deliverAll()
}

// deliverAll delivers at all endpoints.
func (f *Faulty) deliverAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range slices.Clone(f.bulk) {
		f.deliver(e)
	}
}
