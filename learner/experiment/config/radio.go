package config

import (
	"math"
	"slices"
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
	if c.OverRadios() {
		return first(c.checkPermission(), c.checkStages(), c.checkEnds(), c.checkRadioLink(), c.checkSecrets())
	}
	if r.Transmit || r.Receiver != "" {
		return c.wrong("radio.transmitters", "one URI a device, with radio.transmit = %v and radio.receiver = %q; or give neither of them", r.Transmit, cut(r.Receiver))
	}
	return c.checkStages()
}

// checkPermission wants what may be sent to be said in full.
func (c *Config) checkPermission() error {
	r := c.Radio
	if !r.Transmit {
		return c.wrong("radio.transmit", "true with %d transmitters: radios send only with radio.transmit = true", len(r.Transmitters))
	}
	low, high := r.BandHz[0], r.BandHz[1]
	switch {
	case r.FrequencyHz == 0:
		return c.wrong("radio.frequency_hz", "a number above 0 with radios")
	case low == 0 || high == 0:
		return c.wrong("radio.band_hz", "two numbers above 0 with radios")
	case r.MostGainDB == noGain:
		return c.wrong("radio.most_gain_db", "given with radios, from %d to %d: it is the most that the gains of a transmitter may add up to", -maxGain, maxGain)
	}
	half := c.Link.SampleRateHz / 2
	if !(r.FrequencyHz-half >= low && r.FrequencyHz+half <= high) {
		return c.wrong("radio.frequency_hz", "such that a signal of link.sample_rate_hz = %s lies within radio.band_hz, %s to %s: it would lie from %s to %s",
			number(c.Link.SampleRateHz), number(low), number(high), number(r.FrequencyHz-half), number(r.FrequencyHz+half))
	}
	return nil
}

// checkStages refuses to set a stage twice.
func (c *Config) checkStages() error {
	for _, key := range []string{"radio.transmit_gains_db", "radio.receive_gains_db"} {
		if list, _ := c.value(key).Interface().([]string); len(Gains(list)) < len(list) {
			return c.wrong(key, "%s", c.mustBe(key))
		}
	}
	return nil
}

// isGain reports whether a text is "stage=dB".
func isGain(text string) bool {
	_, _, err := parseGain(text)
	return err == nil
}

func parseGain(text string) (stage string, gain float64, err error) {
	stage, value, _ := strings.Cut(text, "=")
	gain, err = strconv.ParseFloat(strings.TrimSpace(value), 64)
	if stage = strings.TrimSpace(stage); err == nil && (stage == "" || !(math.Abs(gain) <= maxGain)) {
		err = strconv.ErrRange
	}
	return stage, gain, err
}

// Gains returns the gains of a list of "stage=dB" that was checked, by stage.
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
	if len(r.Transmitters) != c.Devices.Count || slices.Contains(r.Transmitters, "") {
		return c.wrong("radio.transmitters", "one URI a device (devices.count = %d)", c.Devices.Count)
	}
	if r.Receiver == "" {
		return c.wrong("radio.receiver", "the URI of the radio that receives, with radios")
	}
	return nil
}

// checkRadioLink refuses what radios cannot do or be told.
func (c *Config) checkRadioLink() error {
	l := c.Link
	switch {
	case !c.OverWaveform():
		return c.wrong("radio.transmitters", `empty with link.kind = %q and experiment.aggregator = %q: radios carry link.kind = "waveform" of experiment.aggregator = "xmk-ckks"`, l.Kind, c.Experiment.Aggregator)
	case c.Channel.Gains != "continuous":
		return c.wrong("channel.gains", `"continuous" with radios: nobody puts the gains of the air on a lattice`)
	case l.Regime == "emulated" || l.Regime == "mean-aligned" && c.Calibration.File == "":
		return c.wrong("link.regime", `"auto" or "blind" with radios, or with a calibration.file "mean-aligned"`)
	case l.Record != "none" && l.FrameRepeats != 0:
		return c.wrong("link.frame_repeats", "0 with radios and link.record = %q: replay finds the frames of a transmission only where there is one", l.Record)
	case l.Record != "none" && l.GroupSize != 0 && l.GroupSize < c.Devices.Count:
		return c.wrong("link.group_size", "0 with radios and link.record = %q: replay finds the frames of a transmission only where there is one", l.Record)
	case l.RealTime:
		return c.wrong("link.real_time", "false with radios: it is for the simulated bench")
	}
	return nil
}

// checkSecrets keeps keys that anybody can derive off the air.
func (c *Config) checkSecrets() error {
	if c.Encryption.Randomness == "system" || c.Radio.SecretsFromSeed {
		return nil
	}
	return c.wrong("encryption.randomness", `"system" with radios, or radio.secrets_from_seed = true for a test in which nothing is protected`)
}
