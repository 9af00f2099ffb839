//go:build linux

package rtltcp_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

// missing skips, or fails where a bench is required.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
		t.Fatal(what)
	}
	t.Skip(what + " (RINGWAVE_REQUIRE_BENCH=1 makes this a failure)")
}

// served runs Debian's rtl_tcp in front of a board and gives its address.
func served(t *testing.T, b virtual.Radio) string {
	t.Helper()
	bn, err := virtual.NewBench(virtual.Config{Boards: []virtual.Place{{Radio: b}}, Clock: loopback.WallClock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bn.Close() })
	bus, err := usbfs.NewBus()
	if errors.Is(err, usbfs.ErrNoPreload) {
		missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	if _, err := bus.Plug(b); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("rtl_tcp")
	if err != nil {
		missing(t, "rtl_tcp is not installed (on Debian: apt-get install rtl-sdr)")
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

// Debian's rtl_tcp, unmodified, in front of an emulated board: the board takes the
// settings, and its counter comes without a byte missing.
func TestRTLTCP(t *testing.T) {
	for _, tuner := range []virtual.RTLTuner{virtual.R820T, virtual.R828D} {
		b, err := virtual.NewRTL2832U(virtual.RTL2832UConfig{Tuner: tuner, BiasTee: true})
		if err != nil {
			t.Fatal(err)
		}
		address := served(t, b)
		d, err := tryOpen(t.Context(), &patient{}, "rtl_tcp:"+address+"?test=on&settle_ms=100")
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
		rx := started(t, d)
		// The server is in no hurry with commands.
		taken := func(s virtual.RTLState) bool {
			return math.Abs(float64(s.Frequency-f)) < 1000 && s.Rate == rate && math.Abs(float64(s.Gain-19.7)) < 1e-9 && !s.BiasTee
		}
		s := b.State()
		for blocks := 0; !taken(s) && blocks < 2000; blocks++ {
			read(t, rx, 8192)
			s = b.State()
		}
		if !taken(s) {
			t.Fatalf("%+v", s)
		}
		const n = 1_000_000
		x, meta := read(t, rx, n)
		next := real(x[0])*128 + 127.5
		for k, got := range x {
			for _, v := range []float32{real(got), imag(got)} {
				if v*128+127.5 != next && len(meta.Gaps) == 0 && b.State().Lost == s.Lost {
					t.Fatalf("sample %d is %v", k, got)
				}
				next = float32(byte(v*128+127.5) + 1)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
