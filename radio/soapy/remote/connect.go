package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"ringwave/radio/soapy"
)

// connect has the server make a stream and connects to it. What is begun is finished, even if
// ctx ends: a server that waits for the second connection does so without end, and keeps the
// board.
func (b *board) connect(ctx context.Context, s *stream) (*flow, error) {
	l := b.link
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	type made struct {
		f   *flow
		err error
	}
	done, late := make(chan made), make(chan struct{})
	go func() {
		own, release := l.life.Join(context.Background())
		defer release()
		own, cancel := context.WithTimeout(own, l.limit)
		defer cancel()
		f, err := b.streamed(own, s)
		l.done()
		select {
		case done <- made{f, err}:
		case <-late:
			if err == nil {
				f.stop()
				defer f.end()
				_ = tell(own, l, newRequest(callCloseStream).integer(f.id)) // nobody waits for it
			}
		}
	}()
	select {
	case m := <-done:
		return m.f, m.err
	case <-ctx.Done():
		close(late)
		return nil, fmt.Errorf("SoapyRemote server %s: waiting for a stream: %w", l.address, context.Cause(ctx))
	}
}

// streamed is connect in its turn.
func (b *board) streamed(ctx context.Context, s *stream) (f *flow, err error) {
	if b.opts.datagrams {
		f, err = b.overUDP(ctx, s)
	} else {
		f, err = b.overTCP(ctx, s)
	}
	if err == nil {
		f.start()
		return f, nil
	}
	var said refusal
	if !errors.As(err, &said) {
		b.link.end(err)
	}
	if b.link.life.Err() != nil {
		return nil, b.link.gone()
	}
	return nil, fmt.Errorf("SoapyRemote server %s: %w", b.link.address, err)
}

func (s *stream) request(data, status string) *request {
	return newRequest(callSetupStream).channels(s.at, s.format).args(s.args).text(data).text(status)
}

// overTCP connects twice to the port that the server names, once for samples and once for
// news; then the server answers.
func (b *board) overTCP(ctx context.Context, s *stream) (*flow, error) {
	a, err := b.exchange(ctx, s.request("", ""))
	if err != nil {
		return nil, err
	}
	port := a.text()
	address, err := b.portOf(port, a.end())
	if err != nil {
		return nil, err
	}
	b.link.owed.Add(1)
	var conns [2]net.Conn
	for i := range conns {
		if conns[i], err = b.dialer.DialContext(ctx, "tcp", address); err != nil {
			closeAll(conns[:i])
			return nil, fmt.Errorf("connecting to the port for samples that it names: %w", err)
		}
		reset(conns[i])
	}
	id, _, err := b.made(ctx)
	if err != nil {
		closeAll(conns[:])
		return nil, err
	}
	return newFlow(s, id, conns[0], conns[1]), nil
}

// overUDP tells the server two ports, for samples and for news, and has one of the server's
// in return.
func (b *board) overUDP(ctx context.Context, s *stream) (f *flow, err error) {
	local, ok := b.link.conn.LocalAddr().(*net.TCPAddr)
	server, too := b.link.conn.RemoteAddr().(*net.TCPAddr)
	if !ok || !too {
		return nil, errors.New("streams over udp need a server with an address of its own; allowed is stream=tcp")
	}
	from := server.AddrPort().Addr().Unmap()
	var conns [2]*datagrams
	for i := range conns {
		c, failed := net.ListenUDP("udp", &net.UDPAddr{IP: local.IP, Zone: local.Zone})
		if failed != nil {
			return nil, fmt.Errorf("opening a port for samples: %w", failed)
		}
		conns[i] = &datagrams{UDPConn: c, from: netip.AddrPortFrom(from, 0)}
		defer func() {
			if err != nil {
				c.Close()
			}
		}()
	}
	a, err := b.exchange(ctx, s.request(conns[0].port(), conns[1].port()))
	if err != nil {
		return nil, err
	}
	id, port, err := setUp(a)
	if err != nil {
		return nil, err
	}
	address, err := b.portOf(port, nil)
	if err != nil {
		return nil, err
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	conns[0].from = netip.AddrPortFrom(from, to.Port())
	return newFlow(s, id, conns[0], conns[1]), nil
}

// exchange sends a request and waits for its first answer.
func (b *board) exchange(ctx context.Context, r *request) (*answer, error) {
	if err := b.link.send(r); err != nil {
		return nil, err
	}
	return b.link.receive(ctx, nil)
}

// made waits for the server to have the stream.
func (b *board) made(ctx context.Context) (id int32, port string, err error) {
	a, err := b.link.receive(ctx, nil)
	if err != nil {
		return 0, "", err
	}
	return setUp(a)
}

func setUp(a *answer) (id int32, port string, err error) {
	id, port = a.integer(), a.text()
	return id, port, a.end()
}

// portOf returns the address of a port of the server's. A server of several addresses is
// asked at the one it was reached at.
func (b *board) portOf(port string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("it names the port %q; allowed is 1 to 65535", printable(port))
	}
	host, _, err := net.SplitHostPort(b.link.conn.RemoteAddr().String())
	if err != nil {
		host, _, err = net.SplitHostPort(b.link.address)
	}
	return net.JoinHostPort(host, port), err
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}

// datagrams is a connection of whole blocks, from one address only.
type datagrams struct {
	*net.UDPConn
	from netip.AddrPort // with port 0 from any
}

func (d *datagrams) port() string {
	return strconv.Itoa(d.LocalAddr().(*net.UDPAddr).Port)
}

// Read takes a datagram that is a whole block. Others are not the server's, or cut: the next
// block's number tells.
func (d *datagrams) Read(p []byte) (int, error) {
	for {
		n, from, err := d.ReadFromUDPAddrPort(p)
		if err != nil {
			return 0, err
		}
		known := from.Addr().Unmap() == d.from.Addr() && (d.from.Port() == 0 || from.Port() == d.from.Port())
		if known && n >= frameHead && int(parseFrame(p).bytes) == n {
			return n, nil
		}
	}
}

// Write sends a datagram.
func (d *datagrams) Write(p []byte) (int, error) { return d.WriteToUDPAddrPort(p, d.from) }

// conn is what blocks come and go through: net.Conn.
type conn interface {
	Read(p []byte) (int, error)
	Write(p []byte) (int, error)
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	Close() error
}

var (
	_ soapy.Board  = (*board)(nil)
	_ soapy.Stream = (*stream)(nil)
)
