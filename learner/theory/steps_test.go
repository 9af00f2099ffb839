package theory

import (
	"math"
	"strings"
	"testing"

	"ringwave/learner"
)

// TestPaperLawViolatesTheorem1 is by computation: the three sums of Assumption 3.3
// do as they must, and sum eta_k^2 gains eta_0^2 ln 10 with each decade.
func TestPaperLawViolatesTheorem1(t *testing.T) {
	const x0 = 0.05
	conditions := PowerConditions(learner.PowerLaw{X0: x0, P: 0.5}, learner.PowerLaw{X0: x0, P: 0.25})
	want := []struct {
		holds, logarithmic bool
		growth             float64
	}{{true, false, 0.25}, {true, false, 0}, {true, false, 0}, {false, true, 0}}
	for i, c := range conditions {
		t.Log(c)
		if c.Holds != want[i].holds || c.Logarithmic != want[i].logarithmic || c.Growth != want[i].growth {
			t.Errorf("%s: holds is %v, logarithmic %v and growth %v; it must be %v", c.Sum, c.Holds, c.Logarithmic, c.Growth, want[i])
		}
	}
	if noise := conditions[sumNoise]; noise.By != "Theorem 1" || !strings.Contains(noise.String(), "VIOLATED") {
		t.Errorf("Theorem 1's condition reads %q", noise)
	}
	for i, p := range conditions[sumNoise].Computed[1:] {
		gain := p.Sum - conditions[sumNoise].Computed[i].Sum
		near(t, "what a decade adds to sum eta^2", gain, x0*x0*math.Ln10, 0.02)
	}
	for _, i := range []int{sumBias, sumVariance} {
		// What is missing at K lies between two integrals of (1+x)^-p.
		c := conditions[i]
		scale := math.Pow(x0, 4)
		for _, p := range c.Computed {
			missing := func(from float64) float64 { return scale * math.Pow(from, 1-c.Exponent) / (c.Exponent - 1) }
			k := float64(p.Rounds)
			if rest := c.Limit - p.Sum; rest > missing(k+1)*(1+1e-9) || rest < missing(k+2)*(1-1e-9) {
				t.Errorf("%s: after K = %d rounds %v is missing of the limit; it must be between %v and %v", c.Sum, p.Rounds, rest, missing(k+2), missing(k+1))
			}
		}
	}
}

// TestJustAboveOneHalf: an exponent a little larger meets all four.
func TestJustAboveOneHalf(t *testing.T) {
	for _, c := range PowerConditions(learner.PowerLaw{X0: 1, P: 0.55}, learner.PowerLaw{X0: 1, P: 0.25}) {
		if !c.Holds {
			t.Errorf("%v", c)
		}
	}
	// And too large a one stops before it has arrived.
	if c := PowerConditions(learner.PowerLaw{X0: 1, P: 0.8}, learner.PowerLaw{X0: 1, P: 0.25})[sumProgress]; c.Holds {
		t.Errorf("%v", c)
	}
}

func TestHorizonLaw(t *testing.T) {
	const eta0, gamma0 = 0.3, 0.2
	conditions := HorizonConditions(eta0, gamma0)
	for i, c := range conditions {
		t.Log(c)
		if c.Holds != (i != sumNoise) {
			t.Errorf("%s: holds is %v", c.Sum, c.Holds)
		}
	}
	for i, p := range conditions[sumNoise].Computed {
		near(t, "sum eta^2 against sum eta gamma", p.Sum/conditions[sumProgress].Computed[i].Sum, eta0/gamma0, 1e-9)
		near(t, "sum eta^2", p.Sum, eta0*eta0*math.Sqrt(float64(p.Rounds)), 1e-9)
		near(t, "sum eta gamma^3", conditions[sumBias].Computed[i].Sum, conditions[sumBias].Limit, 1e-9)
		near(t, "sum eta^2 gamma^2", conditions[sumVariance].Computed[i].Sum, conditions[sumVariance].Limit, 1e-9)
	}
}
