package setup

import (
	"errors"
	"fmt"
	"testing"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/radio"
)

// What fails with a guard that is lost comes behind it; of a program that stood still there is
// nothing else to tell.
func TestLostGuard(t *testing.T) {
	failed := errors.New("receiving: no samples")
	lost := fmt.Errorf("%w cannot be relied on: it has ended", radio.ErrGuard)
	stood := fmt.Errorf("%w cannot be relied on: %w for 2s", radio.ErrGuard, radio.ErrStoodStill)
	for _, c := range []struct {
		guarded, err error
		want         string
	}{
		{nil, failed, failed.Error()},
		{lost, failed, lost.Error() + ": " + failed.Error()},
		{stood, failed, stood.Error()},
		{stood, errors.Join(failed, stood), stood.Error()},
	} {
		if got := LostGuard(func() error { return c.guarded }, c.err); got == nil || got.Error() != c.want {
			t.Errorf("%v becomes %v; expected is %s", c.err, got, c.want)
		}
	}
	if err := LostGuard(func() error { return stood }, nil); err != nil {
		t.Errorf("what succeeded fails with %v", err)
	}
	if err := LostGuard(nil, failed); err != failed {
		t.Error(err)
	}
}

// The permit is the user's band, for signals as wide as the sample rate, and the most
// gain.
func TestPermitOf(t *testing.T) {
	c, err := config.Load("../"+experimenttest.VirtualBenchConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := PermitOf(c)
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[radio.Hertz]bool{432.9e6: false, 433e6: true, 435e6: true, 435.1e6: false} {
		if got := p.Frequency(f) == nil; got != want {
			t.Errorf("%v permitted: %v", f, got)
		}
	}
	if p.Gain(0) != nil || p.Gain(0.1) == nil {
		t.Errorf("gains: %v, %v", p.Gain(0), p.Gain(0.1))
	}
	if p.Bias() == nil {
		t.Error("power at antennas' ports is permitted")
	}
	biased := c
	biased.Radio.BiasTee = true
	if p, err := PermitOf(biased); err != nil || p.Bias() != nil || p.Gain(0.1) == nil {
		t.Errorf("%v: %v", p, err)
	}
	c.Radio.Transmit = false
	if p, err := PermitOf(c); err != nil || p.Allowed() {
		t.Errorf("%v: %v", p, err)
	}
}
