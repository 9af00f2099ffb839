package modem

import (
	"math"
	"math/cmplx"
	"slices"
)

// tracker finds how the common phase of real symbols moves along a frame.
type tracker struct {
	block int // symbols

	square []complex128 // of each block: the sum of its symbols squared
	weight []float64    // of each block: |square| over the sum of powers, 0 to 1
	phase  []float64    // of each block, beyond the line; later smoothed
	sorted []float64
	knots  []float64 // phases at the blocks' borders
}

// leastWeight is the least weight of a block that has an axis. Symbols at random
// phases leave about 1/sqrt(block).
func (t *tracker) leastWeight() float64 { return max(0.2, 3/math.Sqrt(float64(t.block))) }

// smoothing is the share of a block in its smoothed phase as it runs along the
// blocks, forth and back.
const smoothing = 0.3

// measure takes the squares of the symbols that are not erased.
func (t *tracker) measure(z []complex64, erased []bool) {
	t.square, t.weight = t.square[:0], t.weight[:0]
	for from := 0; from < len(z); from += t.block {
		to := min(from+t.block, len(z))
		var square complex128
		energy := 0.0
		for k, x := range z[from:to] {
			if erased[from+k] {
				continue
			}
			re, im := float64(real(x)), float64(imag(x))
			square += complex(re*re-im*im, 2*re*im)
			energy += re*re + im*im
		}
		weight := 0.0
		if energy > 0 {
			weight = cmplx.Abs(square) / energy
		}
		t.square = append(t.square, square)
		t.weight = append(t.weight, weight)
	}
}

// realness returns the median weight.
func (t *tracker) realness() float64 {
	if len(t.weight) == 0 {
		return 0
	}
	t.sorted = append(t.sorted[:0], t.weight...)
	slices.Sort(t.sorted)
	return t.sorted[len(t.sorted)/2]
}

// solve finds the phase at the blocks' borders, relative to that at the reference,
// which lies so many symbols before the first block. It gives false, and phases of
// 0, if less than half of the blocks, or less than two, have an axis.
func (t *tracker) solve(since float64, follow bool) bool {
	t.knots = append(t.knots[:0], make([]float64, len(t.square)+1)...)
	usable := 0
	for b, w := range t.weight {
		if w < t.leastWeight() {
			t.weight[b] = 0
		} else {
			usable++
		}
	}
	if usable < 2 || 2*usable < len(t.weight) {
		return false
	}
	slope := t.unwrap() // per block
	intercept, more := t.fit()
	slope += more
	perSymbol := slope / float64(t.block)
	for b := range t.knots {
		t.knots[b] = perSymbol * (since + float64(b*t.block))
	}
	if !follow {
		return true
	}
	for b := range t.phase {
		t.phase[b] -= intercept + more*float64(b)
	}
	t.smooth()
	last := len(t.phase) - 1
	for b := range t.knots {
		t.knots[b] += (t.phase[max(b-1, 0)]+t.phase[min(b, last)])/2 - t.phase[0]
	}
	return true
}

// unwrap returns the mean advance of the phase from block to block and sets phase to
// what each block deviates from it, continuous along the blocks. Phases are half
// the squares' arguments.
func (t *tracker) unwrap() float64 {
	var next complex128
	for b := 1; b < len(t.square); b++ {
		if t.weight[b] > 0 && t.weight[b-1] > 0 {
			next += t.square[b] * cmplx.Conj(t.square[b-1])
		}
	}
	advance := cmplx.Phase(next)
	t.phase = t.phase[:0]
	last := 0.0
	for b, x := range t.square {
		if t.weight[b] > 0 {
			arg := cmplx.Phase(x) - advance*float64(b)
			last += math.Remainder(arg-last, 2*math.Pi)
		}
		t.phase = append(t.phase, last/2)
	}
	return advance / 2
}

// fit returns the line through the phases, by weighted least squares.
func (t *tracker) fit() (intercept, slope float64) {
	var w, wx, wy, wxx, wxy float64
	for b, y := range t.phase {
		x, weight := float64(b), t.weight[b]
		w += weight
		wx += weight * x
		wy += weight * y
		wxx += weight * x * x
		wxy += weight * x * y
	}
	slope = (w*wxy - wx*wy) / (w*wxx - wx*wx)
	return (wy - slope*wx) / w, slope
}

// smooth runs a first-order low-pass over the phases forth and back, which delays
// nothing. Blocks without an axis take what the others say.
func (t *tracker) smooth() {
	t.run(0, len(t.phase), 1)
	t.run(len(t.phase)-1, -1, -1)
}

func (t *tracker) run(from, end, step int) {
	state, seen := 0.0, 0.0
	for b := from; b != end; b += step {
		// The state begins as the mean of what was seen, so that no start value
		// counts.
		seen = (1-smoothing)*seen + smoothing*t.weight[b]
		if seen > 0 {
			state += smoothing * t.weight[b] / seen * (t.phase[b] - state)
		}
		t.phase[b] = state
	}
}

// turn returns the phase at the beginning of a block and its advance a symbol.
func (t *tracker) turn(b int) (phase, step float64) {
	return t.knots[b], (t.knots[b+1] - t.knots[b]) / float64(t.block)
}
