package setup

import (
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// The flat tops of the largest digit take the largest code, of either sign, and no
// sample is clipped: a converter that had no opposite of a code would add an even
// distortion that no averaging removes.
func TestTransmitConverterIsDrivenEvenly(t *testing.T) {
	for _, base := range []int{3, 5} {
		c := config.Default()
		c.Devices.Count, c.Devices.ConverterBits, c.Link.Base = 1, 8, base
		m := ModemConfig(c.Link)
		peak := float32(base-1) / 2
		modulator, err := modem.NewModulator(m, modem.Drive{Peak: peak, Amplitude: TransmitAmplitude(c)})
		if err != nil {
			t.Fatal(err)
		}
		digits := []float32{peak, -peak, 0, peak, -peak, 0, 0, 0, 0, 0}
		samples := make([]complex64, len(digits)*m.SamplesPerSymbol)
		modulator.Modulate(samples, digits)
		path, err := channel.NewPath(impairments(c, 0), keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		path.Apply(samples, samples)
		least, most := float32(0), float32(0)
		for _, x := range samples {
			least, most = min(least, real(x)), max(most, real(x))
		}
		if most != 127.0/128 || least != -most {
			t.Errorf("base %d: samples from %v to %v", base, least, most)
		}
	}
}

// Recordings say at which frequency they were made, by what, and over radios when: a
// simulated bench has no time, so that what is simulated again is the same to the byte.
func TestRecordConfigSaysWhere(t *testing.T) {
	c := config.Default()
	c.Link.Kind = KindWaveform
	ch, err := NewChannel(c, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	r := RecordConfig(c, ch, 1, 0)
	if r.Frequency == nil || *r.Frequency != 0 || r.Hardware == "" || r.Now != nil || !r.Zero.IsZero() {
		t.Errorf("a simulated bench: frequency %v, hardware %q, a clock %v", r.Frequency, r.Hardware, r.Now != nil)
	}
	band := SignalBand(c)
	if symbols := radio.Hertz(c.Link.SampleRateHz / float64(c.Link.SamplesPerSymbol)); !(band.Max > symbols/2) || band.Max > radio.Hertz(c.Link.SampleRateHz/2) || band.Min != -band.Max {
		t.Errorf("a band of %v to %v for %v symbols", band.Min, band.Max, symbols)
	}
	c.Radio.Receiver, c.Radio.Transmitters, c.Radio.FrequencyHz = "pluto:x", []string{"hackrf:a", "hackrf:b"}, 433.92e6
	r = RecordConfig(c, ch, 1, 0)
	if *r.Frequency != 433.92e6 || r.Hardware != "receiver pluto:x, transmitters hackrf:a, hackrf:b" || r.Now == nil {
		t.Errorf("radios: frequency %v, hardware %q, a clock %v", *r.Frequency, r.Hardware, r.Now != nil)
	}
	if at := SignalBand(c); at.Max-433.92e6 != band.Max {
		t.Errorf("over radios up to %v, want %v beyond the carrier", at.Max, band.Max)
	}
}

// Echoes that differ within a slot are named beforehand, with what they leave and what to do;
// none are that all in a slot have, nor where there is a board.
func TestEchoesApart(t *testing.T) {
	c := config.Default()
	c.Link.Kind, c.Devices.Count = KindWaveform, 4
	c.Channel.EchoDelaysSamples, c.Channel.EchoGainsDB, c.Channel.Echoes = []float64{8, 13.5}, []float64{-20, -20}, config.EchoesPerDevice
	why := EchoesApart(c)
	for _, want := range []string{"echoes of -17.0 dB in all", "lies 18.2 dB below it, 4 such in a slot", "calibration.file", "link.group_size"} {
		if !strings.Contains(why, want) {
			t.Errorf("it says %q, without %q", why, want)
		}
	}
	for name, change := range map[string]func(c *config.Config){
		"common": func(c *config.Config) { c.Channel.Echoes = config.EchoesCommon }, "none": func(c *config.Config) { c.Channel.EchoDelaysSamples = nil },
		"alone": func(c *config.Config) { c.Link.GroupSize = 1 }, "no waveform": func(c *config.Config) { c.Link.Kind = config.Default().Link.Kind },
		"boards": func(c *config.Config) { c.Radio.Receiver, c.Radio.Transmitters = "pluto:x", []string{"hackrf:a"} },
	} {
		other := c
		if change(&other); EchoesApart(other) != "" {
			t.Errorf("%s: it says %q", name, EchoesApart(other))
		}
	}
}

// Oscillators that wander each by itself are named beforehand, with what they do in an attempt;
// none are whose phase stays, nor where each device has its own slot.
func TestPhasesApart(t *testing.T) {
	c := config.Default()
	c.Link.Kind, c.Devices.Count, c.Devices.LinewidthHz, c.Link.SampleRateHz = KindWaveform, 3, 1, 1e7
	why := PhasesApart(c, 1_166_000) // 2 pi 2 Hz 0.1166 s = 1.21^2
	for _, want := range []string{"2 Hz wide together", "by 1.2 rad", "link.group_size = 1"} {
		if !strings.Contains(why, want) {
			t.Errorf("it says %q, without %q", why, want)
		}
	}
	for name, change := range map[string]func(c *config.Config){
		"narrow": func(c *config.Config) { c.Devices.LinewidthHz = 1e-4 }, "none": func(c *config.Config) { c.Devices.LinewidthHz = 0 },
		"alone": func(c *config.Config) { c.Link.GroupSize = 1 }, "one device": func(c *config.Config) { c.Devices.Count = 1 },
		"boards": func(c *config.Config) { c.Radio.Receiver, c.Radio.Transmitters = "pluto:x", []string{"hackrf:a"} },
	} {
		other := c
		if change(&other); PhasesApart(other, 1_166_000) != "" {
			t.Errorf("%s: it says %q", name, PhasesApart(other, 1_166_000))
		}
	}
}
