package phy

import (
	"context"
	"fmt"
	"math"
	"time"

	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// WaveformTransmitter puts one device's frames on a radio of its own, when a receiver on
// another host says so: what a Waveform does with all of its devices. It knows no secret. It is
// for one goroutine.
type WaveformTransmitter struct {
	peak   int8
	sender *sender
	group  int
	loaded bool
}

// WaveformTransmitterConfig describes a device's own radio.
type WaveformTransmitterConfig struct {
	// Modem is the link's, Base its B.
	Modem modem.Config
	Base  int
	// Patience is WaveformConfig's.
	Patience time.Duration
}

// NewWaveformTransmitter returns the end of a device that has no stream yet.
func NewWaveformTransmitter(cfg WaveformTransmitterConfig) (*WaveformTransmitter, error) {
	own := WaveformConfig{Devices: 1, Modem: cfg.Modem, Base: cfg.Base, Patience: cfg.Patience}
	own.setDefaults()
	if err := own.validate(); err != nil {
		return nil, err
	}
	streams := &streams{patience: cfg.Patience}
	t := &WaveformTransmitter{peak: int8(own.Modem.Preamble.Level), sender: newSender(&own, streams, newTimeline(0, 0))}
	return t, t.sender.adjust(&own, Alignment{})
}

// Begin takes up a running stream, in which nothing was sent, and whose indices are those
// that cues have.
func (t *WaveformTransmitter) Begin(tx radio.Transmitter) error {
	if err := idle([]radio.Transmitter{tx}); err != nil {
		return err
	}
	t.sender.streams.tx = []radio.Transmitter{tx}
	t.sender.begin()
	return nil
}

// Load gets ready for a frame, whose symbols must not change until another is loaded.
func (t *WaveformTransmitter) Load(f WaveformFrame) error {
	t.loaded = false
	if err := f.check(t.peak); err != nil {
		return fmt.Errorf("the device's frame has %w", err)
	}
	d := t.sender.devices[0]
	if err := d.makeUp(t.sender.modem, &f); err != nil {
		return err
	}
	t.group, d.symbols, d.gain, d.made = f.Group, f.Symbols, f.Gain, drifted{}
	if d.correction.Clock == 0 {
		d.modulate(t.sender.modem.SamplesPerSymbol)
	}
	t.loaded = true
	return nil
}

// maxIndex bounds the indices of cues: a stream does not get there.
const maxIndex = 1 << 52

// MaxSilence bounds how many samples a cue has a device be silent for.
const MaxSilence = 1 << 28

// Send sends the frame that was loaded at a cue if it is its group's, and is silent if not.
func (t *WaveformTransmitter) Send(ctx context.Context, c Cue, group int, what slot.Transmission) error {
	s := t.sender
	if len(s.streams.tx) == 0 {
		return radio.ErrNotStarted
	}
	if n := c.Silent - c.At; n < 2*s.guard || n > MaxSilence {
		return fmt.Errorf("a frame that takes %d samples: allowed are %d to %d", n, 2*s.guard, MaxSilence)
	}
	if c.At < 0 || c.At > maxIndex || c.Elapsed < 0 || c.Elapsed > maxIndex {
		return fmt.Errorf("a frame at index %d, %d samples behind its transmission's first: allowed are 0 to %d", c.At, c.Elapsed, int64(maxIndex))
	}
	if ahead := s.devices[0].ahead(c.made()); !(math.Abs(ahead) <= float64(s.guard)/2) {
		return fmt.Errorf("the sample clock is %.3g samples ahead at a frame: its guard time leaves room for %d", ahead, s.guard/2)
	}
	var who []int
	if t.loaded && group == t.group {
		who = []int{0}
		if n := s.window(len(s.devices[0].symbols)); n > c.Silent-c.At {
			return fmt.Errorf("%d samples for a frame of %d", c.Silent-c.At, n)
		}
	}
	return s.send(ctx, who, c, what)
}
