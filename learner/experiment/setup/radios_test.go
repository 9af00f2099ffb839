package setup

import (
	"testing"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/radio"
)

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
	c.Radio.Transmit = false
	if p, err := PermitOf(c); err != nil || p.Allowed() {
		t.Errorf("%v: %v", p, err)
	}
}
