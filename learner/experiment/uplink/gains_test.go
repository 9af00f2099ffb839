package uplink

import (
	"math"
	"math/cmplx"
	"testing"

	"ringwave/calibration"
	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/channel"
	"ringwave/phy/gains"
)

// What a run goes by of the links: exactly what a simulated bench is, but for what its
// static phases take, and the intervals of a calibration, in the run's units. Delays
// leave 2 % either way.
// Longer, or of more branches, than most because it is one table of what is known, and how it is made.
func TestKnownGains(t *testing.T) {
	link := func(set ...string) (config.Config, *Waveform) {
		c, err := config.Load("../"+experimenttest.WaveformConfig, append([]string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300",
			"devices.count=2", "link.phase_spread_rad=0", "channel.mean_per_device=[1, 0.5]", "channel.std=0.2"}, set...))
		if err != nil {
			t.Fatal(err)
		}
		root := keystream.FromInteger(uint64(c.Experiment.Seed))
		ch, err := setup.NewChannel(c, root)
		if err != nil {
			t.Fatal(err)
		}
		k, err := AssumedLinkStats(c, root, ch)
		if err != nil {
			t.Fatal(err)
		}
		links := ch
		if k != nil {
			links = k.Channel
		}
		design, err := setup.NewDesign(c, links)
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := xmkckks.NewContext(design.Params, design.Form, design.Link.Messages, design.Witnesses, root.Derive("public"))
		if err != nil {
			t.Fatal(err)
		}
		l, err := New(Setting{Config: c, Seed: root, Secret: SeedLinkSecret(root), Channel: ch, Stats: k, Context: ctx, Design: design})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return c, l.(*Waveform)
	}
	check := func(name string, got, want gains.Link) {
		t.Helper()
		for k, x := range [][2]float64{{got.Mean, want.Mean}, {got.Std, want.Std}, {got.Low, want.Low}, {got.High, want.High}} {
			if math.Abs(x[0]-x[1]) > 1e-9 {
				t.Errorf("%s: %+v, want %+v (%d)", name, got, want, k)
			}
		}
	}
	c, l := link()
	check("exactly", l.knownGains(c)[1], gains.Link{Mean: 0.5, Std: 0.2, Low: 0.49, High: 0.51})

	c, l = link("link.phase_spread_rad=3", "experiment.seed=3")
	sum := cmplx.Rect(1, l.Phases[0]) + cmplx.Rect(0.5, l.Phases[1])
	low := 0.5 * math.Max(0, math.Cos(l.Phases[1]-cmplx.Phase(sum)))
	check("phases", l.knownGains(c)[1], gains.Link{Mean: 0.5, Std: 0.2, Low: low - 0.01, High: 0.51})
	if low > 0.49 {
		t.Errorf("phases of %v show nothing", l.Phases)
	}

	c, l = link("calibration.assumed_mean=[1, 0.8]")
	check("assumed", l.knownGains(c)[1], gains.Link{Mean: 0.8, Std: 0.2, Low: 0.784, High: 0.816})

	// As a calibration has it, in units of which a gain of 1 is 2.
	nan := math.NaN()
	l.known.File = &calibration.File{Devices: []calibration.Device{
		{Mu: calibration.Value{Value: 2, Low: nan, High: nan}, Sigma: calibration.Value{Value: 0.4, Low: nan, High: nan}},
		{Mu: calibration.Value{Value: 1.6, Low: 1.4, High: 1.8}, Sigma: calibration.Value{Value: 0.4, Low: 0.3, High: 0.6}},
	}}
	check("calibrated", l.knownGains(c)[1], gains.Link{Mean: 0.8, Std: 0.3, Low: 0.7 - 0.016, High: 0.9 + 0.016})
	check("calibrated, no interval", l.knownGains(c)[0], gains.Link{Mean: 1, Std: 0.2, Low: 0.98, High: 1.02})
	// A mean that nobody turns may be negative.
	l.known.Fading[1] = channel.Gaussian{Mu: -0.8, Sigma: 0.2}
	if err := l.known.draw(c, keystream.FromInteger(1)); err != nil {
		t.Fatal(err)
	}
	check("negative", l.knownGains(c)[1], gains.Link{Mean: -0.8, Std: 0.3, Low: -0.9 - 0.016, High: -0.7 + 0.016})
}
