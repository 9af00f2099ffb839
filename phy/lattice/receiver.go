package lattice

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MinSymbols is the shortest block that a scale is searched in.
const MinSymbols = 16

// Options bound a search. The zero value searches all that the bins resolve.
type Options struct {
	// MaxAlpha is the finest scale tried, in integers a unit of y; 0: no bound
	// but that of Bins. Noise in the ring grows with the scale (phy/README.md,
	// section 1), and converters of few bits bear few levels.
	MaxAlpha float64
	// NoiseStd is the standard deviation of the noise in units of y; 0 where it
	// is not known: it is then bounded from the block itself.
	NoiseStd float64
	// MinQuality, from 0 to 1, is the least phi(alpha), the noise's own factor
	// taken off, that makes a scale worth trying; 0 stands for 0.1.
	MinQuality float64
	// Candidates is the largest number of scales tried; 0 stands for 16.
	Candidates int
	// Bins is the resolution of the histogram over 0 to the largest |y|, from 64
	// to 65,536; 0 stands for 1024. Scales up to 3/8 integer a bin are searched.
	Bins int
	// Symbols is the length of block for which memory is taken at once; longer
	// ones take it when they come.
	Symbols int
}

const (
	defaultMinQuality = 0.1
	defaultCandidates = 16
	defaultBins       = 1024
)

// minMargin is the least margin at which teeth are read: what is nearer to a
// boundary is left to chance by the centres' own error.
const minMargin = 0.02

// safeMargin is the margin below which a scale that serves one block often fails
// in the next. At N = 4, sigma = 0.3, 40 dB, putting such scales last raised the
// share of four blocks read at one scale from 73 % to 76 % (3000 trials each,
// deviation 0.8 %); at 30 dB it made no difference.
const safeMargin = 0.05

// Receiver finds scales and reads integers. It allocates nothing after New but
// for blocks longer than any before. It is for one goroutine.
type Receiver struct {
	opt     Options
	density *density
	comb    *comb
	sigma   float64     // noise of the block in bins
	found   []Candidate // sorted by margin, then cut to the list
	table   []int32     // integer of each signed bin at the scale at hand
	alpha   float64     // scale of the integers on offer
	teethY  []int32
	plainY  []int32
	learned learned

	// Of Refine: the centres of the bins' teeth, those of the symbols', and how far off
	// these are.
	centre, tooth, off []float32
}

// Result is a block of integers.
type Result struct {
	// Y is the block's integers. It belongs to the Receiver and holds until its
	// next call.
	Y []int32
	// Alpha is their scale: Y = sum_i round(Alpha h_i) d_i.
	Alpha float64
	// Stats are those of the symbols at Alpha; Largest is that of Y.
	Stats Stats
	// Tried is the number of times that Accept was asked.
	Tried int
}

// New makes a receiver.
func New(opt Options) (*Receiver, error) {
	opt.Bins = cmp.Or(opt.Bins, defaultBins)
	opt.Candidates = cmp.Or(opt.Candidates, defaultCandidates)
	opt.MinQuality = cmp.Or(opt.MinQuality, defaultMinQuality)
	if err := opt.validate(); err != nil {
		return nil, err
	}
	r := &Receiver{
		opt:     opt,
		density: newDensity(opt.Bins),
		comb:    newComb(opt.Bins),
		table:   make([]int32, 2*opt.Bins+1),
	}
	r.found = make([]Candidate, 0, len(r.density.window)/2+2)
	r.grow(opt.Symbols)
	return r, nil
}

func (o Options) validate() error {
	switch {
	case o.Bins < 64 || o.Bins > 65536:
		return fmt.Errorf("the lattice search has %d bins: allowed are 64 to 65536", o.Bins)
	case o.Candidates < 1:
		return fmt.Errorf("the lattice search has %d candidates: it needs at least 1", o.Candidates)
	case !(o.MaxAlpha >= 0) || math.IsInf(o.MaxAlpha, 0):
		return fmt.Errorf("the finest lattice scale is %v: it must be 0 or more", o.MaxAlpha)
	case !(o.NoiseStd >= 0) || math.IsInf(o.NoiseStd, 0):
		return fmt.Errorf("the noise of a symbol has standard deviation %v: it must be 0 or more", o.NoiseStd)
	case !(o.MinQuality >= 0 && o.MinQuality <= 1):
		return fmt.Errorf("the least lattice quality is %v: it must be from 0 to 1", o.MinQuality)
	case o.Symbols < 0:
		return fmt.Errorf("a block of %d symbols", o.Symbols)
	}
	return nil
}

func (r *Receiver) grow(n int) {
	r.density.grow(n)
	if n > len(r.teethY) {
		r.teethY, r.plainY = make([]int32, n), make([]int32, n)
	}
}

// Candidates returns the scales worth trying in y, in the order to try them: those
// of the largest margins, finest first, and at the end those of margins below
// 0.05. The list belongs to the Receiver and holds until its next call.
func (r *Receiver) Candidates(y []float32) ([]Candidate, error) {
	return r.within(y, 0, cmp.Or(r.opt.MaxAlpha, math.Inf(1)))
}

// Search finds the finest scale in y whose integers are accepted: it asks accept
// about one candidate after the other, in the order of Candidates. All-zero
// integers are never offered. Errors are ErrTooShort, ErrNotFinite, ErrNoSignal and
// ErrNoLattice.
func (r *Receiver) Search(y []float32, accept Accept) (Result, error) {
	return r.SearchExcept(y, nil, accept)
}

// SearchExcept is Search without the scales that are refused: those that read this
// block, and not another one of the same gains.
func (r *Receiver) SearchExcept(y []float32, refused []float64, accept Accept) (Result, error) {
	list, err := r.Candidates(y)
	if err != nil {
		return Result{}, err
	}
	list = slices.DeleteFunc(list, func(c Candidate) bool { return slices.Contains(refused, c.Alpha) })
	return r.first(y, list, accept)
}

// Near is Search among scales from alpha (1 - tolerance) to alpha (1 + tolerance),
// for gains that a calibration has aligned.
func (r *Receiver) Near(y []float32, alpha, tolerance float64, accept Accept) (Result, error) {
	if !(alpha > 0) || !(tolerance >= 0) {
		return Result{}, fmt.Errorf("%w: %v, within %v", ErrScale, alpha, tolerance)
	}
	list, err := r.within(y, alpha*(1-tolerance), alpha*(1+tolerance))
	if err != nil {
		return Result{}, err
	}
	res, err := r.first(y, list, accept)
	if err == nil {
		return res, nil
	}
	// Far from the quality that a search asks for, the known scale may still do.
	tried := res.Tried
	res, err = r.At(y, alpha, accept)
	res.Tried += tried
	return res, err
}

// At reads y at a given scale, be it emulated or that of the round's first block:
// from the teeth where they are clear of the integers' boundaries, and else by Slice. The
// scale of the result is alpha itself.
func (r *Receiver) At(y []float32, alpha float64, accept Accept) (Result, error) {
	return r.at(y, alpha, false, accept)
}

// Again is At for a block of a later frame of the same gains: failing its own teeth it is
// read from what was learned at that scale.
func (r *Receiver) Again(y []float32, alpha float64, accept Accept) (Result, error) {
	return r.at(y, alpha, true, accept)
}

func (r *Receiver) at(y []float32, alpha float64, learned bool, accept Accept) (Result, error) {
	if len(y) == 0 {
		return Result{}, fmt.Errorf("%w: no symbols", ErrTooShort)
	}
	if err := r.density.load(y); err != nil {
		return Result{}, err
	}
	turn := alpha * r.density.width
	if !(alpha > 0) || !(turn*float64(r.density.bins) < MaxLevel) {
		return Result{}, fmt.Errorf("%w: %v for symbols up to %v", ErrScale, alpha, r.density.width*float64(r.density.bins))
	}
	r.grow(len(y))
	tried := 0
	if len(y) >= MinSymbols && turn <= maxTurn {
		r.comb.find(r.density, r.noise())
		if r.comb.margin(turn) >= minMargin && r.readTeeth(y, alpha, accept, &tried) {
			return r.result(r.teethY, y, alpha, tried), nil
		}
	}
	if learned && r.readLearned(y, alpha, accept, &tried) {
		return r.result(r.teethY, y, alpha, tried), nil
	}
	if r.readPlain(y, alpha, accept, &tried) {
		return r.result(r.plainY, y, alpha, tried), nil
	}
	return Result{Tried: tried}, ErrNoLattice
}

// noise returns the noise's deviation in bins.
func (r *Receiver) noise() float64 {
	r.density.transform()
	if r.opt.NoiseStd > 0 {
		return r.opt.NoiseStd * r.density.inverse
	}
	return r.density.noiseBound()
}

// within lists the candidates from low to high.
func (r *Receiver) within(y []float32, low, high float64) ([]Candidate, error) {
	if len(y) < MinSymbols {
		return nil, fmt.Errorf("%w: %d symbols, at least %d", ErrTooShort, len(y), MinSymbols)
	}
	if err := r.density.load(y); err != nil {
		return nil, err
	}
	r.grow(len(y))
	r.sigma = r.noise()
	r.comb.find(r.density, r.sigma)
	r.found = r.found[:0]
	r.localMaxima(low, high)
	slices.SortFunc(r.found, func(a, b Candidate) int { return cmp.Compare(b.Margin, a.Margin) })
	list := r.found[:min(len(r.found), r.opt.Candidates)]
	slices.SortFunc(list, byScale)
	return list, nil
}

// byScale orders candidates from the finest to the coarsest, those that one more
// block might refuse after all others.
func byScale(a, b Candidate) int {
	if safe := a.Margin >= safeMargin; safe != (b.Margin >= safeMargin) {
		if safe {
			return -1
		}
		return 1
	}
	return cmp.Compare(b.Alpha, a.Alpha)
}

// localMaxima considers every local maximum of phi that the noise leaves
// visible, beyond the peak at zero, whose end is the first minimum.
func (r *Receiver) localMaxima(low, high float64) {
	d := r.density
	last := int(math.Min(float64(len(d.window)-2), r.visible()/d.turn(1)))
	k := 1
	for k < last && d.phi[k+1] <= d.phi[k] {
		k++
	}
	for ; k <= last; k++ {
		if d.phi[k] <= d.phi[k-1] || d.phi[k] < d.phi[k+1] {
			continue
		}
		if c, ok := r.consider(k); ok && c.Alpha >= low && c.Alpha <= high {
			r.found = append(r.found, c)
		}
	}
}

// visible returns the highest frequency, in turns a bin, at which phi can be told
// from chance: taking the noise's factor exp(-2 pi^2 t^2 sigma^2) off phi
// amplifies its statistical error 1/sqrt(2n), which shall not exceed 0.05. Short
// blocks are given twice their error all the same.
//
// A device as weak as the noise has sigma >= h sqrt(2/3) in the bound that the
// block gives: up to 10^5 symbols alpha h stays below 1/2 here, so that H = 0 is
// also round(alpha h).
func (r *Receiver) visible() float64 {
	factor := math.Max(2, 0.05*math.Sqrt(2*r.density.n))
	return math.Sqrt(math.Log(factor)/2) / (math.Pi * r.sigma)
}

// consider makes a candidate of the local maximum at point k; false if it is not
// worth trying.
func (r *Receiver) consider(k int) (Candidate, bool) {
	d := r.density
	turn, phi := vertex(d.turn(k), d.turn(1), d.phi[k-1], d.phi[k], d.phi[k+1])
	exponent := 2 * math.Pi * math.Pi * turn * turn * r.sigma * r.sigma
	if !(phi > 0) || math.Log(phi)+exponent < math.Log(r.opt.MinQuality) {
		return Candidate{}, false
	}
	turn = r.comb.refine(turn)
	c := Candidate{
		Alpha:   turn * d.inverse,
		Quality: math.Min(phi, 1),
		Margin:  r.comb.margin(turn),
	}
	c.Noise = math.Sqrt(-math.Log(c.Quality)/2) / (math.Pi * c.Alpha)
	return c, turn <= maxTurn
}

// vertex returns the place and height of the parabola through three points around
// x, a step apart.
func vertex(x, step, before, at, after float64) (float64, float64) {
	bend := before - 2*at + after
	if bend >= 0 {
		return x, at
	}
	shift := (before - after) / (2 * bend)
	return x + shift*step, at - (before-after)*shift/4
}

// first returns the first candidate of the list that is accepted. Should the teeth
// mislead, the scale of the highest quality is sliced as it is, at last.
func (r *Receiver) first(y []float32, list []Candidate, accept Accept) (Result, error) {
	tried := 0
	best := Candidate{Quality: -1}
	for _, c := range list {
		if c.Margin >= minMargin && r.readTeeth(y, c.Alpha, accept, &tried) {
			return r.result(r.teethY, y, c.Alpha, tried), nil
		}
		if c.Quality > best.Quality {
			best = c
		}
	}
	if best.Alpha > 0 && r.readPlain(y, best.Alpha, accept, &tried) {
		return r.result(r.plainY, y, best.Alpha, tried), nil
	}
	return Result{Tried: tried}, ErrNoLattice
}

// readTeeth offers the integers of the symbols' teeth.
func (r *Receiver) readTeeth(y []float32, alpha float64, accept Accept, tried *int) bool {
	r.alpha = alpha
	r.comb.fill(r.table, alpha*r.density.width)
	out := r.teethY[:len(y)]
	for k, i := range r.density.index[:len(y)] {
		out[k] = r.table[i]
	}
	return offer(out, accept, tried)
}

// readPlain offers the integers nearest to alpha y.
func (r *Receiver) readPlain(y []float32, alpha float64, accept Accept, tried *int) bool {
	r.alpha = alpha
	out := r.plainY[:len(y)]
	round(out, y, alpha)
	return offer(out, accept, tried)
}

func offer(out []int32, accept Accept, tried *int) bool {
	if zero(out) {
		return false
	}
	*tried++
	return accept(out)
}

func zero(y []int32) bool {
	for _, v := range y {
		if v != 0 {
			return false
		}
	}
	return true
}

// result describes accepted integers. The largest comes from the largest symbol,
// either way of reading: both keep the order of the symbols.
func (r *Receiver) result(out []int32, y []float32, alpha float64, tried int) Result {
	out = out[:len(y)]
	res := Result{Y: out, Alpha: alpha, Stats: measure(y, alpha), Tried: tried}
	if &out[0] == &r.teethY[0] {
		res.Stats.Largest = r.table[len(r.table)-1]
	}
	return res
}
