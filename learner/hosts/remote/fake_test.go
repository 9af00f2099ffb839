package remote_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"ringwave/learner/hosts/remote"
	"ringwave/radio"
)

// fake is a radio in memory, and its stream, that does what a test tells it to.
type fake struct {
	mu       sync.Mutex
	state    radio.State
	earliest radio.SampleIndex
	written  [][]complex64
	metas    []radio.TxMeta
	asked    int // for losses
	filling  int
	closed   int
	opened   int
	queue    *radio.EventQueue
	fails    error // of writing
	room     int   // for how many samples there is at a time; 0 for any number
	writes   func()
}

// fakeStream is kept apart, as both a device and a stream have Close.
type fakeStream struct{ *fake }

func newFake() *fake { return &fake{queue: radio.NewEventQueue()} }

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) Info() radio.Info { return radio.Info{URI: "fake:", Notes: []string{"none"}} }

func (f *fake) Close() error { return nil }

func (f *fake) SampleRates(radio.Direction) radio.Span[radio.Hertz] {
	return radio.Span[radio.Hertz]{Min: 1000, Max: 1000}
}

func (f *fake) SampleRate(radio.Direction) radio.Hertz { return 1000 }

func (f *fake) SetSampleRate(context.Context, radio.Direction, radio.Hertz) (radio.Hertz, error) {
	return 1000, nil
}

func (f *fake) OpenTransmitter(context.Context) (radio.Transmitter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
	f.state, f.queue = radio.Ready, radio.NewEventQueue()
	return fakeStream{f}, nil
}

func (s fakeStream) Start(context.Context) error {
	s.set(func() {
		if s.state == radio.Ready {
			s.state = radio.Running
		}
	})
	return nil
}

func (s fakeStream) State() radio.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s fakeStream) Epoch() radio.Epoch { return 1 }

func (s fakeStream) Close() error {
	s.set(func() {
		s.state = radio.Closed
		s.closed++
		s.queue.Close()
	})
	return nil
}

func (s fakeStream) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metas = append(s.metas, meta)
	if s.writes != nil {
		s.writes()
	}
	if s.fails != nil {
		return 0, s.fails
	}
	n := len(src)
	if s.room > 0 {
		n = min(n, s.room)
	}
	s.written = append(s.written, slices.Clone(src[:n]))
	if n < len(src) {
		<-ctx.Done()
		return n, ctx.Err()
	}
	return n, nil
}

func (s fakeStream) Event(ctx context.Context) (radio.Event, error) { return s.queue.Next(ctx) }

func (s fakeStream) Earliest() radio.SampleIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filling > 0 { // it takes samples while it waits for its trigger
		s.filling--
		s.earliest += 10
	}
	return s.earliest
}

// CheckLoss tells of as many events as it was asked for.
func (s fakeStream) CheckLoss(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	for k := range 1000 * s.asked {
		s.queue.Push(radio.Event{Kind: radio.Underrun, Index: radio.SampleIndex(k)})
	}
	return nil
}

// hostOf returns a host that has the fake.
func hostOf(t testing.TB, f *fake, change func(*remote.HostConfig)) *remote.Host {
	t.Helper()
	cfg := remote.HostConfig{Open: func(context.Context) (radio.Device, error) { return f, nil }}
	if change != nil {
		change(&cfg)
	}
	h := remote.NewHost(cfg)
	t.Cleanup(func() { ok(t, h.Close()) })
	return h
}
