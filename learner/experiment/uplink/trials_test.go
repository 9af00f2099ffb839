package uplink

import (
	"math"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/modem"
)

// settingOf returns the setting of a configuration over the program's own strokes.
func settingOf(t *testing.T, set ...string) Setting {
	t.Helper()
	c, err := config.Load("../"+experimenttest.WaveformConfig, append([]string{"task.dataset=strokes"}, set...))
	if err != nil {
		t.Fatal(err)
	}
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		t.Fatal(err)
	}
	design, err := setup.NewDesign(c, ch)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := xmkckks.NewContext(design.Params, design.Form, design.Link.Messages, design.Witnesses, root.Derive("public"))
	if err != nil {
		t.Fatal(err)
	}
	return Setting{Config: c, Seed: root, Context: ctx}
}

// planned returns bench and link of a trial of a configuration.
func planned(t *testing.T, number uint32, set ...string) (bench.Config, phy.WaveformConfig) {
	t.Helper()
	s := settingOf(t, set...)
	air, link, err := Trials(s, s.Seed.Derive("plan")).Setup(number)
	if err != nil {
		t.Fatal(err)
	}
	return air, link
}

// Flat-top pulses whose delays spread further than their tolerance are sent earlier by
// whole samples, by a symbol of 8 at most, and what is left is within the tolerance where
// that reaches; others are sent as they are, or exactly that much earlier.
func TestAdvances(t *testing.T) {
	for _, c := range []struct {
		set  []string
		none bool
		left modem.Samples // at most, of the spread
	}{
		{[]string{"link.delay_spread_samples=1"}, true, 1},
		{[]string{"link.delay_spread_samples=1.5"}, false, 1},
		{[]string{"link.delay_spread_samples=8"}, false, 1},
		{[]string{"link.delay_spread_samples=16"}, false, 1},
		{[]string{"link.delay_spread_samples=64", "devices.count=4"}, false, 64 - 16 + 1},
		{[]string{"link.delay_spread_samples=5", "link.pulse=root-raised-cosine"}, false, 1e-9},
	} {
		air, link := planned(t, 0, c.set...)
		if (link.Advance == nil) != c.none {
			t.Errorf("%v: advances are %v", c.set, link.Advance)
		}
		first, last := modem.Samples(math.Inf(1)), modem.Samples(math.Inf(-1))
		for i, d := range air.Devices {
			left := modem.Samples(d.DelaySamples)
			if !c.none {
				left -= link.Advance[i]
			}
			first, last = min(first, left), max(last, left)
		}
		if last-first > c.left {
			t.Errorf("%v: delays still spread over %v samples", c.set, last-first)
		}
	}
}

// A trial has the faults of the run's bench, and stands where the run's does.
func TestTrialsHaveTheRunsFaults(t *testing.T) {
	air, link := planned(t, 1, "devices.dc_offset=0.03", "link.receiver_dc_offset=0.02", "link.receiver_converter_bits=9", "devices.converter_bits=10")
	if real(air.Devices[1].DC) != 0.03 || air.Devices[1].ConverterBits != 10 || real(air.Receiver.DC) != 0.02 || air.Receiver.ConverterBits != 9 || !(air.FullScale > 1) || link.Devices != 3 {
		t.Errorf("%+v", air)
	}
	if recorded, _ := planned(t, 1, "link.record=ci8"); recorded.Receiver.ConverterBits != 8 {
		t.Errorf("a recording of 8 bits is received with %d", recorded.Receiver.ConverterBits)
	}
}
