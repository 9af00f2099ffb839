package learner

import "fmt"

// Estimator is which losses make the scalar that a device sends, and with it the
// gradient estimate g_k = Phi_k M_k (Eq. 18).
type Estimator int

const (
	// TwoPoint is the paper's: Delta f = f_i(theta + gamma Phi) - f_i(theta - gamma Phi)
	// (Eq. 3), of which E[g_k] = c_1 gamma_k (grad F + delta_k) with c_1 = 2 b_1
	// (Lemma 1).
	TwoPoint Estimator = iota
	// OnePoint is f_i(theta + gamma Phi) alone: half the losses, and a variance that
	// does not vanish with gamma. It is the one-point form of E. Mhanna and M. Assaad,
	// "Rendering Wireless Environments Useful for Gradient Estimators: A Zero-Order
	// Stochastic Federated Learning Method" (arXiv 2401.17460), whose estimate is Phi_k
	// times the superposed losses, without a factor d/gamma. That work has channels of
	// mean 0 and gets their gain from a first transmission of two; on the channels of a
	// nonzero mean mu_i of Eq. 4 devices divide by mu_i in its place. E[g_k] =
	// b_1 gamma_k (grad F + delta_k): half of TwoPoint's.
	OnePoint
	// OneSided is f_i(theta + gamma Phi) - f_i(theta), of which f_i(theta) is the same for
	// all directions of a round: P+1 losses in place of 2P. E[g_k] is half of TwoPoint's:
	// the part of the difference that is even in Phi, which TwoPoint cancels, has mean 0
	// times Phi and adds to the variance alone.
	OneSided
)

// ParseEstimator returns the estimator named two-point, one-point or one-sided.
func ParseEstimator(name string) (Estimator, error) {
	for _, e := range []Estimator{TwoPoint, OnePoint, OneSided} {
		if name == e.String() {
			return e, nil
		}
	}
	return 0, fmt.Errorf("the estimator is %q; allowed is two-point, one-point or one-sided", name)
}

// String returns the name that ParseEstimator takes.
func (e Estimator) String() string {
	switch e {
	case TwoPoint:
		return "two-point"
	case OnePoint:
		return "one-point"
	case OneSided:
		return "one-sided"
	}
	return fmt.Sprintf("Estimator(%d)", int(e))
}

// scalar returns what a device sends, of the losses at theta +- gamma Phi and at theta.
func (e Estimator) scalar(plus, minus, base float64) float64 {
	switch e {
	case OnePoint:
		return plus
	case OneSided:
		return plus - base
	}
	return plus - minus
}

// Slope returns c_1/b_1 of E[g_k] = c_1 gamma_k (grad F + delta_k): 2 of TwoPoint, else 1.
func (e Estimator) Slope() float64 {
	if e == TwoPoint {
		return 2
	}
	return 1
}

// symbol returns what scalar is called.
func (e Estimator) symbol() string {
	if e == OnePoint {
		return "f"
	}
	return "Delta f"
}
