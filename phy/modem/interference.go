package modem

import (
	"math"
	"math/cmplx"
)

// interferenceReach is how many symbols to either side interference is looked for, and
// inverseReach how many its inverse reaches.
const (
	interferenceReach = 6
	inverseReach      = 12
)

// interference finds what symbols that all devices send alike leave in each other, as
// echoes and filters do that all devices have in common, and takes it off.
type interference struct {
	equations normal
	x         [2*interferenceReach + 1]complex128

	response [2*interferenceReach + 1]complex128 // over the symbol's own
	inverse  [2*inverseReach + 1]complex128
	taps     []tap // of the inverse
	found    bool
}

// find measures the response by the known symbols, before which there is silence, and
// returns the magnitude of the strongest interference that is beyond the noise, over the
// symbol's own; 0 if there is none.
func (i *interference) find(z []complex64, flags []bool, known []float32) float64 {
	const (
		taps = 2*interferenceReach + 1
		// A tap of noise alone is beyond this with a probability of e^-16.
		significant = 16
	)
	i.found = false
	rows := len(known) - interferenceReach
	if rows < 8*taps {
		return 0
	}
	i.regress(z, flags, known, rows)
	energy := real(i.equations[interferenceReach][interferenceReach])
	if !i.equations.solve(i.x[:]) {
		return 0
	}
	noise := i.noise(z, flags, known, rows) / energy
	own := i.x[interferenceReach]
	strongest := 0.0
	for l := range taps {
		tap := i.x[l]
		i.response[l] = tap / own
		if l == interferenceReach || power(tap) < significant*noise {
			i.response[l] = 0
			continue
		}
		strongest = max(strongest, cmplx.Abs(i.response[l]))
	}
	if strongest > 0 {
		i.found = i.invert()
	}
	return strongest
}

// regress sums products of known symbols, and of these with what was received.
func (i *interference) regress(z []complex64, flags []bool, known []float32, rows int) {
	const taps = 2*interferenceReach + 1
	if i.equations == nil {
		i.equations = newNormal(taps)
	}
	i.equations.clear()
	var row [taps]float64
	var sums [taps][taps]float64 // up to the diagonal
	for k := range rows {
		if flags[k] {
			continue
		}
		sent(&row, known, k)
		re, im := float64(real(z[k])), float64(imag(z[k]))
		for l, s := range row {
			for m, v := range row[:l+1] {
				sums[l][m] += s * v
			}
			i.equations[l][taps] += complex(s*re, s*im)
		}
	}
	for l := range sums {
		for m, v := range sums[l][:l+1] {
			i.equations[l][m], i.equations[m][l] = complex(v, 0), complex(v, 0)
		}
	}
}

// sent writes the symbols around symbol k: row[l] is the one that comes l -
// interferenceReach before it.
func sent(row *[2*interferenceReach + 1]float64, known []float32, k int) {
	for l := range row {
		row[l] = 0
		if at := k + interferenceReach - l; at >= 0 && at < len(known) {
			row[l] = float64(known[at])
		}
	}
}

// noise returns the mean power of what the response does not explain.
func (i *interference) noise(z []complex64, flags []bool, known []float32, rows int) float64 {
	const taps = 2*interferenceReach + 1
	var row [taps]float64
	sum, n := 0.0, -float64(taps)
	for k := range rows {
		if flags[k] {
			continue
		}
		sent(&row, known, k)
		rest := complex128(z[k])
		for l, s := range row {
			rest -= complex(s, 0) * i.x[l]
		}
		sum += power(rest)
		n++
	}
	return sum / max(1, n)
}

// invert finds the filter that undoes the response, and reports whether there is one: by
// the series 1/(1 + r) = 1 - r + r^2 - ..., which converges for echoes that are weaker in
// sum than the symbol.
func (i *interference) invert() bool {
	const converging = 0.7
	sum := 0.0
	for _, r := range i.response {
		sum += cmplx.Abs(r)
	}
	if sum > converging {
		return false
	}
	i.inverse = [2*inverseReach + 1]complex128{inverseReach: 1}
	for left := sum; left > 1e-5; left *= sum {
		next := [2*inverseReach + 1]complex128{inverseReach: 1}
		for m, e := range i.inverse {
			for l, r := range i.response {
				if at := m + l - interferenceReach; at >= 0 && at < len(next) {
					next[at] -= e * r
				}
			}
		}
		i.inverse = next
	}
	// What is left of the symbol itself is to have the gain that it had.
	var own complex128
	for l, r := range i.response {
		if m := 2*inverseReach - (inverseReach + l - interferenceReach); m >= 0 && m < len(i.inverse) {
			own += r * i.inverse[m]
		}
	}
	own += i.inverse[inverseReach]
	for m := range i.inverse {
		i.inverse[m] /= own
	}
	return true
}

// tap is one of the inverse that matters.
type tap struct {
	re, im   float32
	shift    int // of the symbol that it takes against the output
	from, to int // the outputs for which there is that symbol
}

// add adds what a tap takes of symbols to outputs from one to another.
func (p tap) add(dst []float32, z []complex64, from, to int) {
	if from >= to {
		return
	}
	dst = dst[from:to]
	for k, x := range z[from+p.shift : to+p.shift] {
		dst[k] += p.re*real(x) - p.im*imag(x)
	}
}

// erase flags outputs that depend much on an erased symbol.
func (i *interference) erase(erased, flags []bool, lead int) {
	const much = 3e-3
	for _, p := range i.taps {
		if math.Hypot(float64(p.re), float64(p.im)) < much {
			continue
		}
		for k := p.from; k < p.to; k++ {
			erased[k] = erased[k] || flags[k+p.shift] && k+p.shift < lead+len(erased)
		}
	}
}

// take writes the real parts of the symbols from lead on, with the interference taken
// off.
func (i *interference) take(dst []float32, z []complex64, lead int) {
	i.taps = i.taps[:0]
	if !i.found {
		for k, x := range z[lead : lead+len(dst)] {
			dst[k] = real(x)
		}
		return
	}
	own := complex64(i.inverse[inverseReach])
	for k, x := range z[lead : lead+len(dst)] {
		dst[k] = real(own)*real(x) - imag(own)*imag(x)
	}
	const matters = 1e-5
	from, to := 0, len(dst) // the outputs for which all taps have their symbols
	for m, e := range i.inverse {
		if m == inverseReach || cmplx.Abs(e) < matters {
			continue
		}
		shift := lead - (m - inverseReach)
		p := tap{float32(real(e)), float32(imag(e)), shift, max(0, -shift), min(len(dst), len(z)-shift)}
		i.taps = append(i.taps, p)
		from, to = max(from, p.from), min(to, p.to)
	}
	i.addTaps(dst, z, from, to)
}

// addTaps adds what all taps take, to outputs from one to another two taps at a time.
func (i *interference) addTaps(dst []float32, z []complex64, from, to int) {
	to = max(from, to)
	for _, p := range i.taps {
		p.add(dst, z, p.from, min(from, p.to))
		p.add(dst, z, max(to, p.from), p.to)
	}
	taps, inner := i.taps, dst[min(from, len(dst)):min(to, len(dst))]
	for ; len(taps) >= 2 && len(inner) > 0; taps = taps[2:] {
		p, q := taps[0], taps[1]
		x, y := z[from+p.shift:], z[from+q.shift:]
		x, y = x[:len(inner)], y[:len(inner)]
		for k := range inner {
			inner[k] = inner[k] + (p.re*real(x[k]) - p.im*imag(x[k])) + (q.re*real(y[k]) - q.im*imag(y[k]))
		}
	}
	for _, p := range taps {
		p.add(dst, z, from, to)
	}
}

// finite reports whether x is a number.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
