package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy/slot"
)

// hostile is a server that has the bench's identity and keeps to no protocol, and hears the
// air, too.
type hostile struct {
	*bench
	id   identity.Identity
	conn bus.Conn
	from map[int]chan wire.Message // what devices say
	air  map[int]chan wire.Message // and send
	rnd  *rand.Rand
}

func newHostile(t *testing.T, n int) *hostile {
	h := &hostile{bench: newBench(t, n, 9), from: map[int]chan wire.Message{}, air: map[int]chan wire.Message{}, rnd: rand.New(rand.NewPCG(1, 1))}
	for i := 1; i <= n; i++ {
		h.from[i], h.air[i] = make(chan wire.Message, 1000), make(chan wire.Message, 1000)
	}
	into := func(to map[int]chan wire.Message) func(bus.Message) {
		return func(b bus.Message) {
			if m, err := wire.Parse(b.Payload); err == nil && m.Kind != wire.Beat {
				to[int(m.Device)] <- m
			}
		}
	}
	h.id, h.conn = h.dial(identity.Server, 0)
	_, err := h.conn.Subscribe(wire.AllFromDevices, into(h.from))
	h.must(err)
	_, conn := h.dial(identity.Air, 0)
	_, err = conn.Subscribe(wire.AllOnAir, into(h.air))
	h.must(err)
	return h
}

// say says something as the server, to one device or, for 0, to all.
func (h *hostile) say(to int, m wire.Message) (sealed []byte) {
	h.t.Helper()
	m.Run, m.Device = h.run, uint32(to)
	b, err := wire.Seal(h.id, m)
	h.must(err)
	h.publish(to, b)
	return b
}

func (h *hostile) publish(to int, b []byte) {
	h.t.Helper()
	subject := h.run.ToAll()
	if to > 0 {
		subject = h.run.ToDevice(to)
	}
	h.must(h.conn.Publish(subject, b))
}

// hear returns what a device says next of a kind, and throws away the rest.
func (h *hostile) hear(from chan wire.Message, kind wire.Kind) wire.Message {
	h.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case m := <-from:
			if m.Kind == kind {
				return m
			}
			if m.Kind == wire.Refused {
				h.t.Fatalf("device %d refuses: %s", m.Device, m.Body)
			}
		case <-deadline:
			h.t.Fatalf("no %v has come", kind)
		}
	}
}

// refuses wants that a device refuses what it was asked for last, and says so to its user.
func (h *hostile) refuses(i int, part string) {
	h.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case m := <-h.from[i]:
			if m.Kind == wire.Sent || m.Kind == wire.Prepared {
				h.t.Fatalf("device %d answers with a %v where it must refuse (%s)", i, m.Kind, part)
			}
			if m.Kind != wire.Refused {
				continue
			}
			if !strings.Contains(string(m.Body), part) || strings.Contains(string(m.Body), "\n") || !h.said.has(part) {
				h.t.Fatalf("device %d refuses with %q, not %q", i, m.Body, part)
			}
			return
		case <-deadline:
			h.t.Fatalf("device %d does not refuse what it must (%s)", i, part)
		}
	}
}

// welcome lets a device into the run.
func (h *hostile) welcome(i int) {
	h.t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		select {
		case m := <-h.from[i]:
			if m.Kind == wire.Ready {
				return
			}
			if m.Kind != wire.Hello {
				continue
			}
			var g wire.Greeting
			h.must(wire.ParseJSON(m.Body, &g))
			body, err := wire.AppendJSON(wire.Run{Nonce: g.Nonce, Version: "v", Clock: time.Now(), Devices: h.n})
			h.must(err)
			h.say(i, wire.Message{Kind: wire.Welcome, Body: body}) // which counts if it is the last greeting's
		case <-deadline:
			h.t.Fatalf("device %d is not ready", i)
		}
	}
}

// prepare begins an attempt at a device.
func (h *hostile) prepare(i int, k, attempt uint32) {
	h.t.Helper()
	h.say(i, wire.Message{Kind: wire.Prepare, Slot: slot.Slot{Round: k, Attempt: attempt}})
	h.hear(h.from[i], wire.Prepared)
}

// all is an attempt of all devices.
func (h *hostile) all() []bool { return slices.Repeat([]bool{true}, h.n) }

// ask asks a device for a transmission.
func (h *hostile) ask(i int, s slot.Slot, present []bool, broadcast []byte) {
	h.t.Helper()
	h.say(i, wire.Message{Kind: wire.Send, Slot: s, Body: wire.Request{Present: present, Broadcast: broadcast}.Bytes()})
}

// sends asks a device for a transmission, and returns its frame.
func (h *hostile) sends(i int, s slot.Slot, broadcast []byte) (frame wire.Message) {
	h.t.Helper()
	h.ask(i, s, h.all(), broadcast)
	h.hear(h.from[i], wire.Sent)
	return h.hear(h.air[i], wire.Frame)
}

// payload returns what a frame carries, without its checks, which are of its slot.
func (h *hostile) payload(frame wire.Message) string {
	h.t.Helper()
	f, err := wire.ParseRingFrame(frame.Body, h.bench.ctx.Modulus())
	h.must(err)
	return string(wire.AppendVector(nil, f.Payload))
}

// vector returns one of n coefficients, as bytes.
func (h *hostile) vector(value func(j, k int, p uint64) uint64) []byte {
	m := h.bench.ctx.Modulus()
	v := m.NewVector(h.bench.ctx.Params.N)
	for j, p := range m.Primes() {
		for k := range v[j] {
			v[j][k] = value(j, k, p)
		}
	}
	return wire.AppendVector(nil, v)
}

// uniform returns what b~ and c~1 look like.
func (h *hostile) uniform() []byte {
	return h.vector(func(_, _ int, p uint64) uint64 { return h.rnd.Uint64N(p) })
}

// weak returns broadcasts under which nothing is hidden.
func (h *hostile) weak() map[string][]byte {
	spread := func(c func(k int) int64) []byte { // integers, in each prime's residues
		return h.vector(func(_, k int, p uint64) uint64 { return uint64((c(k)%int64(p) + int64(p)) % int64(p)) })
	}
	return map[string][]byte{
		"zero":     spread(func(int) int64 { return 0 }),
		"one":      spread(func(k int) int64 { return map[bool]int64{true: 1}[k == 0] }),
		"constant": spread(func(int) int64 { return 12345 }),
		"small":    spread(func(int) int64 { return h.rnd.Int64N(201) - 100 }),
		"sparse": h.vector(func(_, k int, p uint64) uint64 {
			if k%2 == 0 {
				return 0
			}
			return h.rnd.Uint64N(p)
		}),
		"one of few": h.vector(func(_, k int, p uint64) uint64 { return p / 4 * uint64(k%4) }),
	}
}

// upTo brings a device to where it has sent all before a transmission.
func (h *hostile) upTo(i int, k, attempt uint32, t slot.Transmission) {
	h.t.Helper()
	h.prepare(i, k, attempt)
	for at := slot.TxKey; at < t; at++ {
		var b []byte
		if at == slot.TxC0 {
			b = h.uniform()
		}
		h.sends(i, slot.Slot{Round: k, Attempt: attempt, Transmission: at}, b)
	}
}

// nothing wants that a device has put nothing on the air, and has nothing to say but of
// some kinds, once it has heard all so far.
func (h *hostile) nothing(i int, but ...wire.Kind) {
	h.t.Helper()
	h.say(i, wire.Message{Kind: wire.Greet}) // which it answers behind all else
	for {
		select {
		case m := <-h.from[i]:
			if m.Kind == wire.Hello {
				if len(h.air[i]) > 0 {
					h.t.Fatalf("device %d sends %v", i, (<-h.air[i]).Slot)
				}
				return
			}
			if !slices.Contains(but, m.Kind) {
				h.t.Fatalf("device %d says %v: %s", i, m.Kind, m.Body)
			}
		case <-time.After(20 * time.Second):
			h.t.Fatalf("device %d does not answer", i)
		}
	}
}

// joined begins a device and lets it in.
func (h *hostile) joined(i int, change func(*device.Config, *device.Part)) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := h.device(ctx, i, change)
	h.t.Cleanup(func() { cancel(); <-ended })
	h.welcome(i)
}

// A broadcast under which nothing is hidden is not answered, be it b~ or c~1.
func TestWeakBroadcasts(t *testing.T) {
	h := newHostile(t, 2)
	h.joined(1, nil)
	attempt := uint32(0)
	for name, weak := range h.weak() {
		for tx, what := range map[slot.Transmission]string{slot.TxC0: "b~", slot.TxShare: "c~1"} {
			h.upTo(1, 1, attempt, tx)
			h.ask(1, slot.Slot{Round: 1, Attempt: attempt, Transmission: tx}, h.all(), weak)
			h.refuses(1, fmt.Sprintf("the server announces %s of which ", what))
			h.nothing(1)
			t.Log(name, what)
			attempt++
		}
	}
	if n := len(h.guard.shares); n > 0 {
		t.Errorf("%d rounds were answered", n)
	}
	// What devices make passes.
	h.upTo(1, 1, attempt, slot.TxShare)
	h.sends(1, slot.Slot{Round: 1, Attempt: attempt, Transmission: slot.TxShare}, h.uniform())
}

// A second share of a round is not given: for another c~1, at another attempt, in another
// key epoch of a device that was begun anew. The same is sent again, bit for bit.
func TestSecondShares(t *testing.T) {
	h := newHostile(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	ended := h.device(ctx, 1, nil)
	h.welcome(1)
	at := slot.Slot{Round: 1, Transmission: slot.TxShare}
	h.upTo(1, 1, 0, slot.TxShare)
	c1 := h.uniform()
	first := h.sends(1, at, c1)
	again := at
	again.Again = 1
	for _, s := range []slot.Slot{at, again} {
		h.ask(1, s, h.all(), h.uniform())
		h.refuses(1, "what was answered once is not answered otherwise")
		if x := h.payload(h.sends(1, s, c1)); x != h.payload(first) {
			t.Errorf("%v: another share than before", s)
		}
	}
	c0 := slot.Slot{Round: 1, Transmission: slot.TxC0}
	h.ask(1, c0, h.all(), h.uniform())
	h.refuses(1, "again with another broadcast")
	h.say(1, wire.Message{Kind: wire.Prepare, Slot: slot.Slot{Round: 1, Attempt: 1}})
	h.refuses(1, "has given its decryption share of round 1")
	h.say(1, wire.Message{Kind: wire.Prepare, Epoch: 9, Slot: slot.Slot{Round: 1, Attempt: 2}})
	h.refuses(1, "has given its decryption share of round 1")
	h.nothing(1)
	cancel()
	<-ended

	h.joined(1, func(_ *device.Config, p *device.Part) {
		if p != nil {
			p.Epoch = func(int) uint32 { return 5 }
		}
	})
	h.upTo(1, 1, 3, slot.TxShare)
	h.ask(1, slot.Slot{Round: 1, Attempt: 3, Transmission: slot.TxShare}, h.all(), h.uniform())
	h.refuses(1, "device 1 has already answered round 1 (key epoch 0, attempt 0")
	h.nothing(1)
	if n := h.guard.shares[[2]uint32{0, 1}]; n != 1 {
		t.Errorf("%d shares of round 1", n)
	}
}

// A device does not send where too few do, where it is left out, or where others take part
// than the attempt began with.
func TestFewParticipants(t *testing.T) {
	h := newHostile(t, 4)
	h.minimum = 3
	h.joined(1, nil)
	alone, without, fewer, all := []bool{true, false, false, false}, []bool{false, true, true, true}, []bool{true, true, true, false}, h.all()
	for attempt, c := range []struct {
		first, second []bool
		part          string
	}{
		{alone, nil, "the server announces 1 devices; allowed are 3 (devices.minimum) or more"},
		{without, nil, "in an attempt that it has left it out of"},
		{all, fewer, "the server announces other devices than it began the attempt with"},
		{all, alone, "the server announces 1 devices"},
	} {
		a := uint32(attempt)
		h.prepare(1, 1, a)
		h.ask(1, slot.Slot{Round: 1, Attempt: a}, c.first, nil)
		if c.second != nil {
			h.hear(h.from[1], wire.Sent)
			h.hear(h.air[1], wire.Frame)
			h.ask(1, slot.Slot{Round: 1, Attempt: a, Transmission: slot.TxC0}, c.second, h.uniform())
		}
		h.refuses(1, c.part)
		h.nothing(1)
	}
}

// Transmissions out of their order are not answered.
func TestOutOfOrder(t *testing.T) {
	h := newHostile(t, 2)
	h.joined(1, nil)
	h.prepare(1, 1, 3)
	for _, tx := range []slot.Transmission{slot.TxC0, slot.TxC1, slot.TxShare} {
		h.ask(1, slot.Slot{Round: 1, Attempt: 3, Transmission: tx}, h.all(), h.uniform())
	}
	for _, s := range []slot.Slot{{Round: 1, Attempt: 2}, {Round: 1, Attempt: 4}, {Round: 2, Attempt: 3}, {Round: 1, Attempt: 3, Again: 1}} {
		h.ask(1, s, h.all(), nil)
	}
	h.say(1, wire.Message{Kind: wire.Prepare, Slot: slot.Slot{Round: 1, Attempt: 2}})  // an earlier one
	h.say(1, wire.Message{Kind: wire.Prepare, Slot: slot.Slot{Round: 10}})             // behind the run's end
	h.say(1, wire.Message{Kind: wire.Prepare, Slot: slot.Slot{Round: 3}})              // without the rounds before
	h.say(2, wire.Message{Kind: wire.Prepare, Slot: slot.Slot{Round: 1, Attempt: 11}}) // another device's
	h.nothing(1, wire.Behind)
}

// What is not signed by the bench's server is not followed, nor are records of another.
func TestOtherSigners(t *testing.T) {
	h := newHostile(t, 2)
	h.joined(1, nil)
	other, err := identity.Create(filepath.Join(t.TempDir(), "other"), identity.Options{Devices: 2})
	h.must(err)
	key, err := identity.Load(other.IdentityPath(identity.Server, 0))
	h.must(err)
	prepare := wire.Message{Kind: wire.Prepare, Run: h.run, Slot: slot.Slot{Round: 1}}
	h.publish(1, prepare.Bytes())
	b, err := wire.Seal(key, prepare)
	h.must(err)
	h.publish(1, b)
	b = h.say(2, prepare) // and one that was changed on its way
	b[len(b)-70] ^= 1
	h.publish(1, b)
	// The other's records, and ours of another run.
	for name, f := range map[string]func() ([]byte, error){
		"other key": func() ([]byte, error) { return wire.SealRecord(key, h.run, wire.Record{Round: 1, M: []float64{1}}) },
		"other run": func() ([]byte, error) {
			return wire.SealRecord(h.id, wire.RunID{9}, wire.Record{Round: 1, M: []float64{1}})
		},
	} {
		record, err := f()
		h.must(err)
		h.say(1, wire.Message{Kind: wire.History, Body: record})
		if name == "other run" { // else the server's signature of the message is of the record, too
			h.say(1, wire.Message{Kind: wire.Prepare, Slot: slot.Slot{Round: 2}, Body: record})
		}
		h.nothing(1, wire.Behind)
		t.Log(name)
	}
	for _, part := range []string{"a prepare without the server's signature", "ignored a message", "ignored records"} {
		if !h.said.has(part) {
			t.Errorf("nobody says %q", part)
		}
	}
}

// All that a server has said in an earlier run, heard again in the next, does nothing.
// Longer than most because it is one history.
func TestYesterday(t *testing.T) {
	h := newHostile(t, 2)
	var mu sync.Mutex
	var said [][]byte
	h.between = func(role identity.Role, index int, c bus.Conn) bus.Conn {
		if role != identity.Server {
			return c
		}
		return tapped{c, func(payload []byte) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, slices.Clone(payload))
		}}
	}
	today := h.run
	h.run = wire.RunID{7, 7}
	h.rounds = 3
	a := h.bench.air()
	h.serve()
	ends := []chan error{h.device(t.Context(), 1, nil), h.device(t.Context(), 2, nil)}
	for k := range 3 {
		_, err := h.step(t.Context(), k+1)
		h.must(err)
	}
	_, err := h.server.End(t.Context(), h.model.Digest())
	h.must(err)
	for _, ended := range ends {
		h.must(<-ended)
	}
	h.server.Close()
	a.Close()

	h.wait("all of yesterday's frames", func() bool { return len(h.air[1]) >= 3*4 && len(h.air[2]) >= 3*4 })
	h.run, h.rounds, h.guard = today, 9, newGuard()
	for _, c := range []map[int]chan wire.Message{h.from, h.air} {
		for _, from := range c {
			for len(from) > 0 {
				<-from
			}
		}
	}
	kinds := map[wire.Kind]int{}
	replay := func() {
		for _, b := range said {
			m, err := wire.Parse(b)
			h.must(err)
			kinds[m.Kind]++
			for _, subject := range []string{h.run.ToDevice(1), h.run.ToAll(), wire.RunID{7, 7}.ToDevice(1)} {
				h.must(h.conn.Publish(subject, b))
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := h.device(ctx, 1, nil)
	defer func() { cancel(); <-ended }()
	h.hear(h.from[1], wire.Hello)
	replay()
	h.nothing(1, wire.Hello) // greeted, but not let in
	h.welcome(1)
	h.upTo(1, 1, 0, slot.TxC1)
	replay()
	h.nothing(1)
	h.sends(1, slot.Slot{Round: 1, Transmission: slot.TxC1}, nil) // as if nothing had been
	for _, k := range []wire.Kind{wire.Welcome, wire.Prepare, wire.Send, wire.End, wire.Greet} {
		if kinds[k] == 0 {
			t.Errorf("no %v was heard again", k)
		}
	}
}

// Two processes with one identity: the second waits, and takes the place of the first once
// that says nothing; the first, when it comes back, is told so and ends.
func TestOneIdentityTwice(t *testing.T) {
	b := newBench(t, 2, 4)
	b.silence = 600 * time.Millisecond
	var lines = map[string]*parting{}
	b.between = func(role identity.Role, index int, c bus.Conn) bus.Conn {
		x := &parting{Conn: c}
		lines[fmt.Sprintf("%s-%d-%d", role, index, len(lines))] = x
		return x
	}
	b.air()
	b.serve()
	other := b.device(t.Context(), 2, nil)
	first := b.device(t.Context(), 1, nil)
	h, err := b.step(t.Context(), 1)
	b.must(err)
	if h.Skipped {
		t.Error("round 1 is skipped")
	}
	second := b.device(t.Context(), 1, nil)
	for !b.said.has("the server asks to wait: device 1 is here already") {
		<-time.After(10 * time.Millisecond) // between two looks
	}
	if _, err := b.step(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	x := lines["device-1-3"]
	x.part(true)
	for deadline := time.Now().Add(20 * time.Second); b.said.count("device 1 is here, on") < 2; {
		if time.Now().After(deadline) {
			t.Fatalf("%v", b.server.Census().Hosts[0])
		}
		<-time.After(10 * time.Millisecond) // between two looks
	}
	x.part(false)
	select {
	case err := <-first:
		if err == nil || !strings.Contains(err.Error(), "another process has become device 1") {
			t.Errorf("the first process: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the first process goes on")
	}
	for k := 3; k <= 4; k++ {
		if out, err := b.step(t.Context(), k); err != nil || out.Skipped {
			t.Errorf("round %d: %+v, %v", k, out, err)
		}
	}
	_, err = b.server.End(t.Context(), b.model.Digest())
	b.must(err)
	b.must(<-second)
	b.must(<-other)
}

// parting is a connection through which nothing goes while it is parted, without an error.
type parting struct {
	bus.Conn
	mu     sync.Mutex
	parted bool
}

func (p *parting) part(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parted = on
}

func (p *parting) off() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parted
}

func (p *parting) Publish(subject string, payload []byte) error {
	if p.off() {
		return nil
	}
	return p.Conn.Publish(subject, payload)
}

func (p *parting) Subscribe(subject string, handle func(bus.Message)) (func(), error) {
	return p.Conn.Subscribe(subject, func(m bus.Message) {
		if !p.off() {
			handle(m)
		}
	})
}

// A device that greets as another is not let in: under another's index, with another's
// enrolment, with one of another bench, with one that was made longer, or where the
// registry does not have it.
// Longer than most because it is one history.
func TestOtherDevices(t *testing.T) {
	b := newBench(t, 3, 4)
	other, err := identity.Create(filepath.Join(t.TempDir(), "other"), identity.Options{Devices: 3})
	b.must(err)
	stranger, err := identity.Load(other.IdentityPath(identity.Device, 1))
	b.must(err)
	b.admit = func(index int, _ string) error {
		if index == 3 {
			return fmt.Errorf("the identity of device 3 was revoked")
		}
		return nil
	}
	b.serve()
	first, conn := b.dial(identity.Device, 1)
	second, _ := b.dial(identity.Device, 2)
	third, conn3 := b.dial(identity.Device, 3)
	answers := make(chan wire.Message, 100)
	for i, c := range map[int]bus.Conn{1: conn, 3: conn3} {
		_, err = c.Subscribe(wire.AllToDevice(i), func(x bus.Message) {
			if m, err := wire.Parse(x.Payload); err == nil && m.Kind != wire.Greet {
				answers <- m
			}
		})
		b.must(err)
	}
	greet := func(c bus.Conn, at int, m wire.Message, id identity.Identity, change func(*wire.Greeting)) {
		g := wire.Greeting{Nonce: make([]byte, 16), Version: "v", Clock: time.Now(), Host: "h", Nkey: id.Nkey, NotBefore: id.NotBefore, Expires: id.Expires, Statement: id.Signature}
		if change != nil {
			change(&g)
		}
		m.Kind = wire.Hello
		m.Body, err = wire.AppendJSON(g)
		b.must(err)
		b.must(c.Publish(wire.RunID{}.FromDevice(at), m.Bytes()))
	}
	for part, f := range map[string]func(){
		"enrolment of device 1 is not signed by its": func() { greet(conn, 1, wire.Message{Device: 1}, second, nil) },
		"is not signed by":                           func() { greet(conn, 1, wire.Message{Device: 1}, stranger, nil) },
		"not signed by": func() {
			greet(conn, 1, wire.Message{Device: 1}, first, func(g *wire.Greeting) { g.Expires = g.Expires.Add(time.Hour) })
		},
		"was revoked": func() { greet(conn3, 3, wire.Message{Device: 3}, third, nil) },
	} {
		f()
		select {
		case m := <-answers:
			if m.Kind != wire.Refused || m.Slot.Again != 0 || !strings.Contains(string(m.Body), part) {
				t.Errorf("%s: %v, %q", part, m.Kind, m.Body)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: no answer", part)
		}
	}
	// Under its own subject it may say that it is another, which nobody believes.
	greet(conn, 1, wire.Message{Device: 2}, second, nil)
	greet(conn, 1, wire.Message{Device: 1}, first, nil)
	if m := <-answers; m.Kind != wire.Welcome {
		t.Errorf("%v: %s", m.Kind, m.Body)
	}
	if x := b.server.Census().Hosts[1]; x.State != "never seen" {
		t.Errorf("device 2 is %s", x.State)
	}
}
