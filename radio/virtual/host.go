package virtual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ringwave/radio/life"
	"ringwave/radio/usb"
)

// Host is a USB host in the same process, for drivers and their tests: boards are
// plugged into it, at addresses from 001/001 on. It is safe for use by several
// goroutines.
type Host struct {
	mu     sync.Mutex
	boards []Queuer
	open   map[usb.Address]*transport
}

var _ usb.Host = (*Host)(nil)

// NewHost makes a host with boards.
func NewHost(boards ...Board) *Host {
	h := &Host{open: map[usb.Address]*transport{}}
	for _, b := range boards {
		h.Plug(b)
	}
	return h
}

// Plug plugs in another board and gives its address. Boards that are unplugged
// keep theirs.
func (h *Host) Plug(b Board) usb.Address {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boards = append(h.boards, Queued(b))
	return address(len(h.boards) - 1)
}

func address(i int) usb.Address { return usb.Address{Bus: 1, Device: i + 1} }

// plugged reports whether a board is still there, by asking it for its status.
func plugged(b Board) bool {
	// A board that is busy is there.
	_, err := b.Control(life.Ended(), Setup{RequestType: standardIn, Request: getStatus, Length: 2}, make([]byte, 2))
	return !errors.Is(err, ErrUnplugged)
}

// List lists the boards that are plugged in.
func (h *Host) List(ctx context.Context, want func(usb.Identity) bool) ([]usb.Listed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []usb.Listed
	for i, b := range h.boards {
		d, id := b.Descriptors(), identity(b)
		if !plugged(b) || !want(id) {
			continue
		}
		l := usb.Listed{
			Address: address(i), Identity: id,
			Manufacturer: d.String(d.Device[14]), Product: d.String(d.Device[15]), Serial: d.Serial(),
		}
		if h.open[l.Address] != nil {
			l.Blocked = usb.ErrInUse
		}
		found = append(found, l)
	}
	return found, nil
}

// Open opens a board that nobody has open.
func (h *Host) Open(ctx context.Context, at usb.Address) (usb.Transport, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t, err := h.reach(at)
	if err != nil {
		return nil, err
	}
	if h.open[at] != nil {
		return nil, fmt.Errorf("opening the board at %v: %w", at, usb.ErrInUse)
	}
	h.open[at] = t
	return t, nil
}

// OpenBeside opens a board for control requests, who else has it open or not.
func (h *Host) OpenBeside(ctx context.Context, at usb.Address, want func(usb.Identity) bool) (usb.Controller, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t, err := h.reach(at)
	if err != nil {
		return nil, err
	}
	if !want(identity(t.board)) {
		return nil, fmt.Errorf("opening the board at %v: %w", at, ErrUnplugged)
	}
	return t, nil
}

// reach returns a way to the board at an address. The lock is held.
func (h *Host) reach(at usb.Address) (*transport, error) {
	i := at.Device - 1
	if at.Bus != 1 || i < 0 || i >= len(h.boards) || !plugged(h.boards[i]) {
		return nil, fmt.Errorf("opening the board at %v: %w", at, ErrUnplugged)
	}
	return &transport{host: h, at: at, board: h.boards[i]}, nil
}

func identity(b Board) usb.Identity {
	d := b.Descriptors()
	return usb.Identity{Vendor: d.Vendor(), Product: d.Product(), Release: d.Release()}
}

// transport is an open board.
type transport struct {
	host  *Host
	at    usb.Address
	board Queuer
	life  life.Life // ends with Close

	mu      sync.Mutex
	streams []interface{ Close() error }
	// control counts requests that are under way.
	control sync.WaitGroup
}

func (t *transport) Control(s Setup, data []byte, timeout time.Duration) (int, error) {
	switch {
	case timeout <= 0:
		return 0, fmt.Errorf("a control request with a timeout of %v; allowed is more than 0", timeout)
	case len(data) > usb.MaxControlData:
		return 0, fmt.Errorf("a control request with %d bytes; allowed is at most %d", len(data), usb.MaxControlData)
	}
	t.mu.Lock()
	if err := t.life.Err(); err != nil {
		t.mu.Unlock()
		return 0, err
	}
	t.control.Add(1)
	t.mu.Unlock()
	defer t.control.Done()
	ctx, release := t.life.Join(context.Background())
	defer release()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s.Length = uint16(len(data))
	n, err := Answer(ctx, t.board, s, data)
	switch {
	case err == nil:
		return n, nil
	case t.life.Err() != nil:
		return 0, t.life.Err()
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return 0, usb.ErrTimeout
	}
	return 0, err
}

// Answer makes any control request to a board, standard ones too, as front ends do.
func Answer(ctx context.Context, b Board, s Setup, data []byte) (int, error) {
	if s.RequestType&typeBits == 0 {
		if s.Request == clearFeature && s.RequestType == endpointOut {
			ClearHalt(b, byte(s.Index))
		}
		return Standard(b.Descriptors(), s, data)
	}
	return b.Control(ctx, s, data)
}

// OpenIn queues transfers and keeps them queued.
func (t *transport) OpenIn(c usb.InConfig) (usb.InStream, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.life.Err(); err != nil {
		return nil, err
	}
	in := usb.NewInStream(c, newInSource(t.board, c))
	t.streams = append(t.streams, in)
	return in, nil
}

// OpenOut makes ready a stream to the board.
func (t *transport) OpenOut(c usb.OutConfig) (usb.OutStream, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.life.Err(); err != nil {
		return nil, err
	}
	out := &outStream{board: t.board, endpoint: c.Endpoint, size: c.Size, count: c.Count, changed: make(chan struct{})}
	t.streams = append(t.streams, out)
	return out, nil
}

// Close ends the streams and the requests.
func (t *transport) Close() error {
	t.mu.Lock()
	if t.life.Err() != nil {
		t.mu.Unlock()
		return nil
	}
	t.life.End(usb.ErrClosed)
	streams := t.streams
	t.mu.Unlock()
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.Close())
	}
	t.control.Wait()
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	if t.host.open[t.at] == t {
		delete(t.host.open, t.at)
	}
	return errors.Join(errs...)
}

// inTransfer is one of a stream's buffers and what became of it.
type inTransfer struct {
	data   []byte
	n      int
	err    error
	cancel func()
}

// inSource keeps a number of transfers queued.
type inSource struct {
	board    Queuer
	endpoint byte
	all      []*inTransfer
	ended    chan *inTransfer
	flying   int // queued, or ended and not read
}

func newInSource(b Queuer, c usb.InConfig) *inSource {
	s := &inSource{board: b, endpoint: c.Endpoint, ended: make(chan *inTransfer, c.Count)}
	for range c.Count {
		t := &inTransfer{data: make([]byte, c.Size)}
		s.all = append(s.all, t)
		s.queue(t)
	}
	return s
}

func (s *inSource) queue(t *inTransfer) {
	s.flying++
	t.cancel = s.board.Queue(s.endpoint, t.data, func(n int, err error) {
		t.n, t.err = n, err
		s.ended <- t
	})
}

// Read returns the oldest transfer's data and queues it again.
func (s *inSource) Read(ctx context.Context, p []byte) (int, error) {
	var t *inTransfer
	select {
	case t = <-s.ended:
	default:
		select {
		case t = <-s.ended:
		case <-ctx.Done():
			return 0, usb.FromContext(ctx)
		}
	}
	s.flying--
	n := copy(p, t.data[:t.n])
	if t.err != nil {
		return n, t.err
	}
	s.queue(t)
	return n, nil
}

// Close cancels what is queued, newest first, so that nothing moves up.
func (s *inSource) Close() error {
	for _, t := range slices.Backward(s.all) {
		t.cancel()
	}
	for ; s.flying > 0; s.flying-- {
		<-s.ended
	}
	return nil
}

// outStream sends to a board.
type outStream struct {
	board    Queuer
	endpoint byte
	size     int
	count    int

	mu      sync.Mutex
	flying  []*outTransfer // oldest first
	taken   int64
	ended   error         // once it has
	changed chan struct{} // closed at a change, and then replaced
}

type outTransfer struct{ cancel func() }

func (s *outStream) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits until met, which is asked with the lock held, or the stream has ended
// or ctx is done, which ends it.
func (s *outStream) wait(ctx context.Context, met func() bool) error {
	for {
		switch {
		case s.ended != nil:
			return s.ended
		case ctx.Err() != nil:
			s.end(usb.FromContext(ctx))
			return s.ended
		case met():
			return nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
}

// end ends the stream and cancels what is queued, newest first, without the lock,
// and waits until the board has given it back.
func (s *outStream) end(err error) {
	if s.ended == nil {
		s.ended = err
	}
	flying := slices.Clone(s.flying)
	s.mu.Unlock()
	for _, t := range slices.Backward(flying) {
		t.cancel()
	}
	s.mu.Lock()
	for len(s.flying) > 0 {
		changed := s.changed
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	s.change()
}

// Write queues a transfer of its own copy of p.
func (s *outStream) Write(ctx context.Context, p []byte) error {
	if len(p) < 1 || len(p) > s.size {
		return fmt.Errorf("a USB transfer of %d bytes; allowed is 1 to %d", len(p), s.size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.wait(ctx, func() bool { return len(s.flying) < s.count }); err != nil {
		return err
	}
	t := &outTransfer{cancel: func() {}}
	s.flying = append(s.flying, t)
	data := slices.Clone(p)
	s.mu.Unlock()
	cancel := s.board.Queue(s.endpoint, data, func(n int, err error) { s.done(t, n, err) })
	s.mu.Lock()
	t.cancel = cancel
	if s.ended != nil { // by Close, which did not know how to cancel this one
		s.end(s.ended)
	}
	return s.ended
}

func (s *outStream) done(t *outTransfer, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += int64(n)
	s.flying = slices.DeleteFunc(s.flying, func(x *outTransfer) bool { return x == t })
	if err != nil && s.ended == nil {
		s.ended = err
	}
	s.change()
}

func (s *outStream) Taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

func (s *outStream) Finish(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.wait(ctx, func() bool { return len(s.flying) == 0 }); err != nil {
		return err
	}
	s.ended = usb.ErrClosed
	return nil
}

func (s *outStream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(usb.ErrClosed)
	return nil
}
