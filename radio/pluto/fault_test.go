package pluto_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/pluto"
	"ringwave/radio/radiotest"
	"ringwave/radio/virtual"
)

// fault is what a wire does to what the board sends.
type fault int

const (
	cutOff  fault = iota // every connection ends; others can be made
	gone                 // every connection ends and none can be made
	silent               // nothing more comes, of what was sent before a part
	garbled              // a byte is another
	faults
)

// wire is a network between driver and board with one fault, after a number of
// bytes from the board.
type wire struct {
	fault fault
	to    string
	ln    net.Listener
	wg    sync.WaitGroup

	mu     sync.Mutex
	left   int // bytes until the fault
	struck bool
	open   map[net.Conn]bool
}

func newWire(t *testing.T, to string, f fault, after int) *wire {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	w := &wire{fault: f, to: to, ln: ln, left: after, open: map[net.Conn]bool{}}
	w.wg.Add(1)
	go func() {
		defer w.wg.Done()
		w.accept()
	}()
	return w
}

func (w *wire) accept() {
	for {
		near, err := w.ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		w.open[near], w.open[far] = true, true
		w.mu.Unlock()
		w.wg.Add(2)
		go func() {
			defer w.wg.Done()
			_, _ = io.Copy(far, near)
			_ = far.Close()
		}()
		go func() {
			defer w.wg.Done()
			w.back(near, far)
			_ = near.Close()
		}()
	}
}

// back carries what the board sends.
func (w *wire) back(near, far net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := far.Read(b)
		if n > 0 {
			if _, err := near.Write(w.strike(b[:n])); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// strike returns what is left of b.
func (w *wire) strike(b []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.struck {
		if w.fault == silent {
			return nil
		}
		return b
	}
	if w.left -= len(b); w.left > 0 {
		return b
	}
	w.struck = true
	k := len(b) + w.left
	switch w.fault {
	case garbled:
		b[max(k-1, 0)] ^= 0x55
		return b
	case cutOff, gone:
		if w.fault == gone {
			_ = w.ln.Close()
		}
		for c := range w.open {
			_ = c.Close()
		}
	}
	return b[:k]
}

func (w *wire) hasStruck() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.struck
}

func (w *wire) close() {
	_ = w.ln.Close()
	w.mu.Lock()
	for c := range w.open {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// known reports whether an error is of a kind that callers can tell.
func known(err error) bool {
	var number pluto.Errno
	if errors.As(err, &number) {
		return true
	}
	for _, kind := range []error{
		pluto.ErrTimeout, pluto.ErrDisconnected, pluto.ErrUnreachable, pluto.ErrProtocol, pluto.ErrOtherBoard, pluto.ErrCarrier,
		radio.ErrClosed, context.Canceled,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Whatever the network does, and whenever: every call comes back, with an error that
// says what it was; nothing goes on running; and the carrier is off, or its owner is
// told that it may not be.
func TestFaults(t *testing.T) {
	schedules := 40
	if testing.Short() {
		schedules = 12
	}
	if os.Getenv("RINGWAVE_LONG") == "1" {
		schedules = 400
	}
	for seed := range schedules {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { faultRun(t, uint64(seed)) })
	}
}

func faultRun(t *testing.T, seed uint64) {
	radiotest.Goroutines(t)
	rnd := rand.New(rand.NewPCG(seed, 99))
	b := newBench(t, loopback.Config{Window: 1 << 14}, nil)
	// Descriptions have 7,000 bytes and are the likelier part to be hit.
	after := 1 + rnd.IntN(9_000)
	if rnd.IntN(2) == 0 {
		after = 9_000 + rnd.IntN(500_000)
	}
	f := fault(seed) % faults
	w := newWire(t, b.address, f, after)
	defer w.close()
	what := fmt.Sprintf("seed %d, fault %d after %d bytes", seed, f, after)
	check := func(err error) bool {
		t.Helper()
		// A byte of a description can become anything, in words of its own.
		if err != nil && !known(err) && !(f == garbled && w.hasStruck()) {
			t.Errorf("%s: %v", what, err)
		}
		return err == nil
	}
	over := time.AfterFunc(time.Minute, func() { panic(what + ": hangs") })
	defer over.Stop()

	u, err := radio.ParseURI("pluto:" + w.ln.Addr().String() + "?" + ideal + "&block=1024&hold=on&deadline_ms=150")
	ok(t, err)
	dev, err := pluto.NewOpener(t.Context(), everything(t), virtual.NewGuard()).Open(t.Context(), u)
	if !check(err) {
		return
	}
	d := dev.(*pluto.Device)
	received := receiveAll(t, d, check)
	tx := sendAll(t, d, rnd, check)
	var off error
	if tx != nil {
		off = tx.Close()
		check(off)
	}
	check(d.Close())
	<-received
	// What a garbled description does not name cannot be switched.
	if tx != nil && f != garbled && !errors.Is(off, pluto.ErrCarrier) {
		b.isOff(t)
	}
	if f == cutOff && errors.Is(off, pluto.ErrCarrier) {
		t.Errorf("%s: the board could be reached: %v", what, off)
	}
}

// receiveAll reads for as long as check lets it, beside the caller; the channel is closed
// behind the last read.
func receiveAll(t *testing.T, d *pluto.Device, check func(error) bool) <-chan struct{} {
	t.Helper()
	received := make(chan struct{})
	rx, err := d.OpenReceiver(t.Context())
	if !check(err) || !check(rx.Start(t.Context())) {
		close(received)
		return received
	}
	go func() {
		defer close(received)
		x := make([]complex64, 1024)
		for {
			if _, _, err := rx.Read(t.Context(), x); !check(err) {
				return
			}
		}
	}()
	return received
}

// sendAll writes a while with retunes, for as long as check lets it; the transmitter is nil
// where none could be opened.
func sendAll(t *testing.T, d *pluto.Device, rnd *rand.Rand, check func(error) bool) radio.Transmitter {
	t.Helper()
	tx, err := d.OpenTransmitter(t.Context())
	if !check(err) || !check(tx.Start(t.Context())) {
		return tx
	}
	for range 100 {
		_, err := tx.Write(t.Context(), make([]complex64, 1000), radio.TxMeta{})
		if !check(err) {
			break
		}
		if rnd.IntN(10) == 0 {
			_, err := d.SetFrequency(t.Context(), radio.Transmit, 1e9+radio.Hertz(rnd.IntN(1e6)))
			check(err)
		}
	}
	return tx
}

// A context ends what waits, and nothing else.
func TestContext(t *testing.T) {
	b := newBench(t, loopback.Config{}, nil)
	d := open(t, t.Context(), everything(t), b.address, ideal+"&feed=strict")
	rx := receiver(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, _, err := rx.Read(ctx, make([]complex64, 10)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 20 { // the connection may be interrupted anywhere
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := d.SetFrequency(ctx, radio.Receive, 1e9); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if _, err := d.SetFrequency(t.Context(), radio.Receive, 1e9); err != nil {
		t.Error(err)
	}
	// Close ends a read that waits.
	time.AfterFunc(time.Millisecond, func() { _ = rx.Close() })
	if _, _, err := rx.Read(t.Context(), make([]complex64, 10)); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// A host that is there and says nothing, or nothing that makes sense.
func TestNoBoard(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   error
	}{
		"silent":  {"", pluto.ErrTimeout},
		"web":     {"HTTP/1.1 400 Bad Request\r\n\r\n", pluto.ErrProtocol},
		"refusal": {"-22\n", pluto.Errno(22)},
		"half":    {"70", pluto.ErrTimeout},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		ok(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, c.answer)
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}()
		u, err := radio.ParseURI("pluto:" + ln.Addr().String() + "?deadline_ms=100")
		ok(t, err)
		if _, err := pluto.NewOpener(t.Context(), radio.TransmitPermit{}, nil).Open(t.Context(), u); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		ok(t, ln.Close())
		<-done
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ok(t, ln.Close())
	u, err := radio.ParseURI("pluto:" + ln.Addr().String())
	ok(t, err)
	if _, err := pluto.NewOpener(t.Context(), radio.TransmitPermit{}, nil).Open(t.Context(), u); !errors.Is(err, pluto.ErrUnreachable) {
		t.Error(err)
	}
}
