package remote

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
)

// Caller brings requests to a radio's host and answers back.
type Caller interface {
	// Call returns the answer to a request: the one that has its ID. It fails where the host
	// is gone, and ends with ctx.
	Call(ctx context.Context, request []byte) (answer []byte, err error)
}

// Opener opens host:INDEX, the transmitter of a host.
type Opener struct {
	caller func(index int) (Caller, error)
}

// NewOpener makes an opener of the radios that hosts have, by their indices.
func NewOpener(caller func(index int) (Caller, error)) *Opener { return &Opener{caller} }

// Open opens a host's radio.
func (o *Opener) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	if err := u.Only(); err != nil {
		return nil, err
	}
	index, err := strconv.ParseUint(u.Name, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("device %q has the name %q; allowed is the index of a host, as in host:3", u, u.Name)
	}
	c, err := o.caller(int(index))
	if err != nil {
		return nil, fmt.Errorf("device %q: %w", u, err)
	}
	return Open(ctx, c, int(index))
}

// Open takes over the radio of a host, and returns it as a radio.TransmitOpener with
// FrequencyControl, RateControl and GainControl, and with ClockControl, TriggerControl and
// TimeControl just where the radio has them. Its streams are a *Transmitter, and Pacer,
// Idler, LossChecker and ClipCounter just where the radio's are.
func Open(ctx context.Context, c Caller, index int) (radio.Device, error) {
	return open(ctx, c, index, timing{now: time.Now, every: time.Second})
}

// timing is what a proxy has from the system's clock.
type timing struct {
	now   func() time.Time
	every time.Duration // a stream is asked how it does
}

func open(ctx context.Context, c Caller, index int, by timing) (radio.Device, error) {
	d := &Device{link: link{caller: c, index: index, timing: by, turn: make(chan struct{}, 1)}}
	d.link.last.Store(uint64(time.Now().UnixNano()))
	a, err := d.call(ctx, &request{Op: opOpen}, nil)
	if err != nil {
		return nil, err
	}
	if a.Device == nil {
		return nil, fmt.Errorf("%w: host %d says nothing of its radio", errMessage, index)
	}
	d.session = a.id
	return d.capable(), nil
}

// link carries one request after the other.
type link struct {
	timing
	caller  Caller
	index   int
	session uint64        // once the radio is open
	last    atomic.Uint64 // the last ID
	turn    chan struct{} // holds a token while a request is under way
}

// take waits for the turn to ask.
func (l *link) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryTake takes the turn if nothing is under way.
func (l *link) tryTake() bool {
	select {
	case l.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *link) give() { <-l.turn }

// exchange sends a request and returns the answer, and when the host began with it at the
// earliest. The turn is the caller's.
func (l *link) exchange(ctx context.Context, r *request, payload []byte) (a *answer, sent time.Time, err error) {
	r.Session = l.session
	if r.Wait == 0 {
		r.Wait = patience(ctx, longest)
	}
	id := l.last.Add(1)
	b, err := encode(asks, id, r, payload)
	if err != nil {
		return nil, sent, err
	}
	sent = l.now()
	b, err = l.caller.Call(ctx, b)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, sent, fmt.Errorf("asking host %d's radio to %s: %w", l.index, r.Op, err)
	}
	if a, err = parseAnswer(b); err == nil && a.id != id {
		err = fmt.Errorf("%w: the answer is to another request", errMessage)
	}
	if err != nil {
		return nil, sent, fmt.Errorf("asking host %d's radio to %s: %w", l.index, r.Op, err)
	}
	return a, sent, nil
}

// patience returns how long a request may wait at the host, at most most: what is left of
// ctx, without a part for the answer's way back.
func patience(ctx context.Context, most time.Duration) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return most
	}
	left := time.Until(end)
	return max(min(left-min(left/4, time.Second), most), time.Nanosecond)
}

// closing is how long closing may take: what was written is sent first.
const closing = 30 * time.Second

// ending returns a context to close with, which outlives the device.
func ending() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), closing)
}

// joined returns ctx that ends with what it is called on, too; by radio.ErrClosed.
func joined(ctx context.Context, lives ...*life.Life) (context.Context, context.CancelFunc) {
	var all []context.CancelFunc
	for _, l := range lives {
		var release context.CancelFunc
		ctx, release = l.Join(ctx)
		all = append(all, release)
	}
	return ctx, func() {
		for _, release := range all {
			release()
		}
	}
}
