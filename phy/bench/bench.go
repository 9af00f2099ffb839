// Package bench is the simulated bench: transmitters and a receiver that memory joins
// sample by sample, over the gains of a fading channel.
//
// It takes in what each radio's hardware and place do to its samples, the receiver's
// noise and converter, and the channel's gains, and gives running streams. Beside them
// it says what follows for symbols of such a bench: how strong they arrive in which
// regime, how noisy they are, and where the receiver clips. It knows nothing of how an
// experiment is configured, of rounds, or of what is sent.
package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/loopback"
)

// Config describes a bench.
type Config struct {
	Rate radio.Hertz
	// Devices are the transmitters' impairments, their delays and phases among them.
	Devices []channel.Impairments
	// Receiver is what the receiver's hardware does, and FullScale the amplitude at which
	// its converter clips, that of a device of gain 1 being 1; 0 stands for 1. NoiseStd is
	// the deviation of its noise a branch and sample, at the antenna.
	Receiver            channel.Impairments
	FullScale, NoiseStd float64
	// Channel has the gains that Draw and Fade draw; nil where gains are set alone.
	Channel *channel.Channel
	// Seed is that of phase noise and receiver noise.
	Seed keystream.Seed
}

// After returns the bench as it is so many samples after it began: carriers that are off,
// or wander, have turned by then. The seed is that of how they wandered.
func (c Config) After(samples float64, seed keystream.Seed) Config {
	normal := rand.New(seed.Stream())
	c.Devices = slices.Clone(c.Devices)
	for i := range c.Devices {
		d := &c.Devices[i]
		_, turns := math.Modf(d.CarrierOffset * samples)
		d.PhaseRad += 2*math.Pi*turns + d.PhaseNoiseStd*math.Sqrt(samples)*normal.NormFloat64()
		d.PhaseRad = math.Remainder(d.PhaseRad, 2*math.Pi)
	}
	return c
}

// Bench is a bench in memory. Its methods are for one goroutine.
type Bench struct {
	// Medium joins the streams: for what a test does to them.
	Medium *loopback.Medium
	// H are the gains that were drawn last.
	H []float64

	channel *channel.Channel
	front   *channel.Front
	paths   []*path
}

// path is what lies between a transmitter and the receiver.
type path struct {
	imp  channel.Impairments
	seed keystream.Seed
	now  *channel.Path
}

// Apply implements loopback.Path.
func (p *path) Apply(dst, src []complex64, _ int64) { p.now.Apply(dst, src) }

// renew makes the path anew.
func (p *path) renew() (err error) {
	p.now, err = channel.NewPath(p.imp, p.seed)
	return err
}

// receiver lets a channel.Front, whose full scale is 1, be the receiver's noise and
// converter.
type receiver struct {
	*channel.Front
	full float64
}

// Convert implements loopback.Converter.
func (r receiver) Convert(dst []complex64, _ int64) int {
	clipped := r.Apply(dst)
	if r.full != 1 {
		for k, x := range dst {
			// In double precision, as a recording's codes are scaled: both are then equal.
			dst[k] = complex(float32(r.full*float64(real(x))), float32(r.full*float64(imag(x))))
		}
	}
	return clipped
}

// New makes a bench whose gains are 1.
func New(cfg Config) (*Bench, error) {
	if cfg.Channel != nil && cfg.Channel.Devices() != len(cfg.Devices) {
		return nil, fmt.Errorf("a bench of %d devices over a channel of %d: they must be as many", len(cfg.Devices), cfg.Channel.Devices())
	}
	full := cfg.FullScale
	if full == 0 {
		full = 1
	}
	b := &Bench{channel: cfg.Channel, H: make([]float64, len(cfg.Devices))}
	// A frame is written before it is read, however long it is.
	medium := loopback.Config{Rate: cfg.Rate, Window: math.MaxInt32}
	for i, imp := range cfg.Devices {
		p := &path{imp: imp, seed: cfg.Seed.Derive("path", uint64(i))}
		if err := p.renew(); err != nil {
			return nil, fmt.Errorf("device %d: %w", i+1, err)
		}
		b.paths = append(b.paths, p)
		medium.Devices = append(medium.Devices, loopback.Device{Gain: 1, Path: p})
	}
	var err error
	if b.front, err = channel.NewFront(cfg.Receiver, cfg.NoiseStd, 1/full, cfg.Seed.Derive("front")); err != nil {
		return nil, fmt.Errorf("the receiver's front end: %w", err)
	}
	medium.Converter = receiver{b.front, full}
	if b.Medium, err = loopback.New(medium); err != nil {
		return nil, err
	}
	return b, nil
}

// Streams opens and starts all streams. They live until the bench is closed.
func (b *Bench) Streams() (tx []radio.Transmitter, rx radio.Receiver, err error) {
	ctx := context.Background() // they live as long as the bench
	for i := range b.paths {
		d, err := b.Medium.Transmitter(i)
		if err != nil {
			return nil, nil, err
		}
		s, err := d.(radio.TransmitOpener).OpenTransmitter(ctx)
		if err != nil {
			return nil, nil, err
		}
		if err := s.Start(ctx); err != nil {
			return nil, nil, err
		}
		tx = append(tx, s)
	}
	d, err := b.Medium.Receiver(0)
	if err != nil {
		return nil, nil, err
	}
	if rx, err = d.(radio.ReceiveOpener).OpenReceiver(ctx); err != nil {
		return nil, nil, err
	}
	return tx, rx, rx.Start(ctx)
}

// Close lets go of the streams.
func (b *Bench) Close() error { return b.Medium.Close() }

// Latency returns the constant delay of all paths, in samples.
func (b *Bench) Latency() int { return b.paths[0].now.Latency() }

// Move gives a device another delay, in the silence between frames: its samples before
// are forgotten.
func (b *Bench) Move(device int, delaySamples float64) error {
	p := b.paths[device]
	p.imp.DelaySamples = delaySamples
	if err := p.renew(); err != nil {
		return fmt.Errorf("device %d: %w", device+1, err)
	}
	return nil
}

// Begin begins the noise of a part of a round, by name: a resumed run meets the same.
func (b *Bench) Begin(round, part uint32) { b.front.Start(round, part) }

// Draw draws the gains of transmission t of an attempt at a round into H, and begins
// that transmission's noise, both by name.
func (b *Bench) Draw(round, attempt uint32, t int) {
	b.Begin(round, attempt*slot.Transmissions+uint32(t))
	b.channel.Scaled(b.H, round, attempt, t)
	for i := range b.H {
		b.H[i] /= b.channel.Alpha()
	}
}

// Fade draws the gains of a transmission and sets them from index at on.
func (b *Bench) Fade(round, attempt uint32, t int, at radio.SampleIndex) error {
	b.Draw(round, attempt, t)
	for i, h := range b.H {
		if err := b.Medium.SetGain(i, at, complex(float32(h), 0)); err != nil {
			return err
		}
	}
	return nil
}
