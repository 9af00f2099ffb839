package phy

import (
	"context"
	"fmt"
	"math"

	"ringwave/phy/frame"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// WaveformAirConfig describes what lies between the devices of a waveform link and its
// receiver where they are on other hosts, and the bench is one in memory.
type WaveformAirConfig struct {
	// Modem is the link's, Base its B.
	Modem modem.Config
	Base  int
	// Transmitters, one a device, and Receiver are running streams as WaveformConfig's.
	Transmitters []radio.Transmitter
	Receiver     radio.Receiver
	// CarrierTime and OnTransmission are WaveformConfig's.
	CarrierTime    func(at radio.SampleIndex) radio.SampleIndex
	OnTransmission func(ctx context.Context, s slot.Slot, at radio.SampleIndex) error
}

// WaveformAir superposes frames of devices: it makes the samples of their symbols, puts them
// on the streams of a bench, and gives what the bench's receiver hears, as a Waveform does
// between its halves. It knows no secret of devices or server, and judges nothing. It is for
// one goroutine.
type WaveformAir struct {
	onTransmission func(ctx context.Context, s slot.Slot, at radio.SampleIndex) error
	peak           int8
	sender         *sender
	finder         *finder

	slot  slot.Slot
	begun bool // slot is set
	who   []int
}

// NewWaveformAir returns the air over a bench.
func NewWaveformAir(cfg WaveformAirConfig) (*WaveformAir, error) {
	own := WaveformConfig{
		Devices: len(cfg.Transmitters), Modem: cfg.Modem, Base: cfg.Base,
		Transmitters: cfg.Transmitters, Receiver: cfg.Receiver, CarrierTime: cfg.CarrierTime,
	}
	own.setDefaults()
	if err := own.validate(); err != nil {
		return nil, err
	}
	streams, time := &streams{tx: cfg.Transmitters, rx: cfg.Receiver}, newTimeline(0, 0)
	a := &WaveformAir{
		onTransmission: cfg.OnTransmission, peak: int8(own.Modem.Preamble.Level), sender: newSender(&own, streams, time),
		finder: &finder{layout: &layout{sps: own.Modem.SamplesPerSymbol}, streams: streams, time: time},
	}
	return a, a.sender.adjust(&own, Alignment{})
}

// Heard is a part of a frame as a receiver's converter has it: so many of its samples from
// sample At on, guard times included, and how many of them it clipped.
type Heard struct {
	At, Of  int
	Samples []complex64
	Clipped radio.SampleCount
}

// heardPart is how many samples a part has at most: 8 bytes each, with what names them they
// are below 2^18.
const heardPart = 1<<15 - 64

// Superpose has the devices of a group send their frames of a transmission, behind all that
// was sent, and calls give with the parts of what arrives, one behind the other. They hold
// until give returns. Frames has the last of each device, nil for one that takes no part:
// those of other groups say what their transmitters make up for as they rest.
func (a *WaveformAir) Superpose(ctx context.Context, s slot.Slot, group int, frames []*WaveformFrame, give func(Heard) error) error {
	symbols, err := a.take(group, frames)
	if err != nil {
		return err
	}
	if !a.begun || s != a.slot {
		a.slot, a.begun, a.sender.begun = s, true, false
		a.sender.putOff()
		if a.onTransmission != nil {
			if err := a.onTransmission(ctx, s, a.sender.time.cursor); err != nil {
				return err
			}
		}
	}
	a.sender.modulate(a.who, func(int) {})
	window := a.sender.window(symbols)
	c := a.sender.place(window)
	if err := a.sender.send(ctx, a.who, c, s.Transmission); err != nil {
		return err
	}
	h := Heard{Of: int(window)}
	for ; h.At < h.Of; h.At += len(h.Samples) {
		meta, err := a.finder.hear(ctx, c.At+radio.SampleIndex(h.At), min(heardPart, h.Of-h.At))
		if err != nil {
			return fmt.Errorf("receiving %v: %w", s.Transmission, err)
		}
		h.Samples, h.Clipped = a.finder.capture.samples, meta.Clipped
		if err := give(h); err != nil {
			return err
		}
	}
	return nil
}

// take gives the devices their symbols, as their own hosts drive them, and returns how many
// these are.
func (a *WaveformAir) take(group int, frames []*WaveformFrame) (symbols int, err error) {
	if len(frames) != len(a.sender.devices) {
		return 0, fmt.Errorf("frames of %d devices on a bench of %d", len(frames), len(a.sender.devices))
	}
	a.who = a.who[:0]
	for i, f := range frames {
		if f == nil {
			continue
		}
		if err := f.check(a.peak); err != nil {
			return 0, fmt.Errorf("device %d sends %w", i+1, err)
		}
		d := a.sender.devices[i]
		if err := d.makeUp(a.sender.modem, f); err != nil {
			return 0, fmt.Errorf("device %d: %w", i+1, err)
		}
		if f.Group != group {
			continue
		}
		if len(a.who) > 0 && len(f.Symbols) != symbols {
			return 0, fmt.Errorf("device %d sends %d symbols, and another %d: all of a group are alike", i+1, len(f.Symbols), symbols)
		}
		symbols, d.symbols, d.gain = len(f.Symbols), f.Symbols, f.Gain
		a.who = append(a.who, i)
	}
	if len(a.who) == 0 {
		return 0, fmt.Errorf("nobody of group %d sends", group+1)
	}
	return symbols, nil
}

// MaxFrameSymbols bounds the symbols of a frame.
const MaxFrameSymbols = 1 << 24

// check refuses what no device of a link sends whose largest symbol is peak. What its Drive
// may be, a modulator says.
func (f *WaveformFrame) check(peak int8) error {
	if n := len(f.Symbols); n < frame.HeaderSymbols || n > MaxFrameSymbols {
		return fmt.Errorf("%d symbols: allowed are %d to %d", n, frame.HeaderSymbols, MaxFrameSymbols)
	}
	for _, s := range f.Symbols {
		if s > peak || s < -peak {
			return fmt.Errorf("the symbol %d: allowed are -%d to %d", s, peak, peak)
		}
	}
	if !(f.Gain > 0 && f.Gain <= 1) {
		return fmt.Errorf("at the gain %v: it must be above 0 and at most 1", f.Gain)
	}
	if f.Drive.Peak != float32(peak) || math.IsNaN(float64(f.Drive.Amplitude)) {
		return fmt.Errorf("symbols up to %v: allowed are those up to %d", f.Drive.Peak, peak)
	}
	return f.Correction.Validate()
}
