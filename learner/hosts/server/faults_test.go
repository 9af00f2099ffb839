package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy/slot"
)

// lossy is a connection that loses what lose says.
type lossy struct {
	bus.Conn
	lose func(wire.Message) bool
}

func (c lossy) Publish(subject string, payload []byte) error {
	if m, err := wire.Parse(payload); err == nil && c.lose(m) {
		return nil
	}
	return c.Conn.Publish(subject, payload)
}

// losing has one host lose what lose says.
func (b *bench) losing(role identity.Role, index int, lose func(wire.Message) bool) {
	b.between = func(r identity.Role, i int, c bus.Conn) bus.Conn {
		if r == role && i == index {
			return lossy{c, lose}
		}
		return c
	}
}

// within calls f, and fails where that has not returned in time.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not end", what)
	}
}

// A server that is closed in the middle of a step asks for nothing more, and is closed.
func TestCloseInMidStep(t *testing.T) {
	b := newBench(t, 2, 1)
	b.serve()
	if err := b.server.Participants()[0].Prepare(t.Context(), 1, 0); err == nil {
		t.Error("a device that is not here gets ready")
	}
	within(t, "Close", b.server.Close)
}

// Whatever of a device's arrival is lost once, it arrives.
func TestLostArrivals(t *testing.T) {
	for _, kind := range []wire.Kind{wire.Hello, wire.Ready, wire.Welcome} {
		b := newBench(t, 2, 1)
		var lost atomic.Int32
		lose := func(m wire.Message) bool { return m.Kind == kind && lost.Add(1) <= 2 }
		if b.losing(identity.Device, 1, lose); kind == wire.Welcome {
			b.losing(identity.Server, 0, lose)
		}
		b.serve()
		b.device(t.Context(), 1, nil)
		b.device(t.Context(), 2, nil)
		within(t, "the wait for a device whose "+kind.String()+" was lost", func() {
			if err := b.server.Await(t.Context(), 2); err != nil {
				t.Error(err)
			}
		})
		if lost.Load() < 2 {
			t.Errorf("%d %vs were lost", lost.Load(), kind)
		}
	}
}

// Air that is not there makes attempts void, and then ends the run with a sentence.
func TestNoAir(t *testing.T) {
	b := newBench(t, 2, 1)
	b.deadline = 500 * time.Millisecond
	b.serve()
	b.device(t.Context(), 1, nil)
	b.device(t.Context(), 2, nil)
	if _, err := b.step(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "the air is not there (ringwave air)") {
		t.Errorf("%v", err)
	}
	b.air()
	b.server.Close()
	b.serve() // as with --resume
	if out, err := b.step(t.Context(), 1); err != nil {
		t.Errorf("%+v, %v", out, err)
	}
}

// A device that is lost between its word that it has sent and its frame makes the attempt
// void, long before the deadline; before it has answered c~1 the next attempt succeeds.
func TestLostBeforeItsFrame(t *testing.T) {
	b := newBench(t, 2, 1)
	b.deadline = time.Hour
	b.silence = 500 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lost, told := make(chan bool), false
	b.losing(identity.Device, 1, func(m wire.Message) bool {
		if !told && m.Kind == wire.Sent && m.Slot.Transmission == slot.TxC0 {
			told = true // and the process is gone
			close(lost)
		}
		return m.Kind == wire.Frame && m.Slot.Transmission == slot.TxC0 && ctx.Err() == nil
	})
	b.air()
	b.serve()
	first := b.device(ctx, 1, nil)
	b.device(t.Context(), 2, nil)
	go func() {
		<-lost
		cancel()
		<-first
		b.device(t.Context(), 1, func(_ *device.Config, p *device.Part) {
			if p != nil {
				p.Epoch = func(int) uint32 { return 1 }
			}
		})
	}()
	within(t, "a round that a device left", func() {
		out, err := b.step(t.Context(), 1)
		if err != nil || len(out.Failures) == 0 || !strings.Contains(out.Failures[0].Reason, "device 1 was lost before its frame was heard") {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// A device whose server began another run comes into that one, once nothing is left of its
// own.
func TestAbandonedRun(t *testing.T) {
	b := newBench(t, 2, 2)
	b.silence = 300 * time.Millisecond
	b.air()
	b.serve()
	b.device(t.Context(), 1, nil)
	b.device(t.Context(), 2, nil)
	if _, err := b.step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	b.server.Close()
	b.run, b.model, b.guard, b.records = wire.RunID{5}, &member{}, newGuard(), nil
	b.serve()
	within(t, "the wait for devices of a run that was given up", func() {
		if out, err := b.step(t.Context(), 1); err != nil || out.Skipped {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// A device that has not heard of the last rounds says so, and does not leave as if it had.
func TestMissedTheEnd(t *testing.T) {
	h := newHostile(t, 2)
	ended := h.device(t.Context(), 1, nil)
	h.welcome(1)
	h.say(1, wire.Message{Kind: wire.End, Slot: slot.Slot{Round: 9, Again: 1}})
	within(t, "the device", func() {
		if err := <-ended; !errors.Is(err, device.ErrBehind) || !strings.Contains(err.Error(), "after round 9, and this device has heard of 0 rounds only") {
			t.Errorf("%v", err)
		}
	})
}

// The end of an earlier sitting, heard again, ends nothing.
func TestOldEnd(t *testing.T) {
	h := newHostile(t, 2)
	h.joined(1, nil)
	record, err := wire.SealRecord(h.id, h.run, wire.Record{Round: 1, Before: (&member{}).Digest()})
	h.must(err)
	h.say(1, wire.Message{Kind: wire.History, Body: record})
	h.say(1, wire.Message{Kind: wire.End, Slot: slot.Slot{Again: 1}})
	h.nothing(1)
	h.prepare(1, 2, 0)
}

// A device that cannot write down what it does refuses the attempt, and says so, until it can.
func TestCannotWrite(t *testing.T) {
	h := newHostile(t, 2)
	var full atomic.Bool
	full.Store(true)
	noted := 0
	h.joined(1, func(_ *device.Config, p *device.Part) {
		if p == nil {
			return
		}
		p.Note = func(int, float64, []float64, int) error {
			if full.Load() {
				return errors.New("no space left on device")
			}
			noted++
			return nil
		}
	})
	for attempt := range uint32(2) {
		h.say(1, wire.Message{Kind: wire.Prepare, Slot: slot.Slot{Round: 1, Attempt: attempt}})
		h.refuses(1, "no space left on device")
	}
	full.Store(false)
	h.upTo(1, 1, 2, slot.TxC1)
	if noted != 1 {
		t.Errorf("round 1 is noted %d times", noted)
	}
}

// A device that refuses is waited for, and does not cost one round after the other.
func TestRefusingDevice(t *testing.T) {
	b := newBench(t, 2, 6)
	b.deadline = 700 * time.Millisecond
	b.air()
	b.serve()
	b.device(t.Context(), 1, func(_ *device.Config, p *device.Part) {
		if p == nil {
			return
		}
		p.Note = func(k int, _ float64, _ []float64, _ int) error {
			if k >= 2 && !b.said.has("device 1 is lost: no space left") {
				return errors.New("no space left")
			}
			return nil
		}
	})
	b.device(t.Context(), 2, nil)
	for k := 1; k <= 6; k++ {
		out, err := b.step(t.Context(), k)
		if err != nil || out.Skipped != (k == 2) {
			t.Errorf("round %d: %+v, %v", k, out, err)
		}
		if out.Skipped && !strings.Contains(out.Failures[0].String(), "1 of 2 devices are there") {
			t.Errorf("%v", out.Failures)
		}
	}
}

// A greeting that the bus brings twice is one.
func TestGreetingTwice(t *testing.T) {
	b := newBench(t, 2, 1)
	hello := make(chan wire.Message, 10)
	b.losing(identity.Device, 1, func(m wire.Message) bool {
		if m.Kind == wire.Hello {
			hello <- m
		}
		return false
	})
	b.serve()
	b.device(t.Context(), 1, nil)
	if err := b.server.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	_, conn := b.dial(identity.Device, 1)
	first := <-hello
	again, err := wire.AppendJSON(wire.Greeting{Nonce: make([]byte, 16)})
	b.must(err)
	for _, m := range []wire.Message{first, {Kind: wire.Hello, Device: 1, Body: again}} {
		b.must(conn.Publish(m.Run.FromDevice(1), m.Bytes()))
	}
	within(t, "the wait for a refusal", func() {
		for !b.said.has("device 1 is not let in") {
			<-time.After(5 * time.Millisecond) // between two looks
		}
	})
	if n := b.said.count("device 1 is not let in"); n != 1 || b.said.has("is here already") || b.said.has("lost") {
		t.Errorf("%d refusals: %v", n, b.said.lines)
	}
}

// talk has a test speak as device 1: say sends a message, greet a greeting with nonce i, and next
// wants the welcome to that.
func (b *bench) talk(t *testing.T) (say func(run wire.RunID, kind wire.Kind, body any), greet, next func(i byte), nonce func(i byte) []byte) {
	t.Helper()
	_, conn := b.dial(identity.Device, 1)
	id, _ := b.dial(identity.Device, 1)
	answers := make(chan wire.Message, 100)
	_, err := conn.Subscribe(wire.AllToDevice(1), func(x bus.Message) {
		if m, err := wire.Parse(x.Payload); err == nil && (m.Kind == wire.Welcome || m.Kind == wire.Refused) {
			answers <- m
		}
	})
	b.must(err)
	say = func(run wire.RunID, kind wire.Kind, body any) {
		m := wire.Message{Kind: kind, Run: run, Device: 1}
		if raw, ok := body.([]byte); ok {
			m.Body = raw
		} else {
			m.Body, err = wire.AppendJSON(body)
			b.must(err)
		}
		b.must(conn.Publish(run.FromDevice(1), m.Bytes()))
	}
	nonce = func(i byte) []byte { return append(make([]byte, 15), i) }
	greet = func(i byte) {
		say(wire.RunID{}, wire.Hello, wire.Greeting{Nonce: nonce(i), Version: "v", Host: "h", Nkey: id.Nkey, NotBefore: id.NotBefore, Expires: id.Expires, Statement: id.Signature})
	}
	next = func(i byte) {
		t.Helper()
		var w wire.Run
		m := <-answers
		if err := wire.ParseJSON(m.Body, &w); m.Kind != wire.Welcome || err != nil || w.Nonce[15] != i {
			t.Fatalf("%v %s, %v", m.Kind, m.Body, err)
		}
	}
	return say, greet, next, nonce
}

// An earlier greeting that the bus brings once more, with all that followed it, does not take
// the place of a later one.
func TestOldGreeting(t *testing.T) {
	b := newBench(t, 1, 1)
	b.silence = 300 * time.Millisecond
	b.serve()
	say, greet, next, nonce := b.talk(t)
	greet(1)
	next(1)
	say(b.run, wire.Ready, wire.Readiness{Nonce: nonce(1)})
	within(t, "the wait for its loss", func() {
		for !b.said.has("device 1 is lost") {
			<-time.After(5 * time.Millisecond) // between two looks
		}
	})
	greet(2)
	next(2)
	greet(1)
	say(b.run, wire.Ready, wire.Readiness{Nonce: nonce(1)})
	say(b.run, wire.Beat, nonce(2))
	next(2)
}

// A greeting behind the end of a run is not answered: who stays greets the next run's server.
func TestGreetingAfterTheEnd(t *testing.T) {
	b := newBench(t, 1, 1)
	b.serve()
	say, greet, next, nonce := b.talk(t)
	greet(1)
	next(1)
	_, err := b.server.End(t.Context(), b.model.Digest())
	b.must(err)
	greet(2)
	say(b.run, wire.Beat, nonce(1)) // for which the first is welcomed again, as it has not answered
	next(1)
}
