package setup

import (
	"fmt"
	"math"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio/intake"
)

// effectiveSNR returns the SNR with the rounding errors of the converters, each
// taken as white and uniform over a step, added to the noise.
func effectiveSNR(c config.Config, ch *channel.Channel) (float64, error) {
	r, err := roundingOf(c, ch)
	if err != nil {
		return 0, err
	}
	_, omega := LinkMoments(c, ch)
	digitPower := bench.DigitPower(c.Link.Base)
	noise := digitPower * math.Pow(10, -planSNR(c, ch)/10)
	noise += r.receive * r.receive / 12 / float64(r.samples)
	if r.transmit > 0 && c.Link.Base > 3 || c.Link.Pulse != "flat-top" {
		for _, o := range omega {
			noise += o * r.transmit * r.transmit / 12 / float64(r.samples)
		}
	}
	return 10 * math.Log10(digitPower/noise), nil
}

// planSNR returns the SNR of a device whose gain counts as 1, in dB.
func planSNR(c config.Config, ch *channel.Channel) float64 {
	return SNR(c) + 20*math.Log10(LevelOf(c, ch))
}

// rounding is what the converters do to a symbol, in units of the superposed digit.
type rounding struct {
	transmit, receive float64 // steps, 0 for none
	samples           int     // W, the number of samples whose mean a symbol is
}

// roundingOf returns what the converters of a configuration do: of several, the coarsest
// transmitter's.
func roundingOf(c config.Config, ch *channel.Channel) (rounding, error) {
	m := ModemConfig(c.Link)
	scale, err := symbolScale(c)
	if err != nil {
		return rounding{}, intake.UserError(fmt.Errorf("waveform link: %w", err))
	}
	noiseStd := receiverNoise(c, scale)
	unit := scale * LevelOf(c, ch)
	r := rounding{samples: int(math.Round(1 / modem.NoiseBandwidth(m.Pulse, m.SamplesPerSymbol)))}
	bits := 0
	for i := range c.Devices.Count {
		if b := c.Transmitter(i).ConverterBits; b > 0 && (bits == 0 || b < bits) {
			bits = b
		}
	}
	if bits > 0 {
		r.transmit = math.Ldexp(1, 1-bits) / scale
	}
	recorded := RecordConfig(c, ch, GroupSize(c), noiseStd)
	switch {
	case c.Link.ReceiverConverterBits > 0:
		r.receive = math.Ldexp(receiverFullScale(c, ch, GroupSize(c), noiseStd)/unit, 1-c.Link.ReceiverConverterBits)
	case LargestCode(recorded.Datatype) > 0:
		r.receive = float64(recorded.FullScale) / unit / LargestCode(recorded.Datatype)
	}
	return r, nil
}

// AlignedMargin returns what half a unit of the lattice has left for the noise when
// every device of the worst group is off its mean by the mean fluctuation, in units.
func AlignedMargin(c config.Config, ch *channel.Channel) float64 {
	return 0.5 - LinksOf(ch).Fluctuation(GroupSize(c), c.Link.Base)
}

// SuperposedDB returns the mean power of the superposed symbols against that of one
// device of gain 1, in dB.
func SuperposedDB(ch *channel.Channel) float64 {
	_, omega := ch.Moments()
	sum := 0.0
	for _, o := range omega {
		sum += o
	}
	return 10 * math.Log10(sum)
}

// RoundSymbols returns the number of payload symbols of a round.
func RoundSymbols(c config.Config, d xmkckks.Design) int {
	return roundDigits(c, d) * 2 * (d.Params.N + d.Revealed())
}

// CheckWaveform refuses emulated gains on a lattice that the SNR cannot resolve,
// and aligned ones whose fluctuations or noise no rounding absorbs.
func CheckWaveform(c config.Config, ch *channel.Channel, d xmkckks.Design) error {
	if !c.OverWaveform() || RegimeOf(c) == bench.Blind {
		return nil
	}
	snr, err := effectiveSNR(c, ch)
	if err != nil {
		return err
	}
	if RegimeOf(c) == bench.MeanAligned {
		return checkAligned(c, ch, snr)
	}
	needed := bench.NeededSNR(c.Link.Base, ch.Alpha(), RoundSymbols(c, d))
	if snr >= needed {
		return nil
	}
	return fmt.Errorf("%s%s: emulated gains on a lattice of 2^-%d need %.1f dB a device, all errors together %.1f dB below the superposed signal: lower channel.gain_lattice_bits or raise the SNR",
		givenSNR(c), withConverters(c, snr), c.Channel.GainLatticeBits, needed, needed+SuperposedDB(ch))
}

// givenSNR says what the SNR is, and where it comes from.
func givenSNR(c config.Config) string {
	if c.Channel.Model == ModelTHz {
		return fmt.Sprintf("the link budget of channel.model = %q gives a symbol %.1f dB", ModelTHz, SNR(c))
	}
	return fmt.Sprintf("link.snr_db is %v", c.Link.SNRdB)
}

// withConverters says what converters make of the SNR, if they change it.
func withConverters(c config.Config, snr float64) string {
	if math.Abs(snr-SNR(c)) < 0.05 {
		return ""
	}
	return fmt.Sprintf(", %.1f dB with the converters' rounding", snr)
}

// checkAligned refuses what is hopeless: fluctuations alone that reach half a unit
// in the mean, or noise that alone spoils a good part of all rounds.
func checkAligned(c config.Config, ch *channel.Channel, snr float64) error {
	if m := AlignedMargin(c, ch); m <= 0 {
		return fmt.Errorf("link.regime is mean-aligned: the fluctuations of a group's gains add up to %.2f in the mean, and rounding absorbs less than 0.5: lower channel.std or link.group_size, or take \"blind\"", 0.5-m)
	}
	// Without any fluctuation, one symbol in a million would be wrong.
	if needed := bench.NeededSNR(c.Link.Base, bench.AlignedScale, 1000); snr < needed {
		return fmt.Errorf("%s, %.1f dB for aligned devices at the level of the weakest: at least %.1f dB are needed", givenSNR(c), snr, needed)
	}
	return nil
}

// roundDigits returns L, the number of digits of a coefficient.
func roundDigits(c config.Config, d xmkckks.Design) int {
	return int(math.Ceil(d.Params.LogQ() / math.Log2(float64(c.Link.Base))))
}
