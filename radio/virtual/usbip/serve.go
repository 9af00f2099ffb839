package usbip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"ringwave/radio/virtual"
)

// Serve answers a kernel on a connection until it is closed at either end, which
// unplugs the board from the kernel but does not Unplug it. It closes the connection
// and waits until the board has given back all transfers. Its error says what the
// kernel asked that cannot be, or how the connection broke; nil after it was closed.
func Serve(conn net.Conn, board virtual.Board) error {
	s := &server{conn: conn, board: virtual.Queued(board), pending: map[uint32]*urb{}}
	s.changed = sync.NewCond(&s.mu)
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.write()
	}()
	err := s.read()
	conn.Close()
	s.end()
	<-written
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// urb is a transfer that a kernel has submitted.
type urb struct {
	sequence uint32
	in       bool
	data     []byte
	cancel   func()
	// unlink is the sequence of the command that wants the transfer back, if
	// wanted.
	unlink uint32
	wanted bool
}

// server is one side of a connection. The kernel drops a device that answers a
// submit after it has answered its unlink, so that which of the two happens is
// decided where the transfer ends, in one piece with putting the answer in the
// queue.
type server struct {
	conn  net.Conn
	board virtual.Queuer
	// control is closed when the last control request has ended; the reader's.
	control chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	pending map[uint32]*urb
	answers net.Buffers
	closed  bool
}

// read does what the kernel asks for.
func (s *server) read() error {
	var header [headerLength]byte
	for {
		if _, err := io.ReadFull(s.conn, header[:]); err != nil {
			return err
		}
		c, err := parse(&header)
		if err != nil {
			return err
		}
		if c.number == cmdUnlink {
			s.unlink(c)
			continue
		}
		u := &urb{sequence: c.sequence, in: c.in, data: make([]byte, c.length), cancel: func() {}}
		if !c.in {
			if _, err := io.ReadFull(s.conn, u.data); err != nil {
				return err
			}
		}
		if err := s.begin(u); err != nil {
			return err
		}
		s.submit(c, u)
	}
}

func (s *server) begin(u *urb) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[u.sequence] != nil {
		return fmt.Errorf("USB/IP: sequence number %d is used twice", u.sequence)
	}
	s.pending[u.sequence] = u
	return nil
}

// submit starts a transfer. Control requests follow each other, and hold up no
// others.
func (s *server) submit(c command, u *urb) {
	if c.endpoint != 0 {
		address := c.endpoint
		if c.in {
			address |= 0x80
		}
		cancel := s.board.Queue(address, u.data, func(n int, err error) { s.done(u, n, err) })
		s.mu.Lock()
		u.cancel = cancel
		s.mu.Unlock()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	u.cancel = cancel
	s.mu.Unlock()
	before, ended := s.control, make(chan struct{})
	s.control = ended
	go func() {
		defer cancel()
		if before != nil {
			<-before
		}
		n, err := virtual.Answer(ctx, s.board, virtual.ParseSetup(c.setup), u.data)
		close(ended)
		s.done(u, n, err)
	}()
}

// unlink wants a transfer back. It is answered when the board has given it up, so
// that it takes no samples that nobody gets.
func (s *server) unlink(c command) {
	s.mu.Lock()
	u := s.pending[c.victim]
	if u == nil {
		s.answer(unlinked(c.sequence, 0)) // its own answer is on its way
		s.mu.Unlock()
		return
	}
	u.unlink, u.wanted = c.sequence, true
	cancel := u.cancel
	s.mu.Unlock()
	cancel()
}

// done answers for a transfer that has ended.
func (s *server) done(u *urb, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, u.sequence)
	s.changed.Broadcast()
	if u.wanted && errors.Is(err, context.Canceled) {
		s.answer(unlinked(u.unlink, statusReset))
		return
	}
	var data []byte
	if u.in {
		data = u.data[:n]
	}
	s.answer(submitted(u.sequence, status(err), n, data))
	if u.wanted {
		s.answer(unlinked(u.unlink, 0))
	}
}

func status(err error) int32 {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, virtual.ErrStall):
		return statusStall
	case errors.Is(err, virtual.ErrUnplugged):
		return statusUnplugged
	case errors.Is(err, context.Canceled):
		return statusReset
	}
	return statusProtocol
}

// answer queues a message, with the lock held.
func (s *server) answer(message []byte) {
	s.answers = append(s.answers, message)
	s.changed.Broadcast()
}

// write sends what is queued until the end. The board must not wait for the
// kernel, so that this is a goroutine; the queue is no longer than what the kernel
// has submitted.
func (s *server) write() {
	for {
		s.mu.Lock()
		for len(s.answers) == 0 && !s.closed {
			s.changed.Wait()
		}
		answers := s.answers
		s.answers = nil
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return
		}
		if _, err := answers.WriteTo(s.conn); err != nil {
			s.conn.Close() // the reader ends too
			return
		}
	}
}

// end takes back what is pending and waits for it.
func (s *server) end() {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	cancels := make([]func(), 0, len(s.pending))
	for _, u := range s.pending {
		cancels = append(cancels, u.cancel)
	}
	s.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending) > 0 {
		s.changed.Wait()
	}
}
