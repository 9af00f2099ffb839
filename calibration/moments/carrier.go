package moments

import (
	"math"
	"math/cmplx"
	"slices"
)

// Carrier is how the phase of a device's gains turns.
type Carrier struct {
	// Offset is the turn in hertz.
	Offset Value
	// Follows says that one offset explains the phases of all looks: that it is told from
	// their phases, without gaps in the count of turns, from the first to the last.
	Follows bool
}

// Likelihoods, as the logarithms of their ratios, by which an offset must exceed any other
// to be the one; the least share of the gains' power that must turn with it, for the
// phases to count as one line's; and how many deviations of what was known before are
// searched.
const (
	clearly       = 12
	leastCoherent = 0.5
	searched      = 5
)

// FollowCarrier estimates a carrier's offset from gains measured at the given seconds, NaN
// where they were missed. before is what is known of it from elsewhere, as from each
// burst's own phase, with its standard error in hertz.
//
// Gains are real up to noise and a phase, so that their squares z^2 turn at twice the
// offset whatever their signs are: the sum of z^2 e^{-j 4 pi f t} over the looks, of which
// the largest magnitude is wanted, is the logarithm of the likelihood. It has as many
// maxima as there are turns that fit between two looks. So looks are joined step by step:
// first those that lie so close that what is known before leaves no doubt of the turns
// between them, then, as the estimate gets better, those further apart, up to all of them.
// A step whose best offset is not clearly better than any other, or with which phases
// do not turn, as those of a wandering carrier, is not gone.
func FollowCarrier(seconds []float64, gains []complex128, before, stdErr float64) Carrier {
	looks := looksOf(seconds, gains)
	out := Carrier{Offset: normalValue(before, stdErr, "bursts")}
	if len(looks) < MinBlocks || !(stdErr > 0) || math.IsInf(stdErr, 0) {
		return out
	}
	whole := looks[len(looks)-1].at - looks[0].at
	at, se := before, stdErr
	for span := 0.0; span < whole; {
		span = min(whole, max(1/se, 2*span))
		f, err, ok := join(looks, span, at, se)
		if !ok {
			return out
		}
		at = f
		if err > 0 {
			se = min(se, err)
			out.Offset = normalValue(at, se, "phases")
		}
		out.Follows = span == whole && err > 0
	}
	return out
}

func normalValue(v, stdErr float64, how string) Value {
	reach := normalQuantile(0.975) * stdErr
	return Value{v, v - reach, v + reach, how}
}

// look is a gain's square at its time.
type look struct {
	at     float64
	square complex128
}

func looksOf(seconds []float64, gains []complex128) []look {
	var looks []look
	for k, z := range gains {
		if !cmplx.IsNaN(z) {
			looks = append(looks, look{seconds[k], z * z})
		}
	}
	slices.SortStableFunc(looks, func(a, b look) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	return looks
}

// join estimates the offset from looks up to span apart, each segment of them with a phase
// of its own, among offsets near at. The error is 0 where segments are too short to tell.
func join(looks []look, span, at, se float64) (offset, stdErr float64, ok bool) {
	segments := segmentsOf(looks, span)
	total := 0.0
	for _, l := range looks {
		total += cmplx.Abs(l.square)
	}
	// A quarter of the width of a maximum from step to step.
	step := min(1/(16*span), se/8)
	most := int(math.Ceil(searched * se / step))
	likelihood := make([]float64, 2*most+1)
	best := 0
	for k := range likelihood {
		likelihood[k] = coherent(segments, at+float64(k-most)*step)
		if likelihood[k] > likelihood[best] {
			best = k
		}
	}
	if !(likelihood[best] >= leastCoherent*total) {
		return 0, 0, false
	}
	offset = peak(segments, at+float64(best-most)*step, step)
	top := coherent(segments, offset)
	lobe := int(math.Ceil(0.5 / span / step))
	noise := max(2*(1-top/total), 1e-12) * total / float64(len(looks))
	for k, v := range likelihood {
		if max(k-best, best-k) <= lobe || v < leastNear*top {
			continue
		}
		// Between two steps it may be as likely, as another count of turns is with looks that
		// are evenly spaced.
		if v = coherent(segments, peak(segments, at+float64(k-most)*step, step)); top-v < clearly*noise {
			return 0, 0, false
		}
	}
	return offset, errorOf(segments, offset), true
}

// leastNear is the least share of a maximum that its nearest step has.
const leastNear = 0.8

// segmentsOf cuts looks where they would span more than span.
func segmentsOf(looks []look, span float64) (out [][]look) {
	first := 0
	for k := range looks {
		if looks[k].at-looks[first].at > span*(1+1e-9) {
			out, first = append(out, looks[first:k]), k
		}
	}
	return append(out, looks[first:])
}

// coherent is the sum over segments of what turns with the offset.
func coherent(segments [][]look, offset float64) float64 {
	sum := 0.0
	for _, s := range segments {
		sum += cmplx.Abs(turned(s, offset))
	}
	return sum
}

func turned(segment []look, offset float64) (sum complex128) {
	for _, l := range segment {
		sin, cos := math.Sincos(-4 * math.Pi * offset * (l.at - segment[0].at))
		sum += l.square * complex(cos, sin)
	}
	return sum
}

// peak goes from a point near the maximum to it, by golden section.
func peak(segments [][]look, offset, step float64) float64 {
	const golden = 0.6180339887498949
	low, high := offset-step, offset+step
	a, b := high-golden*(high-low), low+golden*(high-low)
	fa, fb := coherent(segments, a), coherent(segments, b)
	for range 40 {
		if fa > fb {
			high, b, fb = b, a, fa
			a = high - golden*(high-low)
			fa = coherent(segments, a)
		} else {
			low, a, fa = a, b, fb
			b = low + golden*(high-low)
			fb = coherent(segments, b)
		}
	}
	return (low + high) / 2
}

// batches is into how many parts residual phases are put to see whether they are white.
const batches = 8

// errorOf returns the standard error of an offset: that of a line through phases whose
// residuals are what they are, and larger where those wander.
func errorOf(segments [][]look, offset float64) float64 {
	var times, residuals, weights []float64
	for _, s := range segments {
		axis := cmplx.Phase(turned(s, offset))
		weight, mean := 0.0, 0.0
		for _, l := range s {
			weight += cmplx.Abs(l.square)
			mean += cmplx.Abs(l.square) * l.at
		}
		for _, l := range s {
			r := cmplx.Phase(l.square) - axis - 4*math.Pi*offset*(l.at-s[0].at)
			times, residuals, weights = append(times, l.at-mean/weight), append(residuals, math.Remainder(r, 2*math.Pi)/2), append(weights, cmplx.Abs(l.square))
		}
	}
	free := float64(len(times) - len(segments) - 1)
	spread, lever := 0.0, 0.0
	for k, t := range times {
		spread += weights[k] * residuals[k] * residuals[k]
		lever += weights[k] * t * t
	}
	if free < 1 || lever == 0 {
		return 0
	}
	variance := spread / free / lever // of radians a second
	return math.Sqrt(variance*wandering(excess(residuals, weights, spread/free))) / (2 * math.Pi)
}

// wandering returns by how much the variance of a slope is larger than white residuals
// would make it. Means of batches of white ones have an excess of 1, and of 3 once in 200
// times. A Wiener phase of q rad^2/s turns by sqrt(6 q/(5 T)) rad/s in the time T and
// leaves residuals of mean square q T/15: the slope's variance is 18/T^2 times that, where
// as many independent batches would have 12/(T^2 (batches - 2)). Of such residuals a few
// waves are all that counts, so that their mean square is little known: the 2 stands for
// the wider quantiles of Student's distribution of some 4 degrees of freedom.
func wandering(excess float64) float64 {
	if excess < 3 {
		return max(1, excess)
	}
	return 2 * 18.0 / 12 * (batches - 2) * excess
}

// excess is by how much the means of batches of residuals scatter more than white noise of
// that variance, per weight, would have them.
func excess(residuals, weights []float64, variance float64) float64 {
	n := len(residuals) / batches
	if n < 2 || variance == 0 {
		return 1
	}
	sum := 0.0
	for b := range batches {
		weight, mean := 0.0, 0.0
		for k := b * n; k < (b+1)*n; k++ {
			weight += weights[k]
			mean += weights[k] * residuals[k]
		}
		sum += mean * mean / weight
	}
	return sum / (batches - 2) / variance
}
