package rtltcp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/blocks"
	"ringwave/radio/radiotest"
	"ringwave/radio/rtlsdr"
	"ringwave/radio/rtltcp"
	"ringwave/radio/usb"
)

// server is one that does what the test says, over pipes in memory: a Dialer.
type server struct {
	mu     sync.Mutex
	refuse error
	// calls has the server's ends of connections.
	calls chan net.Conn
}

func newServer() *server { return &server{calls: make(chan net.Conn, 16)} }

func (s *server) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return nil, s.refuse
	}
	client, server := net.Pipe()
	s.calls <- server
	return client, ctx.Err()
}

func (s *server) setRefuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// header is what rtl_tcp says first of an R820T.
func header() []byte { return []byte("RTL0\x00\x00\x00\x05\x00\x00\x00\x1d") }

// client is a connection as the server sees it.
type client struct {
	t    *testing.T
	conn net.Conn
	// commands has what came, one after the other.
	commands chan [5]byte
}

// answer takes the next connection and introduces the server.
func (s *server) answer(t *testing.T) *client {
	t.Helper()
	c := &client{t: t, conn: <-s.calls, commands: make(chan [5]byte, 1000)}
	for {
		t.Cleanup(func() { c.conn.Close() })
		if _, err := c.conn.Write(header()); err == nil {
			break
		}
		c.conn = <-s.calls // the client has given up and will try again
	}
	go func() {
		defer close(c.commands)
		for {
			var m [5]byte
			if _, err := io.ReadFull(c.conn, m[:]); err != nil {
				return
			}
			c.commands <- m
		}
	}()
	return c
}

// expect takes the commands that came next.
func (c *client) expect(want ...string) {
	c.t.Helper()
	for _, w := range want {
		m := <-c.commands
		if got := fmt.Sprintf("%02x %d", m[0], int32(binary.BigEndian.Uint32(m[1:]))); got != w {
			c.t.Errorf("command %s instead of %s", got, w)
		}
	}
}

// send returns the client n blocks of bytes that count up from first.
func (c *client) send(first byte, n int) {
	b := make([]byte, 16384)
	for k := range b {
		b[k] = first + byte(k)
	}
	for range n {
		if _, err := c.conn.Write(b); err != nil {
			return
		}
	}
}

func tryOpen(ctx context.Context, d rtltcp.Dialer, uri string) (radio.Device, error) {
	return openWith(ctx, d, radio.TransmitPermit{}, uri)
}

func openWith(ctx context.Context, d rtltcp.Dialer, permit radio.TransmitPermit, uri string) (radio.Device, error) {
	reg, err := radio.NewRegistry(map[string]radio.Opener{"rtl_tcp": rtltcp.NewOpener(d, permit)})
	if err != nil {
		return nil, err
	}
	return reg.Open(ctx, uri)
}

// open opens a device and gives the server's view of it.
func open(t *testing.T, s *server, uri string) (radio.Device, *client) {
	t.Helper()
	type result struct {
		d   radio.Device
		err error
	}
	opened := make(chan result)
	go func() {
		d, err := tryOpen(t.Context(), s, uri)
		opened <- result{d, err}
	}()
	c := s.answer(t)
	r := <-opened
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() { _ = r.d.Close() })
	return r.d, c
}

// All settings are sent at the start, and each as it is made.
func TestCommands(t *testing.T) {
	radiotest.Leaks(t)
	s := newServer()
	d, c := open(t, s, "rtl_tcp:host:99?freq_hz=433.92e6&rate_hz=1e6&gain=40&ppm=-3&agc=on")
	c.expect("0e 0", "02 1000000", "05 -3", "01 433920000", "08 1", "07 0", "03 1", "04 386")
	if f, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 868.3e6+0.7); err != nil || f != 868.3e6 {
		t.Errorf("%v: %v", f, err)
	}
	if r, err := d.(radio.RateControl).SetSampleRate(t.Context(), radio.Receive, 2.4e6); err != nil || r != 2.4e6 {
		t.Errorf("%v: %v", r, err)
	}
	if g, err := d.(radio.GainControl).SetGain(t.Context(), radio.Receive, "TUNER", 8); err != nil || g != 7.7 {
		t.Errorf("%v: %v", g, err)
	}
	if err := d.(rtlsdr.AutoGainControl).SetAutoGain(t.Context(), radio.Receive); err != nil {
		t.Error(err)
	}
	c.expect("01 868300000", "02 2400000", "03 1", "04 77", "03 0")
	if _, err := d.(radio.GainControl).Gain(radio.Receive, "TUNER"); err == nil {
		t.Error("automatic gain has a value")
	}
	got := radio.Describe(d).String()
	for _, want := range []string{
		"rtl_tcp:host:99?", "behind rtl_tcp at host:99, revision R820T/R820T2, driver rtl_tcp",
		"receive frequency: 868.3 MHz (27 MHz to 1.765 GHz in steps of 1 Hz)", "receive sample rate: 2.4 MHz (225.001 kHz to 3.2 MHz)",
		"receive gain TUNER: 0 dB to 49.6 dB", "indices: counted by the host", "note: the server confirms no setting",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for what, err := range map[string]error{
		"the frequency": second(d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 1e6)),
		"cannot":        second(d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Transmit, 1e9)),
		"sample rate":   second(d.(radio.RateControl).SetSampleRate(t.Context(), radio.Receive, 5e5)),
		"the gain is":   second(d.(radio.GainControl).SetGain(t.Context(), radio.Receive, "TUNER", 50)),
		"gain stage":    second(d.(radio.GainControl).SetGain(t.Context(), radio.Receive, "LNA", 0)),
	} {
		if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "allowed is") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	if _, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 1e9); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if _, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context()); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// Power at the antenna's port must be permitted, and is taken away by Close.
func TestBias(t *testing.T) {
	radiotest.Leaks(t)
	s := newServer()
	if _, err := tryOpen(t.Context(), s, "rtl_tcp:?bias=on"); !errors.Is(err, radio.ErrNotPermitted) || !strings.Contains(err.Error(), "radio.bias_tee = true") {
		t.Error(err)
	}
	opened := make(chan radio.Device, 1)
	go func() {
		d, err := openWith(t.Context(), s, radio.TransmitPermit{}.WithBias(), "rtl_tcp:?bias=on")
		if err != nil {
			t.Error(err)
		}
		opened <- d
	}()
	c := s.answer(t)
	d := <-opened
	if d == nil {
		t.FailNow()
	}
	c.expect("0e 1", "02 2048000", "05 0", "01 100000000", "08 0", "07 0", "03 1", "04 0")
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	c.expect("0e 0")
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// What comes before the start is dropped, what comes after is given, and it settles
// after the time that was set and the transfer that the server may have begun.
func TestReceive(t *testing.T) {
	radiotest.Leaks(t)
	s := newServer()
	// 25 ms are 6.1 blocks; a transfer is 16.
	d, c := open(t, s, "rtl_tcp:?rate_hz=2e6&settle_ms=25")
	rx := radiotest.Started(t, d)
	first := rx.Epoch()
	go c.send(0, 40)
	x, meta := radiotest.Read(t, rx, 35*8192)
	for k, got := range x {
		i, q := float32(byte(2*k))-127.5, float32(byte(2*k+1))-127.5
		if got != complex(i/128, q/128) {
			t.Fatalf("sample %d is %v", k, got)
		}
	}
	if meta.First != 0 || len(meta.Gaps) > 0 || meta.Flags != radio.HostCounted|radio.Clipped {
		t.Errorf("%+v", meta)
	}
	if len(meta.Changes) != 1 || meta.Changes[0] != (radio.EpochChange{At: 24 * 8192, Epoch: first}) || meta.Epoch >= first {
		t.Errorf("%+v, the epoch is %d", meta.Changes, first)
	}
	if _, err := d.(radio.RateControl).SetSampleRate(t.Context(), radio.Receive, 1e6); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if _, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if err := rx.Close(); err != nil {
		t.Fatal(err)
	}
	again := radiotest.Started(t, d)
	if again.Epoch() <= first {
		t.Errorf("epoch %d after %d", again.Epoch(), first)
	}
}

// A retune is two epochs: one while nobody knows, one when all of before is past.
func TestRetune(t *testing.T) {
	s := newServer()
	d, c := open(t, s, "rtl_tcp:?rate_hz=2e6&settle_ms=0")
	rx := radiotest.Started(t, d)
	go c.send(0, math.MaxInt) // until the connection ends
	radiotest.Read(t, rx, 3*8192)
	before := rx.Epoch()
	if _, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 1e9); err != nil {
		t.Fatal(err)
	}
	_, meta := radiotest.Read(t, rx, 280*8192)
	if len(meta.Changes) != 1 || meta.Epoch != before+1 || meta.Changes[0].Epoch != rx.Epoch() || rx.Epoch() != before+2 {
		t.Errorf("from %d: %d, %+v, at last %d", before, meta.Epoch, meta.Changes, rx.Epoch())
	}
}

// A lost connection is a gap that nobody can measure, and a new epoch; all settings
// are sent again.
func TestReconnect(t *testing.T) {
	radiotest.Leaks(t)
	s := newServer()
	d, c := open(t, s, "rtl_tcp:?gain=auto&settle_ms=0")
	rx := radiotest.Started(t, d)
	go c.send(0, 2)
	radiotest.Read(t, rx, 2*8192)
	before := rx.Epoch()
	c.conn.Close()
	clients := make(chan *client, 1)
	go func() {
		c := s.answer(t)
		c.expect("0e 0", "02 2048000", "05 0", "01 100000000", "08 0", "07 0", "03 0")
		c.send(0, 1)
		clients <- c
	}()
	_, meta := radiotest.Read(t, rx, 8192)
	if meta.First != 2*8192 || meta.Epoch != before+1 || rx.Epoch() != meta.Epoch || meta.Flags&radio.Overrun == 0 ||
		len(meta.Gaps) != 1 || meta.Gaps[0] != (radio.Gap{}) {
		t.Errorf("%+v, the epoch is %d after %d", meta, rx.Epoch(), before)
	}
	// A setting finds out as well.
	(<-clients).conn.Close()
	go func() {
		c := s.answer(t)
		c.expect("0e 0", "02 2048000", "05 0", "01 1100000000")
		clients <- c
	}()
	if _, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 1.1e9); err != nil {
		t.Fatal(err)
	}
	// And a start.
	if err := rx.Close(); err != nil {
		t.Fatal(err)
	}
	(<-clients).conn.Close()
	go func() {
		c := s.answer(t)
		c.expect("0e 0")
		clients <- c
		c.send(7, math.MaxInt) // a start drops what is there already
	}()
	again, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	radiotest.Read(t, again, 100)
	<-clients
}

// A server that is gone for good: the read says so, the next tries again, and
// everything can be closed.
func TestServerGone(t *testing.T) {
	radiotest.Leaks(t)
	s := newServer()
	d, c := open(t, s, "rtl_tcp:?deadline_ms=30")
	rx := radiotest.Started(t, d)
	refused := errors.New("nobody is there")
	s.setRefuse(refused)
	c.conn.Close()
	// It does not try at once again, but it does.
	for told := 0; told < 2; {
		_, _, err := rx.Read(t.Context(), make([]complex64, 10))
		if !errors.Is(err, blocks.ErrSilent) || !errors.Is(err, usb.ErrTimeout) {
			t.Fatal(err)
		}
		if errors.Is(err, refused) {
			told++
		}
	}
	if _, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 1e9); !errors.Is(err, refused) {
		t.Error(err)
	}
	s.setRefuse(nil)
	// It is there again, and silent at first: the gap is told with what comes at
	// last.
	speak := make(chan struct{})
	go func() {
		for {
			select {
			case conn := <-s.calls:
				go func() {
					c := &client{t: t, conn: conn}
					_, _ = conn.Write(header())
					go func() { _, _ = io.Copy(io.Discard, conn) }()
					<-speak
					c.send(0, math.MaxInt)
				}()
			case <-t.Context().Done():
				return
			}
		}
	}()
	for err := refused; strings.Contains(err.Error(), "connecting") || errors.Is(err, refused); {
		if _, _, err = rx.Read(t.Context(), make([]complex64, 10)); !errors.Is(err, blocks.ErrSilent) {
			t.Fatal(err)
		}
	}
	close(speak)
	for err := blocks.ErrSilent; err != nil; {
		var meta radio.Meta
		if _, meta, err = rx.Read(t.Context(), make([]complex64, 10)); err == nil && len(meta.Gaps) != 1 {
			t.Errorf("%+v", meta)
		}
		if err != nil && !errors.Is(err, blocks.ErrSilent) {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// What waits ends when the stream, the context or the device does, also while it
// tries to connect again.
func TestWaitingEnds(t *testing.T) {
	for _, connected := range []bool{true, false} {
		for name, c := range map[string]struct {
			end  func(cancel func(), rx radio.Receiver, d radio.Device)
			want error
		}{
			"context": {func(cancel func(), _ radio.Receiver, _ radio.Device) { cancel() }, context.Canceled},
			"stream":  {func(_ func(), rx radio.Receiver, _ radio.Device) { _ = rx.Close() }, radio.ErrClosed},
			"device":  {func(_ func(), _ radio.Receiver, d radio.Device) { _ = d.Close() }, radio.ErrClosed},
		} {
			t.Run(fmt.Sprint(name, connected), func(t *testing.T) {
				radiotest.Leaks(t)
				s := newServer()
				d, server := open(t, s, "rtl_tcp:?deadline_ms=0")
				rx := radiotest.Started(t, d)
				if !connected {
					// The next connection is taken and nobody speaks.
					server.conn.Close()
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error)
				go func() {
					_, _, err := rx.Read(ctx, make([]complex64, 10))
					ended <- err
				}()
				if !connected {
					silent := <-s.calls
					defer silent.Close()
				}
				c.end(cancel, rx, d)
				if err := <-ended; !errors.Is(err, c.want) {
					t.Errorf("%v instead of %v", err, c.want)
				}
				if err := errors.Join(rx.Close(), d.Close()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// says is a Dialer of a server that says the same to everybody.
type says struct{ what []byte }

func (s says) DialContext(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, server) }()
	go func() {
		_, _ = server.Write(s.what)
		server.Close()
	}()
	return client, nil
}

func TestIntroductions(t *testing.T) {
	radiotest.Leaks(t)
	for what, want := range map[string]string{
		"":                                     "this is no rtl_tcp server: it ended the connection",
		"RTL0\x00\x00":                         "it ended the connection",
		"SSH-2.0-OpenSSH_9.2p1\r\n":            `it begins with "SSH-"; allowed is "RTL0"`,
		"RTL0\x00\x00\x00\x01\x00\x00\x00\x0e": "has tuner 1 (E4000); allowed are R820T, R820T2 and R828D",
		"RTL0\xff\xff\xff\xff\x00\x00\x00\x0e": "has tuner 4294967295 (unknown)",
	} {
		if _, err := tryOpen(t.Context(), says{[]byte(what)}, "rtl_tcp:"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", what, err)
		}
	}
	// A server that is busy says nothing.
	s := newServer()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := tryOpen(ctx, s, "rtl_tcp:"); !errors.Is(err, usb.ErrTimeout) || !strings.Contains(err.Error(), "busy with another client") {
		t.Error(err)
	}
	(<-s.calls).Close()
	refused := errors.New("connection refused")
	s.setRefuse(refused)
	if _, err := tryOpen(t.Context(), s, "rtl_tcp:"); !errors.Is(err, refused) {
		t.Error(err)
	}
}

func TestURIs(t *testing.T) {
	for uri, want := range map[string]string{
		"rtl_tcp:h:0":             `the port "0"; allowed is 1 to 65535`,
		"rtl_tcp:h:http":          `the port "http"; allowed is`,
		"rtl_tcp:a:b:c":           "allowed is HOST, HOST:PORT or [IPv6]:PORT",
		"rtl_tcp:h?gain=60":       "gain=60; allowed is a number from 0 to 49.6",
		"rtl_tcp:h?freq_hz=1":     "freq_hz=1; allowed is a number from 27000000 to 1765000000",
		"rtl_tcp:h?rate_hz=5e5":   "rate_hz=5e5; allowed is 225001 to 300000 and 900001 to 3200000",
		"rtl_tcp:h?ppm=1.5":       "ppm=1.5; allowed is whole numbers",
		"rtl_tcp:h?agc=1":         "agc=1; allowed is off, on",
		"rtl_tcp:h?settle_ms=-1":  "settle_ms=-1; allowed is a whole number from 0 to 60000",
		"rtl_tcp:h?bandwidth=1e6": `the parameter "bandwidth"; allowed is freq_hz`,
	} {
		if d, err := tryOpen(t.Context(), newServer(), uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: %v", uri, d, err)
		}
	}
	for uri, address := range map[string]string{
		"rtl_tcp:": "127.0.0.1:1234", "rtl_tcp:host": "host:1234", "rtl_tcp:[::1]:99": "[::1]:99", "rtl_tcp:[::1]": "[::1]:1234",
	} {
		var got string
		_, err := tryOpen(t.Context(), dialer(func(a string) error { got = a; return net.ErrClosed }), uri)
		if got != address || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s calls %s instead of %s: %v", uri, got, address, err)
		}
	}
}

type dialer func(address string) error

func (d dialer) DialContext(_ context.Context, _, address string) (net.Conn, error) {
	return nil, d(address)
}

// Whatever a server says: an error, or a device that gives what came after the
// introduction and can be closed.
func FuzzServer(f *testing.F) {
	f.Add([]byte{})
	f.Add(header())
	f.Add(append(header(), bytes.Repeat([]byte{1, 2, 3}, 20_000)...))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, what []byte) {
		d, err := tryOpen(t.Context(), says{what}, "rtl_tcp:?deadline_ms=1")
		if err != nil {
			return
		}
		if len(what) < 12 || string(what[:4]) != "RTL0" {
			t.Errorf("%q is taken for a server", what[:min(12, len(what))])
		}
		rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := rx.Start(t.Context()); err == nil {
			x := make([]complex64, 100)
			if n, meta, _ := rx.Read(t.Context(), x); n > 0 && meta.First != 0 {
				t.Errorf("%+v", meta)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}
