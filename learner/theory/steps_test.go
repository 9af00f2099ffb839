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
		if i != sumNoise && (!c.Holds || c.By != "Assumption 3.3") {
			t.Errorf("%s: holds is %v, which %q asks for", c.Sum, c.Holds, c.By)
		}
		// Theorem 1 is not about this law, and nothing that it asks for is violated.
		if text := c.String(); strings.Contains(text, "VIOLATED") || strings.Contains(text, "Theorem 1") {
			t.Errorf("the condition reads %q", text)
		}
	}
	for i, p := range conditions[sumNoise].Computed {
		near(t, "sum eta^2 against sum eta gamma", p.Sum/conditions[sumProgress].Computed[i].Sum, eta0/gamma0, 1e-9)
		near(t, "sum eta^2", p.Sum, eta0*eta0*math.Sqrt(float64(p.Rounds)), 1e-9)
		near(t, "sum eta gamma^3", conditions[sumBias].Computed[i].Sum, conditions[sumBias].Limit, 1e-9)
		near(t, "sum eta^2 gamma^2", conditions[sumVariance].Computed[i].Sum, conditions[sumVariance].Limit, 1e-9)
	}
}

// TestDescentTime has the stated steps' values: the sum of (1+k)^-3/4 is 13.46 over 400
// rounds and 32.78 over 7,500 (four times the fourth root of K+1, plus zeta(3/4) - 1).
func TestDescentTime(t *testing.T) {
	for _, c := range []struct {
		eta0, gamma0 float64
		rounds       int
		want         float64
	}{{0.05, 0.05, 400, 0.673}, {0.005, 0.01, 7500, 0.0328}} {
		got := DescentTime(learner.PowerLaw{X0: c.eta0, P: 0.5}, learner.PowerLaw{X0: c.gamma0, P: 0.25}, 1, 10, c.rounds)
		near(t, "the sum of 2 N eta gamma", got, c.want, 2e-3)
	}
	near(t, "with other directions", DescentTime(learner.HorizonLaw{X0: 1, K: 16}, learner.HorizonLaw{X0: 1, K: 16}, 3, 2, 16), 2*3*2*4, 1e-12)
}
