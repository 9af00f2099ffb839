package modem

import (
	"math"
	"slices"
)

// placement finds where the windows of a flat-top pulse lie flat for all devices, from the
// symbols of the whole frame. Symbols that devices choose independently have no spread
// within a window that is flat for each of them, whatever their signs.
type placement struct {
	sps, window int
	// By how far windows lie from where the preamble has them, in steps of 1/placements
	// sample: the spread of all such windows, and how many there were.
	spread, count [2*placementReach*placements + 1]float64
	energy        float64 // of all windows, the mean square of a sample, summed; for narrow the largest
	// parts are the windows that each part of the frame takes.
	parts [placementParts]share
}

const (
	placements       = 8 // steps of a sample
	placementReach   = 2 // samples to either side
	placementSymbols = 1 << 13
	placementParts   = 8
	// placementOutlier is how many times the median a spread is of a window in which
	// something else was heard.
	placementOutlier = 16
	// Windows are flat that have not so many times the least spread, and this share of the
	// power: pulses that a band limits ring where they were flat, least at their edges.
	placementFlat    = 4
	placementRinging = 5e-4
	// placementRounding is the share of the power below which single precision has no say.
	placementRounding = 1e-7
)

// share says which samples are taken of a window of three and the one on either side of
// it: where clocks of devices run apart, these may have less in common than the pulse's
// tolerance has room for, and have it elsewhere.
type share struct{ first, taken int }

// The shares that have a spread: of three samples and of two.
var shares = [...]share{{0, 3}, {-1, 3}, {1, 3}, {-1, 2}, {0, 2}, {1, 2}, {2, 2}}

const pairs = 3 // the first of shares that has two samples

// clear has all windows be whole.
func (p *placement) clear() {
	for i := range p.parts {
		p.parts[i] = share{0, p.window}
	}
}

// part returns the number of the part that symbol k of n behind the preamble lies in.
func (p *placement) part(k, n int) int {
	return max(0, min(k*placementParts/max(1, n), placementParts-1))
}

// until returns how windows of symbols from one on are narrowed, and up to which they are,
// before the symbol to. The payload's symbols lie from lead to end.
func (p *placement) until(from, to, lead, end int) (share, int) {
	n := end - lead
	i := p.part(from-lead, n)
	for next := i + 1; next < placementParts; next++ {
		if p.parts[next] != p.parts[i] {
			return p.parts[i], min(to, lead+(next*n+placementParts-1)/placementParts)
		}
	}
	return p.parts[i], to
}

// possible reports whether windows show anything in a frame of n symbols.
func (p *placement) possible(w way, n int) bool {
	return p.window >= 2 && n > 0 && placed(Samples(w.payload), n*p.sps)
}

// measure returns by how much later than where w has them the windows of n symbols behind
// the preamble are best taken. The preamble's timing is that of whole samples. Where clocks
// run apart each fraction of one occurs, and the middle of the flat part is found to such.
func (p *placement) measure(samples []complex64, w way, n int) Samples {
	if !p.possible(w, n) {
		return 0
	}
	clear(p.spread[:])
	clear(p.count[:])
	p.energy = 0
	most := placementOutlier * p.usual(samples, w, 0, n)
	few := placementSymbols
	if w.clock == 0 { // all windows lie at five places
		few /= 8
	}
	step := max(1, n/few)
	for k := 0; k < n; k += step {
		p.look(samples, p.begin(w, k), most)
	}
	middle := p.middle()
	if w.clock == 0 { // nothing lies between samples
		middle = math.Ceil(middle - 0.5)
	}
	return Samples(middle)
}

// begin returns the instant at which the window of symbol k behind the preamble begins.
func (p *placement) begin(w way, k int) float64 {
	return float64(w.instant(w.lead+k)) - float64(p.window-1)/2
}

// usual returns the median spread of some windows of symbols from one to another.
func (p *placement) usual(samples []complex64, w way, from, to int) float64 {
	var some [31]float64
	n := 0
	for i := range some {
		first := int(math.Round(p.begin(w, from+(to-from)*i/len(some))))
		if first < 0 || first+p.window > len(samples) {
			continue
		}
		if v, energy := spreadOf(samples[first:][:p.window]); energy < limit*limit {
			some[n] = v
			n++
		}
	}
	slices.Sort(some[:n])
	return some[n/2]
}

// look takes in the windows of a symbol, the one that begins at an instant and those
// around it. None may have more spread than most.
func (p *placement) look(samples []complex64, begin, most float64) {
	first := int(math.Round(begin))
	offset := int(math.Round((float64(first) - begin) * placements))
	if first < placementReach || first+p.window+placementReach > len(samples) {
		return
	}
	if v, energy := spreadOf(samples[first:][:p.window]); !(v <= most && energy < limit*limit) {
		return
	}
	for s := -placementReach; s <= placementReach; s++ {
		bin := offset + (s+placementReach)*placements
		if bin < 0 || bin >= len(p.spread) {
			continue
		}
		if v, energy := spreadOf(samples[first+s:][:p.window]); energy < limit*limit {
			p.spread[bin] += v
			p.count[bin]++
			p.energy += energy
		}
	}
}

// spreadOf returns the mean squared distance of samples from their mean, and their mean
// square.
func spreadOf(window []complex64) (spread, meanSquare float64) {
	n := float32(len(window))
	if len(window) == 3 {
		a, b, c := window[0], window[1], window[2]
		re, im := real(a)+real(b)+real(c), imag(a)+imag(b)+imag(c)
		energy := square(a) + square(b) + square(c)
		return float64(energy-(re*re+im*im)/3) / 3, float64(energy / 3)
	}
	// Sums of their own for every other sample need not wait for each other.
	var even, odd complex64
	var energy, other float32
	for ; len(window) >= 2; window = window[2:] {
		even += window[0]
		odd += window[1]
		energy += square(window[0])
		other += square(window[1])
	}
	if len(window) > 0 {
		even += window[0]
		energy += square(window[0])
	}
	re, im := real(even)+real(odd), imag(even)+imag(odd)
	energy += other
	return float64(energy-(re*re+im*im)/n) / float64(n), float64(energy / n)
}

// middle returns the middle of the places that are as flat as any, in samples.
func (p *placement) middle() float64 {
	const here = placementReach * placements
	best, least, windows := -1, math.Inf(1), 0.0
	for b, n := range p.count {
		if n == 0 {
			continue
		}
		windows += n
		if p.spread[b] /= n; p.spread[b] < least {
			best, least = b, p.spread[b]
		}
	}
	if best < 0 {
		return 0
	}
	most := placementFlat*least + placementRinging*p.energy/windows
	flat := func(b int) bool { return p.count[b] == 0 || p.spread[b] <= most }
	from, to := best, best
	for b := best - 1; b >= 0 && flat(b); b-- {
		if p.count[b] > 0 {
			from = b
		}
	}
	for b := best + 1; b < len(p.count) && flat(b); b++ {
		if p.count[b] > 0 {
			to = b
		}
	}
	return (float64(from+to)/2 - here) / placements
}

// narrow finds what windows each part of the frame takes, those of w being the best for all
// of it. What is not flat all along is a matter of the gains; what is at times has gains
// change.
func (p *placement) narrow(samples []complex64, w way, n int) {
	const glance, symbols = 64, 256 // that are looked at in a part
	p.clear()
	if !p.possible(w, n) || p.window != 3 || n < placementParts*symbols {
		return
	}
	var spread [placementParts][len(shares)]float64
	p.energy = 0
	compare := func(some, symbols int) {
		for i := range spread {
			from, to := i*n/placementParts, (i+1)*n/placementParts
			p.compare(spread[i][:some], samples, w, from, to, max(1, (to-from)/symbols))
		}
	}
	compare(1, glance)
	all, most := math.Inf(1), 0.0
	for i := range spread {
		all, most = min(all, spread[i][0]), max(most, spread[i][0])
	}
	if most <= placementFlat*all+placementRounding*p.energy {
		return
	}
	compare(len(shares), symbols)
	noise := math.Inf(1)
	for i := range spread {
		noise = min(noise, 2*slices.Min(spread[i][pairs:])) // a sample, of two whose mean was taken off
	}
	for i := range p.parts {
		p.parts[i] = best(&spread[i], all, noise)
	}
}

// compare sets spread to the mean one of symbols from one to another in each of the first
// shares.
func (p *placement) compare(spread []float64, samples []complex64, w way, from, to, step int) {
	clear(spread)
	most := placementOutlier * p.usual(samples, w, from, to)
	count := 0.0
	for k := from; k < to; k += step {
		first := int(math.Round(p.begin(w, k)))
		if first < 1 || first+p.window+1 > len(samples) {
			continue
		}
		v, energy := spreadOf(samples[first:][:p.window])
		if !(v <= most && energy < limit*limit) {
			continue
		}
		p.energy = max(p.energy, energy)
		spread[0] += v
		for c := 1; c < len(spread); c++ {
			s := shares[c]
			v, _ := spreadOf(samples[first+s.first:][:s.taken])
			spread[c] += v
		}
		count++
	}
	for c := range spread {
		spread[c] /= max(1, count)
	}
}

// best returns the share of three samples, two or one that has the least error for its
// spread, each sample having so much noise; all is the spread that the whole window has in
// the best part. Of an edge in a window of n samples the mean has a share of 1/n, the
// spread (n-1)/n^2.
func best(spread *[len(shares)]float64, all, noise float64) share {
	taken, least := shares[0], noise/3+max(0, spread[0]-max(all, noise*2/3))/2
	if spread[0] <= placementFlat*all {
		return taken
	}
	for c, s := range shares[1:] {
		v := spread[1+c]
		e := noise/2 + max(0, v-noise/2)
		if s.taken == 3 {
			e = noise/3 + max(0, v-noise*2/3)/2
		}
		if e < least*0.9 {
			taken, least = s, e
		}
	}
	if noise < least*0.9 { // the sample that the two best pairs have in common, or one of the best's
		taken = share{shared(spread[pairs:]) - 1, 1}
	}
	return taken
}

// shared returns x such that sample x of those from -1 on is in the best of pairs, and in
// the better of those beside it.
func shared(pairs []float64) int {
	b := 0
	for i, v := range pairs {
		if v < pairs[b] {
			b = i
		}
	}
	if b == 0 || b < len(pairs)-1 && pairs[b+1] < pairs[b-1] {
		return b + 1
	}
	return b
}
