package bustest

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy hands connections on to a server, and fails them when it is told to.
type Proxy struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup

	mu     sync.Mutex
	change *sync.Cond // of what follows
	open   map[net.Conn]bool
	closed bool
	refuse bool
	stall  bool
	delay  time.Duration
}

// NewProxy listens on this host until the test ends, for connections to the server at a URL
// such as tls://127.0.0.1:4222.
func NewProxy(t testing.TB, url string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: strings.TrimPrefix(url, "tls://"), open: map[net.Conn]bool{}}
	p.change = sync.NewCond(&p.mu)
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// URL returns what hosts connect to in place of the server.
func (p *Proxy) URL() string { return "tls://" + p.listener.Addr().String() }

// Cut closes all connections. New ones are made as before.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.Close()
	}
}

// Refuse closes new connections as they come, or no more.
func (p *Proxy) Refuse(on bool) { p.set(func() { p.refuse = on }) }

// Stall keeps all bytes back, of all connections, and lets them go on later.
func (p *Proxy) Stall(on bool) { p.set(func() { p.stall = on }) }

// Delay keeps what comes for so long, in either direction.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.change.Broadcast()
}

func (p *Proxy) close() {
	p.set(func() { p.closed = true })
	p.listener.Close()
	p.Cut()
	p.group.Wait()
}

func (p *Proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return // it was closed
		}
		p.mu.Lock()
		refuse := p.refuse || p.closed
		p.mu.Unlock()
		if refuse {
			in.Close()
			continue
		}
		p.group.Go(func() { p.serve(in) })
	}
}

// serve hands one connection on, until either side ends it.
func (p *Proxy) serve(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", p.target)
	if err != nil {
		return // as it would be without the proxy
	}
	defer out.Close()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.open[in], p.open[out] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{in: out, out: in} {
		both.Go(func() {
			p.copy(to, from)
			in.Close()
			out.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, in)
	delete(p.open, out)
}

// copy hands bytes on, when they may go.
func (p *Proxy) copy(to io.Writer, from io.Reader) {
	b := make([]byte, 1<<15)
	for {
		n, err := from.Read(b)
		if !p.pass() {
			return
		}
		if _, werr := to.Write(b[:n]); err != nil || werr != nil {
			return
		}
	}
}

// pass waits until bytes may go, and reports whether they ever may.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	if delay > 0 {
		<-time.After(delay) // which is what is asked for, and not to wait for something else
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stall && !p.closed {
		p.change.Wait()
	}
	return !p.closed
}
