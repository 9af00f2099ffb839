package modem

import (
	"math"
	"math/cmplx"
	"slices"
)

// tracker finds how the common phase of real symbols moves along a frame.
//
// The phase is a random walk beside a line. Two kinds of blocks tell of it: those of
// symbols that are known, as all devices send them alike, whose sum with these has the
// argument of sum_i h_i e^{j phi_i}; and all others, whose squares' argument, halved, is
// that of the devices' powers, sum_i h_i^2 e^{2 j phi_i}, which differs from it by a
// constant, the bias. A Kalman smoother has phase and bias as its state.
type tracker struct {
	block int // symbols

	first  []int        // first symbols of the blocks, and the end of the last
	known  int          // blocks of known symbols, which come first
	axis   []complex128 // of a known block its sum, of another one the sum of its squares
	weight []float64    // from 0 to 1: of known blocks |sum|^2/(n energy), else |square|/energy
	energy float64      // of all symbols
	sorted []float64    // weights of the blocks of squares, as they were measured
	args   []float64    // of the blocks' axes

	walk  float64   // variance of the phase's step a symbol
	turns []float64 // phases of the blocks of squares, continuous along them, beyond the mean advance
	state []belief  // of each block once it was seen
	phase []float64 // at the blocks' middles, beyond the line
	slope float64   // of the line, radians a symbol
}

// belief is what is known of phase and bias: the mean and covariance.
type belief struct {
	phase, bias   float64
	pp, pb, bb    float64
	moved         float64 // variance that the phase's walk adds before the next block
	phase1, bias1 float64 // smoothed
}

// leastWeight is the least weight of a block that has an axis. Symbols at random
// phases leave about 1/sqrt(block).
func (t *tracker) leastWeight() float64 { return max(0.2, 3/math.Sqrt(float64(t.block))) }

// measure takes in the symbols of a frame that are not erased: first the known ones.
func (t *tracker) measure(z []complex64, erased []bool, known []float32) {
	t.first, t.axis, t.weight, t.energy = t.first[:0], t.axis[:0], t.weight[:0], 0
	for from := 0; from < len(known); from += t.block {
		to := min(from+t.block, len(known))
		t.first = append(t.first, from)
		t.addKnown(z[from:to], erased[from:to], known[from:to])
	}
	t.known = len(t.first)
	for from := len(known); from < len(z); from += t.block {
		to := min(from+t.block, len(z))
		t.first = append(t.first, from)
		t.addSquares(z[from:to], erased[from:to])
	}
	t.first = append(t.first, len(z))
	t.sorted = append(t.sorted[:0], t.weight[t.known:]...)
	t.args = t.args[:0]
	for _, x := range t.axis {
		t.args = append(t.args, cmplx.Phase(x))
	}
}

func (t *tracker) addKnown(z []complex64, erased []bool, known []float32) {
	var sum complex128
	energy, power := 0.0, 0.0
	for k, x := range z {
		if erased[k] {
			continue
		}
		s := float64(known[k])
		re, im := float64(real(x)), float64(imag(x))
		sum += complex(re*s, im*s)
		energy += re*re + im*im
		power += s * s
	}
	t.energy += energy
	weight := 0.0
	if energy > 0 && power > 0 {
		weight = (real(sum)*real(sum) + imag(sum)*imag(sum)) / (power * energy)
	}
	t.axis, t.weight = append(t.axis, sum), append(t.weight, weight)
}

func (t *tracker) addSquares(z []complex64, erased []bool) {
	// Of two symbols the sums of one do not wait for those of the other.
	var a, b, c, d, e, f float64
	erased = erased[:len(z)]
	for k := 0; k+1 < len(z); k += 2 {
		if !erased[k] {
			re, im := float64(real(z[k])), float64(imag(z[k]))
			a += re * re
			b += im * im
			c += re * im
		}
		if !erased[k+1] {
			re, im := float64(real(z[k+1])), float64(imag(z[k+1]))
			d += re * re
			e += im * im
			f += re * im
		}
	}
	if k := len(z) - 1; k%2 == 0 && !erased[k] {
		re, im := float64(real(z[k])), float64(imag(z[k]))
		a += re * re
		b += im * im
		c += re * im
	}
	own, other := a+d, b+e
	energy := own + other
	t.energy += energy
	weight := 0.0
	square := complex(own-other, 2*(c+f))
	if energy > 0 {
		weight = math.Sqrt(power(square)) / energy
	}
	t.axis, t.weight = append(t.axis, square), append(t.weight, weight)
}

// realness returns the median weight of the blocks of squares.
func (t *tracker) realness() float64 {
	if len(t.sorted) == 0 {
		return 0
	}
	return nth(t.sorted, len(t.sorted)/2)
}

// nth returns the number that x, sorted, would have at n. It reorders x (Hoare).
func nth(x []float64, n int) float64 {
	for len(x) > 1 {
		pivot := x[len(x)/2]
		low, high := 0, len(x)-1
		for low <= high {
			for x[low] < pivot {
				low++
			}
			for x[high] > pivot {
				high--
			}
			if low <= high {
				x[low], x[high] = x[high], x[low]
				low++
				high--
			}
		}
		switch {
		case n <= high:
			x = x[:high+1]
		case n >= low:
			x, n = x[low:], n-low
		default:
			return x[n]
		}
	}
	return x[0]
}

// solve finds the phases at the blocks' middles. The phase at the preamble's middle is
// known to be 0, reference symbols from the first one, and the frequency to be 0 but for
// the variance given, in radians a symbol, squared. It gives false, and phases of 0, if
// less than half of the blocks of squares, or less than two, have an axis.
func (t *tracker) solve(reference, variance float64) bool {
	t.phase = append(t.phase[:0], make([]float64, len(t.axis))...)
	t.slope, t.walk = 0, 0
	usable, least := 0, t.leastWeight()
	for b, w := range t.weight[t.known:] {
		if w < least {
			t.weight[t.known+b] = 0
		} else {
			usable++
		}
	}
	if usable < 2 || 2*usable < len(t.weight)-t.known {
		return false
	}
	t.line(variance)
	t.smooth(reference)
	return true
}

// noise returns the variance of a block's phase.
func (t *tracker) noise(b int) float64 {
	const least = 1e-9
	n, w := float64(t.first[b+1]-t.first[b]), t.weight[b]
	if b < t.known {
		return (1-w)/(2*n*w) + least
	}
	return (1-w)/(2*n*w*w) + least
}

// middle returns a block's middle, in symbols.
func (t *tracker) middle(b int) float64 { return float64(t.first[b]+t.first[b+1]-1) / 2 }

// line finds slope and walk from the blocks of squares, and the frequency that the
// preamble told, which is 0 with the variance given.
func (t *tracker) line(variance float64) {
	axis, weight := t.axis[t.known:], t.weight[t.known:]
	advance := t.unwrap(axis, weight)
	t.walk = t.steps()
	var w, wx, wy, wxx, wxy float64
	for b, y := range t.turns {
		if weight[b] == 0 {
			continue
		}
		x, v := float64(b), 1/t.noise(t.known+b)
		w, wx, wy, wxx, wxy = w+v, wx+v*x, wy+v*y, wxx+v*x*x, wxy+v*x*y
	}
	spread := w*wxx - wx*wx
	if !(spread > 0) {
		return
	}
	n, block := float64(len(t.turns)), float64(t.block)
	found := (advance + (w*wxy-wx*wy)/spread) / block
	// A walk's own slope has 6/5 of its step's variance over the length.
	error := (w/spread)/(block*block) + 1.2*t.walk/(n*block)
	if variance == 0 {
		return
	}
	t.slope = found * variance / (variance + error)
}

// unwrap returns the mean advance of the phase from block to block and sets turns to
// what each block deviates from it, continuous along the blocks.
func (t *tracker) unwrap(axis []complex128, weight []float64) float64 {
	var next complex128
	for b := 1; b < len(axis); b++ {
		if weight[b] > 0 && weight[b-1] > 0 {
			next += axis[b] * cmplx.Conj(axis[b-1])
		}
	}
	advance := cmplx.Phase(next)
	t.turns = t.turns[:0]
	last := 0.0
	for b := range axis {
		if weight[b] > 0 {
			arg := t.args[t.known+b] - advance*float64(b)
			last += unturned(arg - last)
		}
		t.turns = append(t.turns, last/2)
	}
	return advance / 2
}

// steps returns the variance of the walk's step a symbol: what differences of phases
// far apart have more than those of neighbours, which have the noise of both, too.
func (t *tracker) steps() float64 {
	n := len(t.turns)
	far := min(32, n/8)
	if far < 2 {
		return 0
	}
	slope := t.advance()
	near, wide := t.differences(1, slope), t.differences(far, slope)
	return max(0, wide-near) / float64(far-1) / float64(t.block)
}

// advance returns the mean advance of the phases from block to block.
func (t *tracker) advance() float64 {
	return (t.turns[len(t.turns)-1] - t.turns[0]) / float64(len(t.turns)-1)
}

// differences returns the mean square of the difference of phases so many blocks apart.
func (t *tracker) differences(apart int, slope float64) float64 {
	sum := 0.0
	for b := apart; b < len(t.turns); b++ {
		d := t.turns[b] - t.turns[b-apart] - slope*float64(apart)
		sum += d * d
	}
	return sum / float64(len(t.turns)-apart)
}

// smooth runs the Kalman filter forth and the smoother back (Rauch, Tung and Striebel).
func (t *tracker) smooth(reference float64) {
	const unknown = 10.0 // variance of a phase of which nothing is known
	now := belief{pp: unknown, bb: unknown}
	if t.known == 0 { // the preamble is all there is to pin the phase at
		now.pp = 1e-9
	}
	last := reference
	t.state = t.state[:0]
	for b := range t.axis {
		at := t.middle(b)
		moved := t.walk * math.Abs(at-last)
		if b > 0 {
			t.state[b-1].moved = moved
		}
		now.pp += moved
		last = at
		if t.weight[b] > 0 {
			now.see(t.args[b], t.slope*(at-reference), t.noise(b), b >= t.known)
		}
		t.state = append(t.state, now)
	}
	n := len(t.state) - 1
	t.state[n].phase1, t.state[n].bias1 = now.phase, now.bias
	for b := n - 1; b >= 0; b-- {
		t.state[b].look(t.state[b+1])
	}
	for b, s := range t.state {
		t.phase[b] = s.phase1
	}
}

// unturned returns a phase without whole turns. Most have none, and are not divided.
func unturned(phase float64) float64 {
	if math.Abs(phase) <= math.Pi {
		return phase
	}
	return math.Remainder(phase, 2*math.Pi)
}

// see takes in the argument of a block's axis, from which the line's phase is to be
// taken.
func (s *belief) see(arg, line, noise float64, squares bool) {
	if !squares {
		gain := 1 / (s.pp + noise)
		d := unturned(arg-line-s.phase) * gain
		s.phase, s.bias = s.phase+s.pp*d, s.bias+s.pb*d
		s.pp, s.pb, s.bb = s.pp-s.pp*s.pp*gain, s.pb-s.pp*s.pb*gain, s.bb-s.pb*s.pb*gain
		return
	}
	p, b := s.pp+s.pb, s.pb+s.bb
	gain := 1 / (p + b + noise)
	d := unturned(arg-2*(line+s.phase+s.bias)) / 2 * gain
	s.phase, s.bias = s.phase+p*d, s.bias+b*d
	s.pp, s.pb, s.bb = s.pp-p*p*gain, s.pb-p*b*gain, s.bb-b*b*gain
}

// look sets what is known of a block in the light of the next one.
func (s *belief) look(next belief) {
	// Before the next block was seen, the covariance was this one's and the walk's.
	pp := s.pp + s.moved
	det := pp*s.bb - s.pb*s.pb
	if !(det > 0) {
		s.phase1, s.bias1 = next.phase1, next.bias1
		return
	}
	dp, db := next.phase1-s.phase, next.bias1-s.bias
	// The gain is this one's covariance times the inverse of that.
	u, v := (s.bb*dp-s.pb*db)/det, (pp*db-s.pb*dp)/det
	s.phase1 = s.phase + s.pp*u + s.pb*v
	s.bias1 = s.bias + s.pb*u + s.bb*v
}

// at returns the phase at a symbol, line included, reference being where it is 0.
func (t *tracker) at(symbol, reference float64) float64 {
	n := len(t.phase)
	if n == 0 {
		return t.slope * (symbol - reference)
	}
	b, _ := slices.BinarySearch(t.first[:n], int(symbol)+1)
	b = max(b-1, 0)
	if symbol < t.middle(b) {
		b--
	}
	return t.behind(b, symbol, reference)
}

// behind is at for a symbol from the middle of block b to that of the next; b is -1 before
// the first one's.
func (t *tracker) behind(b int, symbol, reference float64) float64 {
	line, n := t.slope*(symbol-reference), len(t.phase)
	switch {
	case n == 0:
		return line
	case b < 0:
		return line + t.phase[0]
	case b >= n-1:
		return line + t.phase[n-1]
	}
	from, to := t.middle(b), t.middle(b+1)
	return line + t.phase[b] + (t.phase[b+1]-t.phase[b])*(symbol-from)/(to-from)
}

// pieces calls yield for each stretch of symbols along which the phase grows evenly: from
// its first symbol to its end, the phase at the first and the step a symbol.
func (t *tracker) pieces(n int, reference float64, yield func(from, to int, phase, step float64)) {
	from := 0
	for b := 0; from < n; b++ {
		to := n
		if b < len(t.phase) {
			to = min(n, int(math.Ceil(t.middle(b))))
		}
		if to <= from {
			continue
		}
		phase := t.behind(b-1, float64(from), reference)
		step := t.slope
		if b > 0 && b < len(t.phase) {
			step += (t.phase[b] - t.phase[b-1]) / (t.middle(b) - t.middle(b-1))
		}
		yield(from, to, phase, step)
		from = to
	}
}
