package config

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// The values of channel.echoes, and one of devices.preset.
const (
	EchoesCommon    = "common"
	EchoesPerDevice = "per-device"
	PresetPluto     = "pluto"
)

// pluto gives what is 0 the typical figures of the AD9361's data sheet at 2.4 GHz.
func (t *Transmitter) pluto() {
	below := math.Pow(10, -50.0/20)
	branch := below / math.Sqrt2
	t.ConverterBits = orUsual(t.ConverterBits, 12)
	t.DCOffset = orUsual(t.DCOffset, branch)
	// An image is half the mismatch of gain and, in quadrature, half that of phase.
	t.IQPhaseRad = orUsual(t.IQPhaseRad, 2*branch)
	t.IQGainDB = orUsual(t.IQGainDB, 20*math.Log10(1+2*branch))
	if t.LinewidthHz == 0 {
		t.PhaseNoiseRad, t.LoopHz = 0.37*math.Pi/180, 100e3
	}
}

// orUsual returns a value, and what is usual where it is 0.
func orUsual[T int | float64](value, usual T) T {
	if value == 0 {
		return usual
	}
	return value
}

// checkFaults refuses lists of echoes that do not go with each other, and gains that fade
// within a round where they cannot.
func (c *Config) checkFaults() error {
	if err := c.checkBudget(); err != nil {
		return err
	}
	h := c.Channel
	n := len(h.EchoDelaysSamples)
	if len(h.EchoGainsDB) != n {
		return c.wrong("channel.echo_gains_db", "as many values as channel.echo_delays_samples has, %d", n)
	}
	if k := len(h.EchoPhasesRad); k != 0 && k != n {
		return c.wrong("channel.echo_phases_rad", "as many values as channel.echo_delays_samples has, %d, or none", n)
	}
	if h.DopplerHz == 0 {
		return nil
	}
	if h.Gains == "lattice" {
		return c.wrong("channel.doppler_hz", `0 with channel.gains = "lattice", whose gains cannot leave it within a round: take "continuous"`)
	}
	if h.Drift != "none" {
		return c.wrong("channel.doppler_hz", `0 with channel.drift = %q: one of them says how gains change in a round`, h.Drift)
	}
	return nil
}

// checkBudget refuses an SNR beside that of a link budget.
func (c *Config) checkBudget() error {
	if c.Channel.Model == "thz-los" && c.OverWaveform() && c.Link.SNRdB != Default().Link.SNRdB {
		return c.wrong("link.snr_db", `left out with channel.model = "thz-los" and link.kind = "waveform": the link budget gives the SNR, by channel.transmit_power_dbm and what is beside it`)
	}
	return nil
}

// Fault is a key of what the simulated bench does to signals, and its value.
type Fault struct {
	Name  string // section.key
	Value any
}

// Faults returns the keys behind the first of each section that say what the simulated
// bench does to signals, and their values.
func (c *Config) Faults() []Fault {
	first := map[string]string{
		"devices": "devices.sample_clock_ppm", "link": "link.receiver_carrier_offset_hz", "channel": "channel.echo_delays_samples",
	}
	var all []Fault
	for _, section := range slices.Sorted(maps.Keys(first)) {
		within := false
		for _, f := range c.fields() {
			if strings.HasPrefix(f.name, section+".") {
				if within = within || f.name == first[section]; within {
					all = append(all, Fault{f.name, f.value.Interface()})
				}
			}
		}
	}
	return all
}

// Taking returns a configuration with another's values of some keys.
func (c Config) Taking(other Config, keys ...string) Config {
	for _, key := range keys {
		c.value(key).Set(other.value(key))
	}
	return c
}

// Differing returns which of some keys have not another configuration's values, as
// "key = value", and the values that they have there.
func (c Config) Differing(other Config, keys ...string) (set, there []string) {
	for _, key := range keys {
		if v, o := c.value(key), other.value(key); !reflect.DeepEqual(v.Interface(), o.Interface()) {
			set, there = append(set, key+" = "+show(v)), append(there, show(o))
		}
	}
	return set, there
}
