// Package air is the channel of a simulated bench of many hosts.
//
// It takes in the frames that devices put on it, and the server's word of who sends in a
// transmission, and gives the server the superposition and nothing else: that separation is
// what physics gives a real bench. Air is that of a ring link, which adds ring elements, and
// Waveform that of a waveform link, which makes samples of symbols and lets a simulated
// receiver hear them, frame by frame as the server calls for them. What was superposed once is not superposed again with
// others: asked again, it gives the same. It knows the gains, and no secret of devices or
// server, and it judges nothing.
package air

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// Config is what an Air is made of.
type Config struct {
	Identity identity.Identity
	Bus      bus.Conn
	Modulus  *zq.Modulus
	Ring     *phy.RingAir
	Devices  int
	// Note, if not nil, hears of each superposition once it was given, from one goroutine
	// at a time.
	Note func(s slot.Slot) error
	// Say hears what a user should know; nil for nobody.
	Say func(text string)
}

// Air superposes until it is closed.
type Air struct {
	cfg    Config
	listen listening

	mu      sync.Mutex
	run     wire.RunID
	slot    slot.Slot
	present []bool // of the transmission; nil before the server has said who sends
	frames  []phy.RingFrame
	early   []wire.Message // frames of later transmissions, one a device
	result  []byte         // what was given; nil before
}

// New returns an Air that listens.
func New(cfg Config) (*Air, error) {
	a := &Air{cfg: cfg, frames: make([]phy.RingFrame, cfg.Devices), early: make([]wire.Message, cfg.Devices)}
	var err error
	a.listen, err = listenTo(&a.cfg, a.lead, a.hear)
	return a, err
}

// Close stops listening.
func (a *Air) Close() { a.listen.close() }

// listening is the subscriptions of an air.
type listening []func()

// listenTo has lead hear what the server says, and hear the frames of devices, counted from 0.
func listenTo(cfg *Config, lead func(wire.Message) error, hear func(i int, m wire.Message) error) (l listening, err error) {
	if cfg.Identity.Role != identity.Air {
		return nil, fmt.Errorf("%s: the identity is that of %s; allowed is that of the air", cfg.Identity.Path, cfg.Identity)
	}
	if cfg.Say == nil {
		cfg.Say = func(string) {}
	}
	follow := func(b bus.Message) {
		m, err := wire.Open(b.Payload, func(purpose string, message, signature []byte) error {
			return identity.Verify(cfg.Identity.Server, purpose, message, signature)
		})
		if err != nil {
			cfg.Say("ignored a message: " + err.Error())
		} else if err := lead(m); err != nil {
			cfg.Say(err.Error())
		}
	}
	frames := func(b bus.Message) {
		m, ok := frameOf(b, cfg.Devices)
		if !ok {
			return
		}
		if err := hear(int(m.Device)-1, m); err != nil {
			cfg.Say(err.Error())
		}
	}
	for pattern, handle := range map[string]func(bus.Message){wire.AllOnAir: frames, wire.AllToAll: follow, wire.AllToAir: follow} {
		stop, err := cfg.Bus.Subscribe(pattern, handle)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("listening on %s: %w", pattern, err)
		}
		l = append(l, stop)
	}
	return l, nil
}

func (l listening) close() {
	for _, stop := range l {
		stop()
	}
}

// frameOf returns a device's frame: not what is none, or says that it is another device's.
func frameOf(b bus.Message, devices int) (m wire.Message, ok bool) {
	words := strings.Split(b.Subject, ".")
	m, err := wire.Parse(b.Payload)
	return m, err == nil && len(words) >= 4 && words[3] == strconv.Itoa(int(m.Device)) && m.Kind == wire.Frame &&
		m.Device >= 1 && int(m.Device) <= devices
}

// lead hears the server.
func (a *Air) lead(m wire.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m.Kind {
	case wire.Send:
		return a.begin(m)
	case wire.Again:
		if m.Run == a.run && m.Slot == a.slot && a.result != nil {
			return a.give()
		}
	}
	return nil
}

// later reports whether a transmission comes after another of the same run.
func later(s, than slot.Slot) bool {
	key := func(s slot.Slot) [4]uint32 {
		return [4]uint32{s.Round, s.Attempt, uint32(s.Transmission), uint32(s.Again)}
	}
	x, y := key(s), key(than)
	for i := range x {
		if x[i] != y[i] {
			return x[i] > y[i]
		}
	}
	return false
}

// begin begins a transmission, unless it or a later one has begun.
func (a *Air) begin(m wire.Message) error {
	r, err := wire.ParseRequest(m.Body, a.cfg.Devices)
	if err != nil {
		return fmt.Errorf("reading who sends: %w", err)
	}
	if m.Run == a.run && a.present != nil && !later(m.Slot, a.slot) {
		return nil
	}
	a.run, a.slot, a.present, a.result = m.Run, m.Slot, r.Present, nil
	clear(a.frames)
	for i, early := range a.early {
		if early.Run == a.run && early.Slot == a.slot && early.Body != nil {
			if err := a.take(i, early.Body); err != nil {
				return err
			}
		}
	}
	return a.superpose()
}

// hear hears a device's frame.
func (a *Air) hear(i int, m wire.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.present == nil || m.Run != a.run || later(m.Slot, a.slot) {
		a.early[i] = m
		return nil
	}
	if m.Slot != a.slot || a.result != nil || a.frames[i].Payload != nil {
		return nil // heard before, or too late
	}
	return errors.Join(a.take(i, m.Body), a.superpose())
}

// take takes a device's frame.
func (a *Air) take(i int, body []byte) error {
	f, err := wire.ParseRingFrame(body, a.cfg.Modulus)
	if err != nil {
		return fmt.Errorf("reading the frame of device %d: %w", i+1, err)
	}
	a.frames[i] = f
	return nil
}

// superpose gives the superposition once all frames are there.
func (a *Air) superpose() error {
	var first *phy.RingFrame
	for i, there := range a.present {
		f := &a.frames[i]
		if there != (f.Payload != nil) && there {
			return nil
		}
		if !there {
			*f = phy.RingFrame{} // what nobody asked for is not on the air
			continue
		}
		if first == nil {
			first = f
		}
		if f.Payload.Len() != first.Payload.Len() || f.Checks.Len() != first.Checks.Len() || len(f.Pattern) != len(first.Pattern) {
			return fmt.Errorf("device %d sends %d coefficients, %d checks and %d symbols of a pattern, and another %d, %d and %d: all of a transmission are alike",
				i+1, f.Payload.Len(), f.Checks.Len(), len(f.Pattern), first.Payload.Len(), first.Checks.Len(), len(first.Pattern))
		}
	}
	if first == nil {
		return nil
	}
	m := a.cfg.Modulus
	rx := phy.Reception{Y: m.NewVector(first.Payload.Len()), Pattern: make([]int64, len(first.Pattern))}
	chk := m.NewVector(first.Checks.Len())
	if err := a.cfg.Ring.Superpose(a.slot, &rx, chk, a.frames); err != nil {
		return err
	}
	a.result = wire.Message{Kind: wire.Superposition, Run: a.run, Slot: a.slot, Body: wire.AppendReception(nil, &rx, chk)}.Bytes()
	if err := a.give(); err != nil || a.cfg.Note == nil {
		return err
	}
	return a.cfg.Note(a.slot)
}

// give gives the superposition. One that is lost is asked for again.
func (a *Air) give() error {
	if err := a.cfg.Bus.Publish(a.run.FromAir(), a.result); err != nil {
		a.cfg.Say("the bus does not take superpositions: " + err.Error())
	}
	return nil
}
