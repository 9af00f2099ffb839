package usb_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"ringwave/radio/usb"
)

// source returns numbered transfers while it is let; then it ends with err.
type source struct {
	let    chan struct{} // one token a transfer
	next   byte
	err    error
	closed bool
}

func (s *source) Read(ctx context.Context, p []byte) (int, error) {
	select {
	case _, more := <-s.let:
		if !more {
			return 0, s.err
		}
	case <-ctx.Done():
		return 0, usb.FromContext(ctx)
	}
	for k := range p {
		p[k] = s.next
	}
	s.next++
	return len(p), nil
}

func (s *source) Close() error { s.closed = true; return nil }

const size = 512

func config(ring int, hold bool) usb.InConfig {
	return usb.InConfig{Endpoint: 0x81, Size: size, Count: 1, Ring: ring, Hold: hold}
}

// taken waits until the stream has taken all that it was let.
func taken(t *testing.T, s *source, left int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); len(s.let) > left; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d transfers were not taken", len(s.let))
		}
	}
}

func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// What a reader is too late for is counted, and the oldest data are kept.
func TestRingDrops(t *testing.T) {
	s := &source{let: make(chan struct{}, 100), err: usb.ErrUnplugged}
	in := usb.NewInStream(config(3, false), s)
	for range 20 {
		s.let <- struct{}{}
	}
	close(s.let)
	ctx := background(t)
	taken(t, s, 0)
	next, lost := 0, 0
	for {
		b, err := in.Next(ctx)
		if err != nil {
			if !errors.Is(err, usb.ErrUnplugged) {
				t.Error(err)
			}
			break
		}
		lost += int(b.Lost) / size
		next += int(b.Lost) / size
		if len(b.Data) != size || int(b.Data[0]) != next || int(b.Data[size-1]) != next {
			t.Fatalf("block %d, want %d", b.Data[0], next)
		}
		next++
	}
	if next < 4 || next > 20 {
		t.Errorf("%d blocks, %d lost", next, lost)
	}
	if _, err := in.Next(ctx); !errors.Is(err, usb.ErrUnplugged) {
		t.Error(err)
	}
	if err := in.Close(); err != nil || !s.closed {
		t.Error(err, s.closed)
	}
}

// A stream that holds loses nothing and takes no more than it has room for.
func TestRingHolds(t *testing.T) {
	s := &source{let: make(chan struct{}, 100), err: usb.ErrStall}
	in := usb.NewInStream(config(3, true), s)
	for range 50 {
		s.let <- struct{}{}
	}
	taken(t, s, 50-5) // three in the ring, one for the reader, one for the filler
	close(s.let)
	ctx := background(t)
	for k := range 50 {
		b, err := in.Next(ctx)
		if err != nil || b.Lost != 0 || int(b.Data[0]) != k {
			t.Fatalf("block %d: %v, %d lost, %v", k, b.Data[0], b.Lost, err)
		}
	}
	if _, err := in.Next(ctx); !errors.Is(err, usb.ErrStall) {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
}

// Contexts end waiting, Close ends the stream, whoever waits.
func TestRingEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	s := &source{let: make(chan struct{}, 100)}
	in := usb.NewInStream(config(3, false), s)
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	if _, err := in.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.let <- struct{}{}
	if b, err := in.Next(background(t)); err != nil || len(b.Data) != size {
		t.Error(err)
	}
	ended := make(chan error)
	go func() {
		_, err := in.Next(background(t))
		ended <- err
	}()
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, usb.ErrClosed) {
		t.Error(err)
	}
	if _, err := in.Next(background(t)); !errors.Is(err, usb.ErrClosed) {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("goroutines are left")
		}
	}
}

func TestConfigs(t *testing.T) {
	for _, err := range []error{
		usb.InConfig{Endpoint: 0x01, Size: 512, Count: 1, Ring: 1}.Check(),
		usb.InConfig{Endpoint: 0x81, Size: 500, Count: 1, Ring: 1}.Check(),
		usb.InConfig{Endpoint: 0x81, Size: 512, Count: 0, Ring: 1}.Check(),
		usb.InConfig{Endpoint: 0x81, Size: 512, Count: 1, Ring: 0}.Check(),
		usb.OutConfig{Endpoint: 0x82, Size: 512, Count: 1}.Check(),
		usb.OutConfig{Endpoint: 0x02, Size: 0, Count: 1}.Check(),
	} {
		if err == nil {
			t.Error("a wrong stream was allowed")
		}
	}
}
