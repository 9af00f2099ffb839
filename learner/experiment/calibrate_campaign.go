package experiment

import (
	"cmp"
	"slices"
	"time"

	"ringwave/calibration/advice"
	"ringwave/calibration/campaign"
	"ringwave/calibration/moments"
	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/channel"
	"ringwave/radio"
)

// campaignConfig returns the campaign of a configuration: its soundings, without streams,
// and what is known of its bench.
func campaignConfig(c config.Config, root keystream.Seed) (campaign.Config, error) {
	soundings, err := setup.SoundingConfig(c)
	if err != nil {
		return campaign.Config{}, err
	}
	converters, err := soundedConverters(c, root)
	if err != nil {
		return campaign.Config{}, err
	}
	return campaign.Config{
		Soundings: soundings, SampleRate: radio.Hertz(c.Link.SampleRateHz), RoundSeconds: c.Calibration.RoundSeconds,
		Law:       lawOf(c),
		OnLattice: !c.OverRadios() && c.Channel.Gains == "lattice", LatticeBits: c.Channel.GainLatticeBits,
		Converters: converters,
		Valid:      time.Duration(c.Calibration.ValidHours * float64(time.Hour)),
		Program:    "ringwave " + runfolder.NewManifest(time.Now()).Program.Version,
	}, nil
}

// lawOf returns the law of the gains where it is known: that of a simulated channel.
func lawOf(c config.Config) moments.Model {
	if c.OverRadios() {
		return moments.Undecided
	}
	f, err := setup.FadingOf(c, 0)
	if err != nil {
		return moments.Undecided
	}
	return modelOf(f)
}

// modelOf returns the law of a fading; undecided, which leaves it to the data, for one
// that is neither.
func modelOf(f channel.Fading) moments.Model {
	switch f.(type) {
	case channel.Gaussian:
		return moments.Gaussian
	case channel.Rician:
		return moments.Rician
	}
	return moments.Undecided
}

// boardBits is the resolution of the coarsest radios that there are drivers for.
const boardBits = 8

// soundedConverters returns the converters that soundings pass. Radios have their own.
func soundedConverters(c config.Config, root keystream.Seed) (campaign.Converters, error) {
	if !c.OverRadios() {
		return usedConverters(c, root)
	}
	return campaign.Converters{
		TransmitterBits: slices.Repeat([]int{boardBits}, c.Devices.Count),
		Receiver:        campaign.Receiver{Bits: boardBits, FullScale: 1},
	}, nil
}

// usedConverters returns the converters that a configuration asks for, besides those of
// radios.
func usedConverters(c config.Config, root keystream.Seed) (campaign.Converters, error) {
	var out campaign.Converters
	for i := range c.Devices.Count {
		out.TransmitterBits = append(out.TransmitterBits, c.Transmitter(i).ConverterBits)
	}
	bits, full := setup.ConfiguredConverter(c)
	switch {
	case bits == 0:
		return out, nil
	case c.OverRadios():
		out.Receiver = campaign.Receiver{Bits: bits, FullScale: cmp.Or(full, 1)}
		return out, nil
	}
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		return out, err
	}
	out.Receiver = campaign.Receiver{Bits: bits, FullScale: full, Links: setup.LinksOf(ch), Regime: setup.RegimeOf(c), Group: setup.GroupSize(c)}
	return out, nil
}

// shownOutlooks is how many ways to run the protocol are printed and kept.
const shownOutlooks = 4

// usedAs returns what the advice of a configuration is asked for.
func usedAs(c config.Config, root keystream.Seed) (campaign.Use, error) {
	own, err := ownWay(c)
	if err != nil {
		return campaign.Use{}, err
	}
	converters, err := usedConverters(c, root)
	return campaign.Use{
		Options: advice.Options{
			Modem: setup.ModemConfig(c.Link), BlockSymbols: c.Link.BlockSymbols, MaxAlpha: c.Link.MaxAlpha,
			Attempts: c.Encryption.AttemptsPerRound, KeyShares: setup.SharesPerKey(c), DeltaMax: c.Encryption.DeltaMax,
			Messages: c.Optimizer.PackedDirections, Minimum: c.Devices.Minimum,
			Own: own, Shown: shownOutlooks, Seed: root.Derive("advice"),
		},
		Converters: converters, Relative: c.OverRadios(), FreshOnRetry: c.Channel.FreshBlockOnRetry,
	}, err
}

// ownWay returns the way in which a configuration runs the protocol; nil if it does so
// over no waveform.
func ownWay(c config.Config) (*advice.Own, error) {
	if !c.OverWaveform() {
		return nil, nil
	}
	p, form, err := setup.ParameterSet(c.Encryption)
	if err != nil {
		return nil, err
	}
	return &advice.Own{
		Regime: setup.RegimeOf(c),
		Group:  setup.GroupSize(c), Base: c.Link.Base, Repeats: c.Link.FrameRepeats, SamplesPerSymbol: c.Link.SamplesPerSymbol,
		Params: p, Form: form,
	}, nil
}
