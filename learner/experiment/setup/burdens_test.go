package setup

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
)

// Every key of what a bench does to signals is a burden where it is not as usual, with its
// value, and is as usual without it.
func TestBurdens(t *testing.T) {
	named := map[string]bool{}
	for _, b := range burdens {
		for _, key := range strings.Fields(b.keys) {
			named[key] = true
			if !slices.Contains(config.Keys(), key) {
				t.Errorf("there is no key %s", key)
			}
		}
	}
	for _, f := range new(config.Config).Faults() {
		if !named[f.Name] {
			t.Errorf("%s is no burden", f.Name)
		}
	}
	for _, c := range []struct {
		set  []string
		want []string // of the burdens' settings
		says string
	}{
		{nil, []string{"link.delay_spread_samples = 1", "link.phase_spread_rad = 0.2"}, "bends the edges"},
		{[]string{"link.samples_per_symbol=4", "link.edge_samples=1"}, []string{"link.samples_per_symbol = 4, link.edge_samples = 1"}, "read from 1 of 4 samples"},
		{[]string{"link.pulse=root-raised-cosine", "link.roll_off=0.1"}, []string{"link.roll_off = 0.1"}, "lies 32 dB below"},
		{[]string{"link.roll_off=0.1"}, nil, ""},
		{[]string{"link.receiver_converter_bits=12", "link.receiver_full_scale=2.5"}, []string{"link.receiver_full_scale = 2.5", "link.receiver_converter_bits = 12"}, "devices send 3.7 dB weaker"},
		{[]string{"devices.carrier_offset_hz=100", "channel.doppler_hz=0.5"}, []string{"devices.carrier_offset_hz = 100", "channel.doppler_hz = 0.5"}, "no longer the nearest"},
	} {
		conf := loaded(t, experimenttest.WaveformConfig, c.set...)
		if c.set != nil {
			conf = loaded(t, experimenttest.WaveformConfig, append(c.set, "link.delay_spread_samples=0", "link.phase_spread_rad=0")...)
		}
		ch, err := NewChannel(conf, keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		all, without := Burdens(conf, ch)
		var set []string
		said := ""
		for _, b := range all {
			set, said = append(set, b.Set), said+b.Reason
			rest, _ := Burdens(Relieved(conf, b), ch)
			if len(rest) > len(all)-1 && !strings.Contains(b.Set, "converter_bits") {
				t.Errorf("%v: without %s there is still %v", c.set, b.Set, rest)
			}
		}
		if !reflect.DeepEqual(set, c.want) || !strings.Contains(said, c.says) {
			t.Errorf("%v: the burdens are %q: %s", c.set, set, said)
		}
		if left, _ := Burdens(without, ch); len(left) > 0 {
			t.Errorf("%v: without all burdens there are %v", c.set, left)
		}
	}
}
