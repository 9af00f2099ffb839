package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
)

// cut returns a message whose head says that it is longer than it is.
func cut(b []byte, more uint32) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint32(b[8:], binary.BigEndian.Uint32(b[8:])+more)
	return b
}

// listOf returns a message with a list of a kind that says how long it is.
func listOf(k kind, n int32) []byte { return reply().kind(k).integer(n).message() }

// hostile are answers that no server gives to the question for formats.
func hostile() map[string][]byte {
	long := strings.Repeat("x", maxText+1)
	many := reply().kind(kindTexts).integer(maxList)
	for range maxList {
		many.text("")
	}
	return map[string][]byte{
		"not the protocol":    []byte("HTTP/1.0 400 Bad Request\r\n\r\n"),
		"no length":           cut(reply().message(), 1<<32-headLength-tailLength),
		"nothing in it":       reply().message(),
		"endless length":      cut(reply().text("x").message(), 1<<31),
		"too long by one":     cut(reply().message(), maxMessage-headLength-tailLength+1),
		"no end":              append(reply().text("x").message()[:headLength+7], "ZZZZ"...),
		"void":                reply().kind(kindVoid).message(),
		"a text":              reply().text("CS8").message(),
		"of unknown type":     reply().kind(99).message(),
		"length below 0":      listOf(kindTexts, -1),
		"endless list":        listOf(kindTexts, 1<<31-1),
		"list without end":    listOf(kindTexts, maxList),
		"list of lists":       reply().kind(kindTexts).integer(1).kind(kindTexts).integer(1).text("x").message(),
		"long text":           reply().kind(kindTexts).integer(1).text(long).message(),
		"text below 0":        reply().kind(kindTexts).integer(1).kind(kindText).integer(-5).message(),
		"text without end":    reply().kind(kindTexts).integer(1).kind(kindText).integer(9).message(),
		"more than asked for": append(many.b, reply().kind(kindVoid).message()[headLength:]...),
		"refusal without why": reply().kind(kindException).message(),
		"refusal of a number": reply().kind(kindException).number(5).message(),
		"refusal that prints": reply().kind(kindException).text("\x1b[31mred\r\n\xff" + long[:maxText-100]).message(),
		"of lengths that lie": reply().kind(kindTexts).kind(kindInt64).integer(4).message(),
	}
}

// sized puts right what a message says of its length, where it was put together by hand.
func sized(name string, b []byte) []byte {
	if name == "no end" || name == "more than asked for" {
		copy(b, "SRPC")
		binary.BigEndian.PutUint32(b[4:], version)
		binary.BigEndian.PutUint32(b[8:], uint32(len(b)))
	}
	return b
}

// allocated returns what f allocates, about.
func allocated(f func()) uint64 {
	var before, behind runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&behind)
	return behind.TotalAlloc - before.TotalAlloc
}

// A server's answer that is none is one sentence, in little memory.
func TestHostileAnswers(t *testing.T) {
	for name, said := range hostile() {
		t.Run(name, func(t *testing.T) {
			radiotest.Leaks(t)
			f := newFake(t)
			f.answer = func(c call, _ *answer) []byte {
				if c == callFormats {
					return sized(name, said)
				}
				return nil
			}
			b := f.make("?timeout_ms=5000")
			n := allocated(func() {
				all, err := b.Formats(t.Context(), soapy.Channel{})
				if all != nil {
					t.Errorf("formats %q", all)
				}
				f.oneSentence(err)
				t.Log(err)
			})
			if n > 16*maxMessage {
				t.Errorf("%d bytes were allocated", n)
			}
			ok(t, b.Close())
		})
	}
}

// tooLate are servers that do not answer in time.
var tooLate = map[string]func(conn net.Conn){
	"never":       func(net.Conn) {},
	"at once":     func(conn net.Conn) { conn.Close() },
	"in part":     func(conn net.Conn) { _, _ = conn.Write(reply().text("x").message()[:20]); conn.Close() },
	"half a head": func(conn net.Conn) { _, _ = conn.Write(reply().text("x").message()[:5]); conn.Close() },
	"and waits":   func(conn net.Conn) { _, _ = conn.Write(reply().text("x").message()[:20]) },
	"byte by byte": func(conn net.Conn) {
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		long := reply().text(strings.Repeat("x", maxText)).message()
		for k := range long {
			if _, err := conn.Write(long[k : k+1]); err != nil {
				return
			}
			<-again.C
		}
	},
	"and goes on": func(conn net.Conn) {
		m := reply().kind(kindVoid).message()
		for {
			if _, err := conn.Write(m); err != nil {
				return
			}
		}
	},
}

// A server that takes its time, or does not stop, is one sentence within the time for a call,
// whatever is asked of it.
func TestHostileTimes(t *testing.T) {
	for name, behave := range tooLate {
		t.Run(name, func(t *testing.T) {
			radiotest.Leaks(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			ok(t, err)
			served := make(chan struct{})
			t.Cleanup(func() { l.Close(); <-served })
			go func() {
				defer close(served)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					var b [100]byte
					if _, err := conn.Read(b[:]); err == nil {
						behave(conn)
						_, _ = io.Copy(io.Discard, conn) // until the client goes
					}
					conn.Close()
				}
			}()
			f := &fake{t: t, l: l}
			back := New(&net.Dialer{})
			b, err := back.Make(t.Context(), f.uri("?timeout_ms=200"), nil)
			if err == nil { // its first answer was one
				_, err = b.Hardware(t.Context())
				ok(t, b.Close())
			}
			f.oneSentence(err)
			t.Log(err)
			if _, err := back.Find(t.Context(), f.uri("?timeout_ms=200"), nil); name != "and goes on" || err != nil {
				f.oneSentence(err)
			}
		})
	}
}

// Nobody listens, or no such server is there.
func TestNobodyThere(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake(t)
	f.l.Close()
	_, err := New(&net.Dialer{}).Make(t.Context(), f.uri(""), nil)
	f.oneSentence(err)
	if _, err := New(&net.Dialer{}).Find(t.Context(), f.uri("?timeout_ms=1"), nil); err == nil {
		t.Error("no error")
	}
}

// A call that is given up leaves the next its own answer, and Close its time.
func TestGivenUp(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake(t)
	asked, go_ := make(chan struct{}), make(chan struct{})
	f.answer = func(c call, _ *answer) []byte {
		switch c {
		case callAntenna:
			asked <- struct{}{}
			<-go_
			return reply().text("late").message()
		case callClockSource:
			return reply().text("clock").message()
		}
		return nil
	}
	b := f.make("?timeout_ms=5000")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := b.Antenna(ctx, soapy.Channel{})
	f.oneSentence(err)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The next has to wait for its turn; it may be given up, too.
	if _, err := b.ClockSource(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(go_)
	if s, err := b.ClockSource(t.Context()); s != "clock" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	ok(t, b.Close())
}

// Close ends although the server never does, and so does what waits for it then.
func TestCloseOfSilent(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake(t)
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	f.answer = func(c call, _ *answer) []byte {
		if c == callAntenna || c == callDeactivateStream {
			<-never
		}
		return nil
	}
	b, s, flow := f.stream("?timeout_ms=300", radio.Receive, "CS8")
	defer flow.close()
	ok(t, s.Activate(t.Context(), 0, 0))
	ended := make(chan error)
	go func() {
		_, err := b.Antenna(t.Context(), soapy.Channel{})
		ended <- err
	}()
	for c := range f.calls {
		if c == callAntenna {
			break
		}
	}
	_ = b.Close()
	if err := <-ended; !errors.Is(err, soapy.ErrGone) {
		t.Error(err)
	}
	never <- struct{}{}
}

// A stream that a server does not make as it should is one sentence. What it says cannot be
// believed any more where it stood between two answers.
func TestHostileSetUp(t *testing.T) {
	for name, c := range map[string]struct {
		params, port string
		answer       []byte
		gone         bool
	}{
		"refused":        {answer: reply().kind(kindException).text("no such format").message()},
		"refused udp":    {params: "&stream=udp", answer: reply().kind(kindException).text("no such format").message()},
		"void":           {answer: reply().kind(kindVoid).message(), gone: true},
		"void udp":       {params: "&stream=udp", answer: reply().kind(kindVoid).message(), gone: true},
		"port of words":  {port: "abc\n", gone: true},
		"port 0":         {port: "0", gone: true},
		"port too high":  {port: "65536", gone: true},
		"udp port 70000": {params: "&stream=udp", port: "70000", gone: true},
		"nobody there":   {answer: reply().text("1").message(), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			radiotest.Leaks(t)
			f := newFake(t)
			f.port = c.port
			f.answer = func(to call, _ *answer) []byte {
				if to == callSetupStream {
					return c.answer
				}
				return nil
			}
			b := f.make("?timeout_ms=500" + c.params)
			_, err := b.SetupStream(t.Context(), soapy.Channel{}, "CS8", nil)
			f.oneSentence(err)
			t.Log(err)
			if errors.Is(err, soapy.ErrGone) != c.gone {
				t.Errorf("gone is %v, want %v", !c.gone, c.gone)
			}
			if len(f.flows) > 0 {
				(<-f.flows).close()
			}
		})
	}
	f := newFake(t)
	if _, err := f.make("").SetupStream(t.Context(), soapy.Channel{}, "CF64", nil); err == nil || !strings.Contains(err.Error(), "allowed is CF32, CS16, CS8, CU8") {
		t.Error(err)
	}
}

// A stream that is given up while it is made is closed at the server: it is not left between
// two connections, in which it waits without end.
func TestSetUpGivenUp(t *testing.T) {
	both(t, func(t *testing.T, params string) {
		f := newFake(t)
		b := f.make(params)
		ctx, cancel := context.WithCancel(t.Context())
		f.answer = func(c call, _ *answer) []byte {
			if c == callSetupStream {
				cancel()
			}
			return nil
		}
		s, err := b.SetupStream(ctx, soapy.Channel{}, "CS8", nil)
		if err == nil { // it was quicker
			ok(t, s.Close())
		} else if f.oneSentence(err); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for c := range f.calls {
			if c == callCloseStream {
				break
			}
		}
		(<-f.flows).close()
		ok(t, b.Close())
	})
}

// Blocks that are not what they say end a stream over TCP with one sentence.
func TestHostileBlocks(t *testing.T) {
	for name, h := range map[string]frame{
		"shorter than itself": {bytes: 3, elems: 1},
		"longer than allowed": {bytes: 1<<31 + 24, elems: 1 << 30},
		"too long":            {bytes: 24 + 2<<15, elems: 1 << 15},
		"of no such samples":  {bytes: 25, elems: 0},
		"of less than none":   {bytes: 26, elems: -4},
	} {
		t.Run(name, func(t *testing.T) {
			radiotest.Leaks(t)
			f := newFake(t)
			b, s, flow := f.stream("", radio.Receive, "CS8")
			defer flow.close()
			head := make([]byte, frameHead)
			h.put(head)
			_, err := flow.data.Write(head)
			ok(t, err)
			_, _, err = s.Read(t.Context(), make([]byte, 8), radiotest.Patience)
			f.oneSentence(err)
			if !errors.Is(err, soapy.ErrCorruption) {
				t.Error(err)
			}
			ok(t, b.Close())
		})
	}
	t.Run("acknowledgement", func(t *testing.T) {
		radiotest.Leaks(t)
		f := newFake(t)
		b, s, flow := f.stream("", radio.Transmit, "CS8")
		defer flow.close()
		head := make([]byte, frameHead)
		frame{bytes: 99}.put(head)
		_, err := flow.data.Write(head)
		_, err2 := flow.news.Write(head)
		ok(t, err, err2)
		_, err = s.Write(t.Context(), make([]byte, 8), soapy.BlockInfo{}, radiotest.Patience)
		f.oneSentence(err)
		_, err = s.Status(t.Context(), radiotest.Patience)
		f.oneSentence(err)
		ok(t, b.Close())
	})
}

// A server that sends blocks without samples, or old ones, without end keeps nobody longer
// than patience, and takes no memory.
func TestEndlessBlocks(t *testing.T) {
	both(t, func(t *testing.T, params string) {
		for name, h := range map[string]frame{
			"empty": {bytes: frameHead},
			"old":   {bytes: frameHead, sequence: 1 << 31},
			"codes": {bytes: frameHead, elems: int32(soapy.ErrTimeout)},
		} {
			f := newFake(t)
			b, s, flow := f.stream(params, radio.Receive, "CS8")
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				head := make([]byte, frameHead)
				for {
					h.put(head)
					if _, err := flow.data.Write(head); err != nil {
						return
					}
					if name != "old" {
						h.sequence++
					}
				}
			}()
			n := allocated(func() {
				_, _, err := s.Read(t.Context(), make([]byte, 8), 50*time.Millisecond)
				// Datagrams may be lost.
				if err != soapy.ErrTimeout && !(err == soapy.ErrOverflow && name != "old") {
					t.Errorf("%s: %v", name, err)
				}
			})
			if n > 1<<20 {
				t.Errorf("%s: %d bytes were allocated", name, n)
			}
			ok(t, s.Close(), b.Close())
			flow.close()
			<-ended
		}
	})
}

// What a URI says of a server is looked at before anything is sent.
func TestURIs(t *testing.T) {
	for name, want := range map[string]string{
		"host":                    "host:55132",
		"host:1":                  "host:1",
		"[::1]":                   "[::1]:55132",
		"[fe80::1%25eth0]:7":      "[fe80::1%eth0]:7",
		"10.0.0.1:65535?mtu=9000": "10.0.0.1:65535",
		"h?x=y&stream=udp":        "h:55132",
		"":                        "",
		"::1":                     "",
		"a:b:1":                   "",
		"h:0":                     "",
		"h:65536":                 "",
		"h:x":                     "",
		"[::1":                    "",
		":5":                      "",
		"h h":                     "",
		"h?stream=sctp":           "",
		"h?mtu=575":               "",
		"h?stream=udp&mtu=4145":   "",
		"h?stream=udp&mtu=4144":   "h:55132",
		"h?mtu=65537":             "",
		"h?mtu=x":                 "",
		"h?window=65535":          "",
		"h?window=67108865":       "",
		"h?timeout_ms=0":          "",
		"h?timeout_ms=600001":     "",
	} {
		u, err := radio.ParseURI("soapy-remote:" + name)
		if err != nil {
			t.Fatal(err)
		}
		o, err := parseOptions(u)
		if o.address != want && want != "" || (err == nil) != (want != "") {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "allowed is") || !strings.HasPrefix(err.Error(), fmt.Sprintf("device %q has the ", u))) {
			t.Error(err)
		}
	}
}
