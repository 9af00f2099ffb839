package config

import (
	"math"
	"strings"
	"testing"
)

// Faults that do not go with each other are refused, in a sentence.
func TestFaultsThatCannotBe(t *testing.T) {
	for want, text := range map[string]string{
		"line 3: channel.echo_gains_db = [-20]: must be as many values as channel.echo_delays_samples has, 2": "[channel]\necho_delays_samples = [1, 2]\necho_gains_db = [-20]",
		"channel.echo_gains_db = [ ]: must be as many":                                                        "[channel]\necho_delays_samples = [1]",
		"line 4: channel.echo_phases_rad = [1, 2]: must be as many values as channel.echo_delays_samples":     "[channel]\necho_delays_samples = [1]\necho_gains_db = [-20]\necho_phases_rad = [1, 2]",
		"channel.doppler_hz = 5: must be 0 with channel.gains = \"lattice\"":                                  "[channel]\ndoppler_hz = 5",
		"channel.doppler_hz = 5: must be 0 with channel.drift = \"after-key\"":                                "[channel]\ndoppler_hz = 5\ngains = \"continuous\"\ndrift = \"after-key\"",
		"link.burst_samples = 11: must be a whole number from 0 to link.burst_every_samples, 10":              "[link]\nburst_every_samples = 10\nburst_samples = 11",
		"link.snr_db = 20: must be left out with channel.model = \"thz-los\"":                                 "[link]\nkind = \"waveform\"\nsnr_db = 20\n[channel]\nmodel = \"thz-los\"",
		"devices.sample_clock_per_device_ppm = [1, 2]: must be a list of numbers":                             "[devices]\ncount = 3\nsample_clock_per_device_ppm = [1, 2]",
		"devices.preset = \"hackrf\": must be \"\" or \"pluto\"":                                              "[devices]\npreset = \"hackrf\"",
		"link.receiver_filter_hz = 4950000: must be a number from 0 to 0.49 link.sample_rate_hz, 49e5":        "[link]\nreceiver_filter_hz = 4.95e6",
	} {
		_, err := Parse("x.toml", []byte(text), nil)
		if err == nil {
			t.Errorf("%q was taken", text)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// A preset gives figures to what is 0, and leaves what is given.
func TestPreset(t *testing.T) {
	c := Default()
	c.Devices.Count, c.Devices.Preset, c.Devices.ConverterBitsPerDevice = 2, PresetPluto, []int{0, 8}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	a, b := c.Transmitter(0), c.Transmitter(1)
	if a.ConverterBits != 12 || b.ConverterBits != 8 {
		t.Errorf("converters of %d and %d bits", a.ConverterBits, b.ConverterBits)
	}
	gain := math.Pow(10, a.IQGainDB/20)
	image := math.Hypot(gain-1, a.IQPhaseRad) / 2
	if leak := math.Sqrt2 * a.DCOffset; math.Abs(20*math.Log10(leak)+50) > 0.01 || math.Abs(20*math.Log10(image)+50) > 0.01 {
		t.Errorf("a carrier of %.2f dB and an image of %.2f dB", 20*math.Log10(leak), 20*math.Log10(image))
	}
	if a.PhaseNoiseRad == 0 || a.LoopHz == 0 {
		t.Errorf("%+v has no phase noise", a)
	}
	c.Devices.LinewidthHz = 1
	if got := c.Transmitter(0); got.PhaseNoiseRad != 0 || got.LinewidthHz != 1 {
		t.Errorf("a linewidth of 1 Hz beside the preset gives %+v", got)
	}
	c.Devices.Preset = ""
	if got := c.Transmitter(0); got != (Transmitter{LinewidthHz: 1}) {
		t.Errorf("without a preset there is %+v", got)
	}
}
