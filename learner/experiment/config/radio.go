package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// noGain is radio.most_gain_db of a user who has not said any: no board is so quiet.
const noGain = -1000

// maxGain bounds gains, in dB.
const maxGain = 200

// checkRadio checks what is sent, and where, before anything else of the section:
// nothing is sent that the user has not said.
func (c *Config) checkRadio() error {
	r := c.Radio
	if !c.OverRadios() {
		return c.checkNoRadio()
	}
	err := first(
		c.checkPermission(),
		oneOf("radio.clock", r.Clock, "external", "shared", "internal"),
		oneOf("radio.trigger", r.Trigger, "wired", "none", "lock-step"),
		inRange("radio.lead_seconds", r.LeadSeconds, 0, 10),
		inRange("radio.search_seconds", r.SearchSeconds, 0, 10),
		inRange("radio.level", r.Level, 0, 100),
		checkGains("radio.transmit_gains_db", r.TransmitGainsDB),
		checkGains("radio.receive_gains_db", r.ReceiveGainsDB),
	)
	if err != nil {
		return err
	}
	return first(c.checkEnds(), c.checkRadioLink(), c.checkSecrets())
}

// checkNoRadio refuses a bench without transmitters.
func (c *Config) checkNoRadio() error {
	r := c.Radio
	if r.Transmit || r.Receiver != "" {
		return fmt.Errorf("radio.transmitters is empty, with radio.transmit = %v and radio.receiver = %q: give one URI a device, or neither of them", r.Transmit, r.Receiver)
	}
	return nil
}

// checkPermission wants what may be sent to be said in full.
func (c *Config) checkPermission() error {
	r := c.Radio
	if !r.Transmit {
		return fmt.Errorf("radio.transmit is false with %d transmitters: radios send only with radio.transmit = true", len(r.Transmitters))
	}
	if err := first(positive("radio.frequency_hz", r.FrequencyHz), positive("radio.band_hz", r.BandHz[0]), positive("radio.band_hz", r.BandHz[1])); err != nil {
		return err
	}
	half := c.Link.SampleRateHz / 2
	low, high := r.BandHz[0], r.BandHz[1]
	if !(r.FrequencyHz-half >= low && r.FrequencyHz+half <= high) {
		return fmt.Errorf("radio.frequency_hz is %v and link.sample_rate_hz %v: the signal would lie from %v to %v, and radio.band_hz allows %v to %v",
			r.FrequencyHz, c.Link.SampleRateHz, r.FrequencyHz-half, r.FrequencyHz+half, low, high)
	}
	if r.MostGainDB == noGain {
		return fmt.Errorf("radio.most_gain_db is not given: it is the most that the gains of a transmitter may add up to, from %d to %d dB", -maxGain, maxGain)
	}
	return inRange("radio.most_gain_db", r.MostGainDB, -maxGain, maxGain)
}

func checkGains(key string, list []string) error {
	seen := map[string]bool{}
	for _, text := range list {
		stage, _, err := parseGain(text)
		if err != nil {
			return fmt.Errorf("%s has %q: allowed is \"stage=dB\", such as \"lna=16\", from %d to %d dB", key, text, -maxGain, maxGain)
		}
		if seen[stage] {
			return fmt.Errorf("%s has the stage %q twice: allowed is once", key, stage)
		}
		seen[stage] = true
	}
	return nil
}

func parseGain(text string) (stage string, gain float64, err error) {
	stage, value, _ := strings.Cut(text, "=")
	gain, err = strconv.ParseFloat(strings.TrimSpace(value), 64)
	if stage = strings.TrimSpace(stage); err == nil && (stage == "" || !(math.Abs(gain) <= maxGain)) {
		err = strconv.ErrRange
	}
	return stage, gain, err
}

// Gains gives the gains of a list of "stage=dB" that was checked, by stage.
func Gains(list []string) map[string]float64 {
	gains := map[string]float64{}
	for _, text := range list {
		if stage, gain, err := parseGain(text); err == nil {
			gains[stage] = gain
		}
	}
	return gains
}

// checkEnds wants a radio for each device, and one for the server.
func (c *Config) checkEnds() error {
	r := c.Radio
	if len(r.Transmitters) != c.Devices.Count {
		return fmt.Errorf("radio.transmitters has %d URIs for %d devices (devices.count): give one a device", len(r.Transmitters), c.Devices.Count)
	}
	for i, uri := range r.Transmitters {
		if uri == "" {
			return fmt.Errorf("radio.transmitters has no URI for device %d", i+1)
		}
	}
	if r.Receiver == "" {
		return fmt.Errorf("radio.receiver is empty: it is the URI of the radio that receives")
	}
	return nil
}

// checkRadioLink refuses what radios cannot do or be told.
func (c *Config) checkRadioLink() error {
	l := c.Link
	switch {
	case !c.OverWaveform():
		return fmt.Errorf("radio.transmitters is given with link.kind = %q and experiment.aggregator = %q: radios carry link.kind = \"waveform\" of experiment.aggregator = \"xmk-ckks\"", l.Kind, c.Experiment.Aggregator)
	case c.Channel.Gains != "continuous":
		return fmt.Errorf("channel.gains is %q with radios: nobody puts the gains of the air on a lattice; allowed is \"continuous\"", c.Channel.Gains)
	case l.Regime == "emulated" || l.Regime == "mean-aligned" && c.Calibration.File == "":
		return fmt.Errorf("link.regime is %q with radios: allowed are auto and blind, and with a calibration.file mean-aligned", l.Regime)
	case l.Record != "none" && (l.FrameRepeats != 0 || l.GroupSize != 0 && l.GroupSize < c.Devices.Count):
		return fmt.Errorf("link.record is %s with radios, frame_repeats %d and group_size %d: replay finds the frames of a transmission only where there is one; allowed are frame_repeats = 0 and group_size = 0", l.Record, l.FrameRepeats, l.GroupSize)
	case l.RealTime:
		return fmt.Errorf("link.real_time is true with radios: it is for the simulated bench; allowed is false")
	}
	return nil
}

// checkSecrets keeps keys that anybody can derive off the air.
func (c *Config) checkSecrets() error {
	if c.Encryption.Randomness == "system" || c.Radio.SecretsFromSeed {
		return nil
	}
	return fmt.Errorf("encryption.randomness is %q with radios: allowed is \"system\", or radio.secrets_from_seed = true for a test in which nothing is protected", c.Encryption.Randomness)
}
