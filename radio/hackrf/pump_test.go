package hackrf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
	"ringwave/radio/usb"
)

// scripted is a transport that notes what is done to it, and whose output does as it is told.
type scripted struct {
	write func(p []byte) error

	mu    sync.Mutex
	steps []string
}

func (s *scripted) note(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
}

// noted returns what was done since the last call.
func (s *scripted) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	steps := s.steps
	s.steps = nil
	return steps
}

func (s *scripted) Control(r usb.Setup, data []byte, _ time.Duration) (int, error) {
	if r.Request == setMode.number {
		s.note(fmt.Sprint("mode ", r.Value))
	}
	for i := range data { // gains are accepted
		if r.RequestType == usb.VendorIn {
			data[i] = 1
		}
	}
	return len(data), nil
}

func (s *scripted) OpenIn(usb.InConfig) (usb.InStream, error) { return nil, errors.ErrUnsupported }

func (s *scripted) OpenOut(usb.OutConfig) (usb.OutStream, error) { return s, nil }

func (s *scripted) Close() error {
	s.note("close")
	return nil
}

func (s *scripted) Write(_ context.Context, p []byte) error { return s.write(p) }

// device returns a board that is reached through s, with no deadline.
func (s *scripted) device(t *testing.T) *Device {
	u, err := radio.ParseURI("hackrf:?poll_ms=60000&deadline_ms=0")
	if err != nil {
		t.Fatal(err)
	}
	opts, err := parseOptions(u)
	if err != nil {
		t.Fatal(err)
	}
	return newDevice(s, usb.Listed{Identity: usb.Identity{Release: 0x0106}}, opts, &Opener{session: &life.Life{}})
}

func (s *scripted) Taken() int64 { return 0 }

func (s *scripted) Finish(context.Context) error { return nil }

// A panic in the goroutine that feeds the board leaves the carrier off behind it,
// and is not hidden.
func TestPanicInPump(t *testing.T) {
	s := &scripted{write: func([]byte) error { panic("a bug") }}
	d := s.device(t)
	tx := newSender(d)
	tx.out, tx.transfers, tx.state = s, s, radio.Running
	d.stream = tx
	// Not in a goroutine of its own, where it would end the test.
	func() {
		defer func() {
			if recover() != "a bug" {
				t.Error("the panic was hidden")
			}
		}()
		tx.feed(func() bool { return true }, func() bool { return true })
	}()
	if steps := s.noted(); !slices.Equal(steps, []string{"mode 0"}) {
		t.Errorf("%q after a panic", steps)
	}
	if err := tx.Close(); err != nil {
		t.Error(err)
	}
}

// Both directions begin and end in one order: transfers before the board is on, and the
// board off before they end. Who waits learns why a stream has failed, and a carrier is off
// by then.
func TestPumpOrder(t *testing.T) {
	cause := errors.New("a cause")
	for _, c := range []struct {
		way     way
		started []string
		failed  []string
	}{
		{inwards, []string{"may", "open", "mode 1", "may"}, nil},
		{outwards, []string{"may", "open", "mode 2", "may"}, []string{"mode 0"}},
	} {
		for _, fails := range []bool{false, true} {
			s := &scripted{}
			p := &pump{}
			p.init(s.device(t), c.way, func() error { return nil })
			may := func() error { s.note("may"); return nil }
			open := func() (io.Closer, error) { s.note("open"); return s, nil }
			if err := p.start(t.Context(), may, open); err != nil {
				t.Fatal(err)
			}
			if steps := s.noted(); !slices.Equal(steps, c.started) {
				t.Errorf("%s: started by %q, want %q", c.way.doing, steps, c.started)
			}
			ended := []string{"drain", "mode 0", "close"}
			if fails {
				p.waitAndFail(t, cause)
				steps := s.noted()
				if !slices.Equal(steps, c.failed) {
					t.Errorf("%s: failed by %q, want %q", c.way.doing, steps, c.failed)
				}
				ended = slices.DeleteFunc(ended, func(step string) bool { return slices.Contains(steps, step) })
			}
			err := p.close(func(failed bool) error {
				s.note("drain")
				if failed != fails {
					t.Errorf("%s: drained with failed %v", c.way.doing, failed)
				}
				return nil
			})
			if steps := s.noted(); err != nil || !slices.Equal(steps, ended) {
				t.Errorf("%s: ended by %q, %v; want %q", c.way.doing, steps, err, ended)
			}
		}
	}
}

// Behind Close nothing asks the board any more, not even who asked it before.
func TestPumpEndsItsWatch(t *testing.T) {
	s := &scripted{}
	d := s.device(t)
	d.opts.poll = time.Millisecond
	p := &pump{}
	asks := make(chan struct{})
	var asked atomic.Bool
	p.init(d, inwards, func() error {
		close(asks)
		<-p.cut.Done()
		for range 1000 {
			runtime.Gosched()
		}
		asked.Store(true)
		return radio.ErrClosed
	})
	if err := p.start(t.Context(), func() error { return nil }, func() (io.Closer, error) { return s, nil }); err != nil {
		t.Fatal(err)
	}
	<-asks
	if err := p.close(func(bool) error { return nil }); err != nil {
		t.Error(err)
	}
	if !asked.Load() {
		t.Error("Close has left somebody behind who asks the board")
	}
}

// waitAndFail fails a pump that waits for a board which never moves anything.
func (p *pump) waitAndFail(t *testing.T, cause error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waits, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- p.move(ctx, func(wait context.Context) error {
			close(waits)
			<-wait.Done()
			return context.Cause(wait)
		})
	}()
	<-waits
	if err := p.fail(cause); !errors.Is(err, cause) {
		t.Errorf("%s: failed with %v", p.doing, err)
	}
	if err := <-ended; !errors.Is(err, cause) {
		t.Errorf("%s: a wait ended with %v", p.doing, err)
	}
}

// Each rate is told as the fraction that libhackrf tells it as: with the smallest
// divider that makes it whole.
func TestFraction(t *testing.T) {
	for _, c := range []struct {
		rate               radio.Hertz
		frequency, divider uint32
	}{
		{20e6, 20e6, 1}, {2e6, 2e6, 1}, {10e6 / 3.0, 10e6, 3}, {12345678.5, 24691357, 2},
		{20e6 / 31.0 * 4, 80e6, 31}, {3e6 + 1.0/64, 3e6, 1},
	} {
		if f, d := fraction(c.rate); f != c.frequency || d != c.divider {
			t.Errorf("%v: %d/%d, want %d/%d", float64(c.rate), f, d, c.frequency, c.divider)
		}
	}
}

// Payloads that were seen on the wire.
func TestPayloads(t *testing.T) {
	if got, want := encodeFrequency(433.92e6), []byte{0xb1, 1, 0, 0, 0xc0, 9, 0x0e, 0}; !slices.Equal(got, want) {
		t.Errorf("%x", got)
	}
	if got, want := encodeRate(fraction(20e6)), []byte{0, 0x2d, 0x31, 1, 1, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("%x", got)
	}
	if v, i := wide(filterFor(20e6)); v != 0xe1c0 || i != 0x00e4 {
		t.Errorf("%04x %04x", v, i)
	}
	if got := encodeExplicit(Explicit{2.5e9, 1e9, HighPass}); len(got) != 24 || got[16] != 2 || got[17] != 0 {
		t.Errorf("%x", got)
	}
}

// Whatever a URI says: a clear error, or options within their limits.
func FuzzOptions(f *testing.F) {
	f.Add("hackrf:0a1b?freq_hz=1e9&lna=16&feed=strict&transfer=16384&hold=on")
	f.Add("hackrf:?poll_ms=-1&rate_hz=NaN&txvga=1e400&at=")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := radio.ParseURI(s)
		if err != nil {
			return
		}
		o, err := parseOptions(u)
		if err != nil {
			return
		}
		if !(o.rate >= rates.Min && o.rate <= rates.Max && o.tuning >= frequencies.Min && o.tuning <= frequencies.Max) ||
			o.transferBytes(o.rate) < 512 || o.queue < 1 || o.ring < 1 || o.poll <= 0 || o.control <= 0 || o.deadline < 0 || o.limit < 0 {
			t.Fatalf("%q gives %+v", s, o)
		}
	})
}
