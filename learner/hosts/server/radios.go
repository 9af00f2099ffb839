package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	radios "ringwave/learner/hosts/remote"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/radio"
)

// Radios has devices send over radios of their own: it tells each when.
type Radios struct{ wave }

// NewRadios returns the radios of a server's devices, of so many a time slot.
func (s *Server) NewRadios(group int) (*Radios, error) {
	r := &Radios{wave{server: s, group: group}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.radio = r
	return r, s.audit.choose(s.cfg.Context.Params.N)
}

// Do asks the radio of device i, from 0, for an operation of its own.
type Do func(ctx context.Context, i int, op string, args []byte) error

// Align tells each device what it makes up for.
func (r *Radios) Align(ctx context.Context, do Do, all []phy.MakeUp) error {
	return r.each(func(i int) error { return do(ctx, i, wire.OpAlign, wire.AppendMakeUp(nil, all[i])) })
}

// Call has the devices of a group send the frame that is due, and all others be silent:
// phy.WaveformConfig.Call. Offsets are what the link's index has more than each device's own.
func (r *Radios) Call(ctx context.Context, do Do, offsets []radio.SampleIndex, d phy.Due) error {
	there, gone := r.members(d.Group)
	switch {
	case there == 0:
		return phy.ErrNobody
	case gone > 0:
		return fmt.Errorf("device %d was lost: %w", gone, phy.ErrUnsent)
	}
	if d.Repeat > 0 {
		if err := r.repeat(d); err != nil {
			return err
		}
	}
	err := r.each(func(i int) error {
		if !r.takesPart(i) {
			return nil
		}
		args, err := wire.Cue{Slot: d.Slot, Due: wire.Due{Group: d.Group, Repeat: d.Repeat}, Times: d.Cue, Offset: offsets[i]}.Bytes()
		if err != nil {
			return err
		}
		return do(ctx, i, wire.OpSend, args)
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", phy.ErrUnsent, err)
}

// repeat asks for a frame once more.
func (r *Radios) repeat(d phy.Due) error {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return r.askRepeat(d)
}

// takesPart reports whether device i, from 0, is one of the attempt.
func (r *Radios) takesPart(i int) bool {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return r.server.present[i]
}

// each does something for all devices, side by side, and returns the first error.
func (r *Radios) each(do func(i int) error) error {
	errs := make([]error, len(r.server.devices))
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			if err := do(i); err != nil {
				errs[i] = fmt.Errorf("device %d: %w", i+1, err)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrGone says that a device is not here, or was lost before it answered.
var ErrGone = errors.New("the device is not here")

// radioPatience bounds how long a device's radio may take for a request.
const radioPatience = 90 * time.Second

// Radio brings a request to the radio of a device, counted from 1, and its answer back. The
// request is sent until it is answered: whoever does it does it once.
func (s *Server) Radio(ctx context.Context, index int, request []byte) ([]byte, error) {
	id, ok := radios.ID(request)
	if !ok {
		return nil, errors.New("what is no request was to be sent to a radio")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, radioPatience, fmt.Errorf("the radio of device %d did not answer within %v", index, radioPatience))
	defer cancel()
	b, err := wire.Seal(s.cfg.Identity, wire.Message{Kind: wire.Radio, Run: s.cfg.Run, Device: uint32(index), Body: request})
	if err != nil {
		return nil, err
	}
	d := s.devices[index-1]
	answered := make(chan []byte, 1)
	s.mu.Lock()
	gone := d.gone
	if gone == nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("device %d: %w", index, ErrGone)
	}
	d.calls[id] = answered
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(d.calls, id)
	}()
	for pause := firstRepeat; ; pause = min(2*pause, lastRepeat) {
		_ = s.cfg.Bus.Publish(s.cfg.Run.ToDevice(index), b) // and again
		again := time.NewTimer(pause)
		select {
		case answer := <-answered:
			again.Stop()
			return answer, nil
		case <-gone:
			again.Stop()
			return nil, fmt.Errorf("device %d was lost: %w", index, ErrGone)
		case <-ctx.Done():
			again.Stop()
			return nil, context.Cause(ctx)
		case <-again.C:
		}
	}
}

// radioed takes in the answer of a device's radio. mu is held.
func (s *Server) radioed(d *remote, m wire.Message) {
	id, ok := radios.ID(m.Body)
	if answered := d.calls[id]; ok && answered != nil {
		delete(d.calls, id)
		answered <- m.Body
	}
}

// Visits returns how often each device has come: one that was begun anew has come once more.
func (s *Server) Visits() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	visits := make([]int, len(s.devices))
	for i, d := range s.devices {
		visits[i] = d.visit
	}
	return visits
}

// Dismiss tells devices that a calibration is over.
func (s *Server) Dismiss() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	end := wire.Message{Kind: wire.End}
	end.Slot.Again = 1
	s.tellAll(end)
}
