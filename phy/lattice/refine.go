package lattice

import "math"

// The interference that Refine looks for, and the baseline.
const (
	refineReach  = 4   // symbols to either side that interfere
	refineMemory = 100 // symbols over which a baseline is taken to stand still
	refineRounds = 3
)

// Refine writes to dst, as long as y, what is left of a block when that is taken off which
// its own teeth show: a baseline that wanders slowly, and interference between symbols
// that all devices have in common. A symbol's tooth is taken for what it should have been.
// It is for blocks that no scale reads as they are: where most symbols are in the right
// tooth, most of what moves them out of it goes.
func (r *Receiver) Refine(dst, y []float32) {
	copy(dst, y)
	if len(y) < MinSymbols {
		return
	}
	r.grow(len(y))
	if len(r.tooth) < len(y) {
		r.tooth, r.off = make([]float32, len(y)), make([]float32, len(y))
	}
	for round := range refineRounds {
		// A baseline splits each tooth in two, as symbols of either sign are counted
		// together: at first teeth are taken for wide enough to hold both.
		if !r.decide(dst, float64(refineRounds-round)) {
			return
		}
		r.takeNeighbours(dst)
		r.takeBaseline(dst)
	}
}

// decide sets tooth to the centre of each symbol's tooth, for noise so many times what it
// seems.
func (r *Receiver) decide(y []float32, wider float64) bool {
	d := r.density
	if d.load(y) != nil {
		return false
	}
	r.comb.find(d, wider*r.noise())
	if len(r.centre) < 2*d.bins+1 {
		r.centre = make([]float32, 2*d.bins+1)
	}
	for i := range r.comb.teeth {
		t := &r.comb.teeth[i]
		v := float32(t.centre * d.width)
		for j := t.first; j <= t.last; j++ {
			r.centre[d.bins-j], r.centre[d.bins+j] = -v, v
		}
	}
	for k, i := range d.index[:len(y)] {
		r.tooth[k] = r.centre[i]
	}
	return true
}

// takeNeighbours takes off what symbols have of their neighbours. Digits are independent:
// the correlation with a neighbour is its share.
func (r *Receiver) takeNeighbours(y []float32) {
	const significant = 4 // deviations of a share that is chance
	tooth, off := r.tooth[:len(y)], r.off[:len(y)]
	var power, rest float64
	for k, t := range tooth {
		off[k] = y[k] - t
		power += float64(t) * float64(t)
		rest += float64(off[k]) * float64(off[k])
	}
	least := significant * math.Sqrt(rest/power/float64(len(y)))
	for l := -refineReach; l <= refineReach; l++ {
		if l == 0 {
			continue
		}
		from, to := max(0, -l), min(len(y), len(y)-l)
		sum := 0.0
		for k := from; k < to; k++ {
			sum += float64(off[k]) * float64(tooth[k+l])
		}
		share := sum / power
		if !(math.Abs(share) > least) {
			continue
		}
		for k := from; k < to; k++ {
			y[k] -= float32(share) * tooth[k+l]
		}
	}
}

// takeBaseline takes off the mean distance of the symbols around from their teeth, by a
// first-order low-pass forth and back.
func (r *Receiver) takeBaseline(y []float32) {
	const keep = 1 - 1.0/refineMemory
	tooth, off := r.tooth[:len(y)], r.off[:len(y)]
	level, weight := 0.0, 0.0
	for k := range y {
		level, weight = keep*level+float64(y[k]-tooth[k]), keep*weight+1
		off[k] = float32(level / weight / 2)
	}
	level, weight = 0, 0
	for k := len(y) - 1; k >= 0; k-- {
		level, weight = keep*level+float64(y[k]-tooth[k]), keep*weight+1
		off[k] += float32(level / weight / 2)
	}
	for k, v := range off {
		y[k] -= v
	}
}
