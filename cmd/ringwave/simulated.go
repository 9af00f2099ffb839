package main

import (
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// simulated is the bench in memory of a configuration, with the gains of a fading
// channel.
type simulated struct {
	*bench.Bench
	channel  *channel.Channel
	noiseStd float64 // a branch and sample, at the antenna
	phases   []float64
	delays   []modem.Samples
}

// newSimulated makes the bench of a configuration, with gains of a channel. Where
// devices stand comes from root, and what is chance otherwise from draws.
func newSimulated(c config.Config, root, draws keystream.Seed, ch *channel.Channel) (*simulated, error) {
	scale, err := symbolScale(c)
	if err != nil {
		return nil, err
	}
	b := &simulated{channel: ch, noiseStd: receiverNoise(c.Link, scale)}
	b.delays, b.phases = positions(c, root)
	cfg := bench.Config{
		Rate:     radio.Hertz(c.Link.SampleRateHz),
		Receiver: receiverImpairments(c.Link), NoiseStd: b.noiseStd, Channel: ch, Seed: draws,
	}
	if cfg.Receiver != (channel.Impairments{}) { // an ideal one leaves samples as they are
		cfg.FullScale = receiverFullScale(c, ch, groupSize(c), b.noiseStd)
	}
	for i := range b.delays {
		imp := impairments(c, i)
		imp.DelaySamples, imp.PhaseRad = float64(b.delays[i]), b.phases[i]
		cfg.Devices = append(cfg.Devices, imp)
	}
	if b.Bench, err = bench.New(cfg); err != nil {
		return nil, err
	}
	return b, nil
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
