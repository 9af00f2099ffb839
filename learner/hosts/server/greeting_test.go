package server_test

import (
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
)

// A greeting that the bus repeats after a later one of the same device was welcomed is no
// greeting: its old answer, late as well, would make the device another process.
func TestRepeatedGreeting(t *testing.T) {
	b := newBench(t, 1, 1)
	id, conn := b.dial(identity.Device, 1)
	heard := make(chan wire.Message, 64)
	_, err := conn.Subscribe(wire.AllToDevice(1), func(m bus.Message) {
		if x, err := wire.Parse(m.Payload); err == nil {
			heard <- x
		}
	})
	b.must(err)
	b.serve()
	say := func(m wire.Message) {
		t.Helper()
		m.Device = 1
		b.must(conn.Publish(m.Run.FromDevice(1), m.Bytes()))
	}
	hello := func(n byte) wire.Message {
		t.Helper()
		g := wire.Greeting{
			Nonce: make([]byte, 16), Version: "v", Clock: time.Now(), Host: "h",
			Nkey: id.Nkey, NotBefore: id.NotBefore, Expires: id.Expires, Statement: id.Signature,
		}
		g.Nonce[0] = n
		body, err := wire.AppendJSON(g)
		b.must(err)
		return wire.Message{Kind: wire.Hello, Body: body}
	}
	ready := func(n byte) wire.Message {
		t.Helper()
		r := wire.Readiness{Nonce: make([]byte, 16), Devices: 1}
		r.Nonce[0] = n
		body, err := wire.AppendJSON(r)
		b.must(err)
		return wire.Message{Kind: wire.Ready, Run: b.run, Body: body}
	}
	welcomed := func(n byte) {
		t.Helper()
		for {
			select {
			case m := <-heard:
				var w wire.Run
				if m.Kind == wire.Welcome && wire.ParseJSON(m.Body, &w) == nil && w.Nonce[0] == n {
					return
				}
			case <-time.After(time.Minute):
				t.Fatalf("greeting %d is not welcomed", n)
			}
		}
	}
	say(hello(1))
	welcomed(1)
	say(hello(2))
	welcomed(2)
	say(hello(1)) // again, by the bus
	say(ready(1)) // late
	say(ready(2))
	b.must(b.server.Await(t.Context(), 1))
	beat := wire.Message{Kind: wire.Beat, Run: b.run, Body: make([]byte, 16)}
	beat.Body[0] = 2
	say(beat)
	say(hello(3)) // refused for now, behind the beat
	for {
		select {
		case m := <-heard:
			if m.Kind != wire.Refused {
				continue
			}
			if m.Slot.Again == 0 {
				t.Errorf("the device is refused: %s", m.Body[16:])
			}
			return
		case <-time.After(time.Minute):
			t.Fatal("nothing was heard of the third greeting")
		}
	}
}
