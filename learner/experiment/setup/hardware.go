package setup

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"
	"time"

	"ringwave/learner/experiment/config"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/sigmf"
)

// RegimeOf returns the regime of a waveform link.
func RegimeOf(c config.Config) bench.Regime {
	switch {
	case c.Channel.Gains != "continuous" || c.System().Ideal:
		return bench.Emulated
	case c.Link.Regime == "mean-aligned":
		return bench.MeanAligned
	}
	return bench.Blind
}

// LinksOf returns the moments of a channel's gains.
func LinksOf(ch *channel.Channel) bench.Links {
	mu, omega := ch.Moments()
	return bench.Links{Mu: mu, Omega: omega}
}

// LinkMoments returns mu_i and Omega_i of the gains, one a device, as the protocol meets them: of
// aligned devices, whose own division by mu_i is done, those of h_i/mu_i.
func LinkMoments(c config.Config, ch *channel.Channel) (mu, omega []float64) {
	links := LinksOf(ch)
	if c.OverWaveform() {
		links = links.Met(RegimeOf(c))
	}
	return links.Mu, links.Omega
}

// Align returns the trims of devices of the given static phases, in radians, and the level at
// which they arrive: what a calibration of the simulated bench would have found.
func Align(ch *channel.Channel, phases []float64) ([]phy.Trim, float64, error) {
	mu, _ := ch.Moments()
	means := make([]complex128, len(mu))
	for i, m := range mu {
		means[i] = complex(m, 0) * cmplx.Rect(1, phases[i])
	}
	return phy.Align(means)
}

// LevelOf returns the level at which devices arrive that count as gain 1, in units of h_i.
func LevelOf(c config.Config, ch *channel.Channel) float64 {
	return LinksOf(ch).Level(RegimeOf(c))
}

// TransmitAmplitude returns the largest magnitude of a transmitted sample, full scale
// being 1.
func TransmitAmplitude(c config.Config) modem.Amplitude {
	var bits []int
	for i := range c.Devices.Count {
		bits = append(bits, c.Transmitter(i).ConverterBits)
	}
	return bench.Amplitude(bits...)
}

// impairments returns what the hardware of device i does.
func impairments(c config.Config, i int) channel.Impairments {
	d, t, rate := c.Devices, c.Transmitter(i), c.Link.SampleRateHz
	imp := channel.Impairments{
		CarrierOffset: t.CarrierOffsetHz / rate,
		PhaseNoiseStd: phaseStep(t.LinewidthHz, rate),
		IQGainDB:      t.IQGainDB, IQPhaseRad: t.IQPhaseRad,
		DC:            complex(float32(t.DCOffset), float32(t.DCOffset)),
		ConverterBits: t.ConverterBits,
		SampleClock:   t.SampleClockPPM * 1e-6, ClockJitter: d.ClockJitterSamples,
		Filter:    d.FilterHz / rate,
		Amplifier: channel.Amplifier{Saturation: d.AmplifierSaturation, Smoothness: d.AmplifierSmoothness, PhaseRad: d.AmplifierAMPMRad},
	}
	if t.PhaseNoiseRad > 0 {
		// Of a walk that a loop holds back, the variance is that of a step over 1 - keep^2.
		imp.PhaseLoop = min(t.LoopHz/rate, 0.5)
		imp.PhaseNoiseStd = t.PhaseNoiseRad * math.Sqrt(-math.Expm1(-4*math.Pi*imp.PhaseLoop))
	}
	return imp
}

// phaseStep returns the deviation of a phase's step from one sample to the next: a
// Lorentzian line of full width nu is a Wiener phase of variance 2 pi nu t.
func phaseStep(linewidthHz, rate float64) float64 {
	return math.Sqrt(2 * math.Pi * linewidthHz / rate)
}

// receiverImpairments returns what the receiver's hardware does, and what it hears beside
// the devices; scale is the amplitude of the digit 1 of a device of gain 1.
func receiverImpairments(l config.Link, scale float64) channel.Impairments {
	rate := l.SampleRateHz
	return channel.Impairments{
		CarrierOffset: l.ReceiverCarrierOffsetHz / rate, PhaseNoiseStd: phaseStep(l.ReceiverLinewidthHz, rate),
		SampleClock: l.ReceiverSampleClockPPM * 1e-6, Filter: l.ReceiverFilterHz / rate,
		HighPass: l.ReceiverDCBlockHz / rate, GainControl: l.ReceiverGainControlHz / rate,
		Interference: interference(l, scale),
		IQGainDB:     l.ReceiverIQGainDB, IQPhaseRad: l.ReceiverIQPhaseRad,
		DC:            complex(float32(l.ReceiverDCOffset), float32(l.ReceiverDCOffset)),
		ConverterBits: l.ReceiverConverterBits,
	}
}

// interference returns what the receiver hears beside the devices. Its powers are against
// that of a device's symbols, E[d^2] scale^2.
func interference(l config.Link, scale float64) channel.Interference {
	rms := scale * math.Sqrt(bench.DigitPower(l.Base))
	var i channel.Interference
	if l.BurstEverySamples > 0 && l.BurstSamples > 0 {
		i.BurstEvery, i.BurstLength = l.BurstEverySamples, l.BurstSamples
		i.BurstStd = rms * math.Pow(10, l.BurstDB/20) / math.Sqrt2
	}
	if l.ToneHz != 0 {
		i.Tone, i.ToneAmplitude = l.ToneHz/l.SampleRateHz, rms*math.Pow(10, l.ToneDB/20)
	}
	return i
}

// EchoesApart says what echoes of the simulated bench that differ from device to device do to a
// slot that several share; "" where there are none, or each has its own slot.
func EchoesApart(c config.Config) string {
	group, power := GroupSize(c), 0.0
	for _, e := range echoesOf(c).Echoes {
		power += e.Gain * e.Gain
	}
	if !c.OverWaveform() || c.OverRadios() || c.Channel.Echoes != config.EchoesPerDevice || group < 2 || power == 0 {
		return ""
	}
	return fmt.Sprintf("echoes of %.1f dB in all differ from device to device (channel.echoes = %q), and no calibration takes them off: the receiver's equaliser can undo what all in a slot have in common alone, and what is left of a device lies %.1f dB below it, %d such in a slot: name a file of ringwave calibrate as calibration.file, so that devices take their echoes off what they send, or have fewer share a slot (link.group_size; with 1 all echoes are common to the slot)",
		10*math.Log10(power), config.EchoesPerDevice, -10*math.Log10(power*(1-1/float64(group))), group)
}

// PhasesApart says what oscillators of a simulated bench's devices that wander each by itself
// do to a slot that several share, an attempt taking so many samples; "" where that is little.
func PhasesApart(c config.Config, attempt int) string {
	const little = 0.03 // radians, root mean square
	if !c.OverWaveform() || c.OverRadios() || GroupSize(c) < 2 {
		return ""
	}
	var widths []float64
	for i := range c.Devices.Count {
		widths = append(widths, c.Transmitter(i).LinewidthHz)
	}
	slices.Sort(widths)
	two := widths[len(widths)-1] + widths[len(widths)-2]
	apart := math.Sqrt(2 * math.Pi * two * float64(attempt) / c.Link.SampleRateHz)
	if apart < little {
		return ""
	}
	return fmt.Sprintf("lines of devices' own, two of them %.3g Hz wide together (devices.linewidth_hz), turn their phases against each other by %.2g rad root mean square in an attempt, and gains change with them: the receiver follows what all have in common alone (link.receiver_linewidth_hz), and nobody corrects the rest: give the devices one reference, or have each its own slot (link.group_size = 1)", two, apart)
}

// echoesOf returns what devices' signals are followed by.
func echoesOf(c config.Config) channel.Air {
	h := c.Channel
	air := channel.Air{KFactor: h.EchoKFactor, Doppler: h.DopplerHz / c.Link.SampleRateHz}
	for k, delay := range h.EchoDelaysSamples {
		e := channel.Echo{DelaySamples: delay, Gain: math.Pow(10, h.EchoGainsDB[k]/20)}
		if len(h.EchoPhasesRad) > 0 {
			e.PhaseRad = h.EchoPhasesRad[k]
		}
		air.Echoes = append(air.Echoes, e)
	}
	return air
}

// Drive returns the share of their full drive at which simulated devices send: less than 1
// where the receiver is told to clip below what the gains ask for.
func Drive(c config.Config, ch *channel.Channel) float64 {
	bits, full := ConfiguredConverter(c)
	if bits == 0 || full == 0 || c.OverRadios() {
		return 1
	}
	return LinksOf(ch).Drive(RegimeOf(c), GroupSize(c), full)
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
	return LinksOf(ch).FullScale(RegimeOf(c), group, noiseStd)
}

// RecordConfig returns the configuration of a run's recordings. Behind a converter the
// recording has the same step: its codes are those of the converter, but for the
// lowest, which has no opposite.
func RecordConfig(c config.Config, ch *channel.Channel, group int, noiseStd float64) sigmf.Config {
	full := radio.Amplitude(fullScale(c, c.Link.RecordFullScale, ch, group, noiseStd))
	datatype := sigmf.Datatype(c.Link.Record)
	if c.OverRadios() {
		full = 1 // that of radios: their codes are then the recording's
		if given := c.Link.RecordFullScale; given > 0 {
			full = radio.Amplitude(given)
		}
	} else if steps := LargestCode(datatype); c.Link.ReceiverConverterBits > 0 && steps > 0 {
		full = radio.Amplitude(receiverFullScale(c, ch, group, noiseStd) * steps / (steps + 1))
	}
	cfg := sigmf.Config{
		Datatype: datatype, SampleRate: radio.Hertz(c.Link.SampleRateHz), FullScale: full, Frequency: new(radio.Hertz),
		Recorder: "ringwave", Description: "superposed frames of experiment " + c.Experiment.Name, Hardware: simulatedHardware,
	}
	if c.OverRadios() {
		*cfg.Frequency = radio.Hertz(c.Radio.FrequencyHz)
		cfg.Hardware = "receiver " + c.Radio.Receiver + ", transmitters " + strings.Join(c.Radio.Transmitters, ", ")
		cfg.Now = time.Now
	}
	return cfg
}

// simulatedHardware is core:hw of a bench in memory. Its samples are of no frequency but 0
// and of no time of day: what is simulated again is the same to the byte.
const simulatedHardware = "ringwave's simulated bench"

// SignalBand returns the band that holds 99 % of the power of symbols.
func SignalBand(c config.Config) radio.Span[radio.Hertz] {
	const bins = 4096
	low, high := modem.OccupiedBand(ModemConfig(c.Link).Spectrum(bins), 0.99)
	carrier := 0.0
	if c.OverRadios() {
		carrier = c.Radio.FrequencyHz
	}
	rate := c.Link.SampleRateHz
	return radio.Span[radio.Hertz]{Min: radio.Hertz(carrier + float64(low)*rate), Max: radio.Hertz(carrier + float64(high)*rate)}
}

// RecordedFrames describes what frames of a link are like, for somebody who has only the
// recording. coefficients are those of a transmission's payload, and digitLevel is the
// amplitude at which the digit 1 of a device of gain 1 arrives.
func RecordedFrames(link phy.WaveformConfig, coefficients func(slot.Transmission) int, digitLevel float64) *sigmf.Frames {
	f := &sigmf.Frames{
		Run: link.Run, Devices: link.Devices, Group: link.Group, Base: link.Base, BlockSymbols: link.BlockSymbols,
		SamplesPerSymbol: link.Modem.SamplesPerSymbol, PreambleSymbols: int(link.Modem.Preamble.Length),
		DigitLevel: digitLevel, Alpha: link.Alpha, AlphaTolerance: link.Tolerance,
	}
	if f.Group == 0 {
		f.Group = f.Devices
	}
	for t := range slot.Transmission(slot.Transmissions) {
		f.Coefficients = append(f.Coefficients, coefficients(t))
	}
	switch p := link.Modem.Pulse.(type) {
	case modem.FlatTop:
		f.Pulse = sigmf.Pulse{Shape: pulseFlatTop, Edge: float64(p.Edge), Tolerance: float64(p.Tolerance)}
	case modem.RootRaisedCosine:
		f.Pulse = sigmf.Pulse{Shape: pulseRootRaisedCosine, RollOff: p.RollOff, SpanSymbols: int(p.Span)}
	}
	if link.Phase != nil {
		phase := float64(*link.Phase)
		f.CommonPhase = &phase
	}
	return f
}
