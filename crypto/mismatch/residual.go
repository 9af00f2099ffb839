// Package mismatch predicts by how much xMK-CKKS over the air fails in the ways of which
// the paper says that it does: keys aggregated once and used again under other gains
// ("Why Naive OTA xMK-CKKS Fails"), and gains that are no integers, as
// pre-equalisation leaves them (Fig. 4).
//
// It takes in the parameters and the gains of a round, and gives the deviation of the
// M_k that crypto/round decodes under its policy Measure. It knows nothing of where
// gains come from.
package mismatch

import (
	"math"
	"slices"

	"ringwave/crypto/xmkckks"
)

// Residual is what is left of the terms of size q in any one coefficient of c~0 + D~,
// before the reduction modulo q: two variances in units of q^2, given the gains.
//
// With gains g_i = H_i + delta_i, H_i the nearest integers, and centred coefficients,
//
//	b~        = -S a + beta,    beta  = sum delta_i b_i,     S = sum H_i s_i
//	c~1       =  V a + kappa,   kappa = sum delta_i c1_i,    V = sum H_i v_i
//	c~0 + D~  = message and noise + V beta + S kappa + sum delta_i (c0_i + D_i)  mod q
//
// in which b_i, c1_i, c0_i and D_i are uniform, of variance q^2/12 a coefficient.
type Residual struct {
	// Direct is the variance of sum delta_i (c0_i + D_i).
	Direct float64
	// Products is that of V beta + S kappa, sums of n products: more than Direct by
	// some n N. For a stale key it is that of (S_k - S_0) V a.
	Products float64
}

// Equalised returns the residual of gains g_i that are the same in the whole round: what
// is left of a gain that is no integer.
func Equalised(p xmkckks.Params, g []float64) Residual {
	var off, power float64
	for _, x := range g {
		h := math.RoundToEven(x)
		off += (x - h) * (x - h)
		power += h * h
	}
	perProduct := power * (p.Ephemeral.Variance() + p.Secret.Variance())
	return Residual{Direct: 2 * off / 12, Products: off / 12 * float64(p.N) * perProduct}
}

// Stale returns the residual of a round with scaled gains H_i, now, whose keys were
// aggregated under others, before: (S_k - S_0) a is uniform unless all gains agree, and
// V, n coefficients of variance sum H_i^2 times that of v, multiplies it.
func Stale(p xmkckks.Params, before, now []float64) Residual {
	if slices.Equal(before, now) {
		return Residual{}
	}
	power := 0.0
	for _, h := range now {
		power += h * h
	}
	return Residual{Products: float64(p.N) * p.Ephemeral.Variance() * power / 12}
}

// Variance returns the variance before the reduction, in units of q^2.
func (r Residual) Variance() float64 { return r.Direct + r.Products }

// Std returns the standard deviation of the centred residue, in units of q: of a wrapped
// Gaussian, whose characteristic function at 2 pi j/q is that of the Gaussian,
//
//	E[x^2] = 1/12 + sum_{j >= 1} (-1)^j/(pi j)^2 exp(-2 (pi j)^2 v),   v = Variance.
//
// It is sqrt(v) while that is small, and 1/sqrt(12) once the residue is uniform.
func (r Residual) Std() float64 {
	v := r.Variance()
	if v < 1e-4 { // 50 deviations to the edge: nothing is wrapped
		return math.Sqrt(v)
	}
	square := 1. / 12
	for j := 1.0; ; j++ {
		pj := math.Pi * j
		term := math.Exp(-2*pj*pj*v) / (pj * pj)
		if term < 1e-18 {
			return math.Sqrt(square)
		}
		if int(j)%2 == 1 {
			term = -term
		}
		square += term
	}
}

// DecodedStd returns the standard deviation of eps_k = M_k - sum_i g_i Delta f_i/mu_i: the
// residual of size q/(alpha Lambda), and beside it the noise that would be there without.
func (r Residual) DecodedStd(p xmkckks.Params, alpha, noiseStd float64) float64 {
	return math.Hypot(r.Std()*math.Exp2(p.LogQ()-float64(p.LogLambda))/alpha, noiseStd)
}
