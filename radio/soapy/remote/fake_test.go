package remote

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
)

// fake is a server of the tests' own, for what Debian's does not do.
type fake struct {
	t testing.TB
	l net.Listener
	// answer returns what is sent in answer to a call, nil for nothing; a call for which it
	// is nil gets what a board would answer that has and does nothing.
	answer func(c call, a *answer) []byte
	// port is what it names for streams, where it is not to be the right one.
	port string

	flows chan fakeFlow // streams that were made
	calls chan call     // all calls, of those that fit
	conns chan net.Conn // connections for calls
}

// fakeFlow is the server's side of a stream.
type fakeFlow struct {
	data, news io.ReadWriteCloser
	args       soapy.Args
	format     string
}

func newFake(t testing.TB) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, l: l, flows: make(chan fakeFlow, 8), calls: make(chan call, 1000), conns: make(chan net.Conn, 8)}
	var serving sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for conn := range open {
			conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			select {
			case f.conns <- conn:
			default:
			}
			serving.Go(func() { f.serve(conn) })
		}
	})
	return f
}

// uri returns the server's, with parameters.
func (f *fake) uri(params string) radio.URI {
	u, err := radio.ParseURI("soapy-remote:" + f.l.Addr().String() + params)
	if err != nil {
		f.t.Fatal(err)
	}
	return u
}

// make opens its board, with a short time for calls.
func (f *fake) make(params string) *board {
	f.t.Helper()
	b, err := New(&net.Dialer{}).Make(f.t.Context(), f.uri(params), soapy.Args{"driver": "fake"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { b.Close() })
	return b.(*board)
}

// stream makes a stream and returns both sides of it.
func (f *fake) stream(params string, dir radio.Direction, format string) (*board, soapy.Stream, fakeFlow) {
	f.t.Helper()
	b := f.make(params)
	s, err := b.SetupStream(f.t.Context(), soapy.Channel{Direction: dir, Number: 2}, format, soapy.Args{"own": "yes"})
	if err != nil {
		f.t.Fatal(err)
	}
	return b, s, <-f.flows
}

// reply begins an answer.
func reply() *request { return &request{make([]byte, headLength)} }

func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var b [headLength]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			return
		}
		h, err := parseHead(b)
		rest := make([]byte, h.rest)
		if _, readErr := io.ReadFull(conn, rest); err != nil || readErr != nil {
			return
		}
		a := newAnswer(h, rest)
		a.is(kindCall)
		c := call(a.integer())
		select {
		case f.calls <- c:
		default:
		}
		var out []byte
		if f.answer != nil {
			out = f.answer(c, a)
		}
		if c == callSetupStream && out == nil {
			if f.setUp(conn, a) != nil {
				return
			}
			continue
		}
		if out == nil {
			out = plain(c)
		}
		if _, err := conn.Write(out); err != nil || c == callHangUp {
			return
		}
	}
}

// plain is what a board answers that has and does nothing.
func plain(c call) []byte {
	switch c {
	case callActivateStream, callDeactivateStream, callChannels, callSetupBypass:
		return reply().integer(0).message()
	case callFind:
		return reply().kind(kindArgsList).integer(1).args(soapy.Args{"driver": "fake", stopKey: ""}).message()
	}
	return reply().kind(kindVoid).message()
}

// setUp makes a stream.
func (f *fake) setUp(conn net.Conn, a *answer) error {
	if !a.is(kindChar) {
		return a.err
	}
	a.take(1)
	flow := fakeFlow{format: a.text()}
	list(a, kindSizes, a.integer)
	flow.args = a.args()
	to, news := a.text(), a.text()
	if err := a.end(); err != nil {
		f.t.Error(err)
		return err
	}
	if flow.args["remote:prot"] == "udp" {
		return f.setUpUDP(conn, flow, to, news)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if f.port != "" {
		port = f.port
	}
	if _, err := conn.Write(reply().text(port).message()); err != nil || f.port != "" {
		return err
	}
	var conns [2]net.Conn
	for i := range conns {
		_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(radiotest.Patience))
		if conns[i], err = l.Accept(); err != nil {
			return err
		}
	}
	flow.data, flow.news = conns[0], conns[1]
	f.flows <- flow
	_, err = conn.Write(reply().integer(7).text(port).message())
	return err
}

func (f *fake) setUpUDP(conn net.Conn, flow fakeFlow, to, news string) error {
	var conns [2]*datagrams
	for i, port := range []string{to, news} {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return err
		}
		conns[i] = &datagrams{UDPConn: c, from: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(n))}
	}
	flow.data, flow.news = conns[0], conns[1]
	f.flows <- flow
	port := conns[0].port()
	if f.port != "" {
		port = f.port
	}
	_, err := conn.Write(reply().integer(7).text(port).message())
	return err
}

// close ends what is left of a flow.
func (f fakeFlow) close() {
	f.data.Close()
	f.news.Close()
}

// send sends a block of samples, or a code.
func (f fakeFlow) send(t testing.TB, h frame, samples []byte) {
	t.Helper()
	h.bytes = uint32(frameHead + len(samples))
	b := make([]byte, h.bytes)
	h.put(b)
	copy(b[frameHead:], samples)
	if _, err := f.data.Write(b); err != nil {
		t.Fatal(err)
	}
}

// tell sends news.
func (f fakeFlow) tell(t testing.TB, h frame) {
	t.Helper()
	b := make([]byte, frameHead)
	h.bytes = frameHead
	h.put(b)
	if _, err := f.news.Write(b); err != nil {
		t.Fatal(err)
	}
}

// hear takes an acknowledgement, or a block of a transmitter's.
func (f fakeFlow) hear(t testing.TB) (frame, []byte) {
	t.Helper()
	b := make([]byte, 1<<17)
	if d, ok := f.data.(*datagrams); ok {
		n, err := d.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return parseFrame(b), b[frameHead:n]
	}
	if _, err := io.ReadFull(f.data, b[:frameHead]); err != nil {
		t.Fatal(err)
	}
	h := parseFrame(b)
	if _, err := io.ReadFull(f.data, b[frameHead:h.bytes]); err != nil {
		t.Fatal(err)
	}
	return h, b[frameHead:h.bytes]
}

// counted returns n bytes that count.
func counted(n int) []byte {
	b := make([]byte, n)
	for k := range b {
		b[k] = byte(k)
	}
	return b
}

// oneSentence fails where an error is not one clear line that names the server.
func (f *fake) oneSentence(err error) {
	f.t.Helper()
	if err == nil {
		f.t.Error("no error")
		return
	}
	s := err.Error()
	if !strings.HasPrefix(s, "SoapyRemote server "+f.l.Addr().String()+": ") || strings.ContainsAny(s, "\n\r\x1b") || len(s) > 1200 {
		f.t.Errorf("not a sentence: %q", s)
	}
}

var (
	errNone = errors.New("")
)
