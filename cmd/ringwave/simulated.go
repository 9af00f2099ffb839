package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/cmd/internal/config"
	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/loopback"
)

// simulated is the bench in memory: one transmitter a device and one receiver joined
// sample by sample, with the gains of a fading channel.
type simulated struct {
	medium   *loopback.Medium
	front    *channel.Front
	channel  *channel.Channel
	noiseStd float64 // a branch and sample, at the antenna
	phases   []float64
	delays   []modem.Samples
	h        []float64 // of the last transmission
}

// pathOf lets a channel.Path distort a device of the medium.
type pathOf struct{ *channel.Path }

func (p pathOf) Apply(dst, src []complex64, _ int64) { p.Path.Apply(dst, src) }

// newSimulated makes the bench of a configuration, with gains of a channel. Where
// devices stand comes from root, and what is chance otherwise from draws.
func newSimulated(c config.Config, root, draws keystream.Seed, ch *channel.Channel) (*simulated, error) {
	scale, err := symbolScale(c)
	if err != nil {
		return nil, err
	}
	b := &simulated{channel: ch, noiseStd: receiverNoise(c.Link, modemConfig(c.Link), scale), h: make([]float64, ch.Devices())}
	b.delays, b.phases = positions(c, root)
	return b, b.join(c, draws)
}

// positions draws the devices' delays and static phases.
func positions(c config.Config, root keystream.Seed) (delays []modem.Samples, phases []float64) {
	rnd := rand.New(root.Derive("positions").Stream())
	delays, phases = make([]modem.Samples, c.Devices.Count), make([]float64, c.Devices.Count)
	for i := range delays {
		delays[i] = modem.Samples(c.Link.DelaySpreadSamples * rnd.Float64())
		if phase := c.Link.PhaseSpreadRad * (rnd.Float64() - 0.5); c.Channel.Gains == "continuous" {
			phases[i] = phase // an emulated gain is real by itself
		}
	}
	return delays, phases
}

// join joins the devices.
func (b *simulated) join(c config.Config, root keystream.Seed) error {
	// A frame is written before it is read, however long it is.
	medium := loopback.Config{Rate: radio.Hertz(c.Link.SampleRateHz), Window: math.MaxInt32}
	for i := range b.delays {
		imp := impairments(c, i)
		imp.DelaySamples, imp.PhaseRad = float64(b.delays[i]), b.phases[i]
		p, err := channel.NewPath(imp, root.Derive("path", uint64(i)))
		if err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
		medium.Devices = append(medium.Devices, loopback.Device{Gain: 1, Path: pathOf{p}})
	}
	front, err := newFront(c, b.channel, groupSize(c), b.noiseStd, root.Derive("front"))
	if err != nil {
		return err
	}
	b.front, medium.Converter = front.Front, front
	b.medium, err = loopback.New(medium)
	return err
}

// open opens and starts all streams.
func (b *simulated) open() (tx []radio.Transmitter, rx radio.Receiver, err error) {
	ctx := context.Background() // they live as long as the bench
	for i := range b.h {
		d, err := b.medium.Transmitter(i)
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
	d, err := b.medium.Receiver(0)
	if err != nil {
		return nil, nil, err
	}
	if rx, err = d.(radio.ReceiveOpener).OpenReceiver(ctx); err != nil {
		return nil, nil, err
	}
	return tx, rx, rx.Start(ctx)
}

// fade sets the gains of a transmission of an attempt at a round, from index at on,
// and its noise, by name as everything: a resumed run meets the same.
func (b *simulated) fade(round, attempt uint32, t int, at radio.SampleIndex) error {
	b.front.Start(round, attempt*slot.Transmissions+uint32(t))
	b.channel.Scaled(b.h, round, attempt, t)
	for i := range b.h {
		b.h[i] /= b.channel.Alpha()
		if err := b.medium.SetGain(i, at, complex(float32(b.h[i]), 0)); err != nil {
			return err
		}
	}
	return nil
}
