package setup

import (
	"cmp"
	"math"

	"ringwave/learner/experiment/config"
	"ringwave/phy/bench"
	"ringwave/phy/modem"
	"ringwave/radio/sigmf"
)

// ConfiguredConverter returns the bits of the receiver's converter, 0 for none, and the
// amplitude at which it is told to clip, that of a device of gain 1 being 1, or 0 for what
// suits the gains. The format of a
// recording is one, too.
func ConfiguredConverter(c config.Config) (bits int, given float64) {
	bits, given = c.Link.ReceiverConverterBits, c.Link.ReceiverFullScale
	if codes := LargestCode(sigmf.Datatype(c.Link.Record)); bits == 0 && codes > 0 {
		bits, given = 1+int(math.Round(math.Log2(codes+1))), c.Link.RecordFullScale
	}
	return bits, given
}

// LeastHeard returns how many devices must have a gain H_i other than 0, where the
// receiver looks for the lattice.
func LeastHeard(c config.Config) int { return cmp.Or(c.Devices.Minimum, c.Devices.Count) }

// RecordNone is the value of link.record for runs that keep no samples.
const RecordNone = "none"

// LargestCode returns the largest code of an integer format, 0 for the others.
func LargestCode(t sigmf.Datatype) float64 {
	switch t {
	case sigmf.CI8:
		return math.MaxInt8
	case sigmf.CI16:
		return math.MaxInt16
	}
	return 0
}

// KindWaveform is the value of link.kind for symbols that really superpose.
const KindWaveform = "waveform"

// KindRing is the value of link.kind for sums in the ring itself.
const KindRing = "ring"

// GroupSize returns G.
func GroupSize(c config.Config) int {
	if g := c.Link.GroupSize; g > 0 {
		return min(g, c.Devices.Count)
	}
	return c.Devices.Count
}

// The values of link.pulse.
const (
	pulseFlatTop          = "flat-top"
	pulseRootRaisedCosine = "root-raised-cosine"
)

// ModemConfig returns the modem of a configuration.
func ModemConfig(l config.Link) modem.Config {
	m := modem.Config{SamplesPerSymbol: l.SamplesPerSymbol, Preamble: modem.Preamble{Length: modem.Symbols(l.PreambleSymbols)}}
	if l.Pulse == pulseFlatTop {
		m.Pulse = modem.FlatTop{Edge: modem.Samples(l.EdgeSamples), Tolerance: modem.Samples(l.ToleranceSamples)}
		return m
	}
	m.Pulse = modem.RootRaisedCosine{RollOff: l.RollOff, Span: modem.Symbols(l.SpanSymbols)}
	return m
}

// SNR returns that of a device of gain 1, a soft real symbol, in dB: link.snr_db, and for
// channel.model = "thz-los" what the budget of an aligned link over channel.distance_m gives
// in a symbol's noise bandwidth, where half of the noise is in the real part. It is NaN
// where there is no such budget, which NewChannel refuses.
func SNR(c config.Config) float64 {
	if c.Channel.Model != ModelTHz || !c.OverWaveform() {
		return c.Link.SNRdB
	}
	reference := referenceLink(c, 0)
	m := ModemConfig(c.Link)
	reference.BandwidthHz = c.Link.SampleRateHz * modem.NoiseBandwidth(m.Pulse, m.SamplesPerSymbol)
	b, err := reference.Budget()
	if err != nil {
		return math.NaN()
	}
	return b.SNRdB + 10*math.Log10(2)
}

// receiverNoise returns the deviation a branch and sample that gives the SNR of a
// soft real symbol.
func receiverNoise(c config.Config, scale float64) float64 {
	return bench.NoiseStd(ModemConfig(c.Link), c.Link.Base, SNR(c), scale)
}

// symbolScale returns the amplitude of the digit 1 from a device at full drive.
func symbolScale(c config.Config) (float64, error) {
	return bench.SymbolScale(ModemConfig(c.Link), c.Link.Base, TransmitAmplitude(c))
}
