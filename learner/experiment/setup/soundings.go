package setup

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/intake"
)

// SoundingConfig returns the soundings of a configuration, without streams. Sequences that
// do not exist and blocks that are too long are the user's to mend (intake.UserError).
func SoundingConfig(c config.Config) (sounder.Config, error) {
	k, rate := c.Calibration, c.Link.SampleRateHz
	kind, err := sounding.ParseKind(k.Sequence)
	if err != nil {
		return sounder.Config{}, intake.UserError(err)
	}
	s, err := sounding.New(sounding.Config{Kind: kind, Length: k.Length, Root: k.Root, SamplesPerChip: k.SamplesPerChip, Repetitions: k.Repetitions})
	if err != nil {
		return sounder.Config{}, intake.UserError(fmt.Errorf("[calibration]: %w", err))
	}
	samples := func(seconds float64) radio.SampleCount { return radio.SampleCount(math.Round(seconds * rate)) }
	cfg := sounder.Config{
		Sounding: s, Devices: c.Devices.Count, Blocks: k.Blocks, Looks: k.Looks, Sessions: k.Sessions,
		LookEvery: samples(k.RoundSeconds / float64(k.Looks)), BlockEvery: samples(k.BlockSeconds),
		Guard:     radio.SampleCount(k.GuardSamples),
		Search:    sounding.Search{Delay: modem.Samples(k.DelaySearchSamples), Offset: modem.CyclesPerSample(k.OffsetSearchHz / rate)},
		Amplitude: TransmitAmplitude(c),
	}
	if n := radio.SampleCount(k.Looks) * cfg.LookSamples(); n > sounder.MaxBlockSamples {
		return cfg, intake.UserError(fmt.Errorf("calibration.round_seconds is %v with link.sample_rate_hz = %v, calibration.looks = %d and devices.count = %d: a block would last %d samples, and allowed are at most %d", k.RoundSeconds, rate, k.Looks, c.Devices.Count, n, sounder.MaxBlockSamples))
	}
	return cfg, nil
}

// SoundingPatience returns how long streams may stand still, besides what blocks take and are
// put off and searched for.
func SoundingPatience(cfg *sounder.Config, c config.Config, patience time.Duration) time.Duration {
	return patience + radio.Hertz(c.Link.SampleRateHz).Duration(cfg.BlockSamples()+cfg.Lead+2*cfg.Reach)
}

// Unheard says what may be the matter with a device that is not heard, over radios or in
// memory.
func Unheard(e *sounder.NotHeardError, k config.Calibration, radios bool) error {
	if e.Device < 0 {
		return e
	}
	reason := ""
	if radios {
		reason = "the board may be off or not connected, "
	}
	return fmt.Errorf("%w: %sits carrier may be off by more than calibration.offset_search_hz, %v, or turn too fast, its delay be more than calibration.delay_search_samples, %d, or its signal be too weak for what calibration.length_chips, %d, times calibration.repetitions, %d, average",
		e, reason, k.OffsetSearchHz, k.DelaySearchSamples, k.Length, k.Repetitions)
}

// SimulatedBench returns what a calibration of the bench in memory must match: its identity
// covers all that soundings depend on but chance.
func SimulatedBench(c config.Config, root keystream.Seed) calibration.Want {
	delays, phases := Positions(c, root)
	l := c.Link
	sum := sha256.Sum256(append(fmt.Appendf(nil, "%+v\n%+v\n%v\n%v\n%v %v %v %v %v %v %v",
		named(c.Devices, "ConverterBitsPerDevice"), named(physical(c.Channel), "VapourDensityGM3"), delays, phases, l.SampleRateHz, SNR(c), l.ReceiverConverterBits,
		l.ReceiverFullScale, l.ReceiverIQGainDB, l.ReceiverIQPhaseRad, l.ReceiverDCOffset), faults(c)...))
	id := hex.EncodeToString(sum[:8])
	w := calibration.Want{Bench: calibration.Bench{
		Kind: calibration.Simulated, Identity: id, ReceiverURI: "loopback:", ReceiverDriver: "loopback",
		SampleRateHz: l.SampleRateHz, SessionID: id,
	}}
	for i := range c.Devices.Count {
		w.Transmitters = append(w.Transmitters, calibration.Transmitter{
			URI: fmt.Sprintf("loopback:?device=%d", i+1), Driver: "loopback",
		})
	}
	return w
}

// named returns a section's values up to the one of a name, as %+v has them: the identity
// of a bench without what came later is what it was before.
func named(section any, last string) string {
	v := reflect.ValueOf(section)
	var parts []string
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		parts = append(parts, fmt.Sprintf("%s:%+v", name, v.Field(i)))
		if name == last {
			break
		}
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// faults returns the keys of the bench that came later, and their values, where these are
// not the default.
func faults(c config.Config) (all []byte) {
	usual := config.Default()
	ideal := usual.Faults()
	for i, f := range c.Faults() {
		if !reflect.DeepEqual(f.Value, ideal[i].Value) {
			all = fmt.Appendf(all, "\n%s=%v", f.Name, f.Value)
		}
	}
	return all
}

// physical is a channel without what a run makes of it.
func physical(c config.Channel) config.Channel {
	c.AnalogNoiseStd, c.FreshBlockOnRetry = 0, false
	return c
}

// RadioBench returns what a calibration of these radios, set as they are, must match.
func RadioBench(c config.Config, a *array.Array) calibration.Want {
	infos := a.Infos()
	rx := infos[len(infos)-1]
	w := calibration.Want{Bench: calibration.Bench{
		Kind: calibration.Radios, ReceiverURI: rx.URI, ReceiverDriver: rx.Driver, ReceiverSerial: rx.Serial,
		ReceiveGainsDB: config.Gains(c.Radio.ReceiveGainsDB), FrequencyHz: c.Radio.FrequencyHz, SampleRateHz: c.Link.SampleRateHz,
		Clock: c.Radio.Clock, SessionID: rand.Text(),
	}}
	for _, info := range infos[:len(infos)-1] {
		w.Transmitters = append(w.Transmitters, calibration.Transmitter{
			URI: info.URI, Driver: info.Driver, Serial: info.Serial, TransmitGainsDB: config.Gains(c.Radio.TransmitGainsDB),
		})
	}
	return w
}
