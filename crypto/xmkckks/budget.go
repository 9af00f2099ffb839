package xmkckks

import (
	"math"

	"ringwave/phy/slot"
)

// GainSums is what the noise budget needs of the gains: the sum of H_i^2 and the
// square of that sum, as expectations or for gains that are known.
type GainSums struct {
	// S is E[sum_i H_i^2].
	S float64
	// Q is E[(sum_i H_i^2)^2].
	Q float64
}

// SumsOf returns the sums of known scaled gains H_i = alpha h_i.
func SumsOf(scaled []float64) GainSums {
	s := 0.0
	for _, h := range scaled {
		s += h * h
	}
	return GainSums{S: s, Q: s * s}
}

// squareLaw is the distribution of h^2 for a gain h: that of the squared length
// of a fixed vector plus Gaussian noise of some variance in each of its
// dimensions. A Gaussian gain has one dimension, a Rician envelope two.
type squareLaw struct{ fixed, variance, dimensions float64 }

// squareLaws returns the laws of Gaussian gains of means mu_i and second moments
// Omega_i, or, where K-factors are given, of Rician envelopes.
func squareLaws(mu, omega, k []float64) []squareLaw {
	laws := make([]squareLaw, len(mu))
	for i := range laws {
		if k == nil {
			laws[i] = squareLaw{mu[i] * mu[i], math.Max(0, omega[i]-mu[i]*mu[i]), 1}
			continue
		}
		laws[i] = squareLaw{omega[i] * k[i] / (k[i] + 1), omega[i] / (2 * (k[i] + 1)), 2}
	}
	return laws
}

// expectedSums returns S = alpha^2 sum_i E[h_i^2] and Q = alpha^4 ((sum_i
// E[h_i^2])^2 + sum_i Var[h_i^2]). For Gaussian gains that is Appendix B's
// alpha^4 (S_Omega^2 + 2 S_{Omega^2} - 2 S_{mu^4}) (Eq. 24).
func expectedSums(laws []squareLaw, alpha float64) GainSums {
	var mean, variance float64
	for _, l := range laws {
		mean += l.fixed + l.dimensions*l.variance
		variance += 2*l.dimensions*l.variance*l.variance + 4*l.variance*l.fixed
	}
	a2 := alpha * alpha
	return GainSums{S: a2 * mean, Q: a2 * a2 * (mean*mean + variance)}
}

// largeSum is Chernoff's bound on a sum of noncentral chi-squares, at its best
// exponent.
func largeSum(laws []squareLaw, alpha, p float64) float64 {
	var sumFixed, maxVar float64
	for _, l := range laws {
		sumFixed += l.fixed
		maxVar = math.Max(maxVar, l.variance)
	}
	if maxVar == 0 {
		return alpha * alpha * sumFixed
	}
	bound := func(u float64) float64 { // exponent t = u / (2 maxVar), 0 < u < 1
		t := u / (2 * maxVar)
		log := math.Log(1 / p)
		for _, l := range laws {
			d := 1 - 2*t*l.variance
			log += l.fixed*t/d - l.dimensions/2*math.Log(d)
		}
		return log / t
	}
	best := math.Inf(1)
	for i := 1; i < 1000; i++ {
		best = math.Min(best, bound(float64(i)/1000))
	}
	return alpha * alpha * best
}

// Budget holds the variance of one coefficient of the noise epsilon-hat, term by
// term as in Eq. 25 of Appendix B (divided by n), in units of the ring's
// integers.
type Budget struct {
	A  float64 // V E~_agg
	B1 float64 // sum H_i e0_i
	B2 float64 // w_0
	C1 float64 // S~ sum H_i e1_i
	C2 float64 // S~ w_1
	D  float64 // w_D
	E  float64 // sum H_j e*_j
	// R is the rounding of m_i, which the paper leaves out: 1/12 a device, at
	// message coefficients only.
	R float64
}

// Budget evaluates Appendix B with the samplers' own variances for the given
// sums of gains and variances of the ring noise w_b, w_0, w_1, w_D.
func (c *Context) Budget(sums GainSums, noiseVar [slot.Transmissions]float64) Budget {
	n := float64(c.Params.N)
	varV, varS := c.Params.Ephemeral.Variance(), c.Params.Secret.Variance()
	return Budget{
		A:  varV * n * (c.Params.KeyError.Variance()*sums.Q + noiseVar[slot.TxKey]*sums.S),
		B1: c.Params.Error0.Variance() * sums.S,
		B2: noiseVar[slot.TxC0],
		C1: varS * n * c.Params.Error1.Variance() * sums.Q,
		C2: varS * n * noiseVar[slot.TxC1] * sums.S,
		D:  noiseVar[slot.TxShare],
		E:  c.shareVar * sums.S,
		R:  sums.S / 12,
	}
}

// Noise returns the variance of a coefficient that carries no message: B_eps^2/n
// of Eq. 26.
func (b Budget) Noise() float64 { return b.A + b.B1 + b.B2 + b.C1 + b.C2 + b.D + b.E }

// Total returns the variance of a coefficient that carries a message.
func (b Budget) Total() float64 { return b.Noise() + b.R }

// FailureBound returns Proposition 1's bound 4 B_eps^2/q^2 on the probability that
// any coefficient's noise reaches q/2 (Markov's inequality).
func (c *Context) FailureBound(b Budget) float64 {
	return 4 * float64(c.Params.N) * b.Noise() / math.Exp2(2*c.Params.LogQ())
}

// DecodedStd returns the standard deviation of eps_k = M_k - sum (H_i/alpha)
// (Delta f_i/mu_i).
func (c *Context) DecodedStd(b Budget, alpha float64) float64 {
	return math.Sqrt(b.Total()) / (alpha * c.Params.Lambda())
}

// sensitivity returns t of Li, Micciancio, Schultz and Sorrell 2022: a bound, at
// the given sums of gains, on the Euclidean norm, over the revealed coefficients,
// of what one honest device contributes to the decryption noise, divided by that
// device's gain. Over many rounds it is the mean over the gains that counts. A device
// contributes H_j (v_j E~ + V e_j + s_j E1~ + S~ e1_j + e0_j + v_j w_b + s_j
// w_1): per coefficient
//
//	sqrt(S n sigma_e^2 (2 var v + 2 var s) + n (var v sigma_wb^2 + var s sigma_w1^2) + sigma_e0^2)
//
// times 6 sqrt(P+W) over the few coefficients of the short form, or 1.2 sqrt(n)
// over the n of the whole one. The coefficients of the short form are some of the
// whole one's, so that with many messages the whole one's bound holds for them where
// it is the smaller.
func (c *Context) sensitivity(form Form, messages, witnesses int, sums GainSums, noiseVar [slot.Transmissions]float64) float64 {
	n := float64(c.Params.N)
	varV, varS := c.Params.Ephemeral.Variance(), c.Params.Secret.Variance()
	perCoefficient := math.Sqrt(
		n*sums.S*(varV+varS)*(c.Params.KeyError.Variance()+c.Params.Error1.Variance()) +
			n*(varV*noiseVar[slot.TxKey]+varS*noiseVar[slot.TxC1]) +
			c.Params.Error0.Variance())
	whole := 1.2 * math.Sqrt(n)
	if form == Whole {
		return whole * perCoefficient
	}
	short := 6 * math.Sqrt(float64(messages+witnesses))
	if messages > 1 {
		short = math.Min(short, whole)
	}
	return short * perCoefficient
}

// FloodStd returns the standard deviation sigma* = sqrt(12 tau) 2^(s/2) t that hides
// the decryption noise with s bits of statistical security over tau decryption
// shares of one key (Li, Micciancio, Schultz and Sorrell, "Securing approximate
// homomorphic encryption using differential privacy", eprint 2022/816).
//
// These are bits of advantage, not of distance. Shares as they are and shares
// without the decryption noise differ by a Kullback-Leibler divergence of
//
//	tau t^2/(2 sigma*^2) = 2^-s/24
//
// at most, however each share depends on those before it. Whoever tells the two
// apart, with whatever computing power, answers with probability a (and otherwise
// says that it does not know) and is then right with probability b; Micciancio and
// Walter count that as the advantage a (2b-1)^2. Let p_x and q_x be the probabilities
// of the answer x under either. The advantage is
//
//	(p_0 - q_0 + q_1 - p_1)^2/(2 (p_0 + p_1 + q_0 + q_1)),
//
// which by Cauchy and Schwarz is at most half the sum of (p_x - q_x)^2/(p_x + q_x),
// which is at most the sum of (sqrt p_x - sqrt q_x)^2, which is at most the
// divergence. The square root of the first sum is a metric, so that the game of
// IND-CPA^D, where shares are replaced in two worlds, costs a factor of 4: the 24 has
// room for it. With c bits of the lattice problem this is the (c, s)-security of that
// paper.
//
// Two limits. Each device floods its share on its own, without the others: such
// protocols reach what "On the (In)security of Approximate Computation Protocols
// from CKKS" (eprint 2025/395) calls liberal security, and not simulation-based
// security in the usual sense. And tau is a promise: twice as many shares of one key
// cost a bit. How many decryptions a key bears, at which flooding, is the subject of
// "Revisiting the Security of Approximate FHE with Noise-Flooding Countermeasures"
// (PKC 2025).
func FloodStd(s float64, tau int, t float64) float64 {
	return math.Sqrt(12*float64(tau)) * math.Exp2(s/2) * t
}

// floodingBits inverts FloodStd; it is 0 where the noise hides nothing.
func floodingBits(std float64, tau int, t float64) float64 {
	return math.Max(0, 2*math.Log2(std/(math.Sqrt(12*float64(tau))*t)))
}

// floodingDistance bounds the statistical distance of tau shares as they are to
// shares without the decryption noise, by Pinsker's inequality on the divergence of
// FloodStd: sqrt(tau) t/(2 sigma*), which is 2^(-s/2)/sqrt(48), 2^-22.8 for s = 40.
// Little of that is slack: noises of norm t each that point the same way are
// erf(sqrt(tau/8) t/sigma*) apart, 0.8 of the bound.
func floodingDistance(std float64, tau int, t float64) float64 {
	return math.Min(1, math.Sqrt(float64(tau))*t/(2*std))
}

// RoundedVariance returns the variance of a Gaussian of deviation std rounded to
// integers, and 0 for std = 0: std^2 + 1/12 to many digits from std = 0.6 on.
func RoundedVariance(std float64) float64 {
	if std == 0 {
		return 0
	}
	if std > 2 {
		return std*std + 1.0/12 // the next term is below 4 std^2 e^(-2 pi^2 std^2)
	}
	sum := 0.0
	for x := 1; x <= 30; x++ {
		upper := math.Erfc((float64(x) - 0.5) / (std * math.Sqrt2))
		lower := math.Erfc((float64(x) + 0.5) / (std * math.Sqrt2))
		sum += float64(x*x) * (upper - lower) // both signs: 2 * (1/2)
	}
	return sum
}
