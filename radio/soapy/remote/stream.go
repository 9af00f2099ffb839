package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// stream is a soapy.Stream. The server has a thread that reads from the board, or writes to
// it, from when the stream is made until it is closed there, whether it is active or not; and
// some modules switch a board on that is read from or written to. So what still is on its way
// when a stream is deactivated could switch the board on again. Deactivate therefore closes
// the stream there, too, and deactivates once more what no thread has; Activate makes it again.
type stream struct {
	b      *board
	at     soapy.Channel
	format string
	args   soapy.Args
	size   int // of a sample
	most   int // bytes of a block

	// switching is held over calls to the server. It is taken before mu.
	switching sync.Mutex
	active    bool

	mu     sync.Mutex
	closed bool
	flow   *flow // nil where the server has no stream
}

var errNotActive = fmt.Errorf("it is not active: %w", soapy.ErrStream)

// SetupStream implements soapy.Board.
func (b *board) SetupStream(ctx context.Context, at soapy.Channel, format string, args soapy.Args) (soapy.Stream, error) {
	size, err := sampleBytes(format)
	if err != nil {
		return nil, err
	}
	s := &stream{b: b, at: at, format: format, size: size, most: b.opts.mtu - transport, args: soapy.Args{}}
	maps.Copy(s.args, args)
	prot := "tcp"
	if b.opts.datagrams {
		prot = "udp"
	}
	s.args["remote:prot"] = prot
	s.args["remote:mtu"] = strconv.Itoa(b.opts.mtu)
	s.args["remote:window"] = strconv.Itoa(s.window())
	s.args["remote:format"] = format
	if err := s.setUp(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.streams[s] = true
	b.mu.Unlock()
	return s, nil
}

// window returns how many bytes may be on their way.
func (s *stream) window() int {
	switch {
	case s.b.opts.window > 0:
		return s.b.opts.window
	case s.at.Direction == radio.Receive:
		return 1 << 22
	}
	return 1 << 18
}

// setUp has the server make the stream.
func (s *stream) setUp(ctx context.Context) error {
	f, err := s.b.connect(ctx, s)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.flow = f
	s.mu.Unlock()
	return nil
}

// open returns what samples go through.
func (s *stream) open() (*flow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flow == nil {
		return nil, errNotActive
	}
	return s.flow, nil
}

// MTU implements soapy.Stream.
func (s *stream) MTU() int { return (s.most - frameHead) / s.size }

// Activate implements soapy.Stream.
func (s *stream) Activate(ctx context.Context, flags soapy.Flags, at soapy.Time) error {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.mu.Lock()
	closed, f := s.closed, s.flow
	s.mu.Unlock()
	if closed {
		return errNotActive
	}
	if f == nil {
		if err := s.setUp(ctx); err != nil {
			return err
		}
		f = s.flow
	}
	s.active = true // it may be, even if the server does not say so
	code, err := ask(ctx, s.b.link, newRequest(callActivateStream).integer(f.id).integer(int32(flags)).long(int64(at)).integer(0), (*answer).integer)
	if err == nil && code < 0 {
		err = fmt.Errorf("SoapyRemote server %s: activating a stream: %w", s.b.link.address, soapy.Code(code))
	}
	f.begun()
	return err
}

// Deactivate implements soapy.Stream.
func (s *stream) Deactivate(ctx context.Context, flags soapy.Flags, at soapy.Time) error {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.mu.Lock()
	f := s.flow
	s.flow = nil
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	f.stop()
	defer f.end()
	active := s.active
	s.active = false
	if !active {
		return tell(ctx, s.b.link, newRequest(callCloseStream).integer(f.id))
	}
	if err := s.switchOff(ctx, f.id, flags, at); err != nil {
		return err
	}
	id, err := ask(ctx, s.b.link, newRequest(callSetupBypass).channels(s.at, s.format).args(s.args), (*answer).integer)
	var said refusal
	if errors.As(err, &said) && s.at.Direction == radio.Receive {
		return nil // it was switched off, and a board that receives may
	}
	if err != nil {
		return err
	}
	return s.switchOff(ctx, id, 0, 0)
}

// switchOff deactivates and closes a stream at the server. Nothing comes in between: modules
// that free what a stream has without ending it first crash where a thread has switched it on
// again, as SoapyHackRF 0.3.3 does.
func (s *stream) switchOff(ctx context.Context, id int32, flags soapy.Flags, at soapy.Time) error {
	l := s.b.link
	all, err := l.calls(ctx, newRequest(callDeactivateStream).integer(id).integer(int32(flags)).long(int64(at)), newRequest(callCloseStream).integer(id))
	if err != nil {
		return err
	}
	code, off := valueOf(l, all[0], (*answer).integer)
	_, closed := valueOf(l, all[1], (*answer).void)
	if off == nil && code < 0 && soapy.Code(code) != soapy.ErrNotSupported {
		off = fmt.Errorf("SoapyRemote server %s: deactivating a stream: %w", l.address, soapy.Code(code))
	}
	if off == nil {
		off = closed
	}
	return off
}

// Read implements soapy.Stream.
func (s *stream) Read(ctx context.Context, dst []byte, patience time.Duration) (int, soapy.BlockInfo, error) {
	f, err := s.open()
	if err != nil {
		return 0, soapy.BlockInfo{}, err
	}
	return f.read(ctx, dst[:len(dst)/s.size*s.size], patience)
}

// Write implements soapy.Stream.
func (s *stream) Write(ctx context.Context, src []byte, b soapy.BlockInfo, patience time.Duration) (int, error) {
	f, err := s.open()
	if err != nil {
		return 0, err
	}
	return f.write(ctx, src[:len(src)/s.size*s.size], b, patience)
}

// Status implements soapy.Stream.
func (s *stream) Status(ctx context.Context, patience time.Duration) (soapy.BlockInfo, error) {
	f, err := s.open()
	if err != nil {
		return soapy.BlockInfo{}, err
	}
	return f.status(ctx, patience)
}

// Close implements soapy.Stream. The server that has gone has no streams.
func (s *stream) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	ctx, cancel := s.b.link.farewell()
	defer cancel()
	err := s.Deactivate(ctx, 0, 0)
	s.b.mu.Lock()
	delete(s.b.streams, s)
	s.b.mu.Unlock()
	if errors.Is(err, soapy.ErrGone) {
		return nil
	}
	return err
}
