package setup

import (
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// Simulated is the bench in memory of a configuration, with the gains of a fading
// channel.
type Simulated struct {
	*bench.Bench
	Channel  *channel.Channel
	NoiseStd float64   // a branch and sample, at the antenna
	Phases   []float64 // static, in radians
	Delays   []modem.Samples
	// carriers is by how much the bench's nominal time, by which carriers turn, is ahead of
	// the transmitters' index in the attempt.
	carriers radio.SampleIndex
}

// Meet has a transmission that begins at index at meet its gains, and all else that is
// random in it.
func (b *Simulated) Meet(s slot.Slot, at radio.SampleIndex) error {
	b.Again = s.Again
	if s.Transmission == slot.TxKey {
		b.carriers = radio.SampleIndex(b.Nominal(s.Round, s.Attempt)) - at
	}
	return b.Fade(s.Round, s.Attempt, int(s.Transmission), at)
}

// CarrierTime returns the index that carriers' phases go by where a transmitter's is at.
func (b *Simulated) CarrierTime(at radio.SampleIndex) radio.SampleIndex { return at + b.carriers }

// NewSimulated makes the bench of a configuration, with gains of a channel. Where
// devices stand, and their echoes' phases, come from root, and what is chance otherwise from draws. It refuses what
// the modem or the hardware of the configuration cannot be.
func NewSimulated(c config.Config, root, draws keystream.Seed, ch *channel.Channel) (*Simulated, error) {
	cfg, err := SimulatedConfig(c, root, draws, ch)
	if err != nil {
		return nil, err
	}
	b := &Simulated{Channel: ch, NoiseStd: cfg.NoiseStd}
	b.Delays, b.Phases = Positions(c, root)
	if b.Bench, err = bench.New(cfg); err != nil {
		return nil, err
	}
	return b, nil
}

// SimulatedConfig describes the bench that NewSimulated makes.
func SimulatedConfig(c config.Config, root, draws keystream.Seed, ch *channel.Channel) (bench.Config, error) {
	scale, err := symbolScale(c)
	if err != nil {
		return bench.Config{}, err
	}
	cfg := bench.Config{
		Rate:     radio.Hertz(c.Link.SampleRateHz),
		Receiver: receiverImpairments(c.Link, scale), NoiseStd: receiverNoise(c, scale), Channel: ch, Seed: draws, Places: root,
		Echoes: echoesOf(c), PerDevice: c.Channel.Echoes == config.EchoesPerDevice,
	}
	if cfg.Receiver != (channel.Impairments{}) { // an ideal one leaves samples as they are
		cfg.FullScale = receiverFullScale(c, ch, GroupSize(c), cfg.NoiseStd)
	}
	delays, phases := Positions(c, root)
	for i := range delays {
		imp := impairments(c, i)
		imp.DelaySamples, imp.PhaseRad = float64(delays[i]), phases[i]
		cfg.Devices = append(cfg.Devices, imp)
	}
	return cfg, nil
}

// Positions draws the devices' delays, in samples, and static phases, in radians.
func Positions(c config.Config, root keystream.Seed) (delays []modem.Samples, phases []float64) {
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
