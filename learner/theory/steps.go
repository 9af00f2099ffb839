package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"

	"ringwave/learner"
)

// The sums of step sizes that the analysis needs: those of Assumption 3.3, and
// the one that Theorem 1 adds.
const (
	sumProgress = iota // sum eta gamma
	sumBias            // sum eta gamma^3
	sumVariance        // sum eta^2 gamma^2
	sumNoise           // sum eta^2
	sumCount
)

// terms gives, for each of the sums, its name, the powers of eta and gamma in it,
// whether it must diverge, and who asks for it.
var terms = [sumCount]struct {
	name       string
	eta, gamma float64
	diverges   bool
	by         string
}{
	{"sum eta_k gamma_k", 1, 1, true, "Assumption 3.3"},
	{"sum eta_k gamma_k^3", 1, 3, false, "Assumption 3.3"},
	{"sum eta_k^2 gamma_k^2", 2, 2, false, "Assumption 3.3"},
	{"sum eta_k^2", 2, 0, false, "Theorem 1"},
}

// sums holds partial sums of the four.
type sums [sumCount]float64

func (s *sums) add(eta, gamma float64) {
	s[sumProgress] += eta * gamma
	s[sumBias] += eta * gamma * gamma * gamma
	s[sumVariance] += eta * eta * gamma * gamma
	s[sumNoise] += eta * eta
}

// PartialSum is a sum over rounds 1 to Rounds.
type PartialSum struct {
	Rounds int
	Sum    float64
}

// Condition is one sum of step sizes, what the analysis asks of it, and what it
// does.
type Condition struct {
	// Sum is how the paper writes it, By the statement that asks for it of these laws;
	// empty where none does: nothing is then asked, and Holds means nothing.
	Sum, By string
	// MustDiverge says that it is asked to grow without bound; otherwise to stay
	// finite.
	MustDiverge bool
	// Exponent is p where the summand is a multiple of (1+k)^-p, for the power
	// law; for the law of Theorem 2 it is p where each of the K summands is a
	// multiple of K^-p.
	Exponent float64
	// Growth is g where the sum over K rounds grows like K^g; 0 also for a sum that
	// grows like log K, which is then Logarithmic, and for one that stays finite.
	Growth      float64
	Logarithmic bool
	// Limit is the sum's limit where Finite says that there is one, and 0 otherwise.
	Limit  float64
	Finite bool
	// Computed are the sums themselves over growing numbers of rounds.
	Computed []PartialSum
	// Holds says that the sum does as it is asked.
	Holds bool
}

// String returns the verdict in a sentence, with the sums that it rests on.
func (c Condition) String() string {
	does := fmt.Sprintf("tends to %.6g", c.Limit)
	switch {
	case c.Logarithmic:
		does = "grows like log K without bound"
	case c.Growth > 0:
		does = fmt.Sprintf("grows like K^%.3g without bound", c.Growth)
	}
	s := fmt.Sprintf("%s (%s): %s", c.Sum, c.asked(), does)
	for i, p := range c.Computed {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		s += fmt.Sprintf("%s%.6g at K = %d", sep, p.Sum, p.Rounds)
	}
	return s
}

// asked says who asks for what, and whether it is so.
func (c Condition) asked() string {
	if c.By == "" {
		return "nothing is asked of it here"
	}
	what, verdict := "finite", "holds"
	if c.MustDiverge {
		what = "infinite"
	}
	if !c.Holds {
		verdict = "VIOLATED"
	}
	return fmt.Sprintf("%s asks for %s: %s", c.By, what, verdict)
}

// computedRounds are the horizons of the sums that are computed.
var computedRounds = []int{100, 1_000, 10_000, 100_000, 1_000_000}

// PowerConditions returns the conditions of Assumption 3.3 and Theorem 1 for eta_k
// = eta_0 (1+k)^-u and gamma_k = gamma_0 (1+k)^-v. A sum of (1+k)^-p is finite if
// and only if p > 1; its limit from k = 1 is then zeta(p) - 1.
//
// With the paper's u = 1/2 and v = 1/4 the three of Assumption 3.3 hold, and
// Theorem 1's sum eta_k^2 is eta_0^2 times the harmonic series: it is violated.
func PowerConditions(eta, gamma learner.PowerLaw) []Condition {
	conditions := make([]Condition, sumCount)
	for i, t := range terms {
		p := t.eta*eta.P + t.gamma*gamma.P
		c := Condition{Sum: t.name, By: t.by, MustDiverge: t.diverges, Exponent: p}
		switch {
		case p > 1:
			c.Finite = true
			c.Limit = math.Pow(eta.X0, t.eta) * math.Pow(gamma.X0, t.gamma) * mathext.Zeta(p, 2)
		case p == 1:
			c.Logarithmic = true
		default:
			c.Growth = 1 - p
		}
		c.Holds = c.Finite != t.diverges
		conditions[i] = c
	}
	addComputed(conditions, func(int) (learner.StepLaw, learner.StepLaw) { return eta, gamma })
	return conditions
}

// HorizonConditions returns them for the law of Theorem 2, eta_k = eta_0 K^(-1/4)
// and gamma_k = gamma_0 K^(-1/4) in each of K rounds. No run has infinitely many
// rounds then: a sum counts as finite if it stays bounded as the horizon K grows.
// Sum eta_k^2 = eta_0^2 sqrt(K) does not, in the same proportion as sum eta_k
// gamma_k = eta_0 gamma_0 sqrt(K); that is why Theorem 2 has a floor rho. Theorem 1 is
// about one law for all rounds and asks nothing of this one.
func HorizonConditions(eta0, gamma0 float64) []Condition {
	conditions := make([]Condition, sumCount)
	for i, t := range terms {
		p := (t.eta + t.gamma) / 4
		c := Condition{Sum: t.name, By: t.by, MustDiverge: t.diverges, Exponent: p, Growth: 1 - p}
		if p == 1 {
			c.Finite = true
			c.Limit = math.Pow(eta0, t.eta) * math.Pow(gamma0, t.gamma)
		}
		c.Holds = c.Finite != t.diverges
		if i == sumNoise {
			c.By, c.Holds = "", false
		}
		conditions[i] = c
	}
	addComputed(conditions, func(k int) (learner.StepLaw, learner.StepLaw) {
		return learner.HorizonLaw{X0: eta0, K: k}, learner.HorizonLaw{X0: gamma0, K: k}
	})
	return conditions
}

// DescentTime returns 2 b_1 N sum over k = 1..K of eta_k gamma_k. By Lemma 1 a round moves
// theta by c_1 eta gamma times grad F in the mean, with F = N times the mean of the
// devices' losses: so long gradient descent on that mean goes on, in units of a step of
// size 1.
func DescentTime(eta, gamma learner.StepLaw, b1 float64, devices, rounds int) float64 {
	var s sums
	for k := 1; k <= rounds; k++ {
		s.add(eta.At(k), gamma.At(k))
	}
	return 2 * b1 * float64(devices) * s[sumProgress]
}

// addComputed sums the laws of each horizon round by round.
func addComputed(conditions []Condition, laws func(rounds int) (eta, gamma learner.StepLaw)) {
	for _, rounds := range computedRounds {
		eta, gamma := laws(rounds)
		var s sums
		for k := 1; k <= rounds; k++ {
			s.add(eta.At(k), gamma.At(k))
		}
		for i := range conditions {
			conditions[i].Computed = append(conditions[i].Computed, PartialSum{rounds, s[i]})
		}
	}
}
