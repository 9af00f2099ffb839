package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
)

// Transmitter is a stream of another host's radio. As any, it is for one goroutine, but for
// Close, State, Epoch and Event.
type Transmitter struct {
	d       *Device
	number  uint64
	events  *radio.EventQueue
	life    life.Life     // ends when nothing more is to be asked but to close
	watched chan struct{} // closed when the stream is asked no more how it does
	closer  sync.Once
	result  error // of Close
	bursts  kept  // that the host is likely to have

	mu       sync.Mutex
	state    radio.State
	epoch    radio.Epoch
	clipped  radio.SampleCount
	taken    uint64            // how many events were heard of
	left     int               // how many the host has yet to tell
	reported radio.SampleIndex // at the host
	at       time.Time         // of reported, or before
	given    radio.SampleIndex // by Earliest
	why      error             // of a stream that its host has closed
	missed   error             // of asking how it does
}

func newTransmitter(d *Device, s *status, sent time.Time) *Transmitter {
	t := &Transmitter{d: d, number: s.Number, events: radio.NewEventQueue(), watched: make(chan struct{})}
	t.learn(s, sent)
	go t.watch()
	return t
}

// learn takes in what an answer tells, as it was at a time at the earliest.
func (t *Transmitter) learn(s *status, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = max(t.state, s.State)
	t.epoch, t.clipped = s.Epoch, s.Clipped
	t.reported, t.at = s.Earliest, at
	for k, e := range s.Events {
		if s.First+uint64(k) == t.taken {
			t.events.Push(e)
			t.taken++
		}
	}
	t.left = s.Left
}

// seen returns how many of the stream's events are here.
func (t *Transmitter) seen() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

// watch asks how the stream does, when nothing else is asked of it.
func (t *Transmitter) watch() {
	defer close(t.watched)
	ticker := time.NewTicker(t.d.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-t.life.Done():
			return
		}
		if t.d.tryTake() {
			t.look()
			t.d.give()
		}
	}
}

// look asks how the stream does, with the turn taken.
func (t *Transmitter) look() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*t.d.every)
	defer cancel()
	ctx, release := joined(ctx, &t.life, &t.d.life)
	defer release()
	err := t.heard(t.ask(ctx, &request{Op: opStatus}))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missed = err
}

// maxMore is how often a host is asked at once for more events: it is to hold no more.
const maxMore = 4 * maxHeld / maxEvents

// ask asks for something, with the turn taken, and for the events that one answer has no
// room for.
func (t *Transmitter) ask(ctx context.Context, r *request) (*answer, error) {
	a, err := t.d.ask(ctx, t, r, r.payload)
	for k, before := 0, t.seen(); k < maxMore && t.more(); k, before = k+1, t.seen() {
		next, failed := t.d.ask(ctx, t, &request{Op: opStatus}, nil)
		if next == nil {
			return a, errors.Join(err, failed)
		}
		if t.seen() == before {
			break // the host says that there are more, and tells of none
		}
	}
	return a, err
}

func (t *Transmitter) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left > 0
}

// heard notes that a stream is closed, and passes the error on.
func (t *Transmitter) heard(_ *answer, err error) error {
	var far *farError
	if errors.As(err, &far) && errors.Is(far, radio.ErrClosed) {
		t.end(err)
	}
	return err
}

// end notes that the stream is closed, and why if its host did it.
func (t *Transmitter) end(why error) {
	t.mu.Lock()
	if t.state != radio.Closed || t.why == nil {
		t.why = why
	}
	t.state = radio.Closed
	t.mu.Unlock()
	t.events.Close()
}

// cut ends what waits, and what the stream does by itself.
func (t *Transmitter) cut() {
	t.life.End(radio.ErrClosed)
	<-t.watched
}

// abandon ends what nobody asks for any more.
func (t *Transmitter) abandon() {
	t.cut()
	t.end(nil)
}

// usable says why nothing can be asked. What went wrong since the last call is told once.
func (t *Transmitter) usable() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.why != nil:
		return t.why
	case t.state == radio.Closed:
		return radio.ErrClosed
	}
	err := t.missed
	t.missed = nil
	return err
}

// call asks for something of the stream.
func (t *Transmitter) call(ctx context.Context, r *request) (*answer, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	ctx, release := joined(ctx, &t.life, &t.d.life)
	defer release()
	if err := t.d.take(ctx); err != nil {
		return nil, err
	}
	defer t.d.give()
	a, err := t.ask(ctx, r)
	return a, t.heard(a, err)
}

// Start starts the stream. One that waits for a trigger is full when it returns.
func (t *Transmitter) Start(ctx context.Context) error {
	_, err := t.call(ctx, &request{Op: opStart})
	return err
}

// State returns the state that was heard of last.
func (t *Transmitter) State() radio.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// Epoch returns the tuning epoch that was heard of last.
func (t *Transmitter) Epoch() radio.Epoch {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch
}

// Event implements radio.Transmitter.
func (t *Transmitter) Event(ctx context.Context) (radio.Event, error) { return t.events.Next(ctx) }

// Close sends what was written, and switches the radio off. Where its host cannot be
// reached it says so; the host does it then by itself.
func (t *Transmitter) Close() error {
	t.closer.Do(func() {
		t.cut()
		ctx, cancel := ending()
		defer cancel()
		ctx, release := joined(ctx, &t.d.life)
		defer release()
		if t.result = t.d.take(ctx); t.result == nil {
			_, t.result = t.ask(ctx, &request{Op: opClose})
			t.d.give()
		}
		t.result = unlessClosed(t.result)
		t.end(nil)
	})
	return t.result
}

// unlessClosed returns err unless it says that what was to be closed is closed.
func unlessClosed(err error) error {
	if errors.Is(err, radio.ErrClosed) {
		return nil
	}
	return err
}

// writing is how long one request may wait for room: the host is to notice soon when
// nobody asks any more.
const writing = 5 * time.Second

// Write takes src in, at most MaxSamples. A burst that the radio's host still has is not sent
// there again. If ctx ends without an answer, what was taken is not known.
func (t *Transmitter) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (n int, err error) {
	if len(src) > MaxSamples {
		return 0, fmt.Errorf("a block for host %d's radio has %d samples; allowed is at most %d", t.d.index, len(src), MaxSamples)
	}
	sum := digest(src)
	for {
		began, wait := time.Now(), patience(ctx, writing)
		a, err := t.write(ctx, src, burst{Digest: sum[:], Samples: len(src), From: n, End: meta.BurstEnd}, meta, wait)
		if a != nil {
			n = min(n+a.Taken, len(src))
		}
		if err != nil || !a.Again {
			return n, err
		}
		if time.Since(began) < wait/2 { // it would be asked without end
			return n, fmt.Errorf("%w: host %d says after %v that for %v there was no room", errMessage, t.d.index, time.Since(began), wait)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < writing/100 {
			<-ctx.Done()
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
	}
}

// write asks for a burst to be taken, which goes with it if the host has not got it.
func (t *Transmitter) write(ctx context.Context, src []complex64, x burst, meta radio.TxMeta, wait time.Duration) (*answer, error) {
	r := &request{Op: opWrite, Burst: &x, Wait: wait}
	if meta.Timed && x.From == 0 { // what is left follows
		x.Timed, r.Index = true, meta.Start
	}
	sum := [sha256.Size]byte(x.Digest)
	_, there := t.bursts.find(sum)
	for {
		if x.Whole = !there; !there {
			r.payload = appendSamples(make([]byte, 0, len(src)*sampleBytes), src)
		}
		a, err := t.call(ctx, r)
		if err != nil {
			return a, err
		}
		if !a.Missing {
			t.bursts.add(keptBurst{digest: sum, samples: len(src)})
			return a, nil
		}
		if !there {
			return nil, fmt.Errorf("%w: host %d misses a burst that it was given", errMessage, t.d.index)
		}
		t.bursts.forget(sum)
		there = false
	}
}

// Do has the radio's host do an operation of the application's own on the stream.
func (t *Transmitter) Do(ctx context.Context, op string, args []byte) ([]byte, error) {
	a, err := t.call(ctx, &request{Op: opDo, Name: op, payload: args})
	if err != nil {
		return nil, err
	}
	return a.payload, nil
}

// earliest is radio.Pacer's.
func (t *Transmitter) earliest() radio.SampleIndex {
	rate, now := t.d.SampleRate(radio.Transmit), t.d.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	index := t.reported
	if t.state == radio.Running && rate > 0 {
		since := min(max(0, now.Sub(t.at)), maxSince)
		index += radio.SampleIndex(rate.Samples(since))
	}
	t.given = max(t.given, index)
	return t.given
}

// maxSince keeps an index from running over: nothing that old is of use.
const maxSince = 24 * time.Hour
