package lattice

import "math"

// tooth is one tooth of the density's comb: a value that |sum_i h_i d_i| takes,
// or several that the noise has merged. Units are bins.
type tooth struct {
	first, last int // its bins, both included
	weight      float64
	centre      float64
	spread      float64 // standard deviation in excess of the noise's
}

// comb finds the teeth of a density and reads integers from them.
type comb struct {
	smooth, scratch []float64
	peaks           []int
	teeth           []tooth
}

func newComb(bins int) *comb {
	return &comb{
		smooth:  make([]float64, bins+1),
		scratch: make([]float64, bins+1),
		peaks:   make([]int, 0, bins+1),
		teeth:   make([]tooth, 0, bins+1),
	}
}

// find sets c.teeth to the teeth of d for noise of standard deviation sigma bins.
// The density is smoothed by half that much, which leaves the valleys that can be
// told from chance.
func (c *comb) find(d *density, sigma float64) {
	count := d.count[:d.bins+1]
	half := min(int(0.7*sigma+0.5), d.bins/4)
	box(c.scratch, count, half)
	box(c.smooth, c.scratch, half)
	c.findPeaks(float64(2*half+1), d.n)
	c.cut(count, sigma)
}

// box sets dst to sums of src over 2 half + 1 bins. The density goes on mirrored
// below 0 and as zeros above the last bin.
func box(dst, src []float64, half int) {
	n := len(src)
	sum := src[0]
	for j := 1; j <= half; j++ {
		sum += 2 * src[j]
	}
	for j := range dst {
		dst[j] = sum
		if j+half+1 < n {
			sum += src[j+half+1]
		}
		sum -= src[max(j-half, half-j)]
	}
}

// findPeaks walks the smoothed density and notes a peak whenever it has fallen
// from one, or risen to the next, by more than chance. Two boxes of the given
// length turn counts of mean m and variance m into v = m length^2 of variance
// v length 2/3. Where nothing is expected, three counts in one place make a peak:
// the noise's outliers do not. A block of few symbols has no outliers and few
// counts: there one makes a peak.
func (c *comb) findPeaks(length, symbols float64) {
	deviations := 3.0
	if symbols < 256 {
		deviations = 1
	}
	gain := 2.0 / 3 * length * deviations * deviations
	c.peaks = c.peaks[:0]
	rising, at := true, 0
	top, bottom := c.smooth[0], 0.0
	for j, v := range c.smooth {
		switch {
		case rising && v >= top:
			top, at = v, j
		case rising && v < top-math.Sqrt(gain*top):
			c.peaks = append(c.peaks, at)
			rising, bottom = false, v
		case !rising && v <= bottom:
			bottom = v
		case !rising && v > bottom+math.Sqrt(gain*(bottom+length)):
			rising, top, at = true, v, j
		}
	}
	if rising {
		c.peaks = append(c.peaks, at)
	}
}

// cut splits the bins at the valley between every two peaks.
func (c *comb) cut(count []float64, sigma float64) {
	c.teeth = c.teeth[:0]
	first := 0
	for i, p := range c.peaks {
		last := len(count) - 1
		if i+1 < len(c.peaks) {
			last = c.valley(p, c.peaks[i+1])
		}
		c.teeth = append(c.teeth, makeTooth(count, first, last, sigma))
		first = last + 1
	}
}

// valley returns the lowest bin between two peaks, of several the nearest to the
// middle.
func (c *comb) valley(from, to int) int {
	best, middle := from, (from+to)/2
	for j := from; j < to; j++ {
		v, low := c.smooth[j], c.smooth[best]
		if v < low || v == low && abs(j-middle) < abs(best-middle) {
			best = j
		}
	}
	return best
}

func abs(x int) int { return max(x, -x) }

func makeTooth(count []float64, first, last int, sigma float64) tooth {
	t := tooth{first: first, last: last}
	sum, square := 0.0, 0.0
	for j := first; j <= last; j++ {
		x := float64(j)
		t.weight += count[j]
		sum += count[j] * x
		square += count[j] * x * x
	}
	if t.weight == 0 {
		return t
	}
	if first > 0 { // the tooth of zero has its other half mirrored below
		t.centre = sum / t.weight
	}
	// Three deviations of what the noise's own spread, and a bin's, may seem.
	noise := (sigma*sigma + 1.0/12) * (1 + 3*math.Sqrt(2/t.weight))
	t.spread = math.Sqrt(math.Max(0, square/t.weight-t.centre*t.centre-noise))
	return t
}

// refine moves a scale, in turns a bin, to the least-squares fit of the teeth to
// the integers that they take: the decision-directed step, with noiseless
// symbols.
func (c *comb) refine(turn float64) float64 {
	for range 3 {
		num, den := 0.0, 0.0
		for i := range c.teeth {
			t := &c.teeth[i]
			g := t.weight * t.centre
			num += g * nearest(turn*t.centre)
			den += g * t.centre
		}
		if num <= 0 {
			break
		}
		turn = num / den
	}
	return turn
}

// margin returns how far the worst symbol stays from a boundary between integers,
// in units of the lattice; negative if some cross it.
//
// A tooth that holds several values is taken as wide as three values of equal
// weight and the same spread are, sqrt(3/2) to each side. That is what keeps a
// device as weak as the noise, or two of nearly the same gain, from being read
// as integers that are linear in the digits, but not those of round(alpha h_i).
func (c *comb) margin(turn float64) float64 {
	const reach = 1.25
	worst := 0.0
	for i := range c.teeth {
		t := &c.teeth[i]
		x := turn * t.centre
		worst = math.Max(worst, math.Abs(x-nearest(x))+reach*turn*t.spread)
	}
	return 0.5 - worst
}

// fill sets table to the integers of the bins from -bins to bins.
func (c *comb) fill(table []int32, turn float64) {
	zero := len(table) / 2
	for i := range c.teeth {
		t := &c.teeth[i]
		v := int32(nearest(turn * t.centre))
		for j := t.first; j <= t.last; j++ {
			table[zero-j], table[zero+j] = -v, v
		}
	}
}
