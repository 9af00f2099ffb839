package server

import (
	"context"
	"fmt"
	"time"

	"ringwave/learner/hosts/wire"
	"ringwave/phy/slot"
)

// End tells all present that the run is over, and waits until each has opened its keys, or
// the deadline has passed. It is an error if the model of one of them is not the server's,
// whose digest is given.
func (s *Server) End(ctx context.Context, digest wire.Digest) (Verdict, error) {
	s.mu.Lock()
	clear(s.left)
	s.close()
	end := wire.Message{Kind: wire.End, Slot: slot.Slot{Round: uint32(len(s.records))}, Body: s.next}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Deadline)
	defer cancel()
	repeat := time.NewTicker(firstRepeat)
	defer repeat.Stop()
	s.tellAll(end)
	for waiting := true; waiting; {
		s.mu.Lock()
		changed := s.changed
		waiting = false
		for _, d := range s.devices {
			if _, left := s.left[d.index]; d.gone != nil && !left {
				waiting = true
			}
		}
		s.mu.Unlock()
		if !waiting {
			break
		}
		select {
		case <-changed:
		case <-repeat.C:
			s.tellAll(end)
		case <-ctx.Done():
			waiting = false
		}
	}
	end.Slot.Again, end.Body = 1, nil // they may go
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.tellAll(end)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		if own, left := s.left[d.index]; left && own != digest {
			return s.verdict(), fmt.Errorf("the model of device %d differs from the server's at the end: its digest is %.8x…, the server's %.8x…", d.index, own, digest)
		}
	}
	return s.verdict(), s.differs
}
