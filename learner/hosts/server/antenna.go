package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/radio"
)

// Antenna is where the receiver of a waveform link, whose air is on the bus, has its samples
// from: it calls for the frame that is due, and gives what arrives to the receiver's stream.
type Antenna struct {
	phy.Feed
	wave

	mu      sync.Mutex
	due     wire.Message // the call; its body names the frame
	samples []complex64
	parts   map[int]int // samples that were heard, by the first of them
	left    int
	clipped radio.SampleCount
	whole   chan struct{} // closed once all were heard
}

// NewAntenna returns the antenna of a server, of so many devices a time slot.
func (s *Server) NewAntenna(group int) (*Antenna, error) {
	a := &Antenna{wave: wave{server: s, group: group}}
	stop, err := s.cfg.Bus.Subscribe(wire.AllFromAir, a.hear)
	if err != nil {
		return nil, fmt.Errorf("listening to the air: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, stop)
	s.radio = a
	return a, s.audit.choose(s.cfg.Context.Params.N)
}

// hear takes in a part of the frame that is due.
func (a *Antenna) hear(b bus.Message) {
	m, err := wire.Parse(b.Payload)
	if err != nil || m.Kind != wire.Superposition {
		return
	}
	d, h, samples, err := wire.TakeHeard(m.Body)
	if err != nil {
		a.server.cfg.Say("ignored what the air gave: " + err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(samples) / 8
	if m.Run != a.due.Run || m.Slot != a.due.Slot || !slices.Equal(d.Bytes(), a.due.Body) || a.left == 0 || h.Of != len(a.samples) || a.parts[h.At] > 0 || n > a.left {
		return // of another frame, or heard before
	}
	if !wire.ReadSamples(a.samples[h.At:h.At+n], samples) {
		a.server.cfg.Say("ignored what the air gave: not all samples are numbers")
		return
	}
	a.parts[h.At] = n
	a.clipped += h.Clipped
	if a.left -= n; a.left == 0 {
		close(a.whole)
	}
}

// expect gets ready for a frame.
func (a *Antenna) expect(d phy.Due) wire.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due = wire.Message{Kind: wire.Listen, Run: a.server.cfg.Run, Slot: d.Slot, Body: wire.Due{Group: d.Group, Repeat: d.Repeat}.Bytes()}
	if cap(a.samples) < d.Samples {
		a.samples = make([]complex64, d.Samples)
	}
	a.samples, a.parts, a.left, a.clipped, a.whole = a.samples[:d.Samples], map[int]int{}, d.Samples, 0, make(chan struct{})
	return a.due
}

// Call has the devices of a group send the frame that is due, and waits until all of it was
// heard: phy.WaveformConfig.Call. Air that does not answer ends the run.
func (a *Antenna) Call(ctx context.Context, d phy.Due) error {
	s := a.server
	if d.Samples > wire.MaxSamples {
		return fmt.Errorf("a frame of %d samples; over the bus allowed are %d", d.Samples, wire.MaxSamples)
	}
	if there, _ := a.members(d.Group); there == 0 {
		return phy.ErrNobody
	}
	listen, err := wire.Seal(s.cfg.Identity, a.expect(d))
	if err != nil {
		return err
	}
	if err := a.ask(d, listen, false); err != nil {
		return err
	}
	deadline := time.NewTimer(s.cfg.Deadline)
	defer deadline.Stop()
	pause := firstRepeat
	again := time.NewTimer(pause)
	defer again.Stop()
	for {
		select {
		case <-a.whole:
			a.Give(d.At, a.samples, a.clipped)
			return nil
		case <-again.C:
			if _, gone := a.members(d.Group); gone > 0 {
				return fmt.Errorf("device %d was lost: %w", gone, phy.ErrUnsent)
			}
			if err := a.ask(d, listen, true); err != nil {
				return err
			}
			pause = min(2*pause, lastRepeat)
			again.Reset(pause)
		case <-deadline.C:
			return fmt.Errorf("nothing arrived of %v within %v: the air is not there (ringwave air)", d.Slot.Transmission, s.cfg.Deadline)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ask asks devices for a repeat, and the air for what arrives; of what may be lost on the bus,
// again for the first frame, too.
func (a *Antenna) ask(d phy.Due, listen []byte, again bool) error {
	s := a.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.Repeat > 0 {
		if err := a.askRepeat(d); err != nil {
			return err
		}
	} else if q := s.asking; again && q != nil && q.slot == d.Slot {
		if err := s.publish(q); err != nil {
			return err
		}
	}
	_ = s.cfg.Bus.Publish(s.cfg.Run.ToAir(), listen)
	return nil
}
