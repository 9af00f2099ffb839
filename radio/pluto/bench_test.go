package pluto_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/pluto"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/iiod"
)

func ok(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bare is an end of a medium without its settings: an oscillator that is tuned
// turns no phase, and any sample rate will do.
type bare struct{ radio.Device }

func (b bare) OpenReceiver(ctx context.Context) (radio.Receiver, error) {
	return b.Device.(radio.ReceiveOpener).OpenReceiver(ctx)
}

func (b bare) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	return b.Device.(radio.TransmitOpener).OpenTransmitter(ctx)
}

// bench is an emulated board whose transmitter is joined to its receiver.
type bench struct {
	server  *iiod.Server
	address string

	mu    sync.Mutex
	lines []string // "connection command"
}

// newBench starts a board on a medium; without gains samples come back as they were
// sent at 0 dB both ways.
func newBench(t *testing.T, medium loopback.Config, change func(*iiod.Config)) *bench {
	t.Helper()
	if medium.Rate == 0 {
		medium.Rate = 4e6
	}
	if medium.Devices == nil {
		medium.Devices = []loopback.Device{{Gain: 1}}
	}
	m, err := loopback.New(medium)
	ok(t, err)
	rx, err := m.Receiver(0)
	ok(t, err)
	tx, err := m.Transmitter(0)
	ok(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	b := &bench{address: ln.Addr().String()}
	cfg := iiod.Config{
		Receive: bare{rx}, Transmit: bare{tx}, Serial: "104473541196000f1b00010102030405",
		Log: func(connection int, line string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.lines = append(b.lines, fmt.Sprintf("%d %s", connection, line))
		},
	}
	if change != nil {
		change(&cfg)
	}
	b.server, err = iiod.Serve(ln, cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, b.server.Close(), m.Close()) })
	return b
}

// take returns the commands since the last call, but for the questions for losses.
func (b *bench) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var kept []string
	for _, l := range b.lines {
		if !strings.Contains(l, "direct_reg_access") && !strings.Contains(l, "0x80000088") {
			kept = append(kept, l)
		}
	}
	b.lines = nil
	return kept
}

// attribute returns a value of the board.
func (b *bench) attribute(t *testing.T, device, channel, name string) string {
	t.Helper()
	v, err := b.server.Attribute(device, channel, name)
	ok(t, err)
	return v
}

// isOff fails unless nothing can leave the board.
func (b *bench) isOff(t *testing.T) {
	t.Helper()
	if v := b.attribute(t, "ad9361-phy", "voltage0", "hardwaregain"); v != "-89.750000 dB" {
		t.Errorf("the attenuator is at %s", v)
	}
	if v := b.attribute(t, "ad9361-phy", "TX_LO", "powerdown"); v != "1" {
		t.Error("the oscillator is on")
	}
	for _, tone := range []string{"TX1_I_F1", "TX1_I_F2", "TX1_Q_F1", "TX1_Q_F2"} {
		if v := b.attribute(t, "cf-ad9361-dds-core-lpc", tone, "raw"); v != "0" {
			t.Errorf("the tone %s is on", tone)
		}
	}
}

// silent reports whether nothing can leave the board, as isOff wants it.
func (b *bench) silent(t *testing.T) bool {
	t.Helper()
	return b.attribute(t, "ad9361-phy", "voltage0", "hardwaregain") == "-89.750000 dB" && b.attribute(t, "ad9361-phy", "TX_LO", "powerdown") == "1"
}

// everything permits all that a board can do.
func everything(t *testing.T) radio.TransmitPermit {
	t.Helper()
	p, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 100e6, Max: 6e9}, 1e6, 0)
	ok(t, err)
	return p
}

// open opens a board, to be closed at the end of the test.
func open(t *testing.T, ctx context.Context, permit radio.TransmitPermit, address, params string) *pluto.Device {
	t.Helper()
	u, err := radio.ParseURI("pluto:" + address + "?" + params)
	ok(t, err)
	d, err := pluto.NewOpener(ctx, permit, virtual.NewGuard()).Open(t.Context(), u)
	ok(t, err)
	t.Cleanup(func() { ok(t, d.Close()) })
	return d.(*pluto.Device)
}

// ideal are the settings at which samples come back as they were sent.
const ideal = "rate_hz=4e6&freq_hz=1e9&rx_gain=0&tx_gain=0"

func receiver(t *testing.T, d radio.Device) radio.Receiver {
	t.Helper()
	r, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	ok(t, err)
	ok(t, r.Start(t.Context()))
	return r
}

func transmitter(t *testing.T, d radio.Device) radio.Transmitter {
	t.Helper()
	x, err := d.(radio.TransmitOpener).OpenTransmitter(t.Context())
	ok(t, err)
	ok(t, x.Start(t.Context()))
	return x
}

// noise returns samples on the converters' grid.
func noise(seed uint64, n int) []complex64 {
	rnd := rand.New(rand.NewPCG(seed, 1))
	x := make([]complex64, n)
	code := func() float32 { return float32(rnd.IntN(2*2047+1)-2047) / 2047 }
	for k := range x {
		x[k] = complex(code(), code())
	}
	return x
}

// handles counts the open files of the process; -1 where they cannot be counted.
func handles() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(all)
}

// tool returns the path of a program of Debian's libiio-utils or iiod.
func tool(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"", "/usr/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
		t.Fatalf("%s is missing: install the packages libiio-utils and iiod", name)
	}
	t.Skipf("skipped: %s is missing, install the packages libiio-utils and iiod", name)
	return ""
}

// realIIOD puts Debian's iiod in front of the bench and gives its address.
func (b *bench) realIIOD(t *testing.T) string {
	t.Helper()
	path := tool(t, "iiod")
	// A port that was free a moment ago; iiod cannot be given a socket.
	ln, err := net.Listen("tcp", ":0")
	ok(t, err)
	port := ln.Addr().(*net.TCPAddr).Port
	ok(t, ln.Close())
	cmd := exec.Command(path, "-u", "ip:"+b.address, "-p", fmt.Sprint(port))
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			ok(t, conn.Close())
			return address
		}
		if time.Now().After(deadline) {
			t.Fatalf("iiod does not listen: %v", err)
		}
		runtime.Gosched()
	}
}
