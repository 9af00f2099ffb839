package moments

import (
	"cmp"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/phy/channel"
)

// Emulated gains are rounded to a grid. Over many blocks the grid shows, and is no
// violation where it is known; another law under it is.
func TestFitOnGrid(t *testing.T) {
	const step = 1.0 / 256
	rounded := func(law channel.Fading) Bench {
		c := truth{law: law, snrDB: 40, devices: 1, blocks: 20_000, looks: 1}
		rnd := random("grid", uint64(math.Float64bits(law.SecondMoment())))
		b := c.draw(rnd)
		s := &b.Devices[0]
		for k := range s.Gain {
			h := step * math.RoundToEven(law.Draw(rnd)/step)
			s.GainVar[k] = 1e-8
			s.Gain[k] = complex(h+1e-4*rnd.NormFloat64()/math.Sqrt2, 1e-4*rnd.NormFloat64()/math.Sqrt2)
		}
		return b
	}
	for _, c := range []struct {
		law     channel.Fading
		step    float64
		accused bool
	}{
		{channel.Gaussian{Mu: 1, Sigma: 0.02}, step, false},
		{channel.Gaussian{Mu: 1, Sigma: 0.02}, 0, true}, // as any value that takes few values
		{channel.Gaussian{Mu: 1, Sigma: 0.005}, step, false},
		{twoLevels{}, step, true},
	} {
		r, err := Analyse(rounded(c.law), Options{GainStep: c.step, Model: Gaussian})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Contains(strings.Join(r.Violations(), "\n"), "neither Gaussian nor Rician")
		if got != c.accused {
			t.Errorf("%T %v, step %v: accused is %v\n%s", c.law, c.law, c.step, got, cmp.Or(strings.Join(r.Violations(), "\n"), "nothing"))
		}
	}
}

// twoLevels is a Gaussian gain about one of two means.
type twoLevels struct{}

func (twoLevels) Mean() float64         { return 1 }
func (twoLevels) SecondMoment() float64 { return 1 + 0.01 + 0.0004 }
func (twoLevels) Draw(rnd *rand.Rand) float64 {
	return 1 + 0.1*math.Copysign(1, rnd.Float64()-0.5) + 0.02*rnd.NormFloat64()
}
