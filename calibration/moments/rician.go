package moments

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/integrate/quad"

	"ringwave/phy/channel"
)

// rice is the Rician envelope of scatter deviation 1 in each part and direct
// amplitude nu: K = nu^2/2.
type rice struct{ nu float64 }

// largestTold is the K-factor from which on a Rician envelope is treated as
// Gaussian: its skewness, below 1/(2K)^1.5, is beyond any number of blocks.
const largestTold = 200

// raw returns E[r^m], m = 1..4. Odd ones are Laguerre functions, in terms of the
// modified Bessel functions scaled by e^-y.
func (r rice) raw() (m1, m2, m3, m4 float64) {
	q := r.nu * r.nu
	k := q / 2
	i0, i1 := channel.ScaledBesselI(0, k/2), channel.ScaledBesselI(1, k/2)
	m1 = math.Sqrt(math.Pi/2) * ((1+k)*i0 + k*i1)
	m2 = 2 + q
	// L_{3/2}(-k) = e^{-k/2} [(2k^2+6k+3) I_0(k/2) + 2k(k+2) I_1(k/2)] / 3.
	m3 = math.Sqrt(math.Pi/2) * ((2*k*k+6*k+3)*i0 + 2*k*(k+2)*i1)
	m4 = 8 + 8*q + q*q
	return
}

func (r rice) skew() float64 {
	if r.nu*r.nu/2 > largestTold {
		return 0
	}
	m1, m2, m3, _ := r.raw()
	v := m2 - m1*m1
	return (m3 - 3*m1*m2 + 2*m1*m1*m1) / math.Pow(v, 1.5)
}

func (r rice) excess() float64 {
	if r.nu*r.nu/2 > largestTold {
		return 0
	}
	m1, m2, m3, m4 := r.raw()
	v := m2 - m1*m1
	return (m4-4*m1*m3+6*m1*m1*m2-3*m1*m1*m1*m1)/(v*v) - 3
}

// ratio is mu^2/sigma^2, which grows with nu.
func (r rice) ratio() float64 {
	m1, m2, _, _ := r.raw()
	return m1 * m1 / (m2 - m1*m1)
}

// ricianOf returns the envelope of the given mu^2/sigma^2: that of Rayleigh, nu = 0,
// where it is pi/(4-pi) or less.
func ricianOf(ratio float64) rice {
	if ratio > 2000 {
		return rice{math.Sqrt(ratio - 1.5)} // next term of the expansion: 1e-3
	}
	low, high := 0.0, math.Sqrt(ratio+4)
	for range 50 {
		middle := (low + high) / 2
		if (rice{middle}).ratio() < ratio {
			low = middle
		} else {
			high = middle
		}
	}
	if high < 1e-9 {
		return rice{}
	}
	return rice{(low + high) / 2}
}

// bessel0 returns e^-x I_0(x) to 2e-7 (Abramowitz and Stegun, 9.8.1 and 9.8.2).
func bessel0(x float64) float64 {
	if x < 3.75 {
		t := x * x / (3.75 * 3.75)
		return math.Exp(-x) * (1 + t*(3.5156229+t*(3.0899424+t*(1.2067492+t*(0.2659732+t*(0.0360768+t*0.0045813))))))
	}
	t := 3.75 / x
	return (0.39894228 + t*(0.01328592+t*(0.00225319+t*(-0.00157565+t*(0.00916281+t*(-0.02057706+t*(0.02635537+t*(-0.01647633+t*0.00392377)))))))) / math.Sqrt(x)
}

// fitted is a Rician law with noise added: the density of what is measured.
type fitted struct {
	rice
	scale float64   // deviation of one part of the scatter
	x, p  []float64 // nodes of the noise (Gauss and Hermite) and their weights
}

// newFitted matches mean and variance (the second moment alone at Rayleigh's end).
// It returns false where the noise is as large as the scatter or the K-factor beyond
// largestTold.
func newFitted(p sample) (fitted, bool) {
	v := p.fading()
	if v <= 0 {
		return fitted{}, false
	}
	f := fitted{rice: ricianOf(p.mean * p.mean / v)}
	f.scale = math.Sqrt((p.mean*p.mean + v) / (2 + f.nu*f.nu))
	if f.nu*f.nu/2 > largestTold || p.w > f.scale*f.scale {
		return fitted{}, false
	}
	const nodes = 9
	f.x, f.p = make([]float64, nodes), make([]float64, nodes)
	quad.Hermite{}.FixedLocations(f.x, f.p, math.Inf(-1), math.Inf(1))
	for i := range f.x {
		f.p[i] /= math.Sqrt(math.Pi)
		f.x[i] *= math.Sqrt(2 * p.w)
	}
	return f, true
}

func (f fitted) density(x float64) float64 {
	sum := 0.0
	for i, d := range f.x {
		r := (x - d) / f.scale
		if r <= 0 {
			continue
		}
		sum += f.p[i] * r * math.Exp(-(r-f.nu)*(r-f.nu)/2) * bessel0(r*f.nu)
	}
	return sum / f.scale
}

// cumulative returns the distribution function on an even grid and its step.
func (f fitted) cumulative() (from, step float64, values []float64) {
	const points = 2000
	reach := 9.0
	from = math.Min(0, f.x[0])*2 - 1e-9
	if low := (f.nu - reach) * f.scale; low > from {
		from = low
	}
	to := (f.nu+reach)*f.scale + 2*math.Abs(f.x[0])
	step = (to - from) / points
	values = make([]float64, points+1)
	last := f.density(from)
	for i := 1; i <= points; i++ {
		x := from + float64(i)*step
		middle, next := f.density(x-step/2), f.density(x)
		values[i] = values[i-1] + step*(last+4*middle+next)/6
		last = next
	}
	return from, step, values
}

// choose returns the law that the data prefer by a factor of 100 in likelihood, or
// the one that the options name, and the logarithm of that factor for Rician.
func (p sample) choose(o Options) (Model, float64) {
	advantage := 0.0
	if f, ok := newFitted(p); ok {
		for _, x := range p.x {
			u := (x - p.mean) * (x - p.mean) / p.s2
			gauss := -0.5 * (u + math.Log(2*math.Pi*p.s2))
			advantage += math.Log(math.Max(f.density(x), 1e-300)) - gauss
		}
	}
	switch {
	case o.Model != Undecided:
		return o.Model, advantage
	case advantage > math.Log(100):
		return Rician, advantage
	case advantage < -math.Log(100):
		return Gaussian, advantage
	}
	return Undecided, advantage
}

// kFactor turns the interval of mu^2/sigma^2 into that of K, which grows with it.
// Where the law is undecided the value is the Gaussian one, the paper's channel,
// and the interval holds both: the data alone cannot make both unbiased.
func (p sample) kFactor(m Model, level float64) Value {
	q := p.ratio(level)
	gauss := Value{q.Value / 2, q.Low / 2, q.High / 2, q.How + ", Gaussian"}
	if m == Gaussian {
		return gauss
	}
	k := func(ratio float64) float64 {
		if math.IsInf(ratio, 1) {
			return ratio
		}
		nu := ricianOf(ratio).nu
		return nu * nu / 2
	}
	r := Value{k(q.Value), k(q.Low), k(q.High), q.How + ", Rician"}
	if spread := (q.High - q.Low) / (2 * normalQuantile((1+level)/2)); spread < q.Value/2 {
		// K bends as a function of the ratio; take off half the second derivative.
		bend := (k(q.Value+spread) - 2*r.Value + k(math.Max(0, q.Value-spread))) / 2
		r.Value = math.Min(math.Max(r.Value-bend, r.Low), r.High)
	}
	if m == Rician {
		return r
	}
	return Value{gauss.Value, math.Min(gauss.Low, r.Low), math.Max(gauss.High, r.High), q.How + ", of both laws"}
}

// andersonDarling returns A^2 of probabilities u, which it sorts.
func andersonDarling(u []float64) float64 {
	slices.Sort(u)
	n := float64(len(u))
	sum := 0.0
	for i := range u {
		a := math.Max(u[i], 1e-300)
		b := math.Max(1-u[len(u)-1-i], 1e-16)
		sum += (2*float64(i) + 1) * (math.Log(a) + math.Log(b))
	}
	return -n - sum/n
}

// fitProbability is that of an A^2 so large when two parameters are fitted
// (D'Agostino and Stephens, Goodness-of-Fit Techniques, 1986, Table 4.9). It is
// derived for the normal law; a Rician one fitted by moments follows it closely.
func fitProbability(a2, n float64) float64 {
	a := a2 * (1 + 0.75/n + 2.25/(n*n))
	var p float64
	switch {
	case a < 0.2:
		p = 1 - math.Exp(-13.436+101.14*a-223.73*a*a)
	case a < 0.34:
		p = 1 - math.Exp(-8.318+42.796*a-59.938*a*a)
	case a < 0.6:
		p = math.Exp(0.9177 - 4.279*a - 1.38*a*a)
	default:
		p = math.Exp(1.2937 - 5.709*math.Min(a, 20) + 0.0186*math.Min(a, 20)*math.Min(a, 20))
	}
	return math.Min(1, math.Max(0, p))
}

func (p sample) fitsGaussian() (a2, probability float64) {
	u := make([]float64, len(p.x))
	for i, x := range p.x {
		u[i] = 0.5 * math.Erfc(-(x-p.mean)/math.Sqrt(2*p.s2))
	}
	a2 = andersonDarling(u)
	return a2, fitProbability(a2, p.n)
}

// fits returns the A^2 and its probability under the Gaussian law and, where it can
// be fitted (else NaN), the Rician one.
func (p sample) fits() (gauss, gaussP, rician, ricianP float64) {
	gauss, gaussP = p.fitsGaussian()
	u := make([]float64, len(p.x))
	f, ok := newFitted(p)
	if !ok {
		return gauss, gaussP, math.NaN(), math.NaN()
	}
	from, step, values := f.cumulative()
	total := values[len(values)-1]
	for i, x := range p.x {
		pos := (x - from) / step
		j := min(max(int(pos), 0), len(values)-2)
		part := math.Min(1, math.Max(0, pos-float64(j)))
		u[i] = (values[j] + (values[j+1]-values[j])*part) / total
	}
	rician = andersonDarling(u)
	return gauss, gaussP, rician, fitProbability(rician, p.n)
}

func (p sample) neitherFits(o Options) bool {
	if _, g := p.fitsGaussian(); g >= o.FalseAlarm {
		return false
	}
	_, _, _, r := p.fits()
	return !(r >= o.FalseAlarm)
}
