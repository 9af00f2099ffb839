package air_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/hosts/air"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// line is a bus on which a test says everything.
type line struct {
	bus.Conn
	handlers map[string]func(bus.Message)
	given    []byte // samples
	parts    int
}

func (l *line) Subscribe(pattern string, handle func(bus.Message)) (func(), error) {
	l.handlers[pattern] = handle
	return func() {}, nil
}

func (l *line) Publish(_ string, b []byte) error {
	m, err := wire.Parse(b)
	if err != nil {
		return err
	}
	_, h, samples, err := wire.TakeHeard(m.Body)
	if h.At == 0 {
		l.given = nil
	}
	l.given = append(l.given, samples...)
	l.parts++
	return err
}

// hall is an air, and what is said to it.
type hall struct {
	t      *testing.T
	line   *line
	server identity.Identity
	frames []phy.WaveformFrame
	said   []string
}

func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{t: t, line: &line{handlers: map[string]func(bus.Message){}}}
	dir := filepath.Join(t.TempDir(), "bench")
	folder, err := identity.Create(dir, identity.Options{Devices: 2})
	h.must(err)
	own, err := identity.Load(folder.IdentityPath(identity.Air, 0))
	h.must(err)
	h.server, err = identity.Load(folder.IdentityPath(identity.Server, 0))
	h.must(err)
	memory, err := bench.New(bench.Config{Rate: 10e6, Devices: make([]channel.Impairments, 2), NoiseStd: 1e-3, Seed: keystream.FromInteger(1)})
	h.must(err)
	t.Cleanup(func() { memory.Close() })
	tx, rx, err := memory.Streams()
	h.must(err)
	pulse := modem.Config{Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, SamplesPerSymbol: 8, Preamble: modem.Preamble{Length: modem.DefaultPreamble}}
	wave, err := phy.NewWaveformAir(phy.WaveformAirConfig{Modem: pulse, Base: 3, Transmitters: tx, Receiver: rx,
		OnTransmission: func(_ context.Context, s slot.Slot, at radio.SampleIndex) error {
			memory.Begin(s.Round, uint32(s.Transmission))
			return nil
		}})
	h.must(err)
	m, err := zq.NewModulus([]uint64{0x3ffffffffed001})
	h.must(err)
	for i := range 2 {
		s, err := phy.NewWaveformSender(phy.WaveformConfig{Modulus: m, Devices: 2, Base: 3, Modem: pulse, Repeats: 1}, i)
		h.must(err)
		f, err := s.Frame(slot.Slot{Round: 1}, 0, m.NewVector(10))
		h.must(err)
		h.frames = append(h.frames, f)
	}
	_, err = air.NewWaveform(air.Config{Identity: own, Bus: h.line, Devices: 2, Say: func(text string) { h.said = append(h.said, text) }}, wave)
	h.must(err)
	return h
}

func (h *hall) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// say has the server say something in round 1.
func (h *hall) say(pattern string, kind wire.Kind, body []byte) {
	h.t.Helper()
	b, err := wire.Seal(h.server, wire.Message{Kind: kind, Slot: slot.Slot{Round: 1}, Body: body})
	h.must(err)
	h.line.handlers[pattern](bus.Message{Payload: b})
}

// hear does what a letter stands for: s for the word of who sends, 1 and 2 for the devices'
// frames, l for the call.
func (h *hall) hear(what rune, present []bool) {
	h.t.Helper()
	switch what {
	case 's':
		h.say(wire.AllToAll, wire.Send, wire.Request{Present: present}.Bytes())
	case 'l':
		h.say(wire.AllToAir, wire.Listen, wire.Due{}.Bytes())
	default:
		i := int(what - '1')
		m := wire.Message{Kind: wire.Frame, Device: uint32(i + 1), Slot: slot.Slot{Round: 1}, Body: wire.AppendWaveformFrame(nil, h.frames[i])}
		h.line.handlers[wire.AllOnAir](bus.Message{Subject: wire.RunID{}.OnAir(i + 1), Payload: m.Bytes()})
	}
}

// In whatever order messages come, and however often, the superposition is one, and given as
// soon as all that it needs is there.
func TestWaveformAirInAnyOrder(t *testing.T) {
	var want string
	for _, order := range []string{"s12l", "sl12", "ls12", "12ls", "1l2s", "2s1l", "ll11s2", "ss1122l"} {
		h := newHall(t)
		for _, what := range order {
			if h.line.parts > 0 {
				t.Errorf("%s: given before %c", order, what)
			}
			h.hear(what, []bool{true, true})
		}
		if h.line.parts == 0 {
			t.Errorf("%s: nothing was given: %s", order, strings.Join(h.said, "; "))
			continue
		}
		got, parts := string(h.line.given), h.line.parts
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s: other samples", order)
		}
		for _, what := range "12s" { // are of no use any more
			h.hear(what, []bool{true, false})
		}
		if h.line.parts != parts {
			t.Errorf("%s: superposed again", order)
		}
		if h.hear('l', nil); string(h.line.given) != want || h.line.parts != 2*parts {
			t.Errorf("%s: asked again, the air gives something else", order)
		}
	}
}

// Who was left out is not on the air, though it sends.
func TestWaveformAirWithoutADevice(t *testing.T) {
	alone, both := newHall(t), newHall(t)
	for _, what := range "s1l" {
		alone.hear(what, []bool{true, false})
	}
	for _, what := range "s21l" {
		both.hear(what, []bool{true, false})
	}
	if len(alone.line.given) == 0 || string(alone.line.given) != string(both.line.given) {
		t.Error("a device that was left out is heard")
	}
}
