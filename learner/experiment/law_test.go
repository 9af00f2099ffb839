package experiment

import (
	"testing"

	"ringwave/calibration/moments"
	"ringwave/learner/experiment/config"
	"ringwave/phy/channel"
)

// twofold is a law of somebody else's.
type twofold struct{ channel.Gaussian }

// A calibration takes the gains for what they are drawn from, and leaves those of a law
// that it does not know to the data.
func TestLawOfTheGains(t *testing.T) {
	for name, want := range map[string]moments.Model{"gaussian": moments.Gaussian, "rician": moments.Rician, "thz-los": moments.Gaussian} {
		c := config.Default()
		c.Channel.Model, c.Link.BandwidthHz = name, 1e9
		if got := lawOf(c); got != want {
			t.Errorf("%s: %v, in place of %v", name, got, want)
		}
		if c.Radio.Transmitters = []string{"file:x"}; lawOf(c) != moments.Undecided {
			t.Errorf("%s, over radios: %v", name, lawOf(c))
		}
	}
	if got := modelOf(twofold{}); got != moments.Undecided {
		t.Errorf("another law: %v", got)
	}
}
