package moments

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/stat/distuv"
)

// link is one device's gains: the mean of each block's looks, and what becomes of
// it once turned onto the axis on which the session's real gains lie.
type link struct {
	bench  *Bench
	series *Series
	index  int
	spans  []span

	z []complex128 // mean of a block's looks, NaN if missed
	w []float64    // variance of the error of each of its two parts

	x, y     []float64 // real effective gain, and what stands perpendicular to it
	phase    []float64 // a session
	phaseSE  []float64
	signSure bool
	common   bool // one sign for all sessions, since their axes agree
}

func newLink(b *Bench, index int, spans []span) *link {
	s := &b.Devices[index]
	blocks := len(b.Session)
	l := &link{bench: b, series: s, index: index, spans: spans,
		z: make([]complex128, blocks), w: make([]float64, blocks)}
	for k := range blocks {
		n, sum, variance := 0.0, complex(0, 0), 0.0
		for t := k * b.Looks; t < (k+1)*b.Looks; t++ {
			if cmplx.IsNaN(s.Gain[t]) {
				continue
			}
			n++
			sum += s.Gain[t]
			variance += s.GainVar[t]
		}
		l.z[k], l.w[k] = cmplx.NaN(), math.NaN()
		if n > 0 {
			l.z[k], l.w[k] = sum/complex(n, 0), variance/(2*n*n)
		}
	}
	return l
}

func (l *link) count() int {
	n := 0
	for _, z := range l.z {
		if !cmplx.IsNaN(z) {
			n++
		}
	}
	return n
}

func (l *link) power() float64 {
	sum := 0.0
	for _, z := range l.z {
		if !cmplx.IsNaN(z) {
			sum += real(z)*real(z) + imag(z)*imag(z)
		}
	}
	return sum
}

// align finds the axis of each session, turns the gains onto it and chooses the
// sign that makes the mean positive.
//
// With real gains times a phase and circular noise, E[z^2] = E[h^2] e^{2 j phi}:
// half the argument of the sum of z^2 is the maximum-likelihood axis whatever the
// gains are, and it is good even where the mean is lost in the fading.
func (l *link) align() {
	n := len(l.spans)
	l.phase, l.phaseSE = make([]float64, n), make([]float64, n)
	l.x, l.y = make([]float64, len(l.z)), make([]float64, len(l.z))
	for s, sp := range l.spans {
		l.phase[s], l.phaseSE[s] = l.axis(sp)
	}
	l.chooseSigns()
	for s, sp := range l.spans {
		turn := cmplx.Rect(1, -l.phase[s])
		for k := sp.first; k < sp.end; k++ {
			g := l.z[k] * turn
			l.x[k], l.y[k] = real(g), imag(g)
			if cmplx.IsNaN(l.z[k]) {
				l.x[k], l.y[k] = math.NaN(), math.NaN()
			}
		}
	}
}

// axis returns the direction of a session's gains, known up to pi, and its standard
// error. The error is that of sum x*y over sum h^2, with the variance taken from
// the residuals themselves, so that it also holds where the phase wanders.
func (l *link) axis(sp span) (phase, se float64) {
	var square complex128
	n := 0
	for k := sp.first; k < sp.end; k++ {
		if z := l.z[k]; !cmplx.IsNaN(z) {
			square += z * z
			n++
		}
	}
	if n < 2 {
		return 0.5 * cmplx.Phase(square), math.NaN()
	}
	phase = 0.5 * cmplx.Phase(square)
	turn := cmplx.Rect(1, -phase)
	spread, energy := 0.0, 0.0
	for k := sp.first; k < sp.end; k++ {
		if z := l.z[k] * turn; !cmplx.IsNaN(l.z[k]) {
			spread += real(z) * real(z) * imag(z) * imag(z)
			energy += real(z)*real(z) - l.w[k]
		}
	}
	if energy <= 0 {
		return phase, math.Pi / 2
	}
	return phase, math.Min(math.Pi/2, math.Sqrt(spread*float64(n)/float64(n-1))/energy)
}

// signCertainty is how many standard errors a mean must lie from zero for its sign
// to be taken as known.
const signCertainty = 3

// chooseSigns adds pi to the axes on which the mean is negative. A session of which
// the mean says little takes the sign of the others if their axes agree, since two
// unrelated axes would hardly agree by chance.
func (l *link) chooseSigns() {
	means, stdErrs := make([]float64, len(l.spans)), make([]float64, len(l.spans))
	l.common = l.axesAgree()
	if l.common {
		for s := range l.phase {
			l.phase[s] = l.phase[0] + foldHalf(l.phase[s]-l.phase[0])
		}
	}
	total := 0.0
	for s, sp := range l.spans {
		sum, square, n := 0.0, 0.0, 0.0
		turn := cmplx.Rect(1, -l.phase[s])
		for k := sp.first; k < sp.end; k++ {
			if !cmplx.IsNaN(l.z[k]) {
				x := real(l.z[k] * turn)
				sum, square, n = sum+x, square+x*x, n+1
			}
		}
		total += sum
		if n > 1 {
			means[s] = sum / n
			stdErrs[s] = math.Sqrt((square - sum*sum/n) / (n * (n - 1)))
		}
	}
	// Two sessions that both know their sign, and differ, have turned by pi.
	for s := range means {
		if means[s]*total < 0 && math.Abs(means[s]) > (signCertainty+1)*stdErrs[s] {
			l.common = false
		}
	}
	l.signSure = true
	all := 0.0
	for s := range means {
		sign := means[s]
		if l.common {
			sign = total
		}
		if sign < 0 {
			l.phase[s] += math.Pi
		}
		l.phase[s] = wrap(l.phase[s])
		if stdErrs[s] == 0 {
			continue
		}
		r := means[s] / stdErrs[s]
		all += r * r
		if !l.common && math.Abs(r) < signCertainty {
			l.signSure = false
		}
	}
	if l.common && all < signCertainty*signCertainty {
		l.signSure = false
	}
}

// axesAgree reports whether all sessions have one axis, as far as can be told: within
// their errors, and with errors so small that chance is no explanation.
func (l *link) axesAgree() bool {
	for s := range l.phase {
		if !(l.phaseSE[s] < 0.1) {
			return len(l.phase) == 1
		}
		se := math.Hypot(l.phaseSE[s], l.phaseSE[0])
		if s > 0 && math.Abs(foldHalf(l.phase[s]-l.phase[0])) > 4*se+1e-3 {
			return false
		}
	}
	return true
}

// wrap brings an angle to -pi..pi, foldHalf one that is known up to pi to
// -pi/2..pi/2.
func wrap(a float64) float64     { return math.Remainder(a, 2*math.Pi) }
func foldHalf(a float64) float64 { return math.Remainder(a, math.Pi) }

// Lasting says whether phases of sessions agree.
type Lasting struct {
	// Verdict is Unresolved for a single session, and where the errors are so large
	// (0.2 rad or more) that agreement means nothing.
	Verdict Verdict
	// Difference is the largest against the first session, in radians, with its
	// standard error; P the probability of differences so large if the phase lasts.
	Difference, StdErr, P float64
}

// Verdict on a question that the data may not answer.
type Verdict int

// Verdicts.
const (
	Unresolved Verdict = iota
	Yes
	No
)

func (v Verdict) String() string { return [...]string{"unresolved", "yes", "no"}[v] }

// lasting compares the phases of the later sessions with the first one's. The
// first's error is in all differences, so the weighted spread about the common
// phase is what is tested.
func (l *link) lasting(o Options) Lasting {
	if len(l.phase) < 2 {
		return Lasting{Difference: math.NaN(), StdErr: math.NaN(), P: math.NaN()}
	}
	difference := func(s int) float64 {
		d := l.phase[s] - l.phase[0]
		if !l.signSure && !l.common {
			return foldHalf(d)
		}
		return wrap(d)
	}
	var sum, weight, chi float64
	out := Lasting{}
	worst := 0.0
	for s := range l.phase {
		se := math.Hypot(l.phaseSE[s], o.PhaseTolerance)
		if math.IsNaN(se) {
			return Lasting{Difference: math.NaN(), StdErr: math.NaN(), P: math.NaN()}
		}
		d, p := difference(s), 1/(se*se)
		sum, weight, chi = sum+p*d, weight+p, chi+p*d*d
		worst = math.Max(worst, se)
		if s == 1 || s > 1 && math.Abs(d) > math.Abs(out.Difference) {
			out.Difference, out.StdErr = d, math.Hypot(se, l.phaseSE[0])
		}
	}
	chi = math.Max(0, chi-sum*sum/weight)
	out.P = chiSquareTail(chi, float64(len(l.phase)-1))
	switch {
	case out.P < 0.001:
		out.Verdict = No
	case worst < 0.2 && l.signSure:
		out.Verdict = Yes
	}
	return out
}

// phases returns the sessions' phases with t intervals.
func (l *link) phases(level float64) []Value {
	out := make([]Value, len(l.phase))
	for s, p := range l.phase {
		out[s] = Value{p, math.NaN(), math.NaN(), "t, variance from the residuals across the axis"}
		if n := l.countIn(l.spans[s]); n > 1 {
			reach := studentQuantile(level, float64(n-1)) * l.phaseSE[s]
			out[s].Low, out[s].High = p-reach, p+reach
		}
	}
	return out
}

func (l *link) countIn(sp span) int {
	n := 0
	for k := sp.first; k < sp.end; k++ {
		if !cmplx.IsNaN(l.z[k]) {
			n++
		}
	}
	return n
}

// studentQuantile returns the t that a fraction level of Student's distribution lies
// within.
func studentQuantile(level, dof float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: dof}.Quantile(0.5 + level/2)
}
