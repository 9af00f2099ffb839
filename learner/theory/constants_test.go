package theory

import (
	"math"
	"testing"

	"ringwave/learner"
)

func assumptions() Assumptions {
	mu, _, omega := unequal()
	return Assumptions{Smoothness: 3, Lipschitz: 5, HessianBound: 0.5, B1: 2, B2: 7, Mu: mu, Omega: omega, DecodedVariance: 0.25}
}

func constants(t *testing.T, a Assumptions) Constants {
	t.Helper()
	c, err := a.Constants()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rate(t *testing.T, c Constants, gap, eta0, gamma0 float64) Rate {
	t.Helper()
	r, err := c.Rate(gap, eta0, gamma0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLemmaConstants has the values by hand: Omega/mu^2 is 2, 5/4, 2 and 1.
func TestLemmaConstants(t *testing.T) {
	c := constants(t, assumptions())
	near(t, "c_1", c.C1, 4, 0)
	near(t, "c_3", c.C3, 0.5*343*4/4, 1e-15)
	near(t, "C'_gamma", c.CGamma, 4*25*2401*(6.25+12), 1e-15)
	near(t, "C'_eps", c.CEpsilon, 49*0.25, 1e-15)
	near(t, "the bias bound", c.Bias(0.1), c.C3*0.1, 1e-15)
	near(t, "the second moment's bound", c.SecondMoment(0.1), c.CGamma*0.01+c.CEpsilon, 1e-15)

	// The paper's form for identical channels.
	a := assumptions()
	const devices, mu, omega = 10, 1.5, 4.0
	a.Mu, a.Omega = nil, nil
	for range devices {
		a.Mu, a.Omega = append(a.Mu, mu), append(a.Omega, omega)
	}
	near(t, "C'_gamma of identical channels", constants(t, a).CGamma,
		4*devices*25*2401*(omega+(devices-1)*mu*mu)/(mu*mu), 1e-14)
}

func TestTheorem2(t *testing.T) {
	c := constants(t, assumptions())
	r := rate(t, c, 11, 0.3, 0.2)
	near(t, "the gap's part", r.FromGap, 2*11/(4*0.3*0.2), 1e-15)
	near(t, "the bias' part", r.FromBias, c.C3*c.C3*0.04, 1e-15)
	near(t, "the variance's part", r.FromVariance, c.CGamma*3*0.06/4, 1e-15)
	near(t, "R", r.R, r.FromGap+r.FromBias+r.FromVariance, 1e-15)
	near(t, "rho", r.Rho, c.CEpsilon*3*0.3/(4*0.2), 1e-15)
	near(t, "Eq. 21", NoiseFloor(2, 3, 5, 7, 11, 13), 2.0*5*7*11/(2*3*13), 1e-12)
	near(t, "the bound", r.Bound(400), r.R/20+r.Rho, 1e-15)

	one := rate(t, constants(t, assumptions().OneL()), 11, 0.3, 0.2)
	near(t, "rho with one L", one.Rho, r.Rho*5/3, 1e-15)
	near(t, "the variance's part with one L", one.FromVariance, r.FromVariance*5/3, 1e-15)
}

// TestTelescopedBound compares the general bound with Theorem 2's for its own
// step sizes.
func TestTelescopedBound(t *testing.T) {
	c := constants(t, assumptions())
	r := rate(t, c, 11, 0.3, 0.2)
	for _, k := range []int{1, 100, 12_345} {
		eta, gamma := learner.HorizonLaw{X0: 0.3, K: k}, learner.HorizonLaw{X0: 0.2, K: k}
		near(t, "the telescoped bound", c.Bound(11, eta, gamma, k), r.Bound(k), 1e-10)
	}
}

// TestPaperStepsStillConverge: with (1+k)^-1/2 and (1+k)^-1/4 Theorem 1's sum
// diverges like log K, but sum eta gamma like K^(1/4): the bound on the least
// E||grad F||^2 goes to 0 all the same, and without a floor, where Theorem 2's
// steps leave rho.
func TestPaperStepsStillConverge(t *testing.T) {
	a := assumptions()
	a.DecodedVariance = 1e6 // so that the noise is what counts
	c := constants(t, a)
	eta, gamma := learner.PowerLaw{X0: 0.05, P: 0.5}, learner.PowerLaw{X0: 0.05, P: 0.25}
	at := func(k int) float64 { return c.Bound(0, eta, gamma, k) }
	shrinks := at(1_000_000) / at(100_000)
	// log K/K^(1/4) with the constants of the sums: (ln K - 0.42)/(4 K^(1/4) - 4.2).
	law := func(k float64) float64 { return (math.Log(k) - 0.4228) / (4*math.Pow(k, 0.25) - 4.8) }
	near(t, "the bound's decrease over a decade", shrinks, law(1e6)/law(1e5), 0.02)
	if rho := rate(t, c, 0, 0.05, 0.05).Rho; at(1_000_000) > rho {
		t.Errorf("the bound is %v after 10^6 rounds; it must be below the floor %v of Theorem 2's steps", at(1_000_000), rho)
	}
}

func TestRoundsToAccuracy(t *testing.T) {
	r := Rate{R: 100, Rho: 0.5}
	const epsilon, beta = 10.0, 0.1
	k, err := r.Rounds(epsilon, beta)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "K(epsilon, beta)", k, 100*100/(0.5*0.5), 1e-12)
	// It is Markov's inequality: R/sqrt(K) + rho = epsilon beta.
	near(t, "epsilon beta", r.R/math.Sqrt(k)+r.Rho, epsilon*beta, 1e-12)

	// The paper's condition epsilon > rho is met by 1, 4.9 and 5; rho/beta is 5.
	for _, bad := range []struct{ epsilon, beta float64 }{{1, 0.1}, {4.9, 0.1}, {5, 0.1}, {math.NaN(), 0.1}, {10, 0}, {10, 1}, {10, math.NaN()}} {
		if k, err := r.Rounds(bad.epsilon, bad.beta); err == nil {
			t.Errorf("K(%v, %v) is %v; it must be an error", bad.epsilon, bad.beta, k)
		}
	}
}

func TestConstantsRefuse(t *testing.T) {
	for what, spoil := range map[string]func(*Assumptions){
		"no smoothness":        func(a *Assumptions) { a.Smoothness = 0 },
		"infinite Lipschitz":   func(a *Assumptions) { a.Lipschitz = math.Inf(1) },
		"negative Hessian":     func(a *Assumptions) { a.HessianBound = -1 },
		"b_1":                  func(a *Assumptions) { a.B1 = math.NaN() },
		"b_2":                  func(a *Assumptions) { a.B2 = 0 },
		"no device":            func(a *Assumptions) { a.Mu, a.Omega = nil, nil },
		"mu of 0":              func(a *Assumptions) { a.Mu[1] = 0 },
		"Omega below mu^2":     func(a *Assumptions) { a.Omega[2] = 0.1 },
		"one Omega too few":    func(a *Assumptions) { a.Omega = a.Omega[1:] },
		"the noise's variance": func(a *Assumptions) { a.DecodedVariance = -1 },
	} {
		a := assumptions()
		spoil(&a)
		if _, err := a.Constants(); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	c := constants(t, assumptions())
	for _, bad := range [][3]float64{{-1, 1, 1}, {math.NaN(), 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, math.Inf(1), 1}} {
		if _, err := c.Rate(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("the gap and steps %v were taken", bad)
		}
	}
}
