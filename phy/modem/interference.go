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
	for k := range rows {
		if flags[k] {
			continue
		}
		sent(&row, known, k)
		y := complex128(z[k])
		for l, s := range row {
			for m, v := range row {
				i.equations[l][m] += complex(s*v, 0)
			}
			i.equations[l][taps] += complex(s, 0) * y
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

// take writes the real parts of the symbols from lead on, with the interference taken
// off. What depends much on an erased symbol is erased, too.
func (i *interference) take(dst []float32, erased []bool, z []complex64, flags []bool, lead int) {
	for k := range dst {
		dst[k] = real(z[lead+k])
	}
	if !i.found {
		return
	}
	own := i.inverse[inverseReach]
	for k := range dst {
		x := z[lead+k]
		dst[k] = float32(real(own))*real(x) - float32(imag(own))*imag(x)
	}
	const matters, much = 1e-5, 3e-3
	for m, e := range i.inverse {
		size := cmplx.Abs(e)
		if m == inverseReach || size < matters {
			continue
		}
		re, im := float32(real(e)), float32(imag(e))
		shift := lead - (m - inverseReach)
		from, to := max(0, -shift), min(len(dst), len(z)-shift)
		for k := from; k < to; k++ {
			x := z[k+shift]
			dst[k] += re*real(x) - im*imag(x)
		}
		if size < much {
			continue
		}
		for k := from; k < to; k++ {
			erased[k] = erased[k] || flags[k+shift] && k+shift < lead+len(dst)
		}
	}
}

// finite reports whether x is a number.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
