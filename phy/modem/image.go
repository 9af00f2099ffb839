package modem

import (
	"math"
	"math/cmplx"
	"slices"
)

// image finds the image that a receiver with unlike branches makes of the signal: its
// conjugate, which turns the other way. The symbols being real, their squares before they
// are turned back are their power times e^{2 j phase}, and the image adds to them a part
// that stands still. Where nothing turns the image is a part of the gains, and harmless.
type image struct {
	square    []complex128 // of blocks, before they are turned back
	power     []float64
	blocks    int        // of the frame's symbols
	factor    complex128 // of the conjugate
	equations normal     // of what stands still
	phases    normal
	conjugate []complex128 // e^{-2 j phase} of blocks
}

// imageBlock is the length of the blocks, in symbols.
const imageBlock = 256

// fast is from how many radians a block of the tracking on what turns shows its image in the
// squares, and not in the tracked phase.
const fast = 1

// measure takes in symbols as they were received, if they turn so fast by w that their squares
// may be needed: in what is tracked they turn by much less.
func (i *image) measure(z []complex64, flags []bool, w way, t *tracker) {
	i.square, i.power, i.blocks = i.square[:0], i.power[:0], (len(z)+imageBlock-1)/imageBlock
	if 4*math.Abs(w.step*w.sps*(1+w.clock))*float64(t.block) < fast {
		return
	}
	for from := 0; from < len(z); from += imageBlock {
		to := min(from+imageBlock, len(z))
		var a, b, p float64
		for k, x := range z[from:to] {
			if flags[from+k] {
				continue
			}
			re, im := float64(real(x)), float64(imag(x))
			a += re*re - im*im
			b += 2 * re * im
			p += re*re + im*im
		}
		i.square, i.power = append(i.square, complex(a, b)), append(i.power, p)
	}
}

// find finds the image of symbols whose first is lead, and reports whether there is one
// beyond the noise. Where these do not show it, it is what is known of it; 0 for nothing.
func (i *image) find(lead int, w way, t *tracker, known complex128) bool {
	if i.factor = known; !i.show(lead, w, t) {
		return known != 0
	}
	return true
}

const (
	// significantImage is of a power over its variance: e^-16 of chance.
	significantImage = 16
	// largestImage is the factor of an image 14 dB down, of a receiver that is broken: more
	// is a phase that wanders.
	largestImage = 0.2
)

// likely reports whether k, twice a factor, is that of an image.
func likely(k complex128, variance float64) bool {
	return power(k) > significantImage*variance && power(k) <= 4*largestImage*largestImage
}

// show sets the factor if symbols show it.
//
// What turns slowly shows it in its phase, which the image sways by Im(K e^{-2 j phase})/2,
// K twice the factor, and what turns fast in the squares, of which K times the power stands
// still.
func (i *image) show(lead int, w way, t *tracker) bool {
	const leastTurns = 1 // of the signal: what turns by less looks like what stands still
	perSymbol := w.step*w.sps*(1+w.clock) + t.slope
	n := float64(i.blocks * imageBlock)
	switch turn := math.Abs(perSymbol); {
	case i.blocks < 8 || turn*n < 2*math.Pi*leastTurns:
		return false
	case 2*turn*float64(t.block) < fast || len(i.square) == 0:
		return i.sway(w, t)
	}
	return i.stand(lead, w, t)
}

// sway finds the image in the tracked phases of the blocks.
func (i *image) sway(w way, t *tracker) bool {
	turns := t.turns
	if len(turns) < 16 {
		return false
	}
	a := i.phases
	var sums [4][5]float64
	i.conjugate = slices.Grow(i.conjugate[:0], len(turns))[:len(turns)]
	first, reference := float64(w.instant(0)), w.symbol(w.reference)
	for b, y := range turns {
		middle := t.middle(t.known + b)
		u := cmplx.Rect(1, -2*(w.phase(first+middle*w.sps*(1+w.clock))+t.behind(t.known+b, middle, reference)))
		i.conjugate[b] = u
		row := [4]float64{1, float64(b) / float64(len(turns)), imag(u) / 2, real(u) / 2}
		for r, x := range row {
			for c, v := range row[:r+1] {
				sums[r][c] += x * v
			}
			sums[r][4] += x * y
		}
	}
	for r := range sums {
		for c := range r + 1 {
			a[r][c], a[c][r] = complex(sums[r][c], 0), complex(sums[r][c], 0)
		}
		a[r][4] = complex(sums[r][4], 0)
	}
	var x [4]complex128
	if !a.solve(x[:]) {
		return false
	}
	k := complex(real(x[2]), real(x[3]))
	if !likely(k, i.beside(turns, x)) {
		return false
	}
	i.factor = k / 2
	return true
}

// beside returns the mean power at frequencies near the image's of what the fit has left
// of the blocks' phases, in units of its own: what noise and the phase's walk add to it.
func (i *image) beside(phases []float64, x [4]complex128) float64 {
	const near, far = 2, 5 // bins to either side
	n := float64(len(phases))
	var above, below [far + 1]complex128
	bin := cmplx.Rect(1, 2*math.Pi/n)
	turn := complex(1, 0)
	for b, y := range phases {
		u := i.conjugate[b]
		rest := u * complex(y-real(x[0])-real(x[1])*float64(b)/n-real(x[2])*imag(u)/2-real(x[3])*real(u)/2, 0)
		higher, lower := rest, rest
		for k := 1; k <= far; k++ {
			higher *= turn
			lower *= cmplx.Conj(turn)
			above[k] += higher
			below[k] += lower
		}
		turn *= bin
	}
	sum := 0.0
	for k := near; k <= far; k++ {
		sum += 16 * (power(above[k]) + power(below[k])) / (n * n)
	}
	return sum / (2 * (far - near + 1))
}

// stand finds the image in what of the squares stands still.
func (i *image) stand(lead int, w way, t *tracker) bool {
	a := i.equations
	a.clear()
	for b, square := range i.square {
		p := complex(i.power[b], 0)
		row := [2]complex128{i.turned(b, lead, w, t) * p, p}
		for r := range row {
			for c := range row {
				a[r][c] += cmplx.Conj(row[r]) * row[c]
			}
			a[r][2] += cmplx.Conj(row[r]) * square
		}
	}
	// What turns fast within a block leaves nothing of itself to be found.
	a[0][0] += 1e-3 * a[1][1]
	shown := real(a[1][1])
	var x [2]complex128
	if !a.solve(x[:]) {
		return false
	}
	rest := 0.0
	for b, square := range i.square {
		rest += power(square - (x[0]*i.turned(b, lead, w, t)+x[1])*complex(i.power[b], 0))
	}
	if !likely(x[1], rest/float64(len(i.square)-2)/shown) {
		return false
	}
	i.factor = x[1] / 2
	return true
}

// turned returns the mean of e^{2 j phase} over a block.
func (i *image) turned(b, lead int, w way, t *tracker) complex128 {
	middle := float64(lead+b*imageBlock) + float64(imageBlock-1)/2
	step := w.step*w.sps*(1+w.clock) + t.slope
	half := step * imageBlock
	size := 1.0
	if s := math.Sin(step); s != 0 {
		size = math.Sin(half) / (imageBlock * s)
	}
	at := w.phase(w.payload+(middle-float64(w.lead))*w.sps*(1+w.clock)) + t.at(middle, w.symbol(w.reference))
	return cmplx.Rect(size, 2*at)
}

// take takes the image off symbols that were turned back by the Sync's phase but not by
// what was tracked.
func (i *image) take(z []complex64, w way) {
	perSymbol := w.step * w.sps * (1 + w.clock)
	first := w.phase(float64(w.instant(0)))
	var turns phasors
	turns.set(-2*perSymbol, len(z))
	for from := 0; from < len(z); from += renew {
		own := complex64(i.factor * cmplx.Rect(1, -2*(first+perSymbol*float64(from))))
		part := z[from:min(from+renew, len(z))]
		for k, turn := range turns[:len(part)] {
			u, re, im := own*turn, real(part[k]), imag(part[k])
			part[k] = complex(re-(real(u)*re+imag(u)*im), im-(imag(u)*re-real(u)*im))
		}
	}
}
