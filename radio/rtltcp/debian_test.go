//go:build linux

package rtltcp_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// served runs Debian's rtl_tcp in front of a board and gives its address.
func served(t *testing.T, b virtual.Radio) string {
	t.Helper()
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: b}}, Clock: loopback.WallClock()})
	bus := radiotest.Bus(t, b)
	path, err := exec.LookPath("rtl_tcp")
	if err != nil {
		radiotest.Missing(t, "rtl_tcp is not installed (on Debian: apt-get install rtl-sdr)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	port := freePort(t)
	cmd := exec.CommandContext(ctx, path, "-p", port)
	env, err := bus.Env()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		t.Log(said.String())
	})
	return "127.0.0.1:" + port
}

// patient is a Dialer for a server that may not listen yet: what it prints when it
// does stays in its buffers.
type patient struct{ net.Dialer }

func (p *patient) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := p.Dialer.DialContext(ctx, network, address)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		<-again.C
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// lagging is a Dialer of connections on which so many bytes are always on their way.
type lagging struct {
	patient
	by int
}

func (l *lagging) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.patient.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &lagged{Conn: conn, by: l.by}, nil
}

// lagged is a connection that holds bytes back until by more have come.
type lagged struct {
	net.Conn
	by   int
	held []byte
}

func (l *lagged) Read(p []byte) (int, error) {
	for len(l.held) <= l.by {
		l.held = slices.Grow(l.held, 1<<16)
		n, err := l.Conn.Read(l.held[len(l.held):cap(l.held)])
		l.held = l.held[:len(l.held)+n]
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, l.held[:len(l.held)-l.by])
	l.held = l.held[:copy(l.held, l.held[n:])]
	return n, nil
}

// counting is a board that remembers what it had lost when it began to count.
type counting struct {
	*virtual.RTL2832U
	lost atomic.Int64
}

func (b *counting) Control(ctx context.Context, s virtual.Setup, data []byte) (int, error) {
	lost := b.State().Lost
	n, err := b.RTL2832U.Control(ctx, s, data)
	// Register 19 of the demodulator's page 0: 03 makes samples a counter.
	if s.RequestType == usb.VendorOut && s.Index == 0x10 && s.Value == 0x1920 && bytes.Equal(data, []byte{0x03}) {
		b.lost.Store(int64(lost))
	}
	return n, err
}

// Debian's rtl_tcp, unmodified, in front of an emulated board: the board takes the
// settings, and its counter comes without a byte missing. Samples of before the
// settings come first, however long they are on their way: nobody marks their end but
// the counter itself, as the antenna of the board hears nothing.
func TestRTLTCP(t *testing.T) {
	for _, c := range []struct {
		tuner virtual.RTLTuner
		lag   int // bytes on their way besides those in the server's transfers
	}{{virtual.R820T, 0}, {virtual.R828D, 0}, {virtual.R820T, 2 << 20}} {
		t.Run(fmt.Sprintf("tuner %d, %d bytes behind", c.tuner, c.lag), func(t *testing.T) { countsBehindServer(t, c.tuner, c.lag) })
	}
}

func countsBehindServer(t *testing.T, tuner virtual.RTLTuner, lag int) {
	board, err := virtual.NewRTL2832U(virtual.RTL2832UConfig{Tuner: tuner, BiasTee: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &counting{RTL2832U: board}
	d, err := tryOpen(t.Context(), &lagging{by: lag}, "rtl_tcp:"+served(t, b)+"?test=on")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	f, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 868.3e6)
	if err != nil {
		t.Fatal(err)
	}
	rate, err := d.(radio.RateControl).SetSampleRate(t.Context(), radio.Receive, 1.8e6)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.(radio.GainControl).SetGain(t.Context(), radio.Receive, "TUNER", 20); err != nil {
		t.Fatal(err)
	}
	rx := radiotest.Started(t, d)
	// The server is in no hurry with commands.
	taken := func() bool {
		s := b.State()
		return math.Abs(float64(s.Frequency-f)) < 1000 && s.Rate == rate && math.Abs(float64(s.Gain-19.7)) < 1e-9 && !s.BiasTee
	}
	const n, most = 1_000_000, 20_000_000
	read := counter{t: t}
	for read.samples < n || !taken() {
		if read.silent+read.samples > most {
			t.Fatalf("after %d samples, %d of them of the counter, the board is at %+v", read.silent+read.samples, read.samples, b.State())
		}
		read.take(rx)
	}
	if lost := int64(b.State().Lost) - b.lost.Load(); read.missing > 2*lost {
		t.Errorf("%d bytes or more are missing, the board lost %d", read.missing, 2*lost)
	}
	t.Logf("%d samples of before the settings came first", read.silent)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// counter looks for the bytes of a board's counter in what is received: first comes
// silence, then nothing but the counter.
type counter struct {
	t               *testing.T
	silent, samples int
	next            byte
	// missing is the number of bytes, modulo 256 each time, that the receiver does not
	// know to be missing.
	missing int64
}

// take reads a block.
func (c *counter) take(rx radio.Receiver) {
	c.t.Helper()
	x, meta := radiotest.Read(c.t, rx, 8192)
	gaps := meta.Gaps
	for k, got := range x {
		for ; len(gaps) > 0 && gaps[0].At == k; gaps = gaps[1:] {
			c.next += byte(2 * gaps[0].Length)
		}
		i, q := byte(real(got)*128+127.5), byte(imag(got)*128+127.5)
		if c.samples == 0 && i == silence && q == silence {
			c.silent++
			continue
		}
		if c.samples == 0 {
			c.next = i
		}
		c.missing += int64(i-c.next) + int64(q-i-1)
		c.next = q + 1
		c.samples++
	}
}

// silence is the byte of an antenna that hears nothing.
const silence = 128
