package setup

import (
	"fmt"
	"slices"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/phy/channel"
	"ringwave/phy/channel/p676"
	"ringwave/radio/intake"
)

// NewChannel makes the channel of a configuration: for the digital aggregator an
// ideal one, all gains 1. Its errors are the user's to mend (intake.UserError).
func NewChannel(c config.Config, root keystream.Seed) (*channel.Channel, error) {
	cfg := ChannelConfig(c)
	for i := range c.Devices.Count {
		f, err := FadingOf(c, i)
		if err != nil {
			return nil, intake.UserError(fmt.Errorf("device %d: %w", i+1, err))
		}
		cfg.Devices = append(cfg.Devices, f)
	}
	ch, err := channel.New(cfg, root.Derive("channel"))
	return ch, intake.UserError(err)
}

// ChannelConfig returns the configuration of a channel without its devices.
func ChannelConfig(c config.Config) channel.Config {
	if c.System().Ideal {
		return channel.Config{}
	}
	return channel.Config{
		LatticeBits:      c.Channel.GainLatticeBits,
		Continuous:       c.Channel.Gains == "continuous",
		DriftAt:          channel.Boundary(slices.Index([]string{"none", "after-key", "within-ciphertext", "after-ciphertext"}, c.Channel.Drift)),
		DriftStd:         c.Channel.DriftStd,
		DriftProbability: c.Channel.DriftProbability,
		FreshOnRetry:     c.Channel.FreshBlockOnRetry,
	}
}

// FadingOf returns the law of the gain of device i, from 0. Its error is that of a terahertz
// link whose budget does not exist.
func FadingOf(c config.Config, i int) (channel.Fading, error) {
	if c.System().Ideal {
		return channel.Gaussian{Mu: 1}, nil
	}
	switch c.Channel.Model {
	case "rician":
		return channel.NewRicianMean(c.Channel.KFactor, c.Mean(i)), nil
	case ModelTHz:
		return ThzFading(c, i)
	}
	return channel.Gaussian{Mu: c.Mean(i), Sigma: c.Std(i)}, nil
}

// ModelTHz is the value of channel.model that a link budget stands for.
const ModelTHz = "thz-los"

// ThzFading returns the law of the gain of device i, from 0, in units of the amplitude of
// an aligned link over channel.distance_m.
func ThzFading(c config.Config, i int) (channel.Gaussian, error) {
	b, err := referenceLink(c, i).Budget()
	if err != nil {
		return channel.Gaussian{}, err
	}
	return LineOfSight(c, i).Fading(b.ReceivedDBm)
}

// referenceLink returns an aligned link over channel.distance_m, whose gain is 1.
func referenceLink(c config.Config, i int) channel.LineOfSight {
	l := LineOfSight(c, i)
	l.DistanceM, l.MisalignmentDeg = c.Channel.DistanceM, 0
	return l
}

// LineOfSight returns the link of device i, from 0, of a terahertz channel.
func LineOfSight(c config.Config, i int) channel.LineOfSight {
	h := c.Channel
	return channel.LineOfSight{
		CarrierHz: h.CarrierHz, DistanceM: c.Distance(i),
		TransmitGainDBi: h.TransmitGainDBi, ReceiveGainDBi: h.ReceiveGainDBi,
		MisalignmentDeg: c.Misalignment(i), TransmitPowerDBm: h.TransmitPowerDBm,
		BandwidthHz: c.Link.BandwidthHz, NoiseFigureDB: h.NoiseFigureDB,
		KFactor: h.KFactor, SpeedMps: h.SpeedMps,
		Air: p676.Air{PressureHPa: h.PressureHPa, TemperatureK: h.TemperatureK, VapourDensity: h.VapourDensityGM3},
	}
}
