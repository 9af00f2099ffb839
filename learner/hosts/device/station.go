package device

import (
	"context"
	"fmt"
	"sync"

	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// Station sends a device's frames over a radio of its own: the Framer of a link over radios.
// A frame is made ready where its payload is known, and sent at the server's cue.
type Station struct {
	mu       sync.Mutex
	sender   *phy.WaveformSender
	transmit *phy.WaveformTransmitter
	ready    chan struct{} // closed when another frame is loaded
	loaded   wire.Due
	at       slot.Slot
	has      bool
	stream   radio.Transmitter // that transmit has taken up, moved by offset
	offset   radio.SampleIndex
}

// NewStation returns the station of a device.
func NewStation(s *phy.WaveformSender, t *phy.WaveformTransmitter) *Station {
	return &Station{sender: s, transmit: t, ready: make(chan struct{})}
}

// Group and Repeats implement Framer.
func (s *Station) Group() int   { return s.sender.Group() }
func (s *Station) Repeats() int { return s.sender.Repeats() }

// Frame makes a transmission's frame ready for the cue, and returns what names it.
func (s *Station) Frame(at slot.Slot, repeat int, x zq.Vector) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has = false
	f, err := s.sender.Frame(at, repeat, x)
	if err != nil {
		return nil, err
	}
	if err := s.transmit.Load(f); err != nil {
		return nil, err
	}
	s.at, s.loaded, s.has = at, wire.Due{Group: f.Group, Repeat: repeat}, true
	close(s.ready)
	s.ready = make(chan struct{})
	return s.loaded.Bytes(), nil
}

// Do does what the server asks of the station over its present stream.
func (s *Station) Do(ctx context.Context, tx radio.Transmitter, op string, args []byte) ([]byte, error) {
	switch op {
	case wire.OpAlign:
		m, err := wire.ParseMakeUp(args)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, s.sender.Align(m)
	case wire.OpSend:
		c, err := wire.ParseCue(args)
		if err != nil {
			return nil, err
		}
		return nil, s.send(ctx, tx, c)
	}
	return nil, fmt.Errorf("the server asks for %q: allowed are %s and %s", op, wire.OpAlign, wire.OpSend)
}

// send sends the frame that is due.
func (s *Station) send(ctx context.Context, tx radio.Transmitter, c wire.Cue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != tx || s.offset != c.Offset {
		moved, err := radio.Shift(tx, c.Offset)
		if err != nil {
			return err
		}
		if err := s.transmit.Begin(moved); err != nil {
			return err
		}
		s.stream, s.offset = tx, c.Offset
	}
	for c.Due.Group == s.sender.Group() && !(s.has && s.at == c.Slot && s.loaded == c.Due) {
		ready := s.ready
		s.mu.Unlock()
		select {
		case <-ready: // a frame is sent again as the server asks for it, which may be heard later
			s.mu.Lock()
		case <-ctx.Done():
			s.mu.Lock()
			return fmt.Errorf("no frame of %v was ready in time: %w", c.Slot.Transmission, context.Cause(ctx))
		}
	}
	return s.transmit.Send(ctx, c.Times, c.Due.Group, c.Slot.Transmission)
}
