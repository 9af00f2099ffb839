package hackrf

import (
	"context"
	"sync"

	"ringwave/radio"
)

// status is what both directions know of how they stand. How each starts, fails and ends
// is its own: only one of them has a carrier to switch off.
type status struct {
	mu      sync.Mutex
	state   radio.State
	failed  error       // why the stream goes no further
	epoch   radio.Epoch // the present one; readers may be behind
	watched watcher
}

// State implements radio.Receiver and radio.Transmitter.
func (s *status) State() radio.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Epoch implements radio.Receiver and radio.Transmitter.
func (s *status) Epoch() radio.Epoch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// ready returns the error of a read or write in the present state.
func (s *status) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == radio.Closed:
		return radio.ErrClosed
	case s.state == radio.Ready:
		return radio.ErrNotStarted
	case s.failed != nil:
		return s.failed
	}
	return ctx.Err()
}

// began notes that samples flow.
func (s *status) began() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == radio.Armed {
		s.state = radio.Running
	}
}
