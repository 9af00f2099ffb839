package iiod

import (
	"context"
	"fmt"
	"math"

	"ringwave/radio"
	"ringwave/radio/virtual"
)

// Place is one antenna of an emulated board on a virtual.Bench: a virtual.Radio for
// the bench and a radio.Device for a Server's Config. A Pluto, which receives and
// transmits at once, has two, and so two places on the bench. Make it with NewPlace
// and join it to a bench before it is opened.
type Place struct {
	direction radio.Direction
	seat      *virtual.Seat

	// What follows is guarded by the seat.
	now    virtual.Activity
	gone   bool
	stream *placeStream // the open one, or nil
}

// The number of samples between bench and server: in real time they bridge what the
// machine is late by. What is to be sent waits there, and so is less.
const (
	sendDepth    = 1 << 17
	receiveDepth = 1 << 20
)

// NewPlace makes the antenna of a direction.
func NewPlace(d radio.Direction) *Place {
	p := &Place{direction: d}
	p.now.Frequency, p.now.Rate = firstRxFrequency, 30_720_000
	if d == radio.Transmit {
		p.now.Frequency = firstTxFrequency
	}
	return p
}

// A Pluto's radio is not reached by USB requests: the place refuses them all.

// Descriptors returns none.
func (p *Place) Descriptors() virtual.Descriptors { return virtual.Descriptors{} }

// Control refuses.
func (p *Place) Control(context.Context, virtual.Setup, []byte) (int, error) {
	return 0, virtual.ErrStall
}

// In refuses.
func (p *Place) In(context.Context, byte, []byte) (int, error) { return 0, virtual.ErrStall }

// Out refuses.
func (p *Place) Out(context.Context, byte, []byte) (int, error) { return 0, virtual.ErrStall }

// Unplug takes the antenna off the bench; its stream ends.
func (p *Place) Unplug() {
	p.seat.Lock()
	defer p.seat.Unlock()
	p.gone = true
	if p.stream != nil {
		p.stream.close()
	}
}

// Join gives the antenna its seat.
func (p *Place) Join(s *virtual.Seat) { p.seat = s }

// Activity tells what the antenna does.
func (p *Place) Activity() virtual.Activity {
	a := p.now
	s := p.stream
	switch {
	case s == nil || s.state != radio.Running:
	case p.direction == radio.Receive:
		a.Mode, a.Room = virtual.Receiving, len(s.want)-s.got
	default:
		a.Mode, a.Room = virtual.Transmitting, len(s.samples)
	}
	return a
}

// Send returns the bench what is to be transmitted, and zeros where that is nothing.
func (p *Place) Send(dst []complex64) {
	s := p.stream
	n := copy(dst, s.samples)
	clear(dst[n:])
	s.samples = s.samples[n:] // append makes room anew, now and then
	s.index += radio.SampleIndex(n)
	if n < len(dst) && !s.dry {
		s.dry = true
		s.events.Push(radio.Event{Kind: radio.Underrun, Index: s.index})
	}
	s.index += radio.SampleIndex(len(dst) - n)
}

// Receive takes what is heard, to whoever waits for it, then into store.
func (p *Place) Receive(src []complex64) {
	s := p.stream
	n := copy(s.want[s.got:], src)
	s.got += n
	src = src[n:]
	n = min(len(src), receiveDepth-len(s.samples))
	s.samples = append(s.samples, src[:n]...)
	s.lost = s.lost || n < len(src)
}

// Edge does nothing: the board has no trigger.
func (p *Place) Edge() {}

// Info returns a name for errors.
func (p *Place) Info() radio.Info {
	return radio.Info{URI: fmt.Sprintf("bench:%v", p.direction), Driver: "bench"}
}

// Close ends the stream.
func (p *Place) Close() error {
	p.seat.Lock()
	defer p.seat.Unlock()
	if p.stream != nil {
		p.stream.close()
	}
	return nil
}

// Frequencies are any that a board has.
func (p *Place) Frequencies(radio.Direction) radio.Span[radio.Hertz] {
	return radio.Span[radio.Hertz]{Min: 1, Max: 6e9}
}

// Frequency returns the carrier.
func (p *Place) Frequency(radio.Direction) radio.Hertz {
	p.seat.Lock()
	defer p.seat.Unlock()
	return p.now.Frequency
}

// SetFrequency tunes the antenna, which the bench turns its phase by.
func (p *Place) SetFrequency(_ context.Context, _ radio.Direction, f radio.Hertz) (radio.Hertz, error) {
	p.seat.Lock()
	defer p.seat.Unlock()
	p.now.Frequency = f
	p.now.Tuning++
	return f, nil
}

// SampleRates are any.
func (p *Place) SampleRates(radio.Direction) radio.Span[radio.Hertz] {
	return radio.Span[radio.Hertz]{Min: 1, Max: math.MaxInt32}
}

// SampleRate returns the rate.
func (p *Place) SampleRate(radio.Direction) radio.Hertz {
	p.seat.Lock()
	defer p.seat.Unlock()
	return p.now.Rate
}

// SetSampleRate sets the rate.
func (p *Place) SetSampleRate(_ context.Context, _ radio.Direction, rate radio.Hertz) (radio.Hertz, error) {
	p.seat.Lock()
	defer p.seat.Unlock()
	p.now.Rate = rate
	return rate, nil
}

// OpenReceiver returns the one stream there is.
func (p *Place) OpenReceiver(context.Context) (radio.Receiver, error) {
	s, err := p.open(radio.Receive)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// OpenTransmitter returns the one stream there is.
func (p *Place) OpenTransmitter(context.Context) (radio.Transmitter, error) {
	s, err := p.open(radio.Transmit)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (p *Place) open(d radio.Direction) (*placeStream, error) {
	if d != p.direction {
		return nil, fmt.Errorf("%s cannot %v", p.Info().URI, d)
	}
	p.seat.Lock()
	defer p.seat.Unlock()
	switch {
	case p.gone:
		return nil, radio.ErrClosed
	case p.stream != nil:
		return nil, radio.ErrBusy
	}
	p.now.Stream++
	p.stream = &placeStream{p: p, events: radio.NewEventQueue(), dry: true}
	return p.stream, nil
}

// placeStream is the stream of a place, guarded by its seat.
type placeStream struct {
	p       *Place
	state   radio.State
	events  *radio.EventQueue
	index   radio.SampleIndex // of the next sample
	samples []complex64       // in store
	dry     bool              // nothing was there to be sent
	lost    bool              // received samples, since the last read

	want []complex64 // where a read waits for samples
	got  int
}

func (s *placeStream) Start(context.Context) error {
	s.p.seat.Lock()
	defer s.p.seat.Unlock()
	switch s.state {
	case radio.Closed:
		return radio.ErrClosed
	case radio.Running:
		return radio.ErrBusy
	}
	s.state = radio.Running
	return nil
}

func (s *placeStream) State() radio.State {
	s.p.seat.Lock()
	defer s.p.seat.Unlock()
	return s.state
}

// Epoch does not tell the phase: the server does not ask.
func (s *placeStream) Epoch() radio.Epoch { return 0 }

func (s *placeStream) Close() error {
	s.p.seat.Lock()
	defer s.p.seat.Unlock()
	s.close()
	return nil
}

func (s *placeStream) close() {
	s.state = radio.Closed
	s.events.Close()
	if s.p.stream == s {
		s.p.stream = nil
	}
}

// Event returns what happened.
func (s *placeStream) Event(ctx context.Context) (radio.Event, error) { return s.events.Next(ctx) }

// ready returns the error of a read or write in the present state.
func (s *placeStream) ready() error {
	switch s.state {
	case radio.Closed:
		return radio.ErrClosed
	case radio.Ready, radio.Armed:
		return radio.ErrNotStarted
	}
	return nil
}

// Read fills dst whole if it does not fail. A bench in lock-step goes on by what is
// wanted here.
func (s *placeStream) Read(ctx context.Context, dst []complex64) (n int, meta radio.Meta, err error) {
	s.p.seat.Lock()
	defer s.p.seat.Unlock()
	if err := s.ready(); err != nil {
		return 0, meta, err
	}
	s.got = copy(dst, s.samples)
	s.samples = s.samples[s.got:]
	s.want = dst
	err = s.p.seat.Wait(ctx, func() bool { return s.got == len(dst) || s.state == radio.Closed })
	n, s.want, s.got = s.got, nil, 0
	meta.First = s.index
	if s.lost {
		meta.Flags |= radio.Overrun
		s.lost = false
	}
	s.index += radio.SampleIndex(n)
	if err == nil && n < len(dst) {
		err = radio.ErrClosed
	}
	return n, meta, err
}

// Write takes src in as far as there is room, and waits for more.
func (s *placeStream) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (n int, err error) {
	s.p.seat.Lock()
	defer s.p.seat.Unlock()
	if meta.Timed {
		return 0, radio.ErrUntimed
	}
	for {
		if err := s.ready(); err != nil {
			return n, err
		}
		k := min(len(src)-n, sendDepth-len(s.samples))
		if k > 0 {
			s.samples = append(s.samples, src[n:n+k]...)
			s.dry = false
			n += k
		}
		if n == len(src) {
			return n, nil
		}
		// Not for room for one sample: each wait wakes the bench's others.
		most := sendDepth - min(len(src)-n, sendDepth/2)
		err := s.p.seat.Wait(ctx, func() bool { return len(s.samples) <= most || s.state == radio.Closed })
		if err != nil {
			return n, err
		}
	}
}
