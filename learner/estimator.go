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
)

// String returns two-point or one-point.
func (e Estimator) String() string {
	switch e {
	case TwoPoint:
		return "two-point"
	case OnePoint:
		return "one-point"
	}
	return fmt.Sprintf("Estimator(%d)", int(e))
}

// scalar returns what a device sends, of the losses at theta +- gamma Phi.
func (e Estimator) scalar(plus, minus float64) float64 {
	if e == OnePoint {
		return plus
	}
	return plus - minus
}

// symbol returns what scalar is called.
func (e Estimator) symbol() string {
	if e == OnePoint {
		return "f"
	}
	return "Delta f"
}
