package phy

import (
	"context"
	"errors"
	"fmt"

	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// Waveform is the waveform link with both halves in one process: digits of ring elements as
// symbols that really superpose, and a receiver that finds the integers again. It is for one
// goroutine but for Transmit.
type Waveform struct {
	*WaveformReceiver
	framers []*framer // of the devices
}

// NewWaveform makes a waveform link.
func NewWaveform(cfg WaveformConfig) (*Waveform, error) {
	r, err := newWaveformReceiver(cfg)
	if err != nil {
		return nil, err
	}
	w := &Waveform{WaveformReceiver: r}
	r.other, r.sender = w, newSender(&r.cfg, r.streams, r.time)
	for i := range r.cfg.Devices {
		w.framers = append(w.framers, newFramer(r.layout, r.groups.of(i).members, i, r.cfg.Modem.Preamble.Level))
	}
	return w, w.sender.adjust(&r.cfg, r.cfg.Alignment)
}

// Open begins a transmission of payloads of n coefficients.
func (w *Waveform) Open(ctx context.Context, s slot.Slot, n int) error {
	if err := w.WaveformReceiver.Open(ctx, s, n); err != nil {
		return err
	}
	for i, f := range w.framers {
		f.open(w.payload)
		w.sender.devices[i].gain = w.retries.gains[i]
	}
	return nil
}

// Transmit writes device i's digits.
func (w *Waveform) Transmit(i int, x zq.Vector) error {
	if i < 0 || i >= w.cfg.Devices {
		return fmt.Errorf("device %d transmits on a link of %d devices", i+1, w.cfg.Devices)
	}
	if x.Len() != w.payload.Len() {
		return fmt.Errorf("device %d sends %d coefficients of %v where %d are expected", i+1, x.Len(), w.slot.Transmission, w.payload.Len())
	}
	w.framers[i].take(w.payload, x)
	return nil
}

// Receive sends the groups' frames one after the other, receives them, and joins
// their integers. A frame that was written when ctx ends may still be sent: taking
// carriers off is for who opened the radios.
func (w *Waveform) Receive(ctx context.Context, rx *Reception) error {
	for i, f := range w.framers {
		if !f.sent && !w.streams.listenOnly() {
			return fmt.Errorf("device %d sent no %v in round %d", i+1, w.slot.Transmission, w.slot.Round)
		}
	}
	return w.WaveformReceiver.Receive(ctx, rx)
}

// send has a group's devices send: otherHalf.
func (w *Waveform) send(ctx context.Context, g *group, e expected) (radio.SampleIndex, error) {
	w.modulate(g, e)
	c := w.sender.place(w.sender.window(w.layout.start(g.patterns.Symbols()) + e.payload.Symbols()))
	return c.At, w.sender.send(ctx, g.indices(), c, e.slot.Transmission)
}

// modulate makes the samples of a group's frames, whose check weights were drawn.
func (w *Waveform) modulate(g *group, e expected) {
	w.sender.modulate(g.indices(), func(i int) {
		w.framers[i].finish(e.payload, e.header)
		w.sender.devices[i].symbols = w.framers[i].symbols
	})
}

// ErrNobody is what WaveformConfig.Call returns where no device of the group takes part in
// the attempt, and ErrUnsent where one does and does not send: the attempt is then void.
var (
	ErrNobody = errors.New("no device of the group takes part")
	ErrUnsent = errors.New("a device does not send")
)

// Due is a frame that a receiver waits for.
type Due struct {
	Slot slot.Slot
	// Group is the devices' time slot, and Repeat counts frames of the same payload.
	Group, Repeat int
	// At is the receiver's index at which its guard time begins, and Samples how many it
	// takes with both guard times.
	At      radio.SampleIndex
	Samples int
	// Cue is when devices send it on radios of their own; zero where there are none.
	Cue Cue
}

// elsewhere is the sending half on other hosts.
type elsewhere struct{ *WaveformReceiver }

// send calls for a frame: otherHalf.
func (w *elsewhere) send(ctx context.Context, g *group, e expected) (radio.SampleIndex, error) {
	at, samples := w.time.cursor, w.layout.window(g.patterns.Symbols(), e.payload)
	d := Due{Slot: e.slot, Group: g.number, Repeat: int(e.header.Repeat), Samples: samples}
	if w.sender != nil {
		d.Cue = w.sender.place(radio.SampleIndex(samples))
		at = d.Cue.At
	}
	d.At = at + w.time.offset
	err := w.cfg.Call(ctx, d)
	if errors.Is(err, ErrNobody) {
		g.silent = true
		return at, nil
	}
	if err == nil && w.sender == nil {
		end := at + radio.SampleIndex(samples)
		w.time.cursor, w.time.sent = end, end
	}
	return at, err
}
