package paper

import (
	"fmt"
	"math"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/theory"
)

// appendixB holds what the formula of Appendix B (Eq. 26) takes: the paper's own
// figures are N = 10, mu = 1, sigma_e = 3.2, Lambda = 2^40, sigma_w = 0; it gives no
// value of sigma_phi, for which 3.2 stands here (its term is below a thousandth).
type appendixB struct {
	// N is the ring dimension n, Devices the number of devices, LogLambda log2
	// Lambda.
	N, Devices, LogLambda int
	// SigmaE, SigmaPhi and SigmaW are the deviations of the errors e, e0 and e1, of
	// the share's error e*, and of the channel noises.
	SigmaE, SigmaPhi, SigmaW float64
	// Mu and Omega are the moments that all gains share.
	Mu, Omega float64
}

// paperAppendixB returns the paper's values for ring dimension n and gains N(1,
// sigma^2).
func paperAppendixB(n int, sigma float64) appendixB {
	return appendixB{N: n, Devices: 10, LogLambda: 40, SigmaE: 3.2, SigmaPhi: 3.2, Mu: 1, Omega: 1 + sigma*sigma}
}

// decodedVariance returns B_eps^2/(n Lambda^2) of Eq. 26 to the letter: continuous
// Gaussian errors, secrets of variance 1, v of variance 2/3, no rounding of m_i.
// xmkckks.Design has the same with the samplers' own variances.
func (b appendixB) decodedVariance() float64 {
	n, devices := float64(b.N), float64(b.Devices)
	s := devices * b.Omega
	q := s*s + 2*devices*b.Omega*b.Omega - 2*devices*b.Mu*b.Mu*b.Mu*b.Mu
	e, phi, w := b.SigmaE*b.SigmaE, b.SigmaPhi*b.SigmaPhi, b.SigmaW*b.SigmaW
	sum := 2.0/3*n*n*(e*q+w*s) + n*e*s + n*w + n*n*e*q + n*n*w*s + n*phi*s + n*w
	return sum / (n * math.Exp2(2*float64(b.LogLambda)))
}

// statedValue is one of the values that the text gives for a variance that the formula
// defines.
type statedValue struct {
	// Where is the place in the paper.
	Where string
	// Variance is the stated sigma_eps^2 with this row's Omega put in, and Ratio
	// that over the formula's.
	Variance, Ratio float64
}

// statedNoise is a row of the comparison: one parameter set at one sigma.
type statedNoise struct {
	ParameterSet string
	N            int
	Sigma, Omega float64
	// Variance is the formula's, PerOmega2 that over Omega^2, and Sampled the
	// variance with the samplers' own variances and the rounding of m_i.
	Variance, PerOmega2, Sampled float64
	// Stated are the text's values, in the order of the text.
	Stated []statedValue
	// Rho is Eq. 21 with the formula's variance and the given L and b_2^2, and
	// RhoUnit the same for L = 1 and b_2^2 = 1.
	Rho, RhoUnit float64
	// TableRho is Table II's value and TextRho the one after Theorem 2. Neither
	// depends on Omega, L or d.
	TableRho, TextRho float64
	// Factor is L b_2^2 eta_0/(2 b_1 gamma_0), by which Eq. 21 multiplies the
	// variance. TableFactor is what Table II has in its place: its rho over the
	// variance of the numerical results at Omega = 1, which is 1.
	TableFactor, Factor float64
}

// paperStated are the values that the text gives for sigma_eps^2/Omega^2.
var paperStated = []struct {
	where string
	of    map[int]float64 // by n
}{
	{"Proposition 1 and Appendix B", map[int]float64{4096: 6e-17, 8192: 3e-17}},
	{"after Theorem 2", map[int]float64{4096: 4e-16, 8192: 4e-16}},
	{"numerical results", map[int]float64{4096: 2e-16, 8192: 4e-16}},
}

// paperTableRho is rho in Table II, paperTextRho in the text after Theorem 2.
var paperTableRho = map[int]float64{4096: 2e-16, 8192: 4e-16}

const paperTextRho = 1e-16

// statedNoises returns the rows for the paper's two sets and sigma = 1 and 10, with N =
// 10, eta_0 = gamma_0 = 0.05, +-1 directions and a model of the given L and
// dimension d, both above 0: MNIST's logistic regression has d = 785, and L of
// theory.LogisticSmoothness.
//
// By the formula the variance doubles from n = 4096 to 8192. The first of the
// paper's own values halves, the second is the same for both; none of the three
// agrees with another, and none with the formula.
func statedNoises(smoothness float64, dim int) ([]statedNoise, error) {
	if !(smoothness > 0) || math.IsInf(smoothness, 0) || dim < 1 {
		return nil, fmt.Errorf("the paper's figures: L is %v and d %d; allowed is above 0 and finite, and 1 or more", smoothness, dim)
	}
	const step, b1 = 0.05, 1
	var rows []statedNoise
	for _, name := range []string{"paper-4096", "paper-8192"} {
		for _, sigma := range []float64{1, 10} {
			params, ok := xmkckks.Lookup(name)
			if !ok {
				return nil, fmt.Errorf("the paper's figures: there is no parameter set %s", name)
			}
			row := statedNoise{ParameterSet: name, N: params.N, Sigma: sigma, Omega: 1 + sigma*sigma}
			row.Variance = paperAppendixB(params.N, sigma).decodedVariance()
			row.PerOmega2 = row.Variance / (row.Omega * row.Omega)
			var err error
			if row.Sampled, err = sampledVariance(params, sigma); err != nil {
				return nil, fmt.Errorf("the paper's figures: %w", err)
			}
			for _, s := range paperStated {
				v := s.of[params.N] * row.Omega * row.Omega
				row.Stated = append(row.Stated, statedValue{s.where, v, v / row.Variance})
			}
			row.Rho = theory.NoiseFloor(smoothness, b1, float64(dim), row.Variance, step, step)
			row.RhoUnit = theory.NoiseFloor(1, b1, 1, row.Variance, step, step)
			row.TableRho, row.TextRho = paperTableRho[params.N], paperTextRho
			row.TableFactor = row.TableRho / paperStated[len(paperStated)-1].of[params.N]
			row.Factor = theory.NoiseFloor(smoothness, b1, float64(dim), 1, step, step)
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// sampledVariance returns the decoded variance of the program's own design with the
// paper's gains, at alpha = 1.
func sampledVariance(params xmkckks.Params, sigma float64) (float64, error) {
	l := xmkckks.Link{Alpha: 1, DeltaMax: 1, Shares: 1}
	for range 10 {
		l.Mu, l.Omega = append(l.Mu, 1), append(l.Omega, 1+sigma*sigma)
	}
	d, err := xmkckks.NewDesign(params, xmkckks.Whole, l)
	if err != nil {
		return 0, err
	}
	std := d.DecodedStd()
	return std * std, nil
}
