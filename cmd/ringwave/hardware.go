package main

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"time"

	"ringwave/calibration/advice"
	"ringwave/cmd/internal/config"
	"ringwave/crypto/keystream"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/sigmf"
)

// regime is how gains come to lie on a lattice (physics.md section 3).
type regime int

const (
	emulated regime = iota
	meanAligned
	blind
)

// regimeOf gives the regime of a waveform link.
func regimeOf(c config.Config) regime {
	switch {
	case c.Channel.Gains != "continuous" || c.Experiment.Aggregator == aggregatorDigital:
		return emulated
	case c.Link.Regime == "mean-aligned":
		return meanAligned
	}
	return blind
}

// alignedAlpha is the scale of aligned gains.
const alignedAlpha = advice.AlignedScale

// alignedTolerance is by how much the scale of a group of aligned devices may differ
// from alignedAlpha, relatively.
func alignedTolerance(ch *channel.Channel, group int) float64 {
	mu, omega := ch.Moments()
	return advice.AlignedTolerance(mu, omega, group)
}

// relativeVariance gives the variance of h/mu.
func relativeVariance(mu, omega float64) float64 { return max(0, omega/(mu*mu)-1) }

// linkMoments gives mu_i and Omega_i of the gains as the protocol meets them: of
// aligned devices, whose own division by mu_i is done, those of h_i/mu_i.
func linkMoments(c config.Config, ch *channel.Channel) (mu, omega []float64) {
	mu, omega = ch.Moments()
	if !isWaveform(c) || regimeOf(c) != meanAligned {
		return mu, omega
	}
	for i := range mu {
		mu[i], omega[i] = 1, 1+relativeVariance(mu[i], omega[i])
	}
	return mu, omega
}

// align gives the trims of devices of the given static phases and the level at
// which they arrive: what a calibration of the simulated bench would have found.
func align(ch *channel.Channel, phases []float64) ([]phy.Trim, float64, error) {
	mu, _ := ch.Moments()
	means := make([]complex128, len(mu))
	for i, m := range mu {
		means[i] = complex(m, 0) * cmplx.Rect(1, phases[i])
	}
	return phy.Align(means)
}

// levelOf gives the level at which devices arrive that count as gain 1.
func levelOf(c config.Config, ch *channel.Channel) float64 {
	if regimeOf(c) != meanAligned {
		return 1
	}
	mu, _ := ch.Moments()
	level := math.Inf(1)
	for _, m := range mu {
		level = min(level, math.Abs(m))
	}
	return level
}

// transmitAmplitude gives the largest magnitude of a sample: the largest code of
// the coarsest of the devices' converters, so that the flat tops of the largest
// digit, of either sign, take a code exactly.
func transmitAmplitude(c config.Config) modem.Amplitude {
	amplitude := modem.Amplitude(1)
	for i := range c.Devices.Count {
		if b := c.Transmitter(i).ConverterBits; b > 0 {
			amplitude = min(amplitude, 1-modem.Amplitude(math.Ldexp(1, 1-b)))
		}
	}
	return amplitude
}

// impairments gives what the hardware of device i does.
func impairments(c config.Config, i int) channel.Impairments {
	t, rate := c.Transmitter(i), c.Link.SampleRateHz
	return channel.Impairments{
		CarrierOffset: t.CarrierOffsetHz / rate,
		// A Lorentzian line of full width nu is a Wiener phase of variance 2 pi nu t.
		PhaseNoiseStd: math.Sqrt(2 * math.Pi * t.LinewidthHz / rate),
		IQGainDB:      t.IQGainDB, IQPhaseRad: t.IQPhaseRad,
		DC:            complex(float32(t.DCOffset), float32(t.DCOffset)),
		ConverterBits: t.ConverterBits,
	}
}

// receiverImpairments gives what the receiver's hardware does.
func receiverImpairments(l config.Link) channel.Impairments {
	return channel.Impairments{
		IQGainDB: l.ReceiverIQGainDB, IQPhaseRad: l.ReceiverIQPhaseRad,
		DC:            complex(float32(l.ReceiverDCOffset), float32(l.ReceiverDCOffset)),
		ConverterBits: l.ReceiverConverterBits,
	}
}

// receiverFullScale gives the amplitude at which the receiver's converter clips,
// that of a device of gain 1 being 1.
func receiverFullScale(c config.Config, ch *channel.Channel, group int, noiseStd float64) float64 {
	mu, omega := linkMoments(c, ch)
	return float64(fullScale(c.Link.ReceiverFullScale, levelOf(c, ch), mu, omega, group, noiseStd))
}

// recordConfig describes the recordings of a run. Behind a converter the
// recording has the same step: its codes are those of the converter, but for the
// lowest, which has no opposite.
func recordConfig(c config.Config, ch *channel.Channel, group int, noiseStd float64) sigmf.Config {
	mu, omega := linkMoments(c, ch)
	full := fullScale(c.Link.RecordFullScale, levelOf(c, ch), mu, omega, group, noiseStd)
	datatype := sigmf.Datatype(c.Link.Record)
	if c.OverRadios() {
		full = 1 // that of radios: their codes are then the recording's
		if given := c.Link.RecordFullScale; given > 0 {
			full = radio.Amplitude(given)
		}
	} else if steps := largestCode(datatype); c.Link.ReceiverConverterBits > 0 && steps > 0 {
		full = radio.Amplitude(receiverFullScale(c, ch, group, noiseStd) * steps / (steps + 1))
	}
	return sigmf.Config{
		Datatype: datatype, SampleRate: radio.Hertz(c.Link.SampleRateHz), FullScale: full,
		Recorder: "ringwave", Description: "superposed frames of experiment " + c.Experiment.Name,
	}
}

// frontOf lets a channel.Front, whose full scale is 1, be the receiver's noise and
// converter.
type frontOf struct {
	*channel.Front
	full float64
}

// Convert implements loopback.Converter.
func (f frontOf) Convert(dst []complex64, _ int64) int {
	clipped := f.Apply(dst)
	if f.full != 1 {
		for k, x := range dst {
			// In double precision, as a recording's codes are scaled: both are then equal.
			dst[k] = complex(float32(f.full*float64(real(x))), float32(f.full*float64(imag(x))))
		}
	}
	return clipped
}

// newFront makes the receiver's end. An ideal one leaves samples as they are.
func newFront(c config.Config, ch *channel.Channel, group int, noiseStd float64, seed keystream.Seed) (frontOf, error) {
	imp, full := receiverImpairments(c.Link), 1.0
	if imp != (channel.Impairments{}) {
		full = receiverFullScale(c, ch, group, noiseStd)
	}
	front, err := channel.NewFront(imp, noiseStd, 1/full, seed)
	if err != nil {
		return frontOf{}, fmt.Errorf("the receiver's front end: %w", err)
	}
	return frontOf{front, full}, nil
}

// paced is a receiver that takes as long over a transmission as its samples last.
// What is computed between transmissions comes on top, as on a bench where nobody
// sends meanwhile.
type paced struct {
	from  radio.Receiver
	clock loopback.Clock
	rate  radio.Hertz
	first radio.SampleIndex // of the transmission, sent at since
	since time.Duration
}

// receiver returns p as it takes the place of the receiver that it reads from.
func (p *paced) receiver() radio.Receiver {
	return radio.Wrap(p.from, radio.Wrapping{ReadUntil: p.readUntil})
}

// begin says that index at is now.
func (p *paced) begin(at radio.SampleIndex) { p.first, p.since = at, p.clock.Now() }

func (p *paced) readUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n, meta, err := radio.ReadUntil(ctx, p.from, dst, until)
	if n == 0 {
		return n, meta, err
	}
	due := p.since + p.rate.Duration(radio.SampleCount(max(0, meta.Index(n-1)+1-p.first)))
	for p.clock.Now() < due && ctx.Err() == nil {
		p.clock.Wait(ctx, due, nil)
	}
	return n, meta, err
}
