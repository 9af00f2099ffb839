package air

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/slot"
)

// Waveform superposes frames of a waveform link until it is closed. Groups send one after the
// other, and what is not read may be sent again: which frame is due the server says, and who
// takes part it tells devices and air alike.
type Waveform struct {
	cfg    Config
	bench  *phy.WaveformAir
	listen listening

	mu      sync.Mutex
	run     wire.RunID
	slot    slot.Slot
	present []bool // of the transmission; nil before the server has said who sends
	frames  []*phy.WaveformFrame
	early   []wire.Message // frames of later transmissions, one a device
	due     *wire.Due      // nil before the server has said which
	called  wire.Message   // the call for a frame of a later transmission
	done    *wire.Due      // the last that was superposed, as given
	given   [][]byte
}

// NewWaveform returns an air over a bench that listens. Config's Ring and Modulus are not used.
func NewWaveform(cfg Config, bench *phy.WaveformAir) (*Waveform, error) {
	a := &Waveform{cfg: cfg, bench: bench, frames: make([]*phy.WaveformFrame, cfg.Devices), early: make([]wire.Message, cfg.Devices)}
	var err error
	a.listen, err = listenTo(&a.cfg, a.lead, a.hear)
	return a, err
}

// Close stops listening.
func (a *Waveform) Close() { a.listen.close() }

// lead hears the server.
func (a *Waveform) lead(m wire.Message) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m.Kind {
	case wire.Send:
		return a.begin(m)
	case wire.Listen:
		if a.present == nil || m.Run != a.run || later(m.Slot, a.slot) {
			a.called = m // it has overtaken the word of who sends
			return nil
		}
		return a.call(m)
	}
	return nil
}

// call hears that a frame is due, unless it is one of an earlier transmission.
func (a *Waveform) call(m wire.Message) error {
	d, err := wire.ParseDue(m.Body)
	if err != nil || m.Run != a.run || m.Slot != a.slot {
		return err
	}
	if a.done != nil && d == *a.done {
		return a.give()
	}
	if a.done != nil && !behind(d, *a.done) {
		return nil
	}
	a.due = &d
	return a.superpose()
}

// behind reports whether a frame comes after another of the same transmission.
func behind(d, than wire.Due) bool {
	return d.Group > than.Group || d.Group == than.Group && d.Repeat > than.Repeat
}

// begin begins a transmission, unless it or a later one has begun.
func (a *Waveform) begin(m wire.Message) error {
	r, err := wire.ParseRequest(m.Body, a.cfg.Devices)
	if err != nil {
		return fmt.Errorf("reading who sends: %w", err)
	}
	if m.Run == a.run && a.present != nil && !later(m.Slot, a.slot) {
		return nil
	}
	a.run, a.slot, a.present, a.due, a.done, a.given = m.Run, m.Slot, r.Present, nil, nil, nil
	clear(a.frames)
	var errs []error
	for i, early := range a.early {
		if early.Run == a.run && early.Slot == a.slot && early.Body != nil {
			errs = append(errs, a.take(i, early.Body))
		}
	}
	if a.called.Body != nil {
		errs = append(errs, a.call(a.called))
	}
	return errors.Join(errs...)
}

// hear hears a device's frame.
func (a *Waveform) hear(i int, m wire.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.present == nil || m.Run != a.run || later(m.Slot, a.slot) {
		a.early[i] = m
		return nil
	}
	if m.Slot != a.slot {
		return nil // too late
	}
	return errors.Join(a.take(i, m.Body), a.superpose())
}

// take takes a device's frame, unless it has sent that or a later one.
func (a *Waveform) take(i int, body []byte) error {
	f, err := wire.ParseWaveformFrame(body)
	if err != nil {
		return fmt.Errorf("reading the frame of device %d: %w", i+1, err)
	}
	if before := a.frames[i]; before == nil || f.Group == before.Group && f.Repeat > before.Repeat {
		a.frames[i] = &f
	}
	return nil
}

// superpose gives the superposition of the frame that is due once all who take part have sent
// theirs. What was superposed is not superposed again with others.
func (a *Waveform) superpose() error {
	if a.due == nil {
		return nil
	}
	on := make([]*phy.WaveformFrame, len(a.frames))
	for i, f := range a.frames {
		switch {
		case !a.present[i]: // what nobody asked for is not on the air
		case f == nil:
			return nil
		case f.Group == a.due.Group && f.Repeat != a.due.Repeat:
			return nil
		default:
			on[i] = f
		}
	}
	due := *a.due
	a.due, a.done, a.given = nil, &due, nil
	parts, given := make(chan []byte, mostParts), make(chan struct{})
	go func() { // beside what is still superposed
		defer close(given)
		for part := range parts {
			a.publish(part)
		}
	}()
	err := a.bench.Superpose(context.Background(), a.slot, due.Group, on, func(h phy.Heard) error {
		m := wire.Message{Kind: wire.Superposition, Run: a.run, Slot: a.slot}
		part := m.With(wire.HeardSize(len(h.Samples)), func(b []byte) []byte { return wire.AppendHeard(b, due, h) })
		a.given = append(a.given, part)
		parts <- part
		return nil
	})
	close(parts)
	<-given
	if err != nil || a.cfg.Note == nil || due != (wire.Due{Group: firstGroup(on)}) {
		return err
	}
	return a.cfg.Note(a.slot)
}

// mostParts is how many parts of a frame wait for the bus at most.
const mostParts = 64

// firstGroup returns the first group of which somebody sends.
func firstGroup(on []*phy.WaveformFrame) int {
	i := slices.IndexFunc(on, func(f *phy.WaveformFrame) bool { return f != nil })
	return on[i].Group
}

// give gives the last superposition once more.
func (a *Waveform) give() error {
	for _, part := range a.given {
		a.publish(part)
	}
	return nil
}

// publish gives a part. One that is lost is asked for again.
func (a *Waveform) publish(part []byte) {
	if err := a.cfg.Bus.Publish(a.run.FromAir(), part); err != nil {
		a.cfg.Say("the bus does not take superpositions: " + err.Error())
	}
}
