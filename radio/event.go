package radio

import (
	"context"
	"sync"
)

// EventKind says what happened to a transmission.
type EventKind int

const (
	// Underrun: no samples were there in time, zeros were sent from Index on.
	Underrun EventKind = iota
	// Late: a timed block came after its time; Count samples from Index on were
	// not sent.
	Late
	// BurstSent: the burst whose last sample comes right before Index was sent.
	BurstSent
	// EpochChanged: from Index on the phase is no longer what it was.
	EpochChanged
	// EventsLost: Count events (not samples) were dropped because nobody took
	// them.
	EventsLost
)

// String returns the kind's name.
func (k EventKind) String() string {
	switch k {
	case Underrun:
		return "underrun"
	case Late:
		return "late"
	case BurstSent:
		return "burst sent"
	case EpochChanged:
		return "epoch changed"
	case EventsLost:
		return "events lost"
	}
	return "unknown event"
}

// Event tells what happened to a transmission.
type Event struct {
	Kind EventKind
	// Index is where on the transmitter's clock it happened.
	Index SampleIndex
	// Exact says that Index was counted and not estimated.
	Exact bool
	// Count is the number of samples concerned, 0 if not known.
	Count SampleCount
	// Epoch is the tuning epoch from Index on.
	Epoch Epoch
}

// maxEvents bounds what an EventQueue holds: a program that never asks for events
// must not fill memory.
const maxEvents = 1024

// EventQueue holds the events of a Transmitter until they are asked for; drivers
// are built on it. It never blocks the one who pushes. It is safe for use by
// several goroutines; make it with NewEventQueue.
type EventQueue struct {
	mu     sync.Mutex
	events []Event
	lost   SampleCount
	closed bool
	// ready holds a token while there is something to take or it is closed.
	ready chan struct{}
}

// NewEventQueue makes an empty queue.
func NewEventQueue() *EventQueue { return &EventQueue{ready: make(chan struct{}, 1)} }

// Push adds an event. Beyond 1,024 events it counts those it drops, and says so
// with an EventsLost in their place.
func (q *EventQueue) Push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if len(q.events) >= maxEvents {
		q.lost++
		return
	}
	q.reportLost(e)
	q.events = append(q.events, e)
	q.signal()
}

// reportLost puts what was dropped ahead of e, which came after it.
func (q *EventQueue) reportLost(e Event) {
	if q.lost > 0 {
		q.events = append(q.events, Event{Kind: EventsLost, Index: e.Index, Count: q.lost, Epoch: e.Epoch})
		q.lost = 0
	}
}

// signal leaves a token; one that is there already will do.
func (q *EventQueue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// Next is Transmitter.Event.
func (q *EventQueue) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := q.take(); ok || err != nil {
			return e, err
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

func (q *EventQueue) take() (e Event, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		q.reportLost(Event{})
	}
	if len(q.events) > 0 {
		e = q.events[0]
		q.events = append(q.events[:0], q.events[1:]...)
		if len(q.events) > 0 || q.closed {
			q.signal()
		}
		return e, true, nil
	}
	if q.closed {
		q.signal() // for others who wait
		return Event{}, false, ErrClosed
	}
	return Event{}, false, nil
}

// Close lets Next give what is left and then ErrClosed.
func (q *EventQueue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}
