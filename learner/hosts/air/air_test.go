package air_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/learner/hosts/air"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/bus/bustest"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// ones are gains of 1, 10 and 100.
type ones struct{}

func (ones) Devices() int     { return 3 }
func (ones) Alpha() float64   { return 1 }
func (ones) Continuous() bool { return false }
func (ones) Scaled(dst []float64, _, _ uint32, _ int) {
	copy(dst, []float64{1, 10, 100})
}

// sky is an Air with three devices' and the server's connections.
type sky struct {
	t       *testing.T
	modulus *zq.Modulus
	server  identity.Identity
	conn    bus.Conn
	devices []bus.Conn
	heard   chan wire.Message
	run     wire.RunID
}

func newSky(t *testing.T) *sky {
	t.Helper()
	m, err := zq.NewModulus([]uint64{0x7fff801})
	if err != nil {
		t.Fatal(err)
	}
	b := bustest.New(t, 3, "")
	s := &sky{t: t, modulus: m, heard: make(chan wire.Message, 16), run: wire.RunID{5}}
	s.server, s.conn = b.Identity(identity.Server, 0), b.Dial(identity.Server, 0, bus.Options{})
	for i := range 3 {
		s.devices = append(s.devices, b.Dial(identity.Device, i+1, bus.Options{}))
	}
	if _, err := s.conn.Subscribe(wire.AllFromAir, func(m bus.Message) {
		x, err := wire.Parse(m.Payload)
		if err != nil {
			t.Error(err)
		}
		s.heard <- x
	}); err != nil {
		t.Fatal(err)
	}
	none := [slot.Transmissions]float64{}
	a, err := air.New(air.Config{
		Identity: b.Identity(identity.Air, 0), Bus: b.Dial(identity.Air, 0, bus.Options{}), Modulus: m, Devices: 3,
		Ring: phy.NewRingAir(m, ones{}, none, keystream.FromInteger(1)), Say: func(text string) { t.Log(text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return s
}

// ask has the server say something to all.
func (s *sky) ask(m wire.Message, signed bool) {
	s.t.Helper()
	m.Run = s.run
	b := m.Bytes()
	if signed {
		var err error
		if b, err = wire.Seal(s.server, m); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.conn.Publish(s.run.ToAll(), b); err != nil {
		s.t.Fatal(err)
	}
	s.flush(s.conn)
}

// send has device i send a value in a slot, as device said.
func (s *sky) send(i int, at slot.Slot, value int64, said int) {
	s.t.Helper()
	f := phy.RingFrame{Payload: s.modulus.NewVector(1), Checks: s.modulus.NewVector(1), Pattern: []int8{1}}
	s.modulus.SetInt(f.Payload, 0, value)
	m := wire.Message{Kind: wire.Frame, Run: s.run, Device: uint32(said), Slot: at, Body: wire.AppendRingFrame(nil, f)}
	if err := s.devices[i-1].Publish(s.run.OnAir(i), m.Bytes()); err != nil {
		s.t.Fatal(err)
	}
	s.flush(s.devices[i-1])
}

func (s *sky) flush(c bus.Conn) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := c.Flush(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// hear returns what the server hears, and its one coefficient.
func (s *sky) hear() (wire.Message, float64) {
	s.t.Helper()
	select {
	case m := <-s.heard:
		rx := phy.Reception{Y: s.modulus.NewVector(1), Pattern: make([]int64, 1)}
		if err := wire.ParseReception(m.Body, s.modulus, &rx, s.modulus.NewVector(1)); err != nil {
			s.t.Fatal(err)
		}
		return m, s.modulus.Centred(rx.Y, 0).Float64()
	case <-time.After(time.Minute):
		s.t.Fatal("the air gives nothing")
		panic("")
	}
}

func request(present ...bool) []byte { return wire.Request{Present: present}.Bytes() }

// The air gives the superposition of those whom the server has named, once all of them are
// there, in whatever order; the same again where it is asked again; and never another one
// of the same transmission.
func TestAir(t *testing.T) {
	s := newSky(t)
	at := slot.Slot{Round: 1, Transmission: slot.TxC0}
	// An unsigned word of the server's, and frames that say that they are another's, count
	// for nothing: were they taken, the sums below were others.
	s.ask(wire.Message{Kind: wire.Send, Slot: at, Body: request(true, false, false)}, false)
	s.send(1, at, 2, 1) // before the server has said who sends
	s.send(3, at, 5, 1)
	s.ask(wire.Message{Kind: wire.Send, Slot: at, Body: request(true, true, false)}, true)
	s.send(3, at, 7, 3) // whom nobody asked
	s.send(2, at, 3, 2)
	first, sum := s.hear()
	if first.Slot != at || sum != 2+30 {
		t.Errorf("%+v: the sum is %v, expected 32", first.Slot, sum)
	}
	// Asked for others, or for one alone, it gives nothing; asked again, the same.
	s.ask(wire.Message{Kind: wire.Send, Slot: at, Body: request(true, false, false)}, true)
	s.send(1, at, 2, 1)
	s.ask(wire.Message{Kind: wire.Again, Slot: at}, true)
	if again, _ := s.hear(); !bytes.Equal(again.Bytes(), first.Bytes()) {
		t.Errorf("asked again, the air gives %+v", again)
	}
	// The next transmission is another, and of earlier ones nothing more is heard.
	next := slot.Slot{Round: 1, Transmission: slot.TxC1}
	s.ask(wire.Message{Kind: wire.Send, Slot: next, Body: request(true, true, true)}, true)
	for i := range 3 {
		s.send(i+1, next, 1, i+1)
	}
	if m, sum := s.hear(); m.Slot != next || sum != 111 {
		t.Errorf("%+v: the sum is %v, expected 111", m.Slot, sum)
	}
	s.ask(wire.Message{Kind: wire.Send, Slot: at, Body: request(true, false, false)}, true)
	s.ask(wire.Message{Kind: wire.Again, Slot: at}, true)
	s.ask(wire.Message{Kind: wire.Again, Slot: next}, true)
	if m, _ := s.hear(); m.Slot != next {
		t.Errorf("the air gives %+v, which is over", m.Slot)
	}
}
