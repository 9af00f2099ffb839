package lattice

import "math"

// learned is what blocks of b that were accepted have shown of the integers that symbols stand
// for, at one scale: those of other frames with the same gains are read by it where their
// own teeth mislead, as they do in blocks of few symbols.
type learned struct {
	alpha      float64
	sum, count []float64 // by place, of |y|: integers added, and how many
	integer    []int32
	stale      bool // integer is older than the others
}

const (
	// learnedPlaces is the resolution, in places an integer.
	learnedPlaces = 32
	// learnedLevels bounds the integers that are learned.
	learnedLevels = 1 << 12
	// learnedEvery is how far the symbols are apart that are learned from.
	learnedEvery = 4
)

// place returns that of a symbol, and whether it has one.
func (l *learned) place(y float32) (int, bool) {
	p := math.Abs(float64(y)) * l.alpha * learnedPlaces
	return int(p), p < learnedPlaces*learnedLevels
}

// Learn takes in symbols whose integers at the scale alpha were accepted; those of another
// scale, and of other gains, have to be forgotten before.
func (r *Receiver) Learn(y []float32, integers []int32, alpha float64) {
	l := &r.learned
	if l.alpha != alpha {
		r.Forget()
		l.alpha = alpha
	}
	l.stale = true
	for k := 0; k < len(y); k += learnedEvery {
		p, ok := l.place(y[k])
		if !ok {
			continue
		}
		for len(l.sum) <= p {
			l.sum, l.count = append(l.sum, 0), append(l.count, 0)
		}
		v := float64(integers[k])
		if y[k] < 0 {
			v = -v
		}
		l.sum[p] += v
		l.count[p]++
	}
}

// Forget forgets what was learned.
func (r *Receiver) Forget() {
	l := &r.learned
	l.alpha, l.sum, l.count, l.integer, l.stale = 0, l.sum[:0], l.count[:0], l.integer[:0], false
}

// settle sets the integer of each place: that of most symbols, or of those nearest to it
// where it has none.
func (l *learned) settle() {
	l.integer, l.stale = l.integer[:0], false
	last := -1
	for p, n := range l.count {
		if n == 0 {
			l.integer = append(l.integer, 0)
			continue
		}
		v := int32(nearest(math.Abs(l.sum[p])/n) * math.Copysign(1, l.sum[p]))
		l.integer = append(l.integer, v)
		for q := last + 1; q < p; q++ {
			if last >= 0 && q-last < p-q {
				l.integer[q] = l.integer[last]
			} else {
				l.integer[q] = v
			}
		}
		last = p
	}
}

// readLearned offers the integers that were learned of symbols like these.
func (r *Receiver) readLearned(y []float32, alpha float64, accept Accept, tried *int) bool {
	l := &r.learned
	if l.alpha != alpha || alpha == 0 || len(l.count) == 0 {
		return false
	}
	if l.stale {
		l.settle()
	}
	out := r.teethY[:len(y)]
	for k, v := range y {
		p, ok := l.place(v)
		if !ok {
			return false
		}
		i := l.integer[min(p, len(l.integer)-1)]
		if v < 0 {
			i = -i
		}
		out[k] = i
	}
	return offer(out, accept, tried)
}
