package theory

import (
	"errors"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"ringwave/learner"
)

// ErrNoClosedForm says that a problem is no quadratic.
var ErrNoClosedForm = errors.New("only the quadratic's course is known in closed form")

// Exact returns E||grad F(theta_k)||^2 for k = 1..K of a quadratic problem, with
// +-1 directions, batches drawn without replacement, independent gains of the
// given moments and noise of variance sigma_eps^2: a recursion of the mean and the
// second moment of e = theta - theta*, without any simulation.
//
// With A = diag(a), a device's gradient on its batch is G_i = A(e + theta* - x_i),
// x_i the batch's mean, and the step is e' = e - eta Phi (2 gamma <Phi, w> + eps),
// w = sum_i (h_i/mu_i) G_i. The means are E[w] = N A e, and for +-1 directions
// E[Phi Phi^T W Phi Phi^T] = tr(W) I + 2 (W - diag W).
func (p *Problem) Exact(mu, omega []float64, decodedVariance float64, eta, gamma learner.StepLaw, rounds int) ([]float64, error) {
	if p.curvature == nil {
		return nil, ErrNoClosedForm
	}
	if err := checkMoments(mu, omega); err != nil {
		return nil, err
	}
	q := newMoments(p, mu, omega)
	out := make([]float64, rounds)
	for k := range out {
		out[k] = q.squaredGradient()
		q.step(eta.At(k+1), gamma.At(k+1), decodedVariance)
	}
	return out, nil
}

// moments is the distribution of e = theta - theta* as far as the recursion needs
// it.
type moments struct {
	a      []float64
	n      float64
	mean   []float64
	second *mat.SymDense // E[e e^T]

	// Of w's second moment: that is sum over i of factor_i E[G_i G_i^T] + E[grad F
	// grad F^T], where G_i is the gradient of the whole shard, plus batches, what
	// the draw of the batches adds.
	factor  []float64   // Omega_i/mu_i^2 - 1
	offset  [][]float64 // theta* - mean of device i's samples
	batches *mat.SymDense

	w *mat.SymDense
}

func newMoments(p *Problem, mu, omega []float64) *moments {
	d := p.Dim
	m := &moments{a: p.curvature, n: float64(p.Devices), mean: make([]float64, d),
		second: mat.NewSymDense(d, nil), batches: mat.NewSymDense(d, nil), w: mat.NewSymDense(d, nil)}
	floats.SubTo(m.mean, p.Start, p.Minimiser)
	m.second.SymOuterK(1, mat.NewDense(d, 1, m.mean))
	for i, shard := range p.shards {
		m.factor = append(m.factor, omega[i]/(mu[i]*mu[i])-1)
		centre := meanOf(p.set, shard[0], shard[len(shard)-1]+1)
		offset := make([]float64, d)
		floats.SubTo(offset, p.Minimiser, centre)
		m.offset = append(m.offset, offset)
		// The mean of B of n samples without replacement has their variance times
		// (n - B)/(B (n - 1)); the gain multiplies it by Omega_i/mu_i^2.
		n, b := float64(len(shard)), float64(p.Batch)
		weight := (m.factor[i] + 1) * (n - b) / (b * (n - 1)) / n
		x := mat.NewVecDense(d, nil)
		for _, s := range shard {
			for j, v := range p.set.Row(s) {
				x.SetVec(j, m.a[j]*(v-centre[j]))
			}
			m.batches.SymRankOne(m.batches, weight, x)
		}
	}
	return m
}

// squaredGradient returns E||N A e||^2.
func (m *moments) squaredGradient() float64 {
	sum := 0.0
	for j, a := range m.a {
		sum += m.n * m.n * a * a * m.second.At(j, j)
	}
	return sum
}

func (m *moments) step(eta, gamma, noise float64) {
	d := len(m.a)
	trace := 0.0
	for j := range d {
		for l := j; l < d; l++ {
			s := m.second.At(j, l)
			v := m.n * m.n * s
			for i, f := range m.factor {
				o := m.offset[i]
				v += f * (s + m.mean[j]*o[l] + o[j]*m.mean[l] + o[j]*o[l])
			}
			v = m.a[j]*m.a[l]*v + m.batches.At(j, l)
			m.w.SetSym(j, l, v)
			if j == l {
				trace += v
			}
		}
	}
	drift, square := 2*eta*gamma*m.n, 4*eta*eta*gamma*gamma
	for j := range d {
		for l := j; l < d; l++ {
			next := m.second.At(j, l) * (1 - drift*(m.a[j]+m.a[l]))
			if j == l {
				next += square*trace + eta*eta*noise
			} else {
				next += square * 2 * m.w.At(j, l)
			}
			m.second.SetSym(j, l, next)
		}
	}
	for j, a := range m.a {
		m.mean[j] *= 1 - drift*a
	}
}

// NoiseLimit returns what E||grad F||^2 tends to, for a quadratic, as the horizon K
// of Theorem 2's step sizes grows: eta_0 sigma_eps^2 tr(Hessian of F)/(4 gamma_0).
// Against rho = L b_2^2 sigma_eps^2 eta_0/(2 b_1 gamma_0) with +-1 directions, where
// b_2^2 = d, that is tr/(2 d L), never more than one half.
func (p *Problem) NoiseLimit(decodedVariance, eta0, gamma0 float64) (float64, error) {
	if p.curvature == nil {
		return 0, ErrNoClosedForm
	}
	return eta0 * decodedVariance * float64(p.Devices) * floats.Sum(p.curvature) / (4 * gamma0), nil
}
