package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"ringwave/radio/life"
	"ringwave/radio/soapy"
)

// Dialer connects to a server; a *net.Dialer is one.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// goodbye bounds the taking leave of a server, besides what a call may take.
const goodbye = 3 * time.Second

// link is a connection for remote calls, one at a time: a server answers in order.
type link struct {
	conn    net.Conn
	address string
	limit   time.Duration // of a call
	made    bool          // there is a board to be gone
	life    life.Life     // ends with the connection

	turn    chan struct{} // has a token while a call is under way
	owed    atomic.Int32  // messages that the server may send
	answers chan *answer
	ended   chan struct{} // closed when nothing reads any more
}

// dial connects.
func dial(ctx context.Context, d Dialer, o options) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", o.address)
	if err != nil {
		return nil, fmt.Errorf("SoapyRemote server %s: %w", o.address, err)
	}
	reset(conn)
	l := &link{
		conn: conn, address: o.address, limit: o.limit,
		turn: make(chan struct{}, 1), answers: make(chan *answer), ended: make(chan struct{}),
	}
	go l.listen()
	return l, nil
}

// reset has a connection that ends, however that is, end by a reset: the server reads on at
// the end of a stream without end where there is none, and keeps the board (see the package's
// documentation).
func reset(conn net.Conn) {
	if c, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = c.SetLinger(0) // of a connection that has failed already
	}
}

// end ends the connection and all that waits for it.
func (l *link) end(cause error) {
	l.life.End(cause)
	_ = l.conn.Close() // there is nothing left to lose
}

var errClosed = errors.New("it was closed")

// close ends the connection and waits until nothing is left of it.
func (l *link) close() {
	l.end(errClosed)
	<-l.ended
}

// gone returns the error of whatever needs the connection after its end.
func (l *link) gone() error {
	err := fmt.Errorf("SoapyRemote server %s: %w", l.address, l.life.Err())
	if !l.made {
		return err
	}
	return fmt.Errorf("%w: %w", err, soapy.ErrGone)
}

// listen takes the server's messages until the connection ends.
func (l *link) listen() {
	defer close(l.ended)
	for {
		a, err := l.next()
		if err != nil {
			l.end(err)
			return
		}
		select {
		case l.answers <- a:
		case <-l.life.Done():
			return
		}
	}
}

func (l *link) next() (*answer, error) {
	var b [headLength]byte
	if err := l.read(b[:]); err != nil {
		return nil, err
	}
	h, err := parseHead(b)
	if err != nil {
		return nil, err
	}
	if l.owed.Add(-1) < 0 {
		return nil, errors.New("it speaks without being asked")
	}
	rest := make([]byte, h.rest)
	if err := l.read(rest); err != nil {
		return nil, err
	}
	return newAnswer(h, rest), nil
}

func (l *link) read(b []byte) error {
	n, err := io.ReadFull(l.conn, b)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF) && n == 0 && len(b) != headLength:
		return errors.New("it ended the connection in the middle of an answer")
	case errors.Is(err, io.EOF):
		return errors.New("it ended the connection")
	}
	return err
}

// begin waits for the turn of a call.
func (l *link) begin(ctx context.Context) error {
	if l.life.Err() != nil {
		return l.gone()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-l.life.Done():
		return l.gone()
	case <-ctx.Done():
		return fmt.Errorf("SoapyRemote server %s: waiting for its answer to another call: %w", l.address, context.Cause(ctx))
	}
}

func (l *link) done() { <-l.turn }

// send sends requests. They have their turn.
func (l *link) send(requests ...*request) error {
	var all []byte
	for _, r := range requests {
		all = append(all, r.message()...)
	}
	l.owed.Add(int32(len(requests)))
	_ = l.conn.SetWriteDeadline(time.Now().Add(l.limit)) // Write tells
	if _, err := l.conn.Write(all); err != nil {
		l.end(err)
		return l.gone()
	}
	return nil
}

// receive waits for an answer until ctx ends, and no longer than until limit.
func (l *link) receive(ctx context.Context, limit <-chan time.Time) (*answer, error) {
	select {
	case a := <-l.answers:
		return a, nil
	case <-l.life.Done():
		return nil, l.gone()
	case <-limit:
		l.end(fmt.Errorf("no answer within %v", l.limit))
		return nil, l.gone()
	case <-ctx.Done():
		return nil, fmt.Errorf("SoapyRemote server %s: waiting for its answer: %w", l.address, context.Cause(ctx))
	}
}

// call makes a call and returns the answer.
func (l *link) call(ctx context.Context, r *request) (*answer, error) {
	all, err := l.calls(ctx, r)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// calls makes calls, with nothing in between, and returns the answers. Those that ctx gives up
// are waited for all the same, so that the next has an answer of its own.
func (l *link) calls(ctx context.Context, requests ...*request) ([]*answer, error) {
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	if err := l.send(requests...); err != nil {
		l.done()
		return nil, err
	}
	timer := time.NewTimer(l.limit)
	finish := func() { timer.Stop(); l.done() }
	var all []*answer
	for len(all) < len(requests) {
		a, err := l.receive(ctx, timer.C)
		if err != nil && l.life.Err() == nil {
			go func() {
				defer finish()
				for range requests[len(all):] {
					_, _ = l.receive(context.Background(), timer.C) // nobody waits for it
				}
			}()
			return nil, err
		}
		if err != nil {
			finish()
			return nil, err
		}
		all = append(all, a)
	}
	finish()
	return all, nil
}

// fault says what is wrong with an answer. One that cannot be read ends the connection: who
// sent it may send anything.
func (l *link) fault(err error) error {
	if err == nil {
		return nil
	}
	var said refusal
	if !errors.As(err, &said) {
		l.end(err)
	}
	return fmt.Errorf("SoapyRemote server %s: %w", l.address, err)
}

// ask makes a call whose answer is one value.
func ask[T any](ctx context.Context, l *link, r *request, value func(*answer) T) (v T, err error) {
	a, err := l.call(ctx, r)
	if err != nil {
		return v, err
	}
	return valueOf(l, a, value)
}

// valueOf takes the value of an answer.
func valueOf[T any](l *link, a *answer, value func(*answer) T) (T, error) {
	v := value(a)
	if err := l.fault(a.end()); err != nil {
		var none T
		return none, err
	}
	return v, nil
}

// tell makes a call whose answer is nothing.
func tell(ctx context.Context, l *link, r *request) error {
	_, err := ask(ctx, l, r, (*answer).void)
	return err
}

// farewell returns a context for taking leave.
func (l *link) farewell() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), min(goodbye, l.limit))
}

// leave tells the server that it was the last call, and ends the connection.
func (l *link) leave() {
	ctx, cancel := l.farewell()
	defer cancel()
	_ = tell(ctx, l, newRequest(callHangUp)) // it is the same to it if the connection ends
	l.close()
}
