package theory

import (
	"context"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/learner"
)

// drawnGains are independent Gaussian gains of each device's own moments.
type drawnGains struct {
	mu, sigma []float64
	stream    *keystream.Stream
	h         []float64
}

func (g *drawnGains) Gains(round int) []float64 {
	g.stream.Start(uint32(round), 0)
	rnd := rand.New(g.stream)
	for i := range g.h {
		g.h[i] = g.mu[i] + g.sigma[i]*rnd.NormFloat64()
	}
	return g.h
}

// TestLemma1 draws the learner's own estimator at fixed points, over gains of
// unequal devices, with noise, and compares it with sums over all directions and
// with the bounds. Chance: a distance of mean(g) of three times its root mean square
// has a probability below 1e-4 in five dimensions, five standard errors of
// ||g||^2 below 1e-6; the seeds are fixed.
func TestLemma1(t *testing.T) {
	const noise = 0.3
	draws := 30_000
	if testing.Short() {
		draws = 2_000
	}
	mu, sigma, omega := unequal()
	for _, p := range problems(t) {
		c := constants(t, p.Assumptions(mu, omega, noise*noise))
		for name, theta := range map[string][]float64{"start": p.Start, "minimum": p.Minimiser} {
			for _, gamma := range []float64{0.1, 2} {
				seed := keystream.FromInteger(9).Derive(name)
				l := drawLemma(t, p, c, theta, gamma, draws, seed, mu, &drawnGains{mu, sigma, seed.Stream(), make([]float64, 4)}, noise)
				t.Logf("%s at the %s: %+v", p.Name, name, l)
				if l.Offset > 3 {
					t.Errorf("%s at the %s, gamma %v: mean(g) is %v of its errors from the sum over all directions", p.Name, name, gamma, l.Offset)
				}
				if d := (l.Second - l.SecondExact) / l.SecondErr; d > 5 || d < -5 {
					t.Errorf("%s at the %s, gamma %v: the mean of ||g||^2 is %v standard errors from the sum over all directions", p.Name, name, gamma, d)
				}
				if !l.Holds() {
					t.Errorf("%s at the %s, gamma %v: Lemma 1 is broken: %+v", p.Name, name, gamma, l)
				}
				if p.curvature != nil && l.DeltaExact > 1e-10 {
					t.Errorf("the quadratic's delta is %v; it must be 0", l.DeltaExact)
				}
			}
		}
	}
}

// TestLemma1Notices: gains whose mean is a tenth off what the devices divide by
// bias the estimator, and the measurement says so.
func TestLemma1Notices(t *testing.T) {
	mu, sigma, omega := unequal()
	p := problems(t)[0]
	c := constants(t, p.Assumptions(mu, omega, 0))
	off := []float64{1.1, -2.2, 0.55, 1.65}
	seed := keystream.FromInteger(10)
	l := drawLemma(t, p, c, p.Start, 0.1, 30_000, seed, mu, &drawnGains{off, sigma, seed.Stream(), make([]float64, 4)}, 0)
	if l.Offset < 5 {
		t.Errorf("mean(g) is %v of its errors from the sum over all directions; it must be far off", l.Offset)
	}
}

func drawLemma(t *testing.T, p *Problem, c Constants, theta []float64, gamma float64, draws int, seed keystream.Seed, mu []float64, gains aggregate.Gains, noise float64) LemmaCheck {
	t.Helper()
	a, err := learner.NewEZOFL(gains, mu, noise, seed)
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.measureLemma(context.Background(), c, a, theta, gamma, draws, seed)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
