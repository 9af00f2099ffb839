package hackrf

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/usb"
)

// scripted is a transport that notes requests and whose output does as it is told.
type scripted struct {
	write func(p []byte) error

	mu    sync.Mutex
	modes []uint16
}

func (s *scripted) Control(r usb.Setup, data []byte, _ time.Duration) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Request == setMode.number {
		s.modes = append(s.modes, r.Value)
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

func (s *scripted) Close() error { return nil }

func (s *scripted) Write(_ context.Context, p []byte) error { return s.write(p) }

func (s *scripted) Taken() int64 { return 0 }

func (s *scripted) Finish(context.Context) error { return nil }

// A panic in the goroutine that feeds the board leaves the carrier off behind it,
// and is not hidden.
func TestPanicInPump(t *testing.T) {
	u, err := radio.ParseURI("hackrf:?poll_ms=60000")
	if err != nil {
		t.Fatal(err)
	}
	opts, err := parseOptions(u)
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{write: func([]byte) error { panic("a bug") }}
	d := newDevice(s, usb.Listed{Identity: usb.Identity{Release: 0x0106}}, opts, &Opener{session: context.Background()})
	tx := newSender(d)
	tx.out, tx.state = s, radio.Running
	d.stream = tx
	// Not in a goroutine of its own, where it would end the test.
	func() {
		defer func() {
			if recover() != "a bug" {
				t.Error("the panic was hidden")
			}
		}()
		tx.pump(func() bool { return true }, func() bool { return true })
	}()
	if !slices.Equal(s.modes, []uint16{modeOff}) {
		t.Errorf("modes %v after a panic", s.modes)
	}
	if err := tx.Close(); err != nil {
		t.Error(err)
	}
}

// What the queue gives is what was put, at its index, however both are cut.
func TestQueue(t *testing.T) {
	for _, strict := range []bool{false, true} {
		q := newQueue(minWindow, strict)
		model := map[radio.SampleIndex]byte{}
		put := func(at radio.SampleIndex, n int) {
			src := make([]complex64, n)
			for k := range src {
				src[k] = complex(float32(k%100+1)/fullScale, 0)
			}
			if end, _, late := q.put(src, at, true); !late {
				for k := range n {
					model[end-radio.SampleIndex(n-k)] = byte(k%100 + 1)
				}
			}
		}
		next := radio.SampleIndex(0)
		take := func(n int) {
			dst := make([]byte, sampleBytes*n)
			got := q.take(dst)
			for k := range got.bytes / sampleBytes {
				if dst[sampleBytes*k] != model[next] || dst[sampleBytes*k+1] != 0 {
					t.Fatalf("strict %v: index %d is %d, want %d", strict, next, dst[sampleBytes*k], model[next])
				}
				delete(model, next)
				next++
			}
		}
		for k := range 4000 {
			switch free, _ := q.free(); {
			case k%7 == 0:
				put(next+radio.SampleIndex(k%977), min(free, k%1500))
			case k%3 == 0:
				put(-1, min(free, 700))
			case k%11 == 0:
				q.idle(next + 500)
			default:
				take(packet * (1 + k%9))
			}
		}
		q.end(100)
		for left := true; left; {
			before := next
			take(8 * packet)
			left = next > before
		}
		if len(model) > 0 || next%block != 0 {
			t.Errorf("strict %v: %d samples left behind, ended at %d", strict, len(model), next)
		}
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
			o.transfer < 512 || o.queue < 1 || o.ring < 1 || o.poll <= 0 || o.control <= 0 || o.deadline < 0 || o.limit < 0 {
			t.Fatalf("%q gives %+v", s, o)
		}
	})
}
