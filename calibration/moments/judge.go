package moments

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"
)

// Assumption is one that the protocol makes about its channel.
type Assumption string

// Assumptions, in the order of a result's tests.
const (
	NonzeroMean        Assumption = "nonzero mean"
	Fit                Assumption = "gaussian or rician"
	Stationary         Assumption = "stationary"
	IndependentDevices Assumption = "independent devices"
	IndependentBlocks  Assumption = "independent blocks"
	ConstantInBlock    Assumption = "constant within a block"
	FixedPhase         Assumption = "fixed phase"
	OneClock           Assumption = "steady clocks"
	Unclipped          Assumption = "not clipped"
	Linear             Assumption = "linear"
	OnFrequency        Assumption = "on frequency"
)

// Assumptions lists them all.
func Assumptions() []Assumption {
	return []Assumption{NonzeroMean, Fit, Stationary, IndependentDevices, IndependentBlocks,
		ConstantInBlock, FixedPhase, OneClock, Unclipped, Linear, OnFrequency}
}

// Test is the verdict on one assumption. Of a bench it covers all devices.
type Test struct {
	Name  Assumption
	Holds bool
	// Devices are those that violate it, from 0.
	Devices []int
	// Statistic and P belong to the device and the check that speak most against the
	// assumption; P is the probability of as much under the assumption, already
	// multiplied by the number of checks that it is the least of. For NonzeroMean it
	// is that of the opposite, a zero mean. NaN where nothing could be tested.
	Statistic, P float64
	// Sentence names the violation with its figures and devices, or says that none
	// was found.
	Sentence string
}

// finding is the outcome of one check.
type finding struct {
	name      Assumption
	devices   []int
	statistic float64
	p         float64
	violated  bool
	say       string
}

// checksOfDevice is the number of controlled checks of one device: fit, four of
// stationarity, independence of blocks, three within a block, fixed phase, jumps of
// phase and of delay, linearity, frequency.
const checksOfDevice = 14

// judge runs all checks. Each is made at the false-alarm probability divided by the
// number of them (Bonferroni), which bounds that of the whole whatever their
// dependence.
func judge(b *Bench, links []*link, r *Result, o Options) {
	n := len(links)
	alpha := o.FalseAlarm / float64(checksOfDevice*n+n*(n-1)/2)
	var all []finding
	var jumps []jump
	straight := make([]*link, n)
	for i, l := range links {
		d := &r.Devices[i]
		found, moved := l.findJumps(alpha, o)
		jumps = append(jumps, found...)
		c := check{link: l, device: d, alpha: alpha, options: o}
		straight[i] = l.straighten(found)
		c.straight = straight[i]
		c.sample = c.straight.sample()
		c.mean()
		c.fit()
		c.stationarity()
		c.blocks()
		c.within()
		c.fixedPhase(moved)
		c.clipping()
		c.linearity()
		c.frequency()
		all = append(all, c.found...)
	}
	all = append(all, correlations(straight, alpha)...)
	all = append(all, clocks(jumps, n)...)
	for i := range links {
		r.Devices[i].Tests = summarise(all, func(f finding) bool { return slices.Contains(f.devices, i) })
	}
	r.Tests = summarise(all, func(finding) bool { return true })
}

// summarise makes one verdict an assumption of the findings that belong.
func summarise(all []finding, belongs func(finding) bool) []Test {
	var tests []Test
	for _, name := range Assumptions() {
		t := Test{Name: name, Holds: true, Statistic: math.NaN(), P: math.NaN()}
		var said []string
		checks, against := 0.0, math.Inf(1)
		for _, f := range all {
			if f.name != name || !belongs(f) {
				continue
			}
			if !math.IsNaN(f.p) {
				checks++
			}
			rank := f.p
			if name == NonzeroMean {
				rank = -f.p
			}
			if rank < against {
				against, t.Statistic, t.P = rank, f.statistic, f.p
			}
			if !f.violated {
				continue
			}
			t.Holds = false
			said = append(said, f.say)
			for _, i := range f.devices {
				if !slices.Contains(t.Devices, i) {
					t.Devices = append(t.Devices, i)
				}
			}
		}
		slices.Sort(t.Devices)
		if name != NonzeroMean {
			t.P = math.Min(1, t.P*checks)
		}
		t.Sentence = strings.Join(said, "; ")
		if t.Holds {
			t.Sentence = fmt.Sprintf("%s: nothing against it (p = %.2g)", name, t.P)
			if name == NonzeroMean {
				t.Sentence = fmt.Sprintf("%s: every mean is told from 0 (p = %.2g or less that one is 0)", name, t.P)
			}
			if math.IsNaN(t.P) {
				t.Sentence = fmt.Sprintf("%s: nothing against it", name)
			}
		}
		tests = append(tests, t)
	}
	return tests
}

// check collects the findings of one device. straight is the link with its jumps of
// phase taken out, so that a jump is not told again as something else.
type check struct {
	link, straight *link
	device         *Device
	sample         sample
	alpha          float64
	options        Options
	found          []finding
}

func (c *check) add(name Assumption, statistic, p float64, relevant bool, format string, args ...any) {
	c.found = append(c.found, finding{
		name: name, devices: []int{c.link.index}, statistic: statistic, p: p,
		violated: p < c.alpha && relevant,
		say:      fmt.Sprintf("device %d: ", c.link.index+1) + fmt.Sprintf(format, args...),
	})
}

// mean holds the mean against zero. It is the one check whose hypothesis is the
// violation: a mean within three standard errors of zero is taken for zero.
func (c *check) mean() {
	l := c.straight
	spans := l.spans
	if l.common {
		spans = []span{{0, len(l.x)}}
	}
	var between, within, n, groups float64
	for _, sp := range spans {
		var sum, square, count float64
		for k := sp.first; k < sp.end; k++ {
			if x := l.x[k]; !math.IsNaN(x) {
				sum, square, count = sum+x, square+x*x, count+1
			}
		}
		if count == 0 {
			continue
		}
		between += sum * sum / count
		within += square - sum*sum/count
		n, groups = n+count, groups+1
	}
	f := between / groups / (within / (n - groups))
	p := fisherTail(f, groups, n-groups)
	d := c.device
	c.add(NonzeroMean, f, p, false,
		"the mean cannot be told from 0: mu is at most %.3g where the gain fluctuates by %.3g (p = %.2g): the scheme divides by mu; were it %.3g, it would take %d blocks to see it",
		d.Mu.High, math.Sqrt(c.sample.s2), p, d.Mu.Value, d.BlocksNeeded)
	c.found[len(c.found)-1].violated = p > normalTail(signCertainty)
}

func (c *check) fit() {
	s, ok := c.sample.smoothed(c.options.GainStep)
	if !ok {
		return
	}
	gauss, gp := s.fitsGaussian()
	rician, rp := math.NaN(), math.NaN()
	if gp < 0.05 { // else one law fits, and the other need not be integrated
		_, _, rician, rp = s.fits()
	}
	statistic, p := gauss, gp
	if rp > gp {
		statistic, p = rician, rp
	}
	against := fmt.Sprintf("A^2 = %.3g against a Gaussian law", gauss)
	if !math.IsNaN(rician) {
		against += fmt.Sprintf(", %.3g against a Rician one", rician)
	}
	skew, excess := s.empirical()
	c.add(Fit, statistic, p, true, "the gains are neither Gaussian nor Rician (%s, p = %.2g; skewness %.2g, excess kurtosis %.2g)", against, p, skew, excess)
}

// smoothed spreads values that lie on a grid evenly over its step, so that its law is
// that of what was rounded to the grid but for terms in (step/sigma)^2, which are small
// where the deviation is two steps or more; ok is false where it is not.
func (p sample) smoothed(step float64) (s sample, ok bool) {
	if step == 0 {
		return p, true
	}
	if math.Sqrt(p.s2) < 2*step {
		return p, false
	}
	s = p
	s.x = slices.Clone(p.x)
	for k := range s.x { // multiples of the golden ratio fill the unit interval evenly
		_, part := math.Modf(float64(k+1) * math.Phi)
		s.x[k] += step * (part - 0.5)
	}
	s.s2 += step * step / 12
	return s, true
}

func (c *check) stationarity() {
	x := c.sample.x
	deviation := make([]float64, len(x))
	for i, v := range x {
		deviation[i] = math.Abs(v - c.sample.mean)
	}
	for _, s := range []struct {
		name   string
		values []float64
	}{{"mean", x}, {"spread", deviation}} {
		ranks := ranksOf(s.values)
		tau, p := kendall(ranks)
		first, second := meanOf(s.values[:len(x)/2]), meanOf(s.values[len(x)/2:])
		c.add(Stationary, tau, p, true, "the %s of the gain drifts: %.3g in the first half of the blocks, %.3g in the second (Kendall's tau %.2f, p = %.2g)", s.name, first, second, tau, p)
		at, size, p := changePoint(ranks)
		c.add(Stationary, size, p, true, "the %s of the gain changes about block %d: %.3g before, %.3g after (CUSUM %.2f, p = %.2g)",
			s.name, c.blockOf(at)+1, meanOf(s.values[:at]), meanOf(s.values[at:]), size, p)
	}
}

// blockOf returns the block of the i-th measured gain.
func (c *check) blockOf(i int) int {
	for k, x := range c.straight.x {
		if math.IsNaN(x) {
			continue
		}
		if i == 0 {
			return k
		}
		i--
	}
	return len(c.straight.x) - 1
}

func (c *check) blocks() {
	q, first, p, lags := serial(scores(c.straight.x), c.link.spans)
	c.add(IndependentBlocks, q, p, true, "the gains of successive blocks are not independent: correlation %.2f at %.3g s (Ljung-Box Q = %.3g over %d lags, p = %.2g)",
		first, c.link.bench.BlockSeconds, q, lags, p)
}

// within holds the looks of a block against each other: their spread against the
// known noise, and their common turn and growth.
func (c *check) within() {
	if c.link.bench.Looks < 2 {
		return
	}
	l, o := c.link, c.options
	var sum, expected, squares, allowed, energy, looks float64
	l.eachBlock(func(_, k int, z []complex128) {
		var n, v float64
		var mean complex128
		for t, g := range z {
			if !cmplx.IsNaN(g) {
				n, mean, v = n+1, mean+g, v+l.series.GainVar[k*len(z)+t]
			}
		}
		if n < 2 {
			return
		}
		mean, v = mean/complex(n, 0), v/n
		size := real(mean)*real(mean) + imag(mean)*imag(mean)
		for _, g := range z {
			if !cmplx.IsNaN(g) {
				sum += real(g-mean)*real(g-mean) + imag(g-mean)*imag(g-mean)
			}
		}
		expected += (n - 1) * v
		allowed += (n - 1) * o.GainTolerance * o.GainTolerance * size
		squares += (n - 1) * v * v
		energy += (n - 1) * size
		looks += n
	})
	if expected == 0 {
		return
	}
	f := sum / (expected + allowed)
	p := fisherTail(f, 2*expected*expected/squares, looks*l.series.NoiseDoF)
	c.add(ConstantInBlock, f, p, true, "the gain changes within a block by %.1f %% (%.3g times the variance that noise leaves, p = %.2g)",
		100*math.Sqrt(math.Max(0, sum-expected)/energy), f, p)

	slope, power, variance := l.contrast()
	deviation := math.Sqrt(variance)
	reach := float64(l.bench.Looks - 1)
	turn, growth := imag(slope)/power, real(slope)/power
	p = normalTail(imag(slope) / deviation)
	c.add(ConstantInBlock, imag(slope)/deviation, p, math.Abs(turn)*reach > o.PhaseTolerance,
		"the phase turns by %.3g rad from look to look: the carrier is off by %.3g Hz, or a clock drifts (p = %.2g)", turn, c.device.Rotation.Value, p)
	p = normalTail(real(slope) / deviation)
	c.add(ConstantInBlock, real(slope)/deviation, p, math.Abs(growth)*reach > o.GainTolerance,
		"the gain changes by %.3g %% from look to look, in all blocks alike (p = %.2g)", 100*growth, p)
}

// fixedPhase holds what stands perpendicular to the axis against the noise. moved
// says that the phase jumped too often for jumps.
func (c *check) fixedPhase(moved bool) {
	l, o := c.straight, c.options
	var chi, n, energy, excess float64
	for k, y := range l.y {
		if math.IsNaN(y) {
			continue
		}
		allowed := o.PhaseTolerance * o.PhaseTolerance * l.x[k] * l.x[k]
		chi += y * y / (l.w[k] + allowed)
		excess += y*y - l.w[k]
		energy += l.x[k] * l.x[k]
		n++
	}
	dof := n - float64(len(l.spans))
	p := chiSquareTail(chi, dof)
	c.add(FixedPhase, chi/dof, p, true, "the phase does not stay: %.3g rad about its session's mean, drift %.3g rad/s (%.3g to %.3g; chi-square %.3g a degree of freedom, p = %.2g)",
		math.Sqrt(math.Max(0, excess)/energy), c.device.PhaseDrift.Value, c.device.PhaseDrift.Low, c.device.PhaseDrift.High, chi/dof, p)
	if moved {
		c.found[len(c.found)-1].violated = true
	}
}

// clipping needs no statistics: one clipped sample is one too many.
func (c *check) clipping() {
	bursts := 0
	for _, n := range c.link.series.Clipped {
		if n > 0 {
			bursts++
		}
	}
	c.found = append(c.found, finding{
		name: Unclipped, devices: []int{c.link.index}, statistic: float64(c.device.Clipped), p: math.NaN(), violated: bursts > 0,
		say: fmt.Sprintf("device %d: %d samples clipped in %d of %d soundings: the converter is saturated", c.link.index+1, c.device.Clipped, bursts, len(c.link.series.Clipped)),
	})
}

// linearity asks whether residuals grow with the gain, as those of a compressed
// amplifier do. Ranks make it exact whatever the noise's law is.
func (c *check) linearity() {
	s := c.link.series
	var power, noise []float64
	for t, g := range s.Gain {
		if !cmplx.IsNaN(g) {
			power = append(power, real(g)*real(g)+imag(g)*imag(g))
			noise = append(noise, s.Noise[t])
		}
	}
	r := correlation(ranksOf(power), ranksOf(noise))
	n := float64(len(power))
	p := 1.0
	if r > 0 {
		p = studentTail(r*math.Sqrt((n-2)/(1-r*r)), n-2) / 2
	}
	share := regression(power, noise)
	c.add(Linear, r, p, share > c.options.DistortionTolerance,
		"what a sounding leaves unexplained grows with its gain, %.1f dB below the signal (rank correlation %.2f, p = %.2g): compression or another distortion",
		-10*math.Log10(math.Max(share, 1e-30)), r, p)
}

func (c *check) frequency() {
	limit, v := c.options.OffsetHz, c.device.Offset
	if limit == 0 || math.IsNaN(v.Value) {
		return
	}
	se := (v.High - v.Low) / (2 * normalQuantile((1+c.options.Level)/2))
	z := (math.Abs(v.Value) - limit) / se
	p := 1.0
	if z > 0 {
		p = normalTail(z) / 2
	}
	c.add(OnFrequency, v.Value, p, true, "wrong frequency: the carrier is off by %.6g Hz (%.6g to %.6g), allowed are %.6g", v.Value, v.Low, v.High, limit)
}

// correlations holds the gains of each pair of devices against each other.
func correlations(links []*link, alpha float64) []finding {
	var out []finding
	for i := range links {
		for j := range i {
			var a, b []float64
			for k := range links[i].x {
				if x, y := links[j].x[k], links[i].x[k]; !math.IsNaN(x) && !math.IsNaN(y) {
					a, b = append(a, x), append(b, y)
				}
			}
			if len(a) < MinBlocks {
				continue
			}
			r := correlation(scores(a), scores(b))
			n := float64(len(a))
			p := studentTail(r*math.Sqrt((n-2)/math.Max(1e-12, 1-r*r)), n-2)
			out = append(out, finding{
				name: IndependentDevices, devices: []int{j, i}, statistic: r, p: p, violated: p < alpha,
				say: fmt.Sprintf("the gains of devices %d and %d are not independent: correlation %.2f (p = %.2g)", j+1, i+1, r, p),
			})
		}
	}
	return out
}
