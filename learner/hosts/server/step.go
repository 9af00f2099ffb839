package server

import (
	"context"
	"fmt"
	"time"

	"ringwave/crypto/round"
	"ringwave/learner/hosts/wire"
	"ringwave/phy/slot"
)

// Epoch returns the key epoch that the device spoke of last.
func (d *remote) Epoch() uint32 {
	s := d.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking == nil {
		return 0
	}
	return s.asking.epochs[d.index-1]
}

// Prepare has the device begin an attempt: round.Participant.
func (d *remote) Prepare(ctx context.Context, k, attempt uint32) error {
	s := d.server
	at := slot.Slot{Round: k, Attempt: attempt}
	a, gone, err := s.ask(wire.Prepared, at, d.index, func() wire.Message {
		clear(s.present)
		return wire.Message{Kind: wire.Prepare, Slot: at, Body: s.next}
	})
	if err != nil {
		return err
	}
	if err := d.await(ctx, a, gone); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present[d.index-1], s.visits[d.index-1] = true, d.visit
	return nil
}

// Send has the device send what is due: round.Participant. How many messages were clipped
// is the device's own.
func (d *remote) Send(ctx context.Context, step round.Step) (clipped int, err error) {
	s := d.server
	a, gone, err := s.ask(wire.Sent, step.Slot, d.index, func() wire.Message {
		r := wire.Request{Present: s.present}
		switch {
		case step.Key != nil:
			s.accepted(step)
			r.Broadcast = wire.AppendVector(nil, step.Key.Coefficients())
		case step.C1 != nil:
			r.Broadcast = wire.AppendVector(nil, step.C1.Coefficients())
		}
		return wire.Message{Kind: wire.Send, Slot: step.Slot, Body: r.Bytes()}
	})
	if err != nil {
		return 0, err
	}
	if d.isAnother() {
		return 0, fmt.Errorf("device %d was begun anew: %w", d.index, round.ErrAbsent)
	}
	return 0, d.await(ctx, a, gone)
}

// isAnother reports whether the device greeted anew since it got ready for the attempt, and
// has nothing of it.
func (d *remote) isAnother() bool {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	return d.visit != d.server.visits[d.index-1]
}

// ask returns the step of a slot, which the first device that is asked for it begins; gone
// is nil where the device is absent.
func (s *Server) ask(answer wire.Kind, at slot.Slot, index int, message func() wire.Message) (a *asking, gone chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone = s.devices[index-1].gone
	if a = s.asking; a != nil && a.answer == answer && a.slot == at {
		return a, gone, nil
	}
	m := message()
	m.Run = s.cfg.Run
	b, err := wire.Seal(s.cfg.Identity, m)
	if err != nil {
		return nil, nil, err
	}
	s.close()
	a = &asking{
		answer: answer, slot: at, message: b, began: s.now(), missing: s.count(), over: make(chan struct{}),
		refusals: make([]string, len(s.devices)), epochs: make([]uint32, len(s.devices)),
	}
	for range s.devices {
		a.answered = append(a.answered, make(chan struct{}))
	}
	s.asking = a
	s.ended.Go(func() { s.repeat(a) })
	return a, gone, s.publish(a)
}

// close ends the step at hand.
func (s *Server) close() {
	if s.asking != nil {
		close(s.asking.over)
		s.asking = nil
	}
}

// publish asks all for a step. Where the bus is gone for now it is as if the message was lost.
func (s *Server) publish(a *asking) error {
	if err := s.cfg.Bus.Publish(s.cfg.Run.ToAll(), a.message); err != nil {
		s.cfg.Say("the bus does not take messages: " + err.Error())
	}
	return nil
}

// repeat asks those who have not answered again, less and less often.
func (s *Server) repeat(a *asking) {
	pause := s.patience()
	for {
		t := time.NewTimer(pause)
		select {
		case <-a.over:
			t.Stop()
			return
		case <-t.C:
		}
		pause = max(pause, min(2*pause, lastRepeat))
		s.mu.Lock()
		var late []int
		for i, done := range a.answered {
			select {
			case <-done:
			default:
				if s.devices[i].gone != nil {
					late = append(late, i+1)
				}
			}
		}
		s.mu.Unlock()
		for _, index := range late {
			_ = s.cfg.Bus.Publish(s.cfg.Run.ToDevice(index), a.message) // and again
		}
	}
}

// count returns how many devices are here. mu is held.
func (s *Server) count() (n int) {
	for _, d := range s.devices {
		if d.gone != nil {
			n++
		}
	}
	return n
}

// pace learns from a step that all have answered how long one takes: what many devices on a
// slow host have not answered yet must not be asked for again, for that would make them slower.
func (s *Server) pace(a *asking) {
	if a.missing--; a.missing == 0 {
		s.usual += (s.now().Sub(a.began) - s.usual) / 4
	}
}

// patience is how long nothing is said again of what has not come.
func (s *Server) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(firstRepeat, 3*s.usual)
}

// After what time a step is asked for again, at least, and at most where steps are short.
const (
	firstRepeat = 250 * time.Millisecond
	lastRepeat  = 2 * time.Second
)

// await waits for a device's answer.
func (d *remote) await(ctx context.Context, a *asking, gone chan struct{}) error {
	if gone == nil {
		return fmt.Errorf("device %d is not here: %w", d.index, round.ErrAbsent)
	}
	deadline := time.NewTimer(d.server.cfg.Deadline)
	defer deadline.Stop()
	select {
	case <-a.answered[d.index-1]:
		return d.answer(a)
	case <-gone:
		select {
		case <-a.answered[d.index-1]:
			if err := d.answer(a); err != nil {
				return err // which says why it was lost
			}
		default:
		}
		return fmt.Errorf("device %d was lost: %w", d.index, round.ErrAbsent)
	case <-deadline.C:
		return fmt.Errorf("device %d did not answer within %v: %w", d.index, d.server.cfg.Deadline, round.ErrAbsent)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer returns what a device has answered: nil, or why it has not done it.
func (d *remote) answer(a *asking) error {
	if why := a.refusals[d.index-1]; why != "" {
		return fmt.Errorf("device %d: %s: %w", d.index, why, round.ErrAbsent)
	}
	return nil
}

// Keep keeps the record of the round after the last one kept: devices hear of it when the
// next attempt begins, and who comes late replays it. The same record again, as after a
// resume, is the one that is there.
func (s *Server) Keep(r wire.Record) (sealed []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Round != uint32(len(s.records)+1) {
		return nil, fmt.Errorf("a record of round %d behind that of round %d", r.Round, len(s.records))
	}
	if sealed, err = wire.SealRecord(s.cfg.Identity, s.cfg.Run, r); err != nil {
		return nil, err
	}
	s.records, s.next = append(s.records, sealed), sealed
	s.foresee()
	return sealed, nil
}
