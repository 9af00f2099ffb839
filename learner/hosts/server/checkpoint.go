package server

import "ringwave/learner/hosts/wire"

// checkpoint is theta after a round, as devices are sent it: with the record of the next round.
type checkpoint struct {
	round int // 0 for none
	body  []byte
}

// Offer has devices that lack many rounds be sent theta as it was after a round, in a body of
// wire.AppendCheckpoint.
func (s *Server) Offer(round int, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.theta = checkpoint{round, body}
}

// sendCheckpoint sends a device the checkpoint, if it lacks a round from which on it is shorter.
func (s *Server) sendCheckpoint(d *remote, from int) bool {
	if from < 1 || s.theta.round < from {
		return false
	}
	d.history += len(s.theta.body)
	_ = s.tell(d.index, wire.Message{Kind: wire.Checkpoint, Body: s.theta.body}) // it asks again
	return true
}
