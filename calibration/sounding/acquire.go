package sounding

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/mathext"

	"ringwave/phy/modem"
)

// ErrNoSounding says that windows hold no sounding: nothing was sent, too weakly, or
// outside of what was searched.
var ErrNoSounding = errors.New("no sounding found")

// ErrElsewhere says that what is received repeats as soundings do, and that little of it is
// one within what was searched. It is an ErrNoSounding.
var ErrElsewhere = fmt.Errorf("%w: what is received repeats with its period, but lies elsewhere: the carriers may be further apart than was searched", ErrNoSounding)

// DefaultFalseAlarm is a Search.FalseAlarm for a calibration's handful of searches.
const DefaultFalseAlarm = 1e-6

// Search is where a sounding is looked for.
type Search struct {
	// Delay is the largest delay to either side of the nominal start, 0 or more.
	Delay modem.Samples
	// Offset is the largest carrier offset to either side, 0 to what keeps the signal
	// within the band: 0.5 - 0.5/SamplesPerChip. At 0 the offset is known to be 0 and
	// is not estimated: clocks in common.
	Offset modem.CyclesPerSample
	// Near is what Offset is to either side of: 0 unless something is known of it.
	Near modem.CyclesPerSample
	// FalseAlarm bounds the probability that windows without a sounding pass for some
	// with one; 0 stands for DefaultFalseAlarm.
	FalseAlarm float64
}

// Acquired is what several bursts have in common.
type Acquired struct {
	Delay  modem.Samples
	Offset modem.CyclesPerSample
	// DelayVar and OffsetVar are the Cramer-Rao bounds at the estimated gains and
	// noise, which the estimates meet.
	DelayVar, OffsetVar float64
	// Score is what was tested and Threshold what it had to exceed.
	Score, Threshold float64
}

// Acquire finds the delay and offset that bursts in several windows have in common,
// each burst with its own unknown gain, image and DC, by maximum likelihood; gains may
// be 0 in some. All windows have the burst's nominal start at the same sample and must
// hold the burst at every delay of the search. It is an error, ErrNoSounding, if they
// hold none, and another, which may be ErrLost, if they cannot be searched.
//
// It tests every whole delay, and offsets at most half a cycle a burst apart. In each
// cell and window k, n = Burst samples less their mean are correlated with the burst
// less its mean: q_k is the share of their power that the burst explains. Of white
// Gaussian noise, whatever its power in each window, -(n-2) ln(1 - q_k) is exactly
// exponential, and the score, the sum of that over K windows, has a gamma
// distribution. The threshold is where its upper tail is FalseAlarm over the number of
// cells: an upper bound of the probability of a false alarm, up to twice the true
// one since neighbouring cells see much the same. Signals other than white noise,
// a carrier in the band or another burst, may pass: Estimate.Explained tells.
//
// From the best cell Newton's method (of the scoring kind, all gains, images and DCs
// projected out) goes to the maximum of the likelihood for noise of one power.
func (s *Sounding) Acquire(windows [][]complex64, start int, search Search) (Acquired, error) {
	if search.FalseAlarm == 0 {
		search.FalseAlarm = DefaultFalseAlarm
	}
	if err := s.searchable(windows, start, search); err != nil {
		return Acquired{}, err
	}
	best := s.coarse(windows, start, search)
	found := Acquired{Score: best.score, Threshold: best.threshold}
	if best.score <= found.Threshold {
		return found, ErrNoSounding
	}
	found, err := s.refine(windows, start, search, best, found)
	if err == nil && s.elsewhere(windows, start) {
		err = ErrElsewhere
	}
	return found, err
}

// elsewhere reports whether the windows repeat with the sounding's period as what the fit
// explains of them does not: noise that is white passes no test above, but sidelobes of a
// burst at another offset do.
func (s *Sounding) elsewhere(windows [][]complex64, start int) bool {
	const little, times, deviations = 0.1, 4, 6
	var again complex128
	power, explained, all := 0.0, 0.0, 0.0
	first := start + s.guard + s.reg.whole
	for _, w := range windows {
		e := s.fit(w, start)
		y := w[first : first+s.Fitted()]
		var mean complex128
		for _, x := range y {
			mean += complex128(x) / complex(float64(len(y)), 0)
		}
		spread := 0.0
		for n := range len(y) - s.period {
			a, b := complex128(y[n])-mean, complex128(y[n+s.period])-mean
			again += cmplx.Conj(a) * b
			spread += (square(a) + square(b)) / 2
		}
		power, explained, all = power+spread, explained+e.Explained*spread, all+float64(len(y)-s.period)
	}
	if power == 0 {
		return false
	}
	share := explained / power
	return share < little && cmplx.Abs(again)/power > times*share+deviations/math.Sqrt(all)
}

func (s *Sounding) searchable(windows [][]complex64, start int, search Search) error {
	if len(windows) == 0 {
		return errors.New("a search for soundings without a window")
	}
	if !(search.Delay >= 0 && search.Delay <= maxFitted) {
		return fmt.Errorf("a search of delays up to %v samples: allowed are 0 to %d", search.Delay, maxFitted)
	}
	if most := 0.5 - 0.5/float64(s.cfg.SamplesPerChip); !(search.Offset >= 0 && math.Abs(float64(search.Near))+float64(search.Offset) <= most) {
		return fmt.Errorf("a search of offsets up to %v cycles a sample about %v: allowed are 0 to %v", search.Offset, search.Near, most)
	}
	if !(search.FalseAlarm > 0 && search.FalseAlarm < 1) {
		return fmt.Errorf("a false-alarm probability of %v: it must be above 0 and below 1", search.FalseAlarm)
	}
	if err := s.single(search); err != nil {
		return err
	}
	reach := wholeReach(search)
	for k, w := range windows {
		if start-reach < 0 || start+reach+s.Burst() > len(w) {
			return fmt.Errorf("window %d of %d samples does not hold a burst of %d at %d and %d samples to either side", k, len(w), s.Burst(), start, reach)
		}
		if err := whole(w); err != nil {
			return fmt.Errorf("window %d: %w", k, err)
		}
	}
	return nil
}

// single refuses a search in which a Zadoff-Chu signal and its twin, one or more lines
// away, lie so close in time that the burst's ends hardly tell them apart.
func (s *Sounding) single(search Search) error {
	if s.cfg.Kind != ZadoffChu {
		return nil
	}
	inverse := 0
	for s.cfg.Root*inverse%s.cfg.Length != 1 {
		inverse++
	}
	for k := 1; float64(k) <= 2*float64(search.Offset)*float64(s.period); k++ {
		chips := k * inverse % s.cfg.Length
		apart := min(chips, s.cfg.Length-chips) * s.cfg.SamplesPerChip
		if apart < s.period/4 && float64(apart) <= 2*float64(search.Delay)+1 {
			return fmt.Errorf("a search of offsets up to %v cycles a sample and delays up to %v samples: a Zadoff-Chu sequence of root %d looks the same %v cycles a sample and %d samples away; search less, change the root or take an m-sequence",
				search.Offset, search.Delay, s.cfg.Root, float64(k)/float64(s.period), apart)
		}
	}
	return nil
}

func wholeReach(search Search) int { return int(math.Ceil(float64(search.Delay))) }

// cell is a place of the coarse search.
type cell struct {
	score     float64
	delay     int
	offset    modem.CyclesPerSample
	threshold float64
}

// grid is the coarse search's work space. Offsets are whole bins of the transform, so
// that one transform of a window serves them all.
type grid struct {
	s        *Sounding
	search   Search
	n        int // the transform's length
	delays   int
	side     int // bins to either side
	near     int // of this one
	fft      *fourier.CmplxFFT
	burst    []complex128 // its spectrum
	norm     []float64    // the burst's energy about its mean, an offset each
	spectrum []complex128 // of a window
	product  []complex128
	mean     []complex128 // of the burst's support, a delay each
	power    []float64    // about that mean
	score    [][]float64  // an offset and delay each
	others   []float64    // some of these
}

// gridOf returns the grid of a search with scores of 0: the last one, if that was alike.
func (s *Sounding) gridOf(search Search) *grid {
	if s.grid == nil || s.grid.search != search {
		s.grid = s.newGrid(search)
	}
	for _, scores := range s.grid.score {
		clear(scores)
	}
	return s.grid
}

func (s *Sounding) newGrid(search Search) *grid {
	g := &grid{s: s, search: search, delays: 2*wholeReach(search) + 1}
	burst := s.Burst()
	g.n = 1 << bits.Len(uint(max(2*burst, burst+g.delays)-1))
	g.side = int(math.Ceil(float64(search.Offset) * float64(g.n)))
	g.near = int(math.Round(float64(search.Near) * float64(g.n)))
	g.fft = fourier.NewCmplxFFT(g.n)
	padded := make([]complex128, g.n)
	energy := 0.0
	for n, x := range s.burst {
		padded[n] = complex128(x)
		energy += square(padded[n])
	}
	g.burst = g.fft.Coefficients(nil, padded)
	g.spectrum, g.product = make([]complex128, g.n), padded
	g.mean, g.power = make([]complex128, g.delays), make([]float64, g.delays)
	for h := g.near - g.side; h <= g.near+g.side; h++ {
		g.norm = append(g.norm, energy-square(g.burst[g.bin(-h)])/float64(burst))
		g.score = append(g.score, make([]float64, g.delays))
	}
	return g
}

func (g *grid) bin(k int) int { return (k%g.n + g.n) % g.n }

// The best cell is taken once it exceeds decided times its threshold, without the windows
// that are left: a search takes a transform for each offset of each window, and refines
// with all windows in any case.
const decided = 4

// coarse returns the best cell, of as many windows as it takes.
func (s *Sounding) coarse(windows [][]complex64, start int, search Search) (best cell) {
	g := s.gridOf(search)
	reach := wholeReach(search)
	for k, w := range windows {
		g.add(w[start-reach : start+reach+s.Burst()])
		if added := k + 1; added&k == 0 || added == len(windows) { // 1, 2, 4, ...
			if best = g.best(added); best.score > decided*best.threshold {
				break
			}
		}
	}
	return best
}

// best returns the best cell after so many windows.
func (g *grid) best(windows int) cell {
	best, reach, row := cell{score: math.Inf(-1)}, wholeReach(g.search), 0
	for h, scores := range g.score {
		for d, score := range scores {
			if score > best.score {
				best.score, best.delay, row = score, d-reach, h
			}
		}
	}
	best.offset = modem.CyclesPerSample(float64(g.near+row-g.side) / float64(g.n))
	cells := g.delays * len(g.score)
	best.threshold = g.colour(windows, row, best.delay+reach) * threshold(windows, g.search.FalseAlarm/float64(cells))
	return best
}

// leastOthers is how many cells tell what cells without a sounding have.
const leastOthers = 64

// colour returns by how much more than white noise the cells away from the best one have,
// from their median: a filter leaves noise fewer degrees of freedom than it has samples.
func (g *grid) colour(windows, row, delay int) float64 {
	near := 2 * g.s.cfg.SamplesPerChip
	others := g.others[:0]
	for h, scores := range g.score {
		for d, score := range scores {
			if max(h-row, row-h) > 4 || max(d-delay, delay-d) > near {
				others = append(others, score)
			}
		}
	}
	g.others = others
	if len(others) < leastOthers {
		return 1
	}
	slices.Sort(others)
	return max(1, others[len(others)/2]/mathext.GammaIncRegInv(float64(windows), 0.5))
}

// add adds a window's score to every cell.
func (g *grid) add(window []complex64) {
	var mean complex128
	for _, x := range window {
		mean += complex128(x)
	}
	mean /= complex(float64(len(window)), 0)
	clear(g.product)
	for n, x := range window {
		g.product[n] = complex128(x) - mean // lest a large DC costs digits
	}
	g.supports()
	g.fft.Coefficients(g.spectrum, g.product)
	for h := range g.score {
		g.addOffset(g.score[h], g.near+h-g.side, g.norm[h])
	}
}

// supports sets mean and power of the samples that a burst covers at each delay.
func (g *grid) supports() {
	n := g.s.Burst()
	var sum complex128
	power := 0.0
	for _, x := range g.product[:n] {
		sum += x
		power += square(x)
	}
	for d := range g.mean {
		g.mean[d] = sum / complex(float64(n), 0)
		g.power[d] = power - square(sum)/float64(n)
		if d+1 < len(g.mean) {
			sum += g.product[d+n] - g.product[d]
			power += square(g.product[d+n]) - square(g.product[d])
		}
	}
}

// addOffset correlates at an offset of so many bins.
func (g *grid) addOffset(scores []float64, bins int, norm float64) {
	for k := range g.product {
		g.product[k] = g.spectrum[g.bin(k+bins)] * cmplx.Conj(g.burst[k])
	}
	g.fft.Sequence(g.product, g.product)
	scale := complex(1/float64(g.n), 0)
	sum := cmplx.Conj(g.burst[g.bin(-bins)])
	degrees := float64(g.s.Burst() - 2)
	for d := range scores {
		turn := cmplx.Rect(1, -2*math.Pi*float64(bins*d%g.n)/float64(g.n))
		c := g.product[d]*scale - turn*g.mean[d]*sum
		scores[d] += evidence(square(c), norm*g.power[d], degrees)
	}
}

// evidence returns -degrees ln(1 - part/all). Silence is none; rounding alone keeps a
// perfect match from being infinite.
func evidence(part, all, degrees float64) float64 {
	if !(all > 0) {
		return 0
	}
	return -degrees * math.Log1p(-min(part/all, 1-1e-12))
}

// threshold returns what a sum of k exponential variables exceeds with the probability p.
func threshold(k int, p float64) float64 { return mathext.GammaIncRegCompInv(float64(k), p) }

// refine goes from a cell to the maximum of the likelihood.
func (s *Sounding) refine(windows [][]complex64, start int, search Search, from cell, found Acquired) (Acquired, error) {
	delay, offset := modem.Samples(from.delay), from.offset
	for range 50 {
		// The samples stay the same ones: others would have their maximum elsewhere, by
		// little, and the two could take turns.
		s.reg.set(from.delay, delay, offset)
		step, settled := s.step(windows, start, search.Offset > 0)
		found.Delay, found.Offset = delay+step.Delay, offset+step.Offset
		found.DelayVar, found.OffsetVar = step.DelayVar, step.OffsetVar
		delay, offset = found.Delay, found.Offset
		if settled || !s.near(from, found) {
			return found, s.within(search, from, found)
		}
	}
	return found, fmt.Errorf("%w: no delay near %d samples is best", ErrNoSounding, from.delay)
}

// step is one step of Newton's method from where the regressors are, and whether it is small against its deviation.
func (s *Sounding) step(windows [][]complex64, start int, both bool) (p Pooled, settled bool) {
	var sum score
	noise := 0.0
	for _, w := range windows {
		e := s.fit(w, start)
		sum = sum.plus(e.score)
		noise += float64(e.Noise) / float64(len(windows))
	}
	if sum.power == 0 {
		return p, false
	}
	half := noise / (2 * sum.power)
	if both {
		p.Delay, p.Offset = s.reg.newton(sum)
		p.DelayVar, p.OffsetVar = half*s.reg.step[0][0], half*s.reg.step[1][1]
	} else {
		p.Delay, p.DelayVar = s.reg.newtonDelay(sum)
		p.DelayVar *= half
	}
	settled = small(float64(p.Delay), p.DelayVar, 1e-9) && small(float64(p.Offset), p.OffsetVar, 1e-9/float64(s.Fitted()))
	// Far from the maximum the likelihood is not a parabola.
	cycle := modem.CyclesPerSample(0.25 / float64(s.Fitted()))
	p.Delay = min(0.5, max(-0.5, p.Delay))
	p.Offset = min(cycle, max(-cycle, p.Offset))
	return p, settled
}

// small reports whether a step is below a thousandth of its deviation, or of no account.
func small(step, variance, negligible float64) bool {
	return step*step <= max(1e-6*variance, negligible*negligible)
}

// near reports whether an estimate is still where its cell stands for.
func (s *Sounding) near(from cell, found Acquired) bool {
	return math.Abs(float64(found.Delay)-float64(from.delay)) <= float64(s.cfg.SamplesPerChip) &&
		math.Abs(float64(found.Offset-from.offset)) <= 1/float64(s.Burst())
}

// within refuses an estimate that has left its cell's surroundings or the search.
func (s *Sounding) within(search Search, from cell, found Acquired) error {
	if !s.near(from, found) || math.Abs(float64(found.Delay)) > float64(search.Delay)+1 ||
		math.Abs(float64(found.Offset-search.Near)) > float64(search.Offset)+1/float64(s.Burst()) {
		return fmt.Errorf("%w: the best delay, %v samples, and offset, %v cycles a sample, lie outside of the search", ErrNoSounding, found.Delay, found.Offset)
	}
	return nil
}
