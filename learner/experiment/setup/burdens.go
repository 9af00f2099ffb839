package setup

import (
	"fmt"
	"math"
	"strings"

	"ringwave/learner/experiment/config"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
)

// Burden is what of a configuration may cost rounds: keys that are not what they are on a
// bench without faults, and why they would cost any.
type Burden struct {
	Keys    []string // that go together
	Set     string   // those that are not as usual, as "key = value"
	Instead string   // the usual values of the same
	Reason  string
}

// burdens are the keys of what benches and links do to signals, and the physics of it.
var burdens = []struct {
	keys   string
	reason func(c config.Config, ch *channel.Channel) string
}{
	{"link.samples_per_symbol link.edge_samples link.tolerance_samples", steepEdges},
	{"link.roll_off link.span_symbols", cutTails},
	{"link.receiver_full_scale link.record_full_scale", clippedPeaks},
	{"link.receiver_converter_bits", coarse("the receiver's converter rounds samples to steps, which is noise beside the receiver's")},
	{"devices.converter_bits devices.converter_bits_per_device", coarse("transmitters' converters round samples to steps, which is noise of each device's own")},
	{"link.delay_spread_samples", coarse("what whole samples leave of devices' delays bends the edges of their symbols, and reaches into each other's")},
	{"link.phase_spread_rad", coarse("the receiver hears the part of each device that is in phase with all, and the rest is in the other branch")},
	{"devices.carrier_offset_hz", coarse("all carriers turn against the receiver's, which it follows as well as noise lets it")},
	{"devices.carrier_offset_per_device_hz", coarse("devices' carriers turn against each other and gains change with them: the receiver can follow one alone")},
	{"devices.linewidth_hz devices.linewidth_per_device_hz", coarse("devices' phases wander against each other and gains change with them: the receiver can follow one alone")},
	{"devices.iq_gain_db devices.iq_gain_per_device_db devices.iq_phase_rad devices.iq_phase_per_device_rad", coarse("images of devices' signals fall onto their symbols")},
	{"devices.dc_offset devices.dc_offset_per_device", coarse("leakage of devices' carriers takes a part of the lattice's units until it is found and taken off")},
	{"devices.sample_clock_ppm devices.sample_clock_per_device_ppm devices.clock_jitter_samples", coarse("symbols move against the receiver's clock, and where devices' clocks are apart against each other")},
	{"devices.filter_hz", coarse("filters of devices' boards smear symbols into the next")},
	{"devices.amplifier_saturation devices.amplifier_smoothness devices.amplifier_am_pm_rad", coarse("amplifiers compress large digits more than small ones, so that levels are no lattice")},
	{"devices.preset", coarse("converters, leakage, images and phase noise of such boards")},
	{"link.receiver_carrier_offset_hz", coarse("the receiver's carrier turns against all devices', which it follows as well as noise lets it")},
	{"link.receiver_linewidth_hz", coarse("the receiver's phase wanders faster than can be followed under its noise")},
	{"link.receiver_sample_clock_ppm", coarse("symbols move against the receiver's clock")},
	{"link.receiver_filter_hz", coarse("the receiver's filter smears symbols into the next")},
	{"link.receiver_dc_block_hz", coarse("what the receiver's DC block takes of low frequencies moves every symbol by the mean of those before")},
	{"link.receiver_gain_control_hz", coarse("the receiver's gain moves with what it hears, and gains with it")},
	{"link.receiver_iq_gain_db link.receiver_iq_phase_rad", coarse("images of what is received fall onto the symbols")},
	{"link.receiver_dc_offset", coarse("the receiver's DC takes a part of the lattice's units until it is found and taken off, and of its converter's range")},
	{"link.burst_every_samples link.burst_samples link.burst_db", coarse("bursts damage symbols, of which a block's check solves few: more often than frames are repeated for")},
	{"link.tone_hz link.tone_db", coarse("a tone adds to every symbol what no device has sent, until it is found and taken off")},
	{"channel.echo_delays_samples channel.echo_gains_db channel.echo_phases_rad channel.echoes channel.echo_k_factor", coarse("echoes reach into the symbols that follow; what differs from device to device no equaliser of the receiver's undoes")},
	{"channel.doppler_hz", coarse("gains change within a round, and integers that b has shown are no longer the nearest")},
}

// Burdens returns what of a configuration may cost rounds that a bench without faults reads,
// with the gains of a channel, and the configuration without any of it.
func Burdens(c config.Config, ch *channel.Channel) (all []Burden, without config.Config) {
	usual := usualBench(c)
	without = c
	for _, b := range burdens {
		keys := strings.Fields(b.keys)
		if b.keys == "link.roll_off link.span_symbols" && c.Link.Pulse != pulseRootRaisedCosine {
			continue // of pulses that are not sent
		}
		set, instead := c.Differing(usual, keys...)
		if len(set) == 0 {
			continue
		}
		all = append(all, Burden{Keys: keys, Set: strings.Join(set, ", "), Instead: strings.Join(instead, ", "), Reason: b.reason(c, ch)})
		without = without.Taking(usual, keys...)
	}
	return all, without
}

// Relieved returns a configuration without one of its burdens.
func Relieved(c config.Config, b Burden) config.Config { return c.Taking(usualBench(c), b.Keys...) }

// fineBits are those of a converter that costs nothing: without one nothing would be
// clipped either, which is another burden.
const fineBits = 16

// usualBench returns a configuration whose bench has no fault, against one that may: where
// that has converters it has fine ones.
func usualBench(c config.Config) config.Config {
	usual := config.Default()
	usual.Link.ReceiverConverterBits = fine(c.Link.ReceiverConverterBits)
	usual.Devices.ConverterBits = fine(c.Devices.ConverterBits)
	return usual
}

// fine returns the bits of a fine converter where there is one.
func fine(bits int) int {
	if bits == 0 {
		return 0
	}
	return max(bits, fineBits)
}

// coarse is a reason that has no figures.
func coarse(reason string) func(config.Config, *channel.Channel) string {
	return func(config.Config, *channel.Channel) string { return reason }
}

// steepEdges says what becomes of symbols of few samples.
func steepEdges(c config.Config, _ *channel.Channel) string {
	m := ModemConfig(c.Link)
	if c.Link.Pulse != pulseFlatTop {
		return fmt.Sprintf("symbols of %d samples", m.SamplesPerSymbol)
	}
	flat := 1 / modem.NoiseBandwidth(m.Pulse, m.SamplesPerSymbol)
	return fmt.Sprintf("symbols are read from %.0f of %d samples, and edges of %g have frequencies beyond half the sample rate: a delay by a part of a sample rings around them into what is read, otherwise for each device; edges of 2 ring some 20 dB less, and take symbols of 6 samples or more", flat, m.SamplesPerSymbol, c.Link.EdgeSamples)
}

// cutTails says what symbols of a root-raised-cosine whose filter ends early do to each other.
func cutTails(c config.Config, _ *channel.Channel) string {
	pulse := modem.RootRaisedCosine{RollOff: c.Link.RollOff, Span: modem.Symbols(c.Link.SpanSymbols)}
	below := -10 * math.Log10(pulse.Interference(c.Link.SamplesPerSymbol))
	return fmt.Sprintf("the tails of a root-raised-cosine of roll-off %g are cut off after %d symbols: what symbols then leave in each other lies %.0f dB below them; a larger link.span_symbols or more roll-off leaves less", c.Link.RollOff, c.Link.SpanSymbols, below)
}

// clippedPeaks says what a receiver's range costs.
func clippedPeaks(c config.Config, ch *channel.Channel) string {
	_, full := ConfiguredConverter(c)
	links, group := LinksOf(ch), GroupSize(c)
	why := fmt.Sprintf("sums of %d devices that the receiver need not clip take a full scale of %.2g: larger ones are lost at %.2g", group, links.FullScale(RegimeOf(c), group, 0), full)
	if drive := Drive(c, ch); drive < 1 {
		why += fmt.Sprintf(", and so that they are fewer devices send %.1f dB weaker under the same noise", -20*math.Log10(drive))
	}
	return why
}
