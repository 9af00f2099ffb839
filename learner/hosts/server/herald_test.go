package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/server"
	"ringwave/learner/hosts/wire"
	"ringwave/radio/intake"
)

// herald begins a process with the server's identity.
func (b *bench) process(host string, since time.Time, say func(string)) (*server.Herald, bus.Conn) {
	b.t.Helper()
	id, conn := b.dial(identity.Server, 0)
	h, err := server.NewHerald(server.HeraldConfig{
		Identity: id, Bus: conn, Host: host, Every: 20 * time.Millisecond, Now: func() time.Time { return since }, Say: say,
	})
	b.must(err)
	b.t.Cleanup(h.Close)
	return h, conn
}

// yields waits until a process must give way, and returns why.
func (b *bench) yields(h *server.Herald) string {
	b.t.Helper()
	b.wait("a server that gives way", func() bool { return h.Yielded() != nil })
	err := h.Yielded()
	if !intake.IsUserError(err) || strings.Contains(err.Error(), "\n") {
		b.t.Errorf("%v", err)
	}
	return err.Error()
}

var morning = time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)

// A second process with the server's identity is refused by the name of the first, whichever
// clock is before; of two that lead the older goes on.
func TestOneServerAtATime(t *testing.T) {
	b := newBench(t, 2, 1)
	var first log
	a, _ := b.process("alpha", morning, first.say)
	if err := a.Alone(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	a.Lead(b.run, "test")
	second, _ := b.process("beta", morning.Add(-time.Hour), nil) // older by its clock, and leads nothing
	err := second.Alone(t.Context(), time.Minute)
	want := "another ringwave serve has the identity of this bench's server: on alpha, which leads run " + b.run.String() + " (test) since 2026-05-01T08:00:00Z; allowed is one at a time"
	if err == nil || !strings.HasPrefix(err.Error(), want) || !intake.IsUserError(err) {
		t.Errorf("the second says %v, want %s", err, want)
	}
	second.Close()
	b.wait("the first's word", func() bool { return first.has("is on beta: it gives way to this one") })
	third, _ := b.process("gamma", morning.Add(time.Hour), nil)
	third.Lead(wire.RunID{7}, "other") // without having asked
	if text := b.yields(third); !strings.Contains(text, "on alpha") {
		t.Error(text)
	}
	b.wait("the first's word", func() bool { return first.has("is on gamma: it gives way to this one") })
	third.Close()
	fourth, _ := b.process("delta", morning.Add(-time.Minute), nil)
	fourth.Lead(wire.RunID{8}, "older")
	if text := b.yields(a); !strings.Contains(text, "on delta, which leads run 08") {
		t.Error(text)
	}
	if err := fourth.Yielded(); err != nil {
		t.Errorf("both give way: %v", err)
	}
}

// Two that begin at once do not both give way, and not neither.
func TestTwoServersBeginAtOnce(t *testing.T) {
	b := newBench(t, 2, 1)
	one, _ := b.process("alpha", morning, nil)
	two, _ := b.process("beta", morning, nil)
	ends := make(chan error, 2)
	for _, h := range []*server.Herald{one, two} {
		go func() {
			err := h.Alone(t.Context(), time.Second)
			if err == nil {
				h.Lead(b.run, "test")
			}
			ends <- err
		}()
	}
	if a, b := <-ends, <-ends; (a == nil) == (b == nil) {
		t.Errorf("they say %v and %v", a, b)
	}
}

// What the bus brings of a process that is gone, however often, stops nobody.
func TestPulsesOfAServerThatIsGone(t *testing.T) {
	b := newBench(t, 2, 1)
	_, ear := b.dial(identity.Server, 0)
	heard := make(chan []byte, 1000)
	_, err := ear.Subscribe(wire.AllPulses, func(m bus.Message) {
		select {
		case heard <- m.Payload:
		default:
		}
	})
	b.must(err)
	gone, _ := b.process("alpha", morning, nil)
	gone.Lead(b.run, "test")
	var old [][]byte
	for len(old) < 20 {
		old = append(old, <-heard)
	}
	gone.Close()
	next, _ := b.process("beta", morning.Add(time.Hour), nil)
	next.Lead(b.run, "test")
	for range 3 {
		for _, payload := range old {
			b.must(ear.Publish(b.run.Pulses(), payload))
		}
	}
	b.must(ear.Flush(t.Context()))
	for beats := 0; beats < 5; { // of the next, which has heard all of them by then
		m, err := wire.Parse(<-heard)
		b.must(err)
		if p, err := wire.ParsePresence(m.Body); err == nil && p.Host == "beta" && len(p.Other) > 0 {
			beats++
		}
	}
	if err := next.Yielded(); err != nil {
		t.Errorf("it gives way to a process that is gone: %v", err)
	}
}

// Where two lead one run, the younger's sitting ends with a sentence, whose devices it does not
// lose to the other, and a device says so.
func TestTwoServersLeadOneRun(t *testing.T) {
	b := newBench(t, 2, 100)
	b.air()
	b.serve()
	other, _ := b.process("alpha", morning, nil)
	for i := range 2 {
		b.device(t.Context(), i+1, nil)
	}
	_, err := b.step(t.Context(), 1)
	b.must(err)
	other.Lead(b.run, "test")
	b.says("two servers lead this run at once, on ")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for k := 2; err == nil; k++ {
		_, err = b.step(ctx, k)
	}
	if !strings.Contains(err.Error(), "another ringwave serve has the identity of this bench's server: on alpha, which leads run") {
		t.Errorf("the sitting has ended with %v", err)
	}
}
