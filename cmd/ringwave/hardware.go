package main

import (
	"context"
	"math"
	"math/cmplx"
	"time"

	"ringwave/learner/experiment/config"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/sigmf"
)

// regimeOf gives the regime of a waveform link.
func regimeOf(c config.Config) bench.Regime {
	switch {
	case c.Channel.Gains != "continuous" || c.System().Ideal:
		return bench.Emulated
	case c.Link.Regime == "mean-aligned":
		return bench.MeanAligned
	}
	return bench.Blind
}

// linksOf returns the moments of a channel's gains.
func linksOf(ch *channel.Channel) bench.Links {
	mu, omega := ch.Moments()
	return bench.Links{Mu: mu, Omega: omega}
}

// linkMoments gives mu_i and Omega_i of the gains as the protocol meets them: of
// aligned devices, whose own division by mu_i is done, those of h_i/mu_i.
func linkMoments(c config.Config, ch *channel.Channel) (mu, omega []float64) {
	links := linksOf(ch)
	if c.OverWaveform() {
		links = links.Met(regimeOf(c))
	}
	return links.Mu, links.Omega
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
	return linksOf(ch).Level(regimeOf(c))
}

// transmitAmplitude returns the largest magnitude of a sample.
func transmitAmplitude(c config.Config) modem.Amplitude {
	var bits []int
	for i := range c.Devices.Count {
		bits = append(bits, c.Transmitter(i).ConverterBits)
	}
	return bench.Amplitude(bits...)
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

// receiverFullScale returns the amplitude at which the receiver's converter clips,
// that of a device of gain 1 being 1.
func receiverFullScale(c config.Config, ch *channel.Channel, group int, noiseStd float64) float64 {
	return fullScale(c, c.Link.ReceiverFullScale, ch, group, noiseStd)
}

// fullScale returns the amplitude at which a converter clips: as given, and where it is
// not, what suits the gains and the noise.
func fullScale(c config.Config, given float64, ch *channel.Channel, group int, noiseStd float64) float64 {
	if given > 0 {
		return given
	}
	return linksOf(ch).FullScale(regimeOf(c), group, noiseStd)
}

// recordConfig describes the recordings of a run. Behind a converter the
// recording has the same step: its codes are those of the converter, but for the
// lowest, which has no opposite.
func recordConfig(c config.Config, ch *channel.Channel, group int, noiseStd float64) sigmf.Config {
	full := radio.Amplitude(fullScale(c, c.Link.RecordFullScale, ch, group, noiseStd))
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
