package bus

import (
	"fmt"
	"net"
	"sync"
)

// InProcessConn lets NATS' client connect without a network. The server's own pipe has no
// room in it: a client that still writes when the server refuses it would wait for the
// server to read, and the server for the client, and neither would get its word out.
func (s *Server) InProcessConn() (net.Conn, error) {
	pipe, err := s.nats.InProcessConn()
	if err != nil {
		return nil, fmt.Errorf("connecting within the process: %w", err)
	}
	c := &roomy{Conn: pipe}
	c.change = sync.NewCond(&c.mu)
	go c.pump()
	return c, nil
}

// room is what a roomy connection holds, in bytes, as the buffers of a socket would.
const room = 1 << 20

// roomy is a connection whose writes return before the other side has read.
type roomy struct {
	net.Conn
	mu      sync.Mutex
	change  *sync.Cond
	pending []byte
	err     error // of a write, or net.ErrClosed
}

// Write returns when there is room.
func (c *roomy) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) >= room && c.err == nil {
		c.change.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	c.pending = append(c.pending, b...)
	c.change.Broadcast()
	return len(b), nil
}

// Close drops what was not read.
func (c *roomy) Close() error {
	c.fail(net.ErrClosed)
	return c.Conn.Close()
}

func (c *roomy) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.change.Broadcast()
}

// pump writes what is pending until the connection ends.
func (c *roomy) pump() {
	var b []byte
	for {
		c.mu.Lock()
		for len(c.pending) == 0 && c.err == nil {
			c.change.Wait()
		}
		if c.err != nil {
			c.mu.Unlock()
			return
		}
		b, c.pending = c.pending, b[:0]
		c.change.Broadcast()
		c.mu.Unlock()
		if _, err := c.Conn.Write(b); err != nil {
			c.fail(err)
			return
		}
	}
}
