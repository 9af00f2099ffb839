package iiod

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// version is that of the protocol: digits, then 7 letters of a revision.
const version = "0.25.emulate"

// maxLine bounds a command.
const maxLine = 4096

// session is one connection. It is served by one goroutine; another reads ahead,
// so that the end of the connection is seen while the first waits for samples.
type session struct {
	server  *Server
	number  int
	in      *bufio.Reader
	out     *bufio.Writer
	timeout time.Duration // for samples; 0 waits for ever
	open    map[*port]*stream
}

// session serves a connection to its end, or that of ctx.
func (s *Server) session(ctx context.Context, conn net.Conn, n int) {
	ctx, cancel := context.WithCancel(ctx)
	// A done context ends reads and writes of the connection.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	ahead := newAhead()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		ahead.fill(conn)
		cancel()
	}()
	c := &session{
		server: s, number: n, open: map[*port]*stream{},
		in: bufio.NewReaderSize(ahead, maxLine), out: bufio.NewWriter(conn),
		timeout: 2500 * time.Millisecond,
	}
	c.serve(ctx)
	for _, st := range c.open {
		st.close()
	}
	cancel()
	if stop() {
		_ = conn.Close()
	}
	ahead.close()
	<-fed
}

// ahead is what was read from a connection and not yet asked for.
type ahead struct {
	mu     sync.Mutex
	more   sync.Cond // something changed
	buf    bytes.Buffer
	err    error // why nothing more comes
	closed bool  // nobody asks any more
}

// maxAhead is how much is read ahead: more than a client sends before it waits for
// an answer.
const maxAhead = 1 << 24

func newAhead() *ahead {
	a := &ahead{}
	a.more.L = &a.mu
	return a
}

// fill reads until the connection ends.
func (a *ahead) fill(conn net.Conn) {
	b := make([]byte, 1<<16)
	for {
		n, err := conn.Read(b)
		a.mu.Lock()
		a.buf.Write(b[:n])
		a.err = err
		a.more.Broadcast()
		for err == nil && a.buf.Len() > maxAhead && !a.closed {
			a.more.Wait()
		}
		a.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Read returns what there is and waits for something.
func (a *ahead) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.buf.Len() == 0 {
		if a.err != nil {
			return 0, a.err
		}
		a.more.Wait()
	}
	a.more.Broadcast()
	return a.buf.Read(p)
}

func (a *ahead) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.more.Broadcast()
}

// serve answers commands until the client leaves.
func (c *session) serve(ctx context.Context) {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return
		}
		text := strings.TrimRight(string(line), "\r\n")
		if c.server.board.cfg.Log != nil {
			c.server.board.cfg.Log(c.number, text)
		}
		cmd, err := parseCommand(text)
		if err != nil {
			c.reply(0, err)
		} else if stop := c.do(ctx, cmd); stop {
			_ = c.out.Flush()
			return
		}
		if c.out.Flush() != nil {
			return
		}
	}
}

// reply sends a number, or the negative of an error's.
func (c *session) reply(n int, err error) {
	if err != nil {
		var e errno
		if !errors.As(err, &e) {
			e = eio
		}
		n = -int(e)
	}
	fmt.Fprintf(c.out, "%d\n", n)
}

// text sends a length and what it is the length of.
func (c *session) text(s string) { fmt.Fprintf(c.out, "%d\n%s\n", len(s), s) }

// do carries a command out and tells whether the session ends with it.
func (c *session) do(ctx context.Context, cmd command) (stop bool) {
	switch cmd.verb {
	case "":
	case "EXIT", "QUIT":
		return true
	case "HELP":
		c.out.WriteString("VERSION PRINT TIMEOUT READ WRITE SET OPEN READBUF WRITEBUF CLOSE GETTRIG SETTRIG HELP EXIT\n")
	case "VERSION":
		c.out.WriteString(version + "\n")
	case "PRINT":
		c.text(c.server.board.xml)
	case "TIMEOUT":
		c.timeout = time.Duration(cmd.number) * time.Millisecond
		c.reply(0, nil)
	case "READ":
		c.read(cmd)
	case "WRITE":
		return c.write(cmd)
	case "SET":
		c.reply(0, c.setBlocks(ctx, cmd))
	case "GETTRIG":
		c.reply(0, enoent) // none of the devices has one
	case "SETTRIG":
		c.reply(0, enoent)
	case "OPEN":
		c.reply(0, c.openDevice(ctx, cmd))
	case "CLOSE":
		c.reply(0, c.closeDevice(cmd))
	case "READBUF":
		return c.readBuffer(ctx, cmd)
	case "WRITEBUF":
		return c.writeBuffer(ctx, cmd)
	}
	return false
}

func (c *session) read(cmd command) {
	v, err := c.server.board.read(cmd)
	if err != nil {
		c.reply(0, err)
		return
	}
	c.text(v)
}

func (c *session) write(cmd command) (stop bool) {
	value := make([]byte, cmd.number)
	if _, err := io.ReadFull(c.in, value); err != nil {
		return true
	}
	if c.server.board.cfg.Log != nil {
		c.server.board.cfg.Log(c.number, "  "+strconv.Quote(string(value)))
	}
	c.reply(len(value), c.server.board.write(cmd, value))
	return false
}

// portOf returns the port of a device with samples, nil for another.
func (b *board) portOf(d *device) *port {
	switch d {
	case b.rx.dev:
		return &b.rx
	case b.tx.dev:
		return &b.tx
	}
	return nil
}

func (c *session) setBlocks(ctx context.Context, cmd command) error {
	b := c.server.board
	d := b.findDevice(cmd.device)
	if d == nil {
		return enodev
	}
	p := b.portOf(d)
	if p == nil || cmd.number < 1 {
		return einval
	}
	if _, err := b.take(ctx, p); err != nil {
		return err
	}
	defer b.release(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	p.blocks = int(cmd.number)
	return nil
}

func (c *session) openDevice(ctx context.Context, cmd command) error {
	if s, _ := c.opened(cmd, nil); s != nil {
		return ebusy
	}
	s, err := c.server.board.openStream(ctx, cmd)
	if err != nil {
		return err
	}
	c.open[s.port] = s
	return nil
}

// opened returns the stream of a device that this connection opened.
func (c *session) opened(cmd command, missing error) (*stream, error) {
	d := c.server.board.findDevice(cmd.device)
	if d == nil {
		return nil, enodev
	}
	if s, ok := c.open[c.server.board.portOf(d)]; ok {
		return s, nil
	}
	return nil, missing
}

func (c *session) closeDevice(cmd command) error {
	s, err := c.opened(cmd, enxio)
	if err != nil {
		return err
	}
	delete(c.open, s.port)
	s.close()
	return nil
}

// readBuffer sends blocks until the client has what it asked for; what is left of
// the last is lost.
func (c *session) readBuffer(ctx context.Context, cmd command) (stop bool) {
	s, err := c.opened(cmd, ebadf)
	if err == nil && s.port != &c.server.board.rx {
		err = einval
	}
	if err != nil || int(cmd.number) < s.kept.bytes() {
		c.reply(0, err)
		return false
	}
	first := true
	for left := int(cmd.number); left >= s.kept.bytes(); {
		block, err := s.pull(ctx, c.timeout)
		if err != nil {
			c.reply(0, err)
			return false
		}
		block = block[:min(len(block), left)]
		fmt.Fprintf(c.out, "%d\n", len(block))
		if first {
			fmt.Fprintf(c.out, "%08x\n", uint32(s.kept))
			first = false
		}
		c.out.Write(block)
		if c.out.Flush() != nil {
			return true
		}
		left -= len(block)
	}
	return false
}

// writeBuffer takes blocks until it has what the client announced.
func (c *session) writeBuffer(ctx context.Context, cmd command) (stop bool) {
	s, err := c.opened(cmd, ebadf)
	if err == nil && s.port != &c.server.board.tx {
		err = einval
	}
	if err != nil || int(cmd.number) < s.kept.bytes() {
		c.reply(0, err)
		return false
	}
	c.reply(0, nil)
	if c.out.Flush() != nil {
		return true
	}
	for left := int(cmd.number); left >= s.kept.bytes(); {
		block := make([]byte, min(s.block, left))
		if _, err := io.ReadFull(c.in, block); err != nil {
			return true
		}
		if err := s.push(ctx, block, c.timeout); err != nil {
			c.reply(0, err)
			return false
		}
		left -= len(block)
	}
	c.reply(int(cmd.number), nil)
	return false
}
