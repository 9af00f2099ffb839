package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ringwave/radio"
)

// HostConfig describes a Host.
type HostConfig struct {
	// Open opens the local radio, under the local permit.
	Open func(ctx context.Context) (radio.Device, error)
	// Do does an operation of the application's own on the open stream; nil has none.
	Do func(ctx context.Context, tx radio.Transmitter, op string, args []byte) ([]byte, error)
	// Silence is for how long nothing may be asked before the stream is closed; 0 is for
	// ten seconds.
	Silence time.Duration
	Now     func() time.Time // nil for the system's clock
	// Say hears what a user should know; nil for nobody.
	Say func(text string)
}

// Host has a radio and does what is asked of it from elsewhere. It is safe for use by
// several goroutines.
type Host struct {
	cfg HostConfig

	mu     sync.Mutex
	closed bool
	last   uint64 // the ID of the last request that was begun
	answer []byte // to it; nil while it is being done
	stale  uint64 // the ID of the last proxy that was said to come too late
	heard  time.Time
	began  time.Time // the last request
	info   radio.Info
	// doing is closed when what is under way is done, nil where nothing is; cancel ends its
	// wait. Whoever has set it has all that follows.
	doing  chan struct{}
	cancel context.CancelFunc

	radio   radio.Device // nil before it is opened
	session uint64       // the ID of the request that opened it; written under the lock
	stream  *stream      // the last one opened, or nil
	streams uint64       // how many there were
	bursts  kept
	watches sync.WaitGroup
}

// NewHost makes a host whose radio is not open yet.
func NewHost(cfg HostConfig) *Host {
	if cfg.Silence <= 0 {
		cfg.Silence = 10 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Say == nil {
		cfg.Say = func(string) {}
	}
	return &Host{cfg: cfg}
}

// Info returns what the radio says of itself; the zero value before it was first opened.
func (h *Host) Info() radio.Info {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.info
}

// Handle does what a request asks for, unless it was done, and returns the answer; nil where
// there is none to give: for what is no request, is older than what was done last, or is
// being done. It may wait, so requests are to be handled each in a goroutine of its own: a
// newer one ends the wait of the one before.
func (h *Host) Handle(ctx context.Context, b []byte) []byte {
	r, err := parseRequest(b)
	if err != nil {
		h.cfg.Say(fmt.Sprintf("what came for the radio is no request: %v", err))
		return nil
	}
	working, known := h.admit(ctx, r)
	if working == nil {
		return known
	}
	out := h.do(working, r)
	h.mu.Lock()
	h.answer, h.heard = out, h.cfg.Now()
	h.mu.Unlock()
	h.release()
	return out
}

// admit has a request begin, in the context that it gives. It gives none for one that is not
// to be done, and the answer to that if there is one.
func (h *Host) admit(ctx context.Context, r *request) (working context.Context, known []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.closed:
			return nil, nil
		case r.Op != opOpen && r.Session != h.session:
			return nil, refusal(r.id, fmt.Errorf("%w: another has taken over the radio, or its host has begun anew", radio.ErrClosed))
		case r.id == h.last:
			// Who asks again is there; what the bus repeats of somebody who is gone counts
			// for a while only.
			if now := h.cfg.Now(); now.Sub(h.began) < repeated {
				h.heard = now
			}
			return nil, h.answer
		case r.id < h.last:
			h.late(r)
			return nil, nil
		}
		if h.doing == nil {
			h.began = h.cfg.Now()
			h.last, h.answer, h.heard = r.id, nil, h.began
			return h.begin(ctx), nil
		}
		if !h.supersede(ctx) {
			return nil, nil
		}
	}
}

// late tells of a proxy that cannot take the radio over. The lock is held.
func (h *Host) late(r *request) {
	if r.Op == opOpen && r.id != h.session && r.id > h.stale {
		h.stale = r.id
		h.cfg.Say("somebody asks for the radio whose requests are numbered before those that were done: if it is a server that has begun anew, its clock is behind that of the one before")
	}
}

// begin takes what belongs to whoever is at work. The lock is held.
func (h *Host) begin(ctx context.Context) context.Context {
	ctx, h.cancel = context.WithCancel(ctx)
	h.doing = make(chan struct{})
	return ctx
}

// supersede ends the wait of what is under way, and waits for it to be done; it reports
// whether it is. The lock is held, but not meanwhile.
func (h *Host) supersede(ctx context.Context) bool {
	doing := h.doing
	h.cancel()
	h.mu.Unlock()
	defer h.mu.Lock()
	select {
	case <-doing:
		return true
	case <-ctx.Done():
		return false
	}
}

// release gives back what begin took.
func (h *Host) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel()
	close(h.doing)
	h.doing = nil
}

// Close closes the stream and then the radio. Nothing is done or answered any more.
func (h *Host) Close() error {
	h.mu.Lock()
	for h.doing != nil {
		h.supersede(context.Background())
	}
	h.closed = true
	h.begin(context.Background())
	h.mu.Unlock()
	err := h.shut()
	h.release()
	h.watches.Wait()
	return err
}

// shut closes the stream and the radio.
func (h *Host) shut() error {
	err := h.end()
	if h.radio != nil {
		err = errors.Join(err, h.radio.Close())
		h.radio = nil
	}
	return err
}

// end closes the stream, unless that was done, and what came of it told. It can still be
// asked for its events.
func (h *Host) end() error {
	if h.stream == nil || h.stream.ended() {
		return nil
	}
	return h.stream.close()
}

// watch closes a stream of which nothing is heard for too long.
func (h *Host) watch(s *stream) {
	defer h.watches.Done()
	ticker := time.NewTicker(max(h.cfg.Silence/4, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			h.expire()
		case <-s.over:
			return
		}
	}
}

// expire closes the stream if nothing was asked for too long. What is under way was asked.
func (h *Host) expire() {
	h.mu.Lock()
	if h.closed || h.doing != nil || h.stream == nil || h.cfg.Now().Sub(h.heard) < h.cfg.Silence {
		h.mu.Unlock()
		return
	}
	h.begin(context.Background())
	h.mu.Unlock()
	defer h.release()
	if h.stream.ended() {
		return
	}
	why := fmt.Sprintf("nothing was asked of the radio for %v, so that its stream was closed", h.cfg.Silence)
	h.cfg.Say(why)
	h.stream.why = silenced{fmt.Errorf("%w: %s", radio.ErrClosed, why)}
	if err := h.end(); err != nil {
		h.cfg.Say(fmt.Sprintf("closing the radio's stream: %v", err))
	}
}

// repeated is for how long a request may be asked for again.
const repeated = 2 * time.Minute

// silenced says that a stream was closed as nobody asked for anything. Another can begin, as
// where one has starved.
type silenced struct{ error }

func (e silenced) Unwrap() error        { return e.error }
func (e silenced) Is(target error) bool { return target == radio.ErrStarved }

// refusal returns the answer to a request that was not begun.
func refusal(id uint64, err error) []byte {
	var a answer
	a.fails(err)
	b, err := encode(answers, id, &a, nil)
	if err != nil {
		return nil // it is short
	}
	return b
}
