package rtltcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"ringwave/radio/usb"
)

// patience bounds how long a server may take to accept, to introduce itself or to
// take a command.
const patience = 5 * time.Second

// errLost: the connection has ended.
var errLost = errors.New("the connection to the server is lost")

// link is one connection. Its samples are taken from the moment it is there: a
// server whose client takes none drops them.
type link struct {
	conn  net.Conn
	tuner tuner
	in    usb.InStream
	lost  atomic.Bool
}

// The buffers between server and reader, in bytes and blocks of them: 4 MiB.
const (
	blockSize  = 16384
	ringLength = 256
)

// dial connects and hears the server introduce itself.
func dial(ctx context.Context, d Dialer, address string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn}
	if l.tuner, err = introduction(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	l.in = usb.NewInStream(usb.InConfig{Endpoint: usb.EndpointIn, Size: blockSize, Count: 1, Ring: ringLength}, l)
	return l, nil
}

func introduction(ctx context.Context, conn net.Conn) (tuner, error) {
	stop := interrupt(ctx, conn.SetReadDeadline)
	var h [headerLength]byte
	_, err := io.ReadFull(conn, h[:])
	if !stop() || err != nil {
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return 0, fmt.Errorf("the server says nothing: %w; it may be busy with another client", usb.ErrTimeout)
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			return 0, fmt.Errorf("%w: it ended the connection", errNotServer)
		}
		return 0, err
	}
	return parseHeader(h)
}

// interrupt sets a deadline that has passed when ctx is done, until stop is called.
// Where stop gives false the connection is of no more use.
func interrupt(ctx context.Context, setDeadline func(time.Time) error) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = setDeadline(time.Unix(1, 0)) })
}

// Read fills p: usb.InSource.
func (l *link) Read(ctx context.Context, p []byte) (n int, err error) {
	defer interrupt(ctx, l.conn.SetReadDeadline)()
	n, err = io.ReadFull(l.conn, p)
	if err == nil {
		return n, nil
	}
	l.lost.Store(true)
	n &^= 1 // no half samples
	if ended := usb.FromContext(ctx); ended != nil {
		return n, ended
	}
	return n, fmt.Errorf("%w: %v", errLost, err)
}

// Close is the stream's, after its last Read.
func (l *link) Close() error { return l.conn.Close() }

// send sends commands.
func (l *link) send(ctx context.Context, messages []byte) error {
	if l.lost.Load() {
		return errLost
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := interrupt(ctx, l.conn.SetWriteDeadline)
	_, err := l.conn.Write(messages)
	if stop() && err == nil {
		return nil
	}
	l.lost.Store(true) // part of a command may have gone
	return fmt.Errorf("%w: %w", errLost, errors.Join(ctx.Err(), err))
}

// end closes the connection and waits until nothing is left of it.
func (l *link) end() error { return l.in.Close() }
