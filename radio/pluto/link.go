package pluto

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// Bounds of answers: a board gives less, and what gives more is none.
const (
	maxDigits    = 11 // of a number, with its sign
	maxVersion   = 64
	maxContext   = 4 << 20
	maxAttribute = 1 << 16
	maxBlank     = 16 // empty lines before a number
)

// link is one connection to iiod, which does one command at a time. After an error
// that is not an Errno nobody knows where in the conversation the other side is:
// the link is broken for good. It is for one goroutine at a time, but for close.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	// wait bounds each command; 0 waits for ever.
	wait   time.Duration
	broken error
}

// dial connects to iiod; wait bounds the connecting, too.
func dial(ctx context.Context, address string, wait time.Duration) (*link, error) {
	d := net.Dialer{Timeout: connectTimeout}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("connecting to %s: %w (%v)", address, ErrUnreachable, err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// Commands are small and each waits for the answer to the one before.
		if err := tcp.SetNoDelay(true); err != nil {
			return nil, errors.Join(fmt.Errorf("connecting to %s: %w", address, err), conn.Close())
		}
	}
	return newLink(conn, wait), nil
}

// connectTimeout bounds connecting where the context does not: a board that is not
// there answers nothing at all.
const connectTimeout = 5 * time.Second

func newLink(conn net.Conn, wait time.Duration) *link {
	return &link{conn: conn, in: bufio.NewReaderSize(conn, 1<<16), wait: wait}
}

// do carries one command out: talk sends it and reads the answer. What ctx
// interrupts breaks the link.
func (l *link) do(ctx context.Context, talk func() error) error {
	if l.broken != nil {
		return l.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var deadline time.Time
	if l.wait > 0 {
		deadline = time.Now().Add(l.wait)
	}
	if err := l.conn.SetDeadline(deadline); err != nil {
		return l.fail(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) })
	err := talk()
	if !stop() {
		// The deadline may come after the answer and would hit the next command.
		l.broken = ErrDisconnected
	}
	var refused Errno
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return l.fail(ctx, err)
}

func (l *link) fail(ctx context.Context, err error) error {
	err = lost(ctx, err)
	l.broken = err
	if ctx.Err() != nil {
		l.broken = ErrDisconnected
	}
	return err
}

// drop ends a connection that is broken. What was written and not acknowledged is thrown
// away: sent again by the system, it could arrive behind a command on the next connection,
// and switch on what that has switched off.
func (l *link) drop() {
	if tcp, ok := l.conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0) // closed already, at worst
	}
	_ = l.conn.Close() // broken already
}

// close ends the connection; a command that waits in it fails.
func (l *link) close() error { return l.conn.Close() }

// send sends a command line and what follows it, in one piece.
func (l *link) send(line string, payload []byte) error {
	b := make([]byte, 0, len(line)+2+len(payload))
	b = append(b, line...)
	b = append(b, '\r', '\n')
	b = append(b, payload...)
	_, err := l.conn.Write(b)
	return err
}

// number reads a number, which has a line of its own; a negative one is an Errno.
// Empty lines before it are passed over, as libiio does.
func (l *link) number() (int, error) {
	for range maxBlank {
		line, err := l.line(maxDigits)
		if err != nil {
			return 0, err
		}
		if line == "" {
			continue
		}
		return parseNumber(line)
	}
	return 0, fmt.Errorf("%w: a number was due and %d empty lines came", ErrProtocol, maxBlank)
}

// parseNumber reads what is left of a line without its end.
func parseNumber(line string) (int, error) {
	n, err := strconv.ParseInt(line, 10, 32)
	if err != nil || line[0] == '+' {
		return 0, fmt.Errorf("%w: a number was due and %q came", ErrProtocol, line)
	}
	if n < 0 {
		if n == math.MinInt32 {
			return 0, fmt.Errorf("%w: a number was due and %q came", ErrProtocol, line)
		}
		return 0, Errno(-n)
	}
	return int(n), nil
}

// line reads a line of at most most bytes, without its end.
func (l *link) line(most int) (string, error) {
	var b []byte
	for {
		c, err := l.in.ReadByte()
		switch {
		case err == io.EOF && len(b) > 0:
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		case c == '\n':
			return strings.TrimSuffix(string(b), "\r"), nil
		case len(b) > most:
			return "", fmt.Errorf("%w: a line of at most %d bytes was due and %q... came", ErrProtocol, most, b)
		}
		b = append(b, c)
	}
}

// text reads a length of at most most, that many bytes and a line feed.
func (l *link) text(most int) ([]byte, error) {
	n, err := l.number()
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("%w: a text of at most %d bytes was due and one of %d came", ErrProtocol, most, n)
	}
	b := make([]byte, n+1)
	if _, err := io.ReadFull(l.in, b); err != nil {
		return nil, cut(err)
	}
	if b[n] != '\n' {
		return nil, fmt.Errorf("%w: a line feed was due after a text and %q came", ErrProtocol, b[n:])
	}
	return b[:n], nil
}

// cut returns the end of the connection within an answer.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// version asks for that of iiod.
func (l *link) version(ctx context.Context) (v string, err error) {
	err = l.do(ctx, func() error {
		if err := l.send("VERSION", nil); err != nil {
			return err
		}
		v, err = l.line(maxVersion)
		if err == nil && !strings.Contains(v, ".") {
			return fmt.Errorf("%w: a version was due and %q came", ErrProtocol, v)
		}
		return err
	})
	return strings.TrimSpace(v), err
}

// timeout says how long iiod may wait for the converters, 0 for ever. Small servers
// do not know the command, which does no harm.
func (l *link) timeout(ctx context.Context, d time.Duration) error {
	err := l.simple(ctx, fmt.Sprintf("TIMEOUT %d", d.Milliseconds()))
	if errors.Is(err, errnoInvalid) {
		return nil
	}
	return err
}

// simple sends a command that is answered by a number.
func (l *link) simple(ctx context.Context, line string) error {
	return l.do(ctx, func() error {
		if err := l.send(line, nil); err != nil {
			return err
		}
		_, err := l.number()
		return err
	})
}

// context asks for the description of the board, in XML.
func (l *link) context(ctx context.Context) (xml []byte, err error) {
	err = l.do(ctx, func() error {
		if err := l.send("PRINT", nil); err != nil {
			return err
		}
		xml, err = l.text(maxContext)
		return err
	})
	return xml, err
}

// attribute names one of the board: of a device, of a channel of it, or of its
// debugging.
type attribute struct {
	device  string // its id
	place   string // "", "DEBUG", "INPUT" or "OUTPUT"
	channel string // for INPUT and OUTPUT
	name    string
}

// String returns the attribute as commands name it.
func (a attribute) String() string {
	words := []string{a.device}
	for _, w := range []string{a.place, a.channel, a.name} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// read asks for the value of an attribute.
func (l *link) read(ctx context.Context, a attribute) (value string, err error) {
	err = l.do(ctx, func() error {
		if err := l.send("READ "+a.String(), nil); err != nil {
			return err
		}
		b, err := l.text(maxAttribute)
		value = strings.TrimRight(string(b), "\x00\n")
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", a, err)
	}
	return value, nil
}

// write sets an attribute. The value ends with a zero byte, as libiio has it.
func (l *link) write(ctx context.Context, a attribute, value string) error {
	payload := append([]byte(value), 0)
	err := l.do(ctx, func() error {
		if err := l.send(fmt.Sprintf("WRITE %s %d", a, len(payload)), payload); err != nil {
			return err
		}
		_, err := l.number()
		return err
	})
	if err != nil {
		return fmt.Errorf("setting %s to %s: %w", a, value, err)
	}
	return nil
}

// ask sets an attribute and reads it, in one exchange: a stream does so for each block, and
// on a busy machine each answer that is waited for takes as long as all others.
func (l *link) ask(ctx context.Context, a attribute, value string) (answer string, err error) {
	set := fmt.Sprintf("WRITE %s %d\r\n%s\x00", a, len(value)+1, value)
	err = l.do(ctx, func() error {
		if err := l.send(set+"READ "+a.String(), nil); err != nil {
			return err
		}
		_, refused := l.number()
		if !(refused == nil || errors.As(refused, new(Errno))) {
			return refused
		}
		b, err := l.text(maxAttribute)
		answer = strings.TrimRight(string(b), "\x00\n")
		return cmp.Or(refused, err)
	})
	if err != nil {
		return "", fmt.Errorf("asking %s for %s: %w", a, value, err)
	}
	return answer, nil
}

// setBuffers chooses how many blocks of a device the board holds.
func (l *link) setBuffers(ctx context.Context, device string, n int) error {
	return l.simple(ctx, fmt.Sprintf("SET %s BUFFERS_COUNT %d", device, n))
}

// openDevice lets a device's samples flow, in blocks of the given number.
func (l *link) openDevice(ctx context.Context, device string, samples int, mask string) error {
	return l.simple(ctx, fmt.Sprintf("OPEN %s %d %s", device, samples, mask))
}

// closeDevice ends what openDevice began.
func (l *link) closeDevice(ctx context.Context, device string) error {
	return l.simple(ctx, "CLOSE "+device)
}

// readBlock fills dst with received samples; n is less than that only with an error
// or where the board has no more.
func (l *link) readBlock(ctx context.Context, device, mask string, dst []byte) (n int, err error) {
	err = l.do(ctx, func() error {
		if err := l.send(fmt.Sprintf("READBUF %s %d", device, len(dst)), nil); err != nil {
			return err
		}
		for first := true; n < len(dst); first = false {
			k, err := l.number()
			if err != nil || k == 0 {
				return err
			}
			if k > len(dst)-n {
				return fmt.Errorf("%w: at most %d bytes of samples were due and %d came", ErrProtocol, len(dst)-n, k)
			}
			if first {
				if err := l.mask(mask); err != nil {
					return err
				}
			}
			if _, err := io.ReadFull(l.in, dst[n:n+k]); err != nil {
				return cut(err)
			}
			n += k
		}
		return nil
	})
	return n, err
}

// mask reads which channels the samples are of: those that another program opened,
// too, where iiod does not sort them.
func (l *link) mask(want string) error {
	line, err := l.line(max(len(want), maxDigits))
	if err != nil {
		return cut(err)
	}
	if _, bad := hex.DecodeString(line); bad != nil || len(line) != len(want) {
		return fmt.Errorf("%w: a mask was due and %q came", ErrProtocol, line)
	}
	if !strings.EqualFold(line, want) {
		return fmt.Errorf("the board sends the channels %s in place of %s: another program has opened others", line, want)
	}
	return nil
}

// writeBlock hands samples over for transmission.
func (l *link) writeBlock(ctx context.Context, device string, src []byte) error {
	return l.do(ctx, func() error {
		if err := l.send(fmt.Sprintf("WRITEBUF %s %d", device, len(src)), nil); err != nil {
			return err
		}
		if _, err := l.number(); err != nil { // the board is ready for them
			return err
		}
		if _, err := l.conn.Write(src); err != nil {
			return err
		}
		n, err := l.number()
		if err == nil && n != len(src) {
			return fmt.Errorf("%w: %d bytes of samples were to be taken and %d were", ErrProtocol, len(src), n)
		}
		return err
	})
}

// leave says goodbye and ends the connection.
func (l *link) leave(ctx context.Context) error {
	if l.broken == nil {
		_ = l.do(ctx, func() error { return l.send("EXIT", nil) }) // it is about to end anyway
	}
	return l.close()
}
