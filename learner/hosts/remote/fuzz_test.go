package remote_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/cmplx"
	"testing"

	"ringwave/learner/hosts/remote"
	"ringwave/radio"
)

// tape is a carrier that notes what goes both ways.
type tape struct {
	direct
	requests, answers [][]byte
}

// Call implements remote.Caller.
func (c *tape) Call(ctx context.Context, b []byte) ([]byte, error) {
	a, err := c.direct.Call(ctx, b)
	c.requests, c.answers = append(c.requests, bytes.Clone(b)), append(c.answers, bytes.Clone(a))
	return a, err
}

// taken returns what goes both ways in a session that does all that can be asked for.
func taken(t testing.TB) *tape {
	f := newFake()
	c := &tape{direct: direct{host: hostOf(t, f, func(c *remote.HostConfig) {
		c.Do = func(_ context.Context, _ radio.Transmitter, _ string, args []byte) ([]byte, error) { return args, nil }
	})}}
	d := opened(t, c)
	all(d)
	ok(t, d.Close())
	return c
}

// all asks for everything, whatever comes back.
func all(d radio.Device) {
	ctx := context.Background()
	_, _ = d.(radio.FrequencyControl).SetFrequency(ctx, radio.Transmit, 1e6)
	_, _ = d.(radio.RateControl).SetSampleRate(ctx, radio.Transmit, 1000)
	_, _ = d.(radio.GainControl).SetGain(ctx, radio.Transmit, "vga", 1)
	if c, ok := d.(radio.ClockControl); ok {
		_ = c.SetClockSource(ctx, "external")
		_, _ = c.ClockLocked(ctx)
	}
	if c, ok := d.(radio.TriggerControl); ok {
		_ = c.SetTrigger(ctx, "input")
	}
	if c, ok := d.(radio.TimeControl); ok {
		_, _ = c.Now(ctx)
	}
	tx, err := d.(radio.TransmitOpener).OpenTransmitter(ctx)
	if err != nil {
		return
	}
	_ = tx.Start(ctx)
	short, cancel := context.WithCancel(ctx)
	cancel() // what says that there is no room is not waited for
	_, _ = tx.Write(ctx, noise(1, 3), radio.TxMeta{Timed: true, Start: 5, BurstEnd: true})
	_, _ = tx.Write(short, noise(1, 3), radio.TxMeta{})
	if c, ok := tx.(radio.LossChecker); ok {
		_ = c.CheckLoss(ctx)
	}
	if c, ok := tx.(radio.Idler); ok {
		_ = c.Idle(ctx, 99)
	}
	if c, ok := tx.(radio.Pacer); ok && c.Earliest() < 0 {
		panic("an index before the first")
	}
	_, _ = tx.(interface {
		Do(context.Context, string, []byte) ([]byte, error)
	}).Do(ctx, "frame", []byte{1})
	events(tx)
	_ = tx.Close()
}

// FuzzRequest has a host handle what is no request, or one that asks for what cannot be: it
// answers with the ID of the request or not at all. Its radio is a fake.
func FuzzRequest(f *testing.F) {
	for _, b := range taken(f).requests {
		f.Add(b, uint8(0))
		f.Add(b, uint8(3))
	}
	f.Add([]byte("RWrr\x01\x01"), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, steps uint8) {
		radio := newFake()
		h := hostOf(t, radio, nil)
		c := &taped{direct: direct{host: h}}
		d := opened(t, c)
		if steps%4 > 0 {
			running(t, d)
		}
		id, is := remote.ID(b)
		if is && steps%2 > 0 { // the session's own next
			last, _ := remote.ID(c.asked[len(c.asked)-1])
			id = last + 1
			binary.LittleEndian.PutUint64(b[6:], id)
			session, _ := remote.ID(c.asked[0])
			b = remote.InSession(b, session)
		}
		a := h.Handle(t.Context(), b)
		if got, answers := remote.ID(a); a != nil && (!answers || got != id) {
			t.Errorf("the answer to %d is %d", id, got)
		}
		if again := h.Handle(t.Context(), b); a != nil && !bytes.Equal(a, again) {
			t.Error("a repetition has another answer")
		}
		for _, x := range radio.written {
			for _, v := range x {
				if cmplx.IsNaN(complex128(v)) || cmplx.IsInf(complex128(v)) {
					t.Errorf("%v was sent", v)
				}
			}
		}
	})
}

// said is a carrier whose answers are all the same, but for the ID.
type said struct{ first, then []byte }

// Call implements remote.Caller.
func (s *said) Call(_ context.Context, b []byte) ([]byte, error) {
	id, _ := remote.ID(b)
	a := bytes.Clone(s.first)
	s.first = s.then
	if _, ok := remote.ID(a); !ok {
		return nil, errors.New("no answer")
	}
	binary.LittleEndian.PutUint64(a[6:], id)
	return a, nil
}

// FuzzAnswer has a proxy take what a host might answer, first and then.
func FuzzAnswer(f *testing.F) {
	a := taken(f).answers
	for _, b := range a {
		f.Add(a[0], b)
		f.Add(b, a[0])
	}
	f.Fuzz(func(t *testing.T, first, then []byte) {
		d, err := remote.OpenTimed(t.Context(), &said{first, then}, 0, newClock().Now, never)
		if err != nil {
			return
		}
		all(d)
		_ = d.Close()
	})
}
