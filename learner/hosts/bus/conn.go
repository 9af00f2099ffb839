package bus

import (
	"context"
	"errors"
)

// Conn is a host's connection to the bus. It may be used by several goroutines. All of it
// may be lost, repeated, delayed and reordered by the bus, without an error.
type Conn interface {
	// Publish sends a payload to all who have subscribed. While the connection is lost the
	// error is ErrLost, and the payload is, too.
	Publish(subject string, payload []byte) error
	// Subscribe calls handle with each message for a subject, > standing for any words and *
	// for one, one after the other, until stop is called or the connection closed. It returns
	// when the server knows of it, for which it waits where the connection is lost for a
	// moment, and it outlasts the loss of the connection. A handler that
	// does not keep up loses messages, but not memory.
	Subscribe(subject string, handle func(Message)) (stop func(), err error)
	// Ask publishes a payload and returns the first answer. Only observers, sweeps and workers
	// have a place where answers come.
	Ask(ctx context.Context, subject string, payload []byte) (Message, error)
	// Respond answers a message that Ask has published.
	Respond(to Message, payload []byte) error
	// Flush returns when all that was published has reached the server.
	Flush(ctx context.Context) error
	// Close flushes for a moment and closes the connection, and returns when no handler runs.
	// Handlers must not call it.
	Close() error
}

// Message is one that came. Payload is the receiver's own.
type Message struct {
	Subject string
	Payload []byte
	Digest  [32]byte // SHA-256 of Payload, which has been checked
	Reply   string   // where an answer goes; empty if none is wanted
}

var (
	// ErrLost says that there is no connection at the time. It comes back by itself.
	ErrLost = errors.New("the connection to the bus is lost for now")
	// ErrClosed says that there is no connection any more.
	ErrClosed = errors.New("the connection to the bus is closed")
	// ErrForbidden says that the host's role may not do this.
	ErrForbidden = errors.New("its role may not")
)
