package moments

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// sample is the sufficient statistics of one device's real effective gains.
type sample struct {
	x        []float64
	n        float64
	mean, s2 float64 // of x; s2 with n-1
	w        float64 // the part of s2 that is estimation noise
	axes     float64 // number of phases estimated from the same gains
	skew     float64 // of x under the model
	kurt     float64 // its excess kurtosis
}

func (l *link) sample() sample {
	p := sample{axes: float64(len(l.spans))}
	for k, x := range l.x {
		if !math.IsNaN(x) {
			p.x = append(p.x, x)
			p.mean += x
			p.w += l.w[k]
		}
	}
	p.n = float64(len(p.x))
	p.mean /= p.n
	p.w /= p.n
	for _, x := range p.x {
		p.s2 += (x - p.mean) * (x - p.mean)
	}
	p.s2 /= p.n - 1
	return p
}

// fading is the unbiased estimate of sigma^2, negative where noise hides it.
func (p sample) fading() float64 { return p.s2 - p.w }

// dof is Satterthwaite's number of degrees of freedom of s2: n-1 where x is
// Gaussian.
func (p sample) dof() float64 { return (p.n - 1) * 2 / math.Max(0.2, 2+p.kurt) }

// variance is that of s2.
func (p sample) variance() float64 {
	nu := p.dof()
	return p.s2 * p.s2 * 2 / (nu + 2)
}

// pivots is the number of quantiles of the mean's pivot and of the variance's.
const pivotsOfMean, pivotsOfVariance = 96, 64

// fiducial returns the interval of f(mu, tau^2), where tau^2 is the variance of x,
// noise included, from the pivots (mean-mu) sqrt(n)/tau and (n-1) s2/tau^2. For
// functions of mu/tau in a Gaussian law that is the interval of the noncentral t
// distribution, exactly; else the coverage is right to terms in 1/n. Of a skew law
// the two pivots are correlated. f must be finite or +-Inf.
func (p sample) fiducial(level float64, f func(mu, tau2 float64) float64) (low, high float64) {
	nu := p.dof()
	c := math.Max(-0.95, math.Min(0.95, p.skew/math.Sqrt(math.Max(0.2, p.kurt+2))))
	values := make([]float64, 0, pivotsOfMean*pivotsOfVariance)
	for i := range pivotsOfMean {
		z := normalQuantile((float64(i) + 0.5) / pivotsOfMean)
		for j := range pivotsOfVariance {
			u := c*z + math.Sqrt(1-c*c)*normalQuantile((float64(j)+0.5)/pivotsOfVariance)
			// Wilson and Hilferty's cube root: nu is 15 or more.
			root := 1 - 2/(9*nu) + u*math.Sqrt(2/(9*nu))
			tau2 := p.s2 / math.Max(1e-3, root*root*root)
			values = append(values, f(p.mean-z*math.Sqrt(tau2/p.n), tau2))
		}
	}
	slices.Sort(values)
	at := func(q float64) float64 {
		pos := q*float64(len(values)) - 0.5
		i := min(max(int(pos), 0), len(values)-2)
		a, b := values[i], values[i+1]
		if math.IsInf(a, 0) || math.IsInf(b, 0) {
			return b
		}
		return a + (b-a)*(pos-float64(i))
	}
	return at((1 - level) / 2), at((1 + level) / 2)
}

func (p sample) mu(level float64) Value {
	reach := studentQuantile(level, p.n-1) * math.Sqrt(p.s2/p.n)
	return Value{p.mean, math.Max(0, p.mean-reach), p.mean + reach, "t"}
}

// omega is unbiased: from the mean square goes the noise, and once more that of
// each phase, which was chosen so as to make the square largest. It is not below
// the square of the mean, which the noise can bring about where there is no fading.
func (p sample) omega(level float64) Value {
	square := p.mean*p.mean + p.s2*(p.n-1)/p.n
	v := math.Max(square-p.w*(p.n+p.axes)/p.n, p.mean*p.mean)
	low, high := p.fiducial(level, func(mu, tau2 float64) float64 {
		return mu*mu + math.Max(0, tau2-p.w)
	})
	return Value{v, math.Min(low, v), math.Max(high, v), "pivots of mean and variance"}
}

// sigma has the interval of chi-square for the total variance, less the noise, cut
// off at 0. The root's bias is taken off: (X^2 + V/2)^(1/4) = sqrt(X) (1 + V/(8 X^2)
// + ...) for an unbiased X of variance V.
func (p sample) sigma(level float64) Value {
	nu := p.dof()
	chi := distuv.ChiSquared{K: nu}
	root := func(v float64) float64 { return math.Sqrt(math.Max(0, v)) }
	low := root(nu*p.s2/chi.Quantile((1+level)/2) - p.w)
	high := root(nu*p.s2/chi.Quantile((1-level)/2) - p.w)
	v := 0.0
	if x := p.fading(); x > 0 {
		v = math.Pow(x*x+p.variance()/2, 0.25)
	}
	how := "chi-square"
	if p.w > 0.01*p.s2 {
		how = "chi-square less noise"
	}
	return Value{v, math.Min(low, v), math.Max(high, v), how}
}

// ratio is mu^2/sigma^2. Its inverse variance is estimated by Mills' ratio, which is
// unbiased for the inverse of the mean of a normal variable of known deviation
// (Voinov and Nikulin, Unbiased Estimators and Their Applications, 1993), however wide; 1/x is not.
func (p sample) ratio(level float64) Value {
	sd := math.Sqrt(p.variance())
	inverse := mills(math.Max(p.fading()/sd, -2)) / sd
	v := math.Max(0, inverse*(p.mean*p.mean-p.s2/p.n))
	low, high := p.fiducial(level, func(mu, tau2 float64) float64 {
		if tau2 <= p.w {
			return math.Copysign(math.Inf(1), mu)
		}
		return mu * math.Abs(mu) / (tau2 - p.w)
	})
	low, high = math.Max(0, low), math.Max(0, high)
	return Value{v, math.Min(low, v), math.Max(high, v), "pivots of mean and variance"}
}

// mills is (1-Phi(x))/phi(x).
func mills(x float64) float64 {
	if x > 20 {
		y := 1 / (x * x)
		return (1 - y*(1-y*(3-y*15))) / x
	}
	return math.Sqrt(math.Pi/2) * math.Exp(x*x/2) * math.Erfc(x/math.Sqrt2)
}

// snr divides by the noise power, of which dof degrees of freedom are known; on
// logarithms the two errors add in squares.
func (p sample) snr(omega Value, noise, dof, level float64) (linear, db Value) {
	z := normalQuantile((1 + level) / 2)
	extra := z * z * 2 / dof
	linear.Value = omega.Value / noise * (dof - 2) / dof
	linear.How = omega.How
	down := math.Log(omega.Value) - math.Log(math.Max(0, omega.Low))
	up := math.Log(omega.High) - math.Log(omega.Value)
	linear.Low = omega.Value / noise * math.Exp(-math.Sqrt(down*down+extra))
	linear.High = omega.Value / noise * math.Exp(math.Sqrt(up*up+extra))
	// A logarithm bends down: half the variance of the relative error comes back.
	relative := (down + up) / (2 * z)
	if math.IsInf(relative, 0) {
		relative = 0
	}
	decibel := func(v float64) float64 { return 10 * math.Log10(v) }
	db = Value{decibel(linear.Value) + 5/math.Ln10*relative*relative, decibel(linear.Low), decibel(linear.High), linear.How}
	return linear, db
}

func normalQuantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

// chiSquareTail is the probability of x or more; accurate far out.
func chiSquareTail(x, dof float64) float64 {
	if !(x > 0) {
		return 1
	}
	return mathext.GammaIncRegComp(dof/2, x/2)
}

// fisherTail is the probability of f or more.
func fisherTail(f, d1, d2 float64) float64 {
	if !(f > 0) {
		return 1
	}
	return mathext.RegIncBeta(d2/2, d1/2, d2/(d2+d1*f))
}

// normalTail is the probability of |z| or more.
func normalTail(z float64) float64 { return 2 * distuv.UnitNormal.CDF(-math.Abs(z)) }

// studentTail is that of |t| or more.
func studentTail(t, dof float64) float64 {
	return mathext.RegIncBeta(dof/2, 0.5, dof/(dof+t*t))
}

// noise pools the noise powers of all looks.
func (l *link) noise() (power, dof float64) {
	n := 0.0
	for t, g := range l.series.Gain {
		if !cmplx.IsNaN(g) {
			power += l.series.Noise[t]
			n++
		}
	}
	return power / n, n * l.series.NoiseDoF
}

// describe returns the statistics of one link.
func (l *link) describe(o Options) Device {
	p := l.sample()
	d := Device{Blocks: int(p.n), Missed: len(l.z) - int(p.n), Gain: l.x, Quadrature: l.y,
		PhaseStdErr: l.phaseSE, SignCertain: l.signSure}
	d.Phase = l.phases(o.Level)
	d.PhaseLasts = l.lasting(o)
	d.Model, d.Advantage = p.choose(o)
	law := ricianOf(p.ratio(o.Level).Value)
	switch {
	case d.Model == Rician:
		shrink := math.Sqrt(math.Max(0, p.fading()) / p.s2)
		p.skew, p.kurt = law.skew()*shrink*shrink*shrink, law.excess()*shrink*shrink*shrink*shrink
	case p.neitherFits(o):
		p.skew, p.kurt = p.empirical()
	}
	d.Mu, d.Omega, d.Sigma = p.mu(o.Level), p.omega(o.Level), p.sigma(o.Level)
	d.KFactor = p.kFactor(d.Model, o.Level)
	var dof float64
	d.Noise, dof = l.noise()
	d.SNR, d.SNRdB = p.snr(d.Omega, d.Noise, dof, o.Level)
	if d.Mu.Value > 0 {
		d.BlocksNeeded = BlocksForMean(d.Mu.Value, math.Sqrt(p.s2))
	}
	for _, c := range l.series.Clipped {
		d.Clipped += c
	}
	l.describeTime(&d, p, o)
	return d
}

// empirical returns skewness and excess kurtosis of the gains themselves.
func (p sample) empirical() (skew, excess float64) {
	for _, x := range p.x {
		u := (x - p.mean) / math.Sqrt(p.s2)
		skew += u * u * u / p.n
		excess += u * u * u * u / p.n
	}
	return skew, excess - 3
}

// BlocksForMean is the number of blocks with which a mean mu of gains that scatter
// by deviation (fading and noise together) is told from zero, and its sign found, in
// 995 of 1,000 calibrations: 32 (deviation/mu)^2.
func BlocksForMean(mu, deviation float64) int {
	r := (signCertainty + 2.58) * deviation / mu
	return max(MinBlocks, int(math.Min(1e9, math.Ceil(r*r))))
}
