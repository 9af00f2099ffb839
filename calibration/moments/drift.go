package moments

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/stat/distuv"
)

// AllanPoint is one overlapping Allan deviation with its interval; Terms is the
// number of differences that it is the mean of.
type AllanPoint struct {
	Seconds, Deviation, Low, High float64
	Terms                         int
}

// Coherence is where the autocorrelation of the gain first falls below one half:
// between Low and High, in seconds. Low is 0 and High +Inf where nothing is known;
// High alone is +Inf where it never falls as far as it could be seen.
type Coherence struct {
	Low, High float64
	// LongEnough says whether the coherence time is at least the round's duration.
	LongEnough Verdict
}

func (l *link) describeTime(d *Device, p sample, o Options) {
	d.PhaseDrift, d.GainDrift = l.phaseDrift(o.Level), l.gainDrift(p, o.Level)
	d.PhaseAllan, d.GainAllan = l.allan(p, o.Level)
	d.PhaseSpectrum, d.GainSpectrum = l.spectra(p, o.Level)
	d.Rotation = l.rotation(o.Level)
	d.Offset = l.offset(o.Level)
	d.Coherence = Coherence{High: math.Inf(1)}
	// The fading must stand clear of the noise's own scatter to be correlated.
	if p.fading() < 5*math.Sqrt(p.variance()) {
		return
	}
	d.Autocorrelation, d.Band = l.autocorrelation(p, o.Level)
	d.WithinBlock = l.withinBlock(p)
	d.Coherence = l.coherence(d, o)
}

// autocorrelation of the gains over blocks, pairs within sessions only.
func (l *link) autocorrelation(p sample, level float64) (r []float64, band float64) {
	lags := min(len(l.x)/2, 256)
	r = append(r, 1)
	for lag := 1; lag <= lags; lag++ {
		sum, n := 0.0, 0.0
		for _, sp := range l.spans {
			for k := sp.first; k+lag < sp.end; k++ {
				if v := (l.x[k] - p.mean) * (l.x[k+lag] - p.mean); !math.IsNaN(v) {
					sum, n = sum+v, n+1
				}
			}
		}
		if n < 8 {
			break
		}
		r = append(r, sum/n/p.fading())
	}
	return r, normalQuantile((1+level)/2) * p.s2 / p.fading() / math.Sqrt(p.n)
}

// withinBlock is the autocorrelation over the looks of a block, from lag 0. The
// noise of two looks is independent: only lag 0 has it.
func (l *link) withinBlock(p sample) []float64 {
	r := []float64{1}
	for lag := 1; lag < l.bench.Looks; lag++ {
		sum, n := 0.0, 0.0
		l.eachBlock(func(s, k int, looks []complex128) {
			for t := 0; t+lag < len(looks); t++ {
				v := (real(looks[t]) - p.mean) * (real(looks[t+lag]) - p.mean)
				if !math.IsNaN(v) {
					sum, n = sum+v, n+1
				}
			}
		})
		if n == 0 {
			break
		}
		r = append(r, sum/n/p.fading())
	}
	return r
}

// eachBlock calls f with the session, the block and its looks turned onto the axis;
// the slice is used again.
func (l *link) eachBlock(f func(s, k int, looks []complex128)) {
	n := l.bench.Looks
	looks := make([]complex128, n)
	for s, sp := range l.spans {
		turn := complex(math.Cos(l.phase[s]), -math.Sin(l.phase[s]))
		for k := sp.first; k < sp.end; k++ {
			for t := range looks {
				looks[t] = l.series.Gain[k*n+t] * turn
			}
			f(s, k, looks)
		}
	}
}

func (l *link) coherence(d *Device, o Options) Coherence {
	c := Coherence{High: math.Inf(1)}
	c.find(d.WithinBlock, l.bench.LookSeconds)
	if math.IsInf(c.High, 1) {
		c.find(d.Autocorrelation, l.bench.BlockSeconds)
	}
	switch {
	case c.Low >= o.RoundSeconds*(1-1e-9) && o.RoundSeconds > 0:
		c.LongEnough = Yes
	case c.High <= o.RoundSeconds:
		c.LongEnough = No
	}
	return c
}

func (c *Coherence) find(r []float64, seconds float64) {
	for lag, v := range r {
		at := float64(lag) * seconds
		if v < 0.5 {
			c.High = math.Max(at, c.Low)
			return
		}
		c.Low = math.Max(c.Low, at)
	}
}

// readable reports whether a block's phase can be read: its gain stands three
// deviations clear of the noise.
func (l *link) readable(k int) bool {
	return math.Abs(l.x[k]) > 3*math.Sqrt(2*l.w[k])
}

// rms is the root mean square of the gain, without noise.
func (l *link) rms(p sample) float64 { return math.Sqrt(p.mean*p.mean + math.Max(0, p.fading())) }

// tracks returns the phases, unwrapped, and the gains relative to their root mean square
// block by block, a list a session; NaN where missed or, for a phase, not readable.
func (l *link) tracks(p sample) (phases, gains [][]float64) {
	root := l.rms(p)
	for _, sp := range l.spans {
		var a, g []float64
		last := 0.0
		for k := sp.first; k < sp.end; k++ {
			v := math.NaN()
			if l.readable(k) {
				// The phase of +-h is one: the sign is the gain's, not the clock's.
				v = math.Atan2(l.y[k]*math.Copysign(1, l.x[k]), math.Abs(l.x[k]))
				v = last + foldHalf(v-last)
				last = v
			}
			a, g = append(a, v), append(g, l.x[k]/root)
		}
		phases, gains = append(phases, a), append(gains, g)
	}
	return phases, gains
}

// allan returns the deviations at averages of 1, 2, 4, ... blocks, pooled over the
// sessions.
func (l *link) allan(p sample, level float64) (phase, gain []AllanPoint) {
	phases, gains := l.tracks(p)
	longest := 0
	for _, a := range phases {
		longest = max(longest, len(a))
	}
	for m := 1; 2*m < longest; m *= 2 {
		if point, ok := pool(phases, m, l.bench.BlockSeconds, level, allanOfPhase); ok {
			phase = append(phase, point)
		}
		if point, ok := pool(gains, m, l.bench.BlockSeconds, level, allanOfFrequency); ok {
			gain = append(gain, point)
		}
	}
	return phase, gain
}

func pool(parts [][]float64, m int, tau0, level float64, variance func([]float64, int, float64) (float64, int)) (AllanPoint, bool) {
	sum, terms, dof := 0.0, 0, 0.0
	for _, part := range parts {
		s, n := variance(part, m, tau0)
		sum, terms = sum+s, terms+n
		dof += allanFreedom(n+2*m, m)
	}
	if terms < 2 {
		return AllanPoint{}, false
	}
	v := sum / (2 * float64(terms))
	chi := distuv.ChiSquared{K: math.Max(1, dof)}
	return AllanPoint{
		Seconds: float64(m) * tau0, Deviation: math.Sqrt(v), Terms: terms,
		Low:  math.Sqrt(v * chi.K / chi.Quantile((1+level)/2)),
		High: math.Sqrt(v * chi.K / chi.Quantile((1-level)/2)),
	}, true
}

// allanFreedom is the number of degrees of freedom of the overlapping estimate from
// n phases at m: the least of those of white phase, white frequency and random-walk
// frequency noise (NIST SP 1065, Table 5), so that error bars are wide rather than
// narrow.
func allanFreedom(phases, m int) float64 {
	n, k := float64(phases), float64(m)
	if phases <= 2*m+1 {
		return 0
	}
	whitePhase := (n + 1) * (n - 2*k) / (2 * (n - k))
	whiteFrequency := (3*(n-1)/(2*k) - 2*(n-2)/n) * 4 * k * k / (4*k*k + 5)
	walk := (n - 2) / k * ((n-1)*(n-1) - 3*k*(n-1) + 4*k*k) / ((n - 3) * (n - 3))
	return math.Max(1, math.Min(whitePhase, math.Min(whiteFrequency, walk)))
}

// allanOfPhase returns the sum of squared second differences over m steps, divided by
// the time squared, and their number. Missing values leave out their terms.
func allanOfPhase(phase []float64, m int, tau0 float64) (sum float64, terms int) {
	tau := float64(m) * tau0
	for i := 0; i+2*m < len(phase); i++ {
		d := (phase[i+2*m] - 2*phase[i+m] + phase[i]) / tau
		if !math.IsNaN(d) {
			sum, terms = sum+d*d, terms+1
		}
	}
	return sum, terms
}

// allanOfFrequency returns the sum of squared differences of the means of adjacent m
// values, and their number.
func allanOfFrequency(y []float64, m int, _ float64) (sum float64, terms int) {
	for i := 0; i+2*m <= len(y); i++ {
		d := 0.0
		for j := i; j < i+m; j++ {
			d += y[j+m] - y[j]
		}
		if !math.IsNaN(d) {
			sum, terms = sum+d*d/float64(m*m), terms+1
		}
	}
	return sum, terms
}

// phaseDrift fits one slope to the quadrature parts, each session with a phase of
// its own: y = h (phase + slope t).
func (l *link) phaseDrift(level float64) Value {
	return l.slope(level, func(k int) (value, weight float64) {
		if l.x[k] == 0 {
			return 0, 0
		}
		return l.y[k] / l.x[k], l.x[k] * l.x[k]
	}, 1)
}

func (l *link) gainDrift(p sample, level float64) Value {
	return l.slope(level, func(k int) (value, weight float64) { return l.x[k], 1 },
		20/math.Ln10/math.Max(p.mean, math.SmallestNonzeroFloat64))
}

// slope is the weighted regression on time, in seconds, with an intercept a session
// and the variance from the residuals themselves, times unit.
func (l *link) slope(level float64, at func(k int) (value, weight float64), unit float64) Value {
	var cross, square float64
	type point struct{ u, v, p float64 }
	var points []point
	used := 0
	for _, sp := range l.spans {
		var sw, st, sv float64
		first := len(points)
		for k := sp.first; k < sp.end; k++ {
			if math.IsNaN(l.x[k]) {
				continue
			}
			v, w := at(k)
			t := float64(k) * l.bench.BlockSeconds
			sw, st, sv = sw+w, st+w*t, sv+w*v
			points = append(points, point{t, v, w})
		}
		if sw == 0 {
			continue
		}
		used++
		for i := first; i < len(points); i++ {
			q := &points[i]
			q.u, q.v = q.u-st/sw, q.v-sv/sw
			cross, square = cross+q.p*q.u*q.v, square+q.p*q.u*q.u
		}
	}
	dof := float64(len(points) - used - 1)
	if square == 0 || dof < 1 {
		return Value{math.NaN(), math.NaN(), math.NaN(), "regression"}
	}
	slope, spread := cross/square, 0.0
	for _, q := range points {
		e := q.p * q.u * (q.v - slope*q.u)
		spread += e * e
	}
	reach := studentQuantile(level, dof) * math.Sqrt(spread*float64(len(points))/dof) / square
	return Value{slope * unit, (slope - reach) * unit, (slope + reach) * unit, "regression, variance from the residuals"}
}

// contrast sums, over the blocks, the slope of the looks against their own mean:
// the real part changes with the gain's size, the imaginary part with its phase.
// The slope and the mean of a block have independent errors, so that, given the
// means, both parts are normal with the variance given if nothing changes.
func (l *link) contrast() (sum complex128, energy, variance float64) {
	l.eachBlock(func(_, k int, looks []complex128) {
		var n, st float64
		var mean complex128
		for t, z := range looks {
			if !cmplx.IsNaN(z) {
				n, st, mean = n+1, st+float64(t), mean+z
			}
		}
		if n < 2 {
			return
		}
		mean /= complex(n, 0)
		size := real(mean)*real(mean) + imag(mean)*imag(mean)
		for t, z := range looks {
			if cmplx.IsNaN(z) {
				continue
			}
			u := float64(t) - st/n
			sum += complex(u, 0) * z * complex(real(mean), -imag(mean))
			energy += u * u * size
			variance += u * u * size * l.series.GainVar[k*l.bench.Looks+t] / 2
		}
	})
	return sum, energy, variance
}

func (l *link) rotation(level float64) Value {
	sum, energy, variance := l.contrast()
	if energy == 0 {
		return Value{math.NaN(), math.NaN(), math.NaN(), "none: one look a block"}
	}
	hertz := 1 / (2 * math.Pi * l.bench.LookSeconds)
	v := imag(sum) / energy
	reach := normalQuantile((1+level)/2) * math.Sqrt(variance) / energy
	return Value{v * hertz, (v - reach) * hertz, (v + reach) * hertz, "normal, known noise"}
}

// offset is the weighted mean of the offsets measured.
func (l *link) offset(level float64) Value {
	var sw, sv, n float64
	usable := func(t int) bool {
		return t < len(l.series.Offset) && !math.IsNaN(l.series.Offset[t]) &&
			l.series.OffsetVar[t] > 0 && !math.IsInf(l.series.OffsetVar[t], 0)
	}
	for t := range l.series.Gain {
		if usable(t) {
			w := 1 / l.series.OffsetVar[t]
			sw, sv, n = sw+w, sv+w*l.series.Offset[t], n+1
		}
	}
	if n < 2 {
		return Value{math.NaN(), math.NaN(), math.NaN(), "none: not measured"}
	}
	mean, spread := sv/sw, 0.0
	for t := range l.series.Gain {
		if usable(t) {
			e := (l.series.Offset[t] - mean) / l.series.OffsetVar[t]
			spread += e * e
		}
	}
	reach := studentQuantile(level, n-1) * math.Sqrt(spread*n/(n-1)) / sw
	return Value{mean, mean - reach, mean + reach, "t, variance from the residuals"}
}
