package device_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
)

// line is a bus on which a test hears all that a device says, but its beats, and speaks as the
// server.
type line struct {
	bus.Conn
	handlers map[string]func(bus.Message)
	said     chan wire.Message
}

func (l *line) Subscribe(pattern string, handle func(bus.Message)) (func(), error) {
	l.handlers[pattern] = handle
	return func() {}, nil
}

func (l *line) Publish(_ string, b []byte) error {
	m, err := wire.Parse(b)
	if err == nil && m.Kind != wire.Beat {
		l.said <- m
	}
	return err
}

// A device that has greeted anew, as the server asked for it, and was not heard, answers the
// welcome to the greeting before: the server says that again until it is answered.
func TestWelcomeToTheGreetingBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bench")
	folder, err := identity.Create(dir, identity.Options{Devices: 1})
	must(t, err)
	own, err := identity.Load(folder.IdentityPath(identity.Device, 1))
	must(t, err)
	server, err := identity.Load(folder.IdentityPath(identity.Server, 0))
	must(t, err)
	l := &line{handlers: map[string]func(bus.Message){}, said: make(chan wire.Message, 1000)}
	d, err := device.New(device.Config{
		Identity: own, Bus: l, Version: "v", Beat: time.Hour,
		Join: func(wire.RunID, wire.Run) (*device.Part, error) { return &device.Part{}, nil },
	})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	run := wire.RunID{1}
	tell := func(kind wire.Kind, body any) {
		t.Helper()
		m := wire.Message{Kind: kind, Run: run, Device: 1}
		if body != nil {
			m.Body, err = wire.AppendJSON(body)
			must(t, err)
		}
		b, err := wire.Seal(server, m)
		must(t, err)
		l.handlers[wire.AllToDevice(1)](bus.Message{Payload: b})
	}
	hear := func(kind wire.Kind, body any) {
		t.Helper()
		m := <-l.said
		if m.Kind != kind {
			t.Fatalf("the device says %v %s, and %v is expected", m.Kind, m.Body, kind)
		}
		must(t, wire.ParseJSON(m.Body, body))
	}
	var first, second wire.Greeting
	var ready wire.Readiness
	hear(wire.Hello, &first)
	welcome := wire.Run{Nonce: first.Nonce, Version: "v", Clock: time.Now()}
	tell(wire.Welcome, welcome)
	hear(wire.Ready, &ready) // and it is lost
	tell(wire.Greet, nil)
	hear(wire.Hello, &second) // and so is this
	for range 2 {
		tell(wire.Welcome, welcome)
		if hear(wire.Ready, &ready); string(ready.Nonce) != string(first.Nonce) {
			t.Errorf("it answers the welcome to another greeting")
		}
	}
	// One to the newer greeting counts from then on, and that to the older no more.
	welcome.Nonce = second.Nonce
	tell(wire.Welcome, welcome)
	hear(wire.Ready, &ready)
	welcome.Nonce = first.Nonce
	tell(wire.Welcome, welcome)
	tell(wire.Greet, nil)
	hear(wire.Hello, &first)
	stop()
	<-ended
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
