package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
)

// protocols are the parameters of a stream over TCP and over UDP.
var protocols = []string{"?timeout_ms=5000", "?timeout_ms=5000&stream=udp"}

func both(t *testing.T, test func(t *testing.T, params string)) {
	for _, params := range protocols {
		t.Run(params, func(t *testing.T) {
			radiotest.Leaks(t)
			test(t, params)
		})
	}
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// got is what one Read gives.
type got struct {
	bytes []byte
	info  soapy.BlockInfo
	err   error
}

// Blocks come as they were sent, with their times and flags, in parts where there is no room
// for all; codes and what is missing come in between.
func TestRead(t *testing.T) {
	both(t, func(t *testing.T, params string) {
		f := newFake(t)
		b, s, flow := f.stream(params, radio.Receive, "CS16")
		defer flow.close()
		if flow.format != "CS16" || flow.args["own"] != "yes" || flow.args["remote:format"] != "CS16" {
			t.Errorf("made of %+v", flow)
		}
		if h, _ := flow.hear(t); h.sequence != 0 || h.elems < 1 {
			t.Errorf("at first the client says %+v", h)
		}
		ok(t, s.Activate(t.Context(), 0, 0))
		timed, at := soapy.HasTime, soapy.Time(1<<40)
		flow.send(t, frame{sequence: 0, elems: 5, flags: timed | soapy.EndBurst, time: at}, counted(20))
		flow.send(t, frame{sequence: 1, elems: 0}, nil)
		flow.send(t, frame{sequence: 2, elems: int32(soapy.ErrOverflow)}, nil)
		flow.send(t, frame{sequence: 3, elems: 1, flags: soapy.EndAbrupt}, counted(4))
		flow.send(t, frame{sequence: 3, elems: 1}, []byte("late"))
		flow.send(t, frame{sequence: 6, elems: 2, flags: timed, time: at + 1}, counted(8)) // two are lost
		flow.send(t, frame{sequence: 7, elems: int32(soapy.ErrTimeout)}, nil)
		flow.send(t, frame{sequence: 8, elems: int32(soapy.ErrCorruption)}, nil)
		for i, want := range []got{
			{counted(8), soapy.BlockInfo{Flags: timed | soapy.MoreFragments, At: at}, nil},
			{counted(16)[8:], soapy.BlockInfo{Flags: soapy.MoreFragments, At: at}, nil},
			{counted(20)[16:], soapy.BlockInfo{Flags: soapy.EndBurst, At: at}, nil},
			{nil, soapy.BlockInfo{}, soapy.ErrOverflow},
			{counted(4), soapy.BlockInfo{Flags: soapy.EndAbrupt}, nil},
			{nil, soapy.BlockInfo{}, soapy.ErrOverflow},
			{counted(8), soapy.BlockInfo{Flags: timed, At: at + 1}, nil},
			{nil, soapy.BlockInfo{}, soapy.ErrCorruption},
		} {
			dst := make([]byte, 11) // two samples, and what is none
			n, info, err := s.Read(t.Context(), dst, radiotest.Patience)
			if !bytes.Equal(dst[:n], want.bytes) || info != want.info || err != want.err {
				t.Fatalf("%d: %v, %+v, %v; want %+v", i, dst[:n], info, err, want)
			}
		}
		if n, _, err := s.Read(t.Context(), make([]byte, 3), radiotest.Patience); n != 0 || err != nil {
			t.Errorf("into no room: %d, %v", n, err)
		}
		if _, _, err := s.Read(t.Context(), make([]byte, 8), time.Millisecond); err != soapy.ErrTimeout {
			t.Errorf("without samples: %v", err)
		}
		ok(t, s.Close(), b.Close())
	})
}

// What is wrong before a board begins is that it has not begun; after that it is told.
func TestNotActiveYet(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake(t)
	_, s, flow := f.stream("", radio.Receive, "CS8")
	defer flow.close()
	ok(t, s.Activate(t.Context(), 0, 0))
	for i := range uint32(3) {
		flow.send(t, frame{sequence: i, elems: int32(soapy.ErrStream)}, nil)
	}
	flow.send(t, frame{sequence: 3, elems: 1}, counted(2))
	flow.send(t, frame{sequence: 4, elems: int32(soapy.ErrStream)}, nil)
	if n, _, err := s.Read(t.Context(), make([]byte, 2), radiotest.Patience); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, _, err := s.Read(t.Context(), make([]byte, 2), radiotest.Patience); err != soapy.ErrStream {
		t.Errorf("%v", err)
	}
}

// Over UDP the client says how far it has come, so that the server goes on; again where it
// hears nothing, as that may have been lost.
func TestAcknowledges(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake(t)
	_, s, flow := f.stream("?stream=udp&mtu=1000&window=65536", radio.Receive, "CS8")
	defer flow.close()
	first, _ := flow.hear(t)
	if first.sequence != 0 || first.elems < 8 || first.elems > 65 {
		t.Fatalf("%+v", first)
	}
	dst := make([]byte, 2)
	for i := range uint32(first.elems) / 8 {
		flow.send(t, frame{sequence: i, elems: 1}, dst)
		_, _, err := s.Read(t.Context(), dst, radiotest.Patience)
		ok(t, err)
	}
	if h, _ := flow.hear(t); h.sequence != uint32(first.elems)/8 || h.elems != first.elems {
		t.Errorf("%+v", h)
	}
	if _, _, err := s.Read(t.Context(), dst, time.Millisecond); err != soapy.ErrTimeout {
		t.Error(err)
	}
	if h, _ := flow.hear(t); h.sequence != uint32(first.elems)/8 || h.elems != 2*first.elems { // all may be lost
		t.Errorf("%+v", h)
	}
}

// Over UDP a block more goes when the server says nothing for long: what it would have said
// of may be lost.
func TestWritesOn(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake(t)
	_, s, flow := f.stream("?stream=udp", radio.Transmit, "CS8")
	defer flow.close()
	for _, want := range []error{soapy.ErrTimeout, nil, soapy.ErrTimeout, nil} {
		if _, err := s.Write(t.Context(), make([]byte, 2), soapy.BlockInfo{}, time.Millisecond); err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	for i := range uint32(2) {
		if h, _ := flow.hear(t); h.sequence != i {
			t.Errorf("%+v", h)
		}
	}
}

// Datagrams of others, and those that are not what they say, are not samples.
func TestForeignDatagrams(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake(t)
	_, s, flow := f.stream("?stream=udp", radio.Receive, "CS8")
	defer flow.close()
	_, _, other := f.stream("?stream=udp", radio.Receive, "CS8")
	defer other.close()
	to := flow.data.(*datagrams)
	other.data.(*datagrams).from = to.from
	other.send(t, frame{sequence: 0, elems: 1}, []byte("no"))
	for _, b := range [][]byte{nil, make([]byte, frameHead-1), make([]byte, frameHead+2)} {
		_, err := to.Write(b)
		ok(t, err)
	}
	flow.send(t, frame{sequence: 0, elems: 2}, []byte("no"))
	flow.send(t, frame{sequence: 0, elems: 1}, []byte("ye"))
	dst := make([]byte, 8)
	if n, _, err := s.Read(t.Context(), dst, radiotest.Patience); err != nil || string(dst[:n]) != "ye" {
		t.Errorf("%q, %v", dst[:n], err)
	}
}

// Samples are written only when the server has room, which it says, in blocks that it has
// room for.
func TestWrite(t *testing.T) {
	both(t, func(t *testing.T, params string) {
		f := newFake(t)
		b, s, flow := f.stream(params+"&mtu=1000", radio.Transmit, "CF32")
		defer flow.close()
		per := (1000 - 48 - 24) / 8
		if s.MTU() != per {
			t.Errorf("MTU %d, want %d", s.MTU(), per)
		}
		ok(t, s.Activate(t.Context(), soapy.HasTime, 5))
		src, ctx := counted(8*per+8+3), t.Context() // one block, one sample, and what is none
		write := func(want int, wantErr error, patience time.Duration) {
			t.Helper()
			if n, err := s.Write(ctx, src, soapy.BlockInfo{Flags: soapy.HasTime | soapy.EndBurst, At: 77}, patience); n != want || err != wantErr {
				t.Fatalf("%d, %v; want %d, %v", n, err, want, wantErr)
			}
			src = src[want:]
		}
		if !strings.Contains(params, "udp") {
			write(0, soapy.ErrTimeout, time.Millisecond)
		}
		flow.send(t, frame{sequence: 0, elems: 1}, nil)
		write(8*per, nil, radiotest.Patience)
		write(0, soapy.ErrTimeout, time.Millisecond)
		flow.send(t, frame{sequence: 1, elems: 1}, nil)
		write(8, nil, radiotest.Patience)
		want := frame{bytes: uint32(24 + 8*per), sequence: 0, elems: int32(per), flags: soapy.HasTime, time: 77}
		if h, x := flow.hear(t); h != want || !bytes.Equal(x, counted(8*per)) {
			t.Errorf("%+v, want %+v", h, want)
		}
		want = frame{bytes: 32, sequence: 1, elems: 1, flags: soapy.HasTime | soapy.EndBurst, time: 77}
		if h, x := flow.hear(t); h != want || !bytes.Equal(x, counted(8*per + 8)[8*per:]) {
			t.Errorf("%+v, want %+v", h, want)
		}
		if n, err := s.Write(ctx, counted(7), soapy.BlockInfo{}, radiotest.Patience); n != 0 || err != nil {
			t.Errorf("no whole sample: %d, %v", n, err)
		}
		ok(t, s.Close(), b.Close())
	})
}

// News come with their times; a stream that says that there are none is asked no more.
func TestStatus(t *testing.T) {
	both(t, func(t *testing.T, params string) {
		f := newFake(t)
		_, s, flow := f.stream(params, radio.Transmit, "CS8")
		defer flow.close()
		for _, c := range []struct {
			code int32
			want error
		}{
			{0, nil}, {int32(soapy.ErrUnderflow), soapy.ErrUnderflow}, {int32(soapy.ErrLate), soapy.ErrLate},
			{int32(soapy.ErrOverflow), soapy.ErrOverflow}, {-99, soapy.Code(-99)}, {int32(soapy.ErrNotSupported), soapy.ErrNotSupported},
		} {
			flow.tell(t, frame{sequence: 1, elems: c.code, flags: soapy.HasTime | soapy.EndBurst, time: 9})
			info, err := s.Status(t.Context(), radiotest.Patience)
			if err != c.want || info != (soapy.BlockInfo{Flags: soapy.HasTime | soapy.EndBurst, At: 9}) {
				t.Errorf("%d: %+v, %v", c.code, info, err)
			}
		}
		if _, err := s.Status(t.Context(), 0); err != soapy.ErrNotSupported {
			t.Errorf("%v", err)
		}
		flow.tell(t, frame{elems: int32(soapy.ErrUnderflow)}) // which the thread that writes says
		if _, err := s.Status(t.Context(), radiotest.Patience); err != soapy.ErrUnderflow {
			t.Errorf("%v", err)
		}
	})
}

// waits are what a program waits in, each until the end of a context.
func waits(ctx context.Context, rx, tx soapy.Stream) map[string]func() error {
	return map[string]func() error{
		"Read": func() error {
			_, _, err := rx.Read(ctx, make([]byte, 8), time.Hour)
			return err
		},
		"Write": func() error {
			_, err := tx.Write(ctx, make([]byte, 8), soapy.BlockInfo{}, time.Hour)
			return err
		},
		"Status": func() error {
			_, err := tx.Status(ctx, time.Hour)
			return err
		},
		"Status of a receiver": func() error {
			_, err := rx.Status(ctx, time.Hour)
			return err
		},
	}
}

// What waits ends when the server goes, the context ends, or the stream or the board is
// closed, and says which.
func TestWaitsEnd(t *testing.T) {
	stop := errors.New("stopped by the test")
	for _, how := range []string{"server", "context", "stream", "deactivated", "board"} {
		both(t, func(t *testing.T, params string) {
			f := newFake(t)
			b := f.make(params)
			at := soapy.Channel{Direction: radio.Receive}
			rx, err := b.SetupStream(t.Context(), at, "CS8", nil)
			tx, err2 := b.SetupStream(t.Context(), soapy.Channel{Direction: radio.Transmit}, "CS8", nil)
			ok(t, err, err2)
			for range 2 {
				flow := <-f.flows
				defer flow.close()
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended, n := make(chan error), 0
			for what, wait := range waits(ctx, rx, tx) {
				n++
				go func() {
					if err := wait(); err != nil {
						ended <- fmt.Errorf("%s: %w", what, err)
						return
					}
					ended <- nil
				}()
			}
			want := soapy.ErrStream
			wantErr := error(want)
			switch how {
			case "server":
				(<-f.conns).Close()
				wantErr = soapy.ErrGone
			case "context":
				cancel(stop)
				wantErr = stop
			case "stream":
				ok(t, rx.Close(), tx.Close())
			case "deactivated":
				ok(t, rx.Deactivate(t.Context(), 0, 0), tx.Deactivate(t.Context(), 0, 0))
			case "board":
				ok(t, b.Close())
				wantErr = errNone
			}
			for range n {
				err := <-ended
				if wantErr == errNone && (errors.Is(err, soapy.ErrGone) || errors.Is(err, soapy.ErrStream)) {
					continue
				}
				if !errors.Is(err, wantErr) {
					t.Errorf("%s: %v", how, err)
				}
			}
			// And so do those that begin now.
			if how == "context" {
				return
			}
			for what, wait := range waits(t.Context(), rx, tx) {
				if err := wait(); !errors.Is(err, soapy.ErrStream) && !errors.Is(err, soapy.ErrGone) {
					t.Errorf("%s, behind the end: %v", what, err)
				}
			}
			ok(t, rx.Close(), tx.Close(), b.Close())
		})
	}
}

// A stream that ends alone is the end, too.
func TestStreamEndedByServer(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake(t)
	_, rx, flow := f.stream("", radio.Receive, "CS8")
	_, tx, flow2 := f.stream("", radio.Transmit, "CS8")
	flow.close()
	flow2.close()
	for what, wait := range waits(t.Context(), rx, tx) {
		err := wait()
		f.oneSentence(err)
		if !errors.Is(err, soapy.ErrGone) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Deactivate ends the stream at the server, and Activate makes it anew.
func TestActivateAgain(t *testing.T) {
	both(t, func(t *testing.T, params string) {
		f := newFake(t)
		_, s, flow := f.stream(params, radio.Receive, "CS8")
		ok(t, s.Activate(t.Context(), 0, 0), s.Deactivate(t.Context(), 0, 0), s.Deactivate(t.Context(), 0, 0))
		flow.close()
		if _, _, err := s.Read(t.Context(), make([]byte, 2), 0); !errors.Is(err, soapy.ErrStream) {
			t.Error(err)
		}
		ok(t, s.Activate(t.Context(), 0, 0))
		flow = <-f.flows
		defer flow.close()
		flow.send(t, frame{sequence: 0, elems: 1}, []byte("xy"))
		_, _, err := s.Read(t.Context(), make([]byte, 2), radiotest.Patience)
		ok(t, err, s.Close())
		if err := s.Activate(t.Context(), 0, 0); !errors.Is(err, soapy.ErrStream) {
			t.Errorf("behind Close: %v", err)
		}
		once := []call{callSetupStream, callActivateStream, callDeactivateStream, callCloseStream, callSetupBypass, callDeactivateStream, callCloseStream}
		want := slices.Concat([]call{callMake}, once, once)
		var calls []call
		for len(f.calls) > 0 {
			calls = append(calls, <-f.calls)
		}
		if !slices.Equal(calls, want) {
			t.Errorf("calls %v, want %v", calls, want)
		}
	})
}
