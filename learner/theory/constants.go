// Package theory computes what the paper's convergence analysis promises, and
// measures whether it is kept.
//
// It takes in the constants of Assumptions 3.1 to 3.4, the gains' moments, the
// decoded noise variance and the laws of the step sizes, and gives the constants
// of Lemma 1, the bound, the noise floor and the number of rounds of Theorem 2,
// and the sums of step sizes that Theorem 1 needs. Verify sets them against runs
// of the learner on test problems of which L, b and F* are known, over links that its
// caller opens: the protocol's own rounds, or the same gains and the same noise without
// them.
//
// It knows nothing of encryption and of radios, of data sets on disk, or of how a report
// looks.
// Nothing of the protocol depends on it. Equations and numbers of assumptions are
// those of the paper.
package theory

import (
	"fmt"
	"math"

	"ringwave/learner"
)

// Assumptions holds the constants that Assumptions 3.1 to 3.4 name, and what the
// uplink adds.
//
// The paper writes L for two things of different units: the Lipschitz constant
// of the gradient of F (Assumption 3.1), which makes the descent inequality of
// Appendix D, and that of f_i(., xi) itself (Assumption 3.2), which bounds
// |Delta f| <= 2 L b_2 gamma in Appendix C. Here each has its own field; with both
// set to the larger one the constants are the paper's to the letter.
type Assumptions struct {
	// Smoothness is L of Assumption 3.1: ||grad F(x) - grad F(y)|| <= L ||x - y||.
	Smoothness float64
	// Lipschitz is L of Assumption 3.2: |f_i(x, xi) - f_i(y, xi)| <= L ||x - y||.
	Lipschitz float64
	// HessianBound is b: the spectral norm of every F_i's Hessian is at most b.
	HessianBound float64
	// B1 is b_1 = E[(Phi^j)^2], B2 is b_2 >= ||Phi||.
	B1, B2 float64
	// Mu and Omega are the gains' means mu_i, none 0, and second moments Omega_i,
	// at least mu_i^2; one a device.
	Mu, Omega []float64
	// DecodedVariance is sigma_eps^2, the variance of epsilon_k.
	DecodedVariance float64
}

// OneL returns the assumptions with the larger of the two constants called L in
// both places, as the paper has it.
func (a Assumptions) OneL() Assumptions {
	a.Smoothness = max(a.Smoothness, a.Lipschitz)
	a.Lipschitz = a.Smoothness
	return a
}

func (a Assumptions) check() error {
	for _, c := range []struct {
		name  string
		value float64
	}{
		{"L of Assumption 3.1", a.Smoothness}, {"L of Assumption 3.2", a.Lipschitz},
		{"b_1", a.B1}, {"b_2", a.B2},
	} {
		if !(c.value > 0) || math.IsInf(c.value, 0) {
			return fmt.Errorf("%s is %v; allowed is above 0 and finite", c.name, c.value)
		}
	}
	if !(a.HessianBound >= 0) || math.IsInf(a.HessianBound, 0) {
		return fmt.Errorf("b is %v; allowed is 0 or more, and finite", a.HessianBound)
	}
	if !(a.DecodedVariance >= 0) || math.IsInf(a.DecodedVariance, 0) {
		return fmt.Errorf("the decoded noise variance is %v; allowed is 0 or more, and finite", a.DecodedVariance)
	}
	return checkMoments(a.Mu, a.Omega)
}

func checkMoments(mu, omega []float64) error {
	if len(mu) == 0 || len(mu) != len(omega) {
		return fmt.Errorf("there are %d means and %d second moments of gains; allowed is one of each a device, at least 1", len(mu), len(omega))
	}
	for i, m := range mu {
		if m == 0 || !(omega[i] >= m*m*(1-1e-9)) || math.IsInf(omega[i], 0) {
			return fmt.Errorf("device %d: the gain's mean is %v and its second moment %v; allowed is a mean other than 0 and a finite moment of at least its square", i+1, m, omega[i])
		}
	}
	return nil
}

// Constants are those of Lemma 1: E[g] = c_1 gamma (grad F + delta) with
// ||delta|| <= c_3 gamma, and E[||g||^2] <= C'_gamma gamma^2 + C'_eps.
type Constants struct {
	C1       float64 // 2 b_1
	C3       float64 // b b_2^3 N / (2 b_1)
	CGamma   float64 // C'_gamma = 4 L^2 b_2^4 (sum Omega_i/mu_i^2 + N(N-1))
	CEpsilon float64 // C'_eps = b_2^2 sigma_eps^2

	assumptions Assumptions
}

// Constants returns Lemma 1's.
func (a Assumptions) Constants() (Constants, error) {
	if err := a.check(); err != nil {
		return Constants{}, fmt.Errorf("the constants of Lemma 1: %w", err)
	}
	n := float64(len(a.Mu))
	spread := n * (n - 1)
	for i, m := range a.Mu {
		spread += a.Omega[i] / (m * m)
	}
	b22 := a.B2 * a.B2
	return Constants{
		C1:          2 * a.B1,
		C3:          a.HessianBound * a.B2 * b22 * n / (2 * a.B1),
		CGamma:      4 * a.Lipschitz * a.Lipschitz * b22 * b22 * spread,
		CEpsilon:    b22 * a.DecodedVariance,
		assumptions: a,
	}, nil
}

// Bias returns c_3 gamma, the bound on ||delta||.
func (c Constants) Bias(gamma float64) float64 { return c.C3 * gamma }

// SecondMoment returns C'_gamma gamma^2 + C'_eps, the bound on E[||g||^2].
func (c Constants) SecondMoment(gamma float64) float64 { return c.CGamma*gamma*gamma + c.CEpsilon }

// Rate is Theorem 2 for eta_k = eta_0 K^(-1/4) and gamma_k = gamma_0 K^(-1/4):
// min over k = 1..K of E[||grad F(theta_k)||^2] <= R/sqrt(K) + rho.
type Rate struct {
	// FromGap, FromBias and FromVariance are the three terms of R: 2 (F(theta_0) -
	// F*)/(c_1 eta_0 gamma_0), c_3^2 gamma_0^2 and C'_gamma L eta_0 gamma_0/c_1.
	FromGap, FromBias, FromVariance float64
	// R is their sum.
	R float64
	// Rho is the noise floor of Eq. 21.
	Rho float64
}

// NoiseFloor returns rho = L b2^2 sigma_eps^2 eta0 / (2 b1 gamma0) (Eq. 21), the
// floor of Theorem 2's bound on the squared norm of the gradient.
func NoiseFloor(lipschitz, b1, b2Squared, decodedVar, eta0, gamma0 float64) float64 {
	return lipschitz * b2Squared * decodedVar * eta0 / (2 * b1 * gamma0)
}

// Rate returns R and rho for the gap F(theta_0) - F*, 0 or more, and step sizes
// above 0.
func (c Constants) Rate(gap, eta0, gamma0 float64) (Rate, error) {
	if !(gap >= 0) || math.IsInf(gap, 0) {
		return Rate{}, fmt.Errorf("the rate of Theorem 2: F(theta_0) - F* is %v; allowed is 0 or more, and finite", gap)
	}
	if !(eta0 > 0) || !(gamma0 > 0) || math.IsInf(eta0, 0) || math.IsInf(gamma0, 0) {
		return Rate{}, fmt.Errorf("the rate of Theorem 2: eta_0 is %v and gamma_0 %v; allowed is above 0 and finite", eta0, gamma0)
	}
	a := c.assumptions
	r := Rate{
		FromGap:      2 * gap / (c.C1 * eta0 * gamma0),
		FromBias:     c.C3 * c.C3 * gamma0 * gamma0,
		FromVariance: c.CGamma * a.Smoothness * eta0 * gamma0 / c.C1,
		Rho:          NoiseFloor(a.Smoothness, a.B1, a.B2*a.B2, a.DecodedVariance, eta0, gamma0),
	}
	r.R = r.FromGap + r.FromBias + r.FromVariance
	return r, nil
}

// Bound returns R/sqrt(K) + rho.
func (r Rate) Bound(rounds int) float64 { return r.R/math.Sqrt(float64(rounds)) + r.Rho }

// Rounds returns K(epsilon, beta) = R^2/(epsilon beta - rho)^2: after so many
// rounds min over k of ||grad F(theta_k)||^2 is below epsilon with probability 1 -
// beta or more. It is no whole number and may exceed every integer type.
//
// The paper asks for epsilon > rho. That is too little: Markov's inequality leaves
// R/sqrt(K) = epsilon beta - rho, which is positive only for epsilon > rho/beta.
// Below that no K gives the promise, though the formula, being a square, gives
// some number all the same; here it is an error.
func (r Rate) Rounds(epsilon, beta float64) (float64, error) {
	if !(beta > 0 && beta < 1) {
		return 0, fmt.Errorf("the rate of Theorem 2: beta is %v; allowed is above 0 and below 1", beta)
	}
	if !(epsilon > r.Rho/beta) {
		return 0, fmt.Errorf("the rate of Theorem 2: epsilon is %v; allowed is above rho/beta = %v: nearer than that no number of rounds comes with probability 1 - beta = %v", epsilon, r.Rho/beta, 1-beta)
	}
	root := r.R / (epsilon*beta - r.Rho)
	return root * root, nil
}

// Bound returns what Appendix D leaves of its telescoped descent for any laws of
// the step sizes, over rounds 1 to K:
//
//	min_k E||grad F||^2 <= (2 gap/c_1 + c_3^2 sum eta gamma^3 + (C'_gamma L/c_1) sum eta^2 gamma^2 + (C'_eps L/c_1) sum eta^2) / sum eta gamma
//
// For the laws of Theorem 2 it is R/sqrt(K) + rho.
func (c Constants) Bound(gap float64, eta, gamma learner.StepLaw, rounds int) float64 {
	var s sums
	for k := 1; k <= rounds; k++ {
		s.add(eta.At(k), gamma.At(k))
	}
	l := c.assumptions.Smoothness
	return (2*gap/c.C1 + c.C3*c.C3*s[sumBias] + c.CGamma*l/c.C1*s[sumVariance] + c.CEpsilon*l/c.C1*s[sumNoise]) / s[sumProgress]
}
