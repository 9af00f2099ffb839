package modem

import (
	"math"
	"math/cmplx"
)

// image finds the image that a receiver with unlike branches makes of the signal: its
// conjugate, which turns the other way. The symbols being real, their squares before they
// are turned back are their power times e^{2 j phase}, and the image adds to them a part
// that stands still. Where nothing turns the image is a part of the gains, and harmless.
type image struct {
	square []complex128 // of blocks, before they are turned back
	power  []float64
	factor complex128 // of the conjugate
}

// imageBlock is the length of the blocks, in symbols.
const imageBlock = 256

// measure takes in symbols as they were received.
func (i *image) measure(z []complex64, flags []bool) {
	i.square, i.power = i.square[:0], i.power[:0]
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

// show sets the factor if symbols show it.
//
// With the axis Q e^{2 j phase} of the signal a block's square is Q e^{2 j phase} + K power,
// K twice the factor. Where the tracking has followed what the image does to the phase, it
// has made half of K of the signal: of the rest a half stands still, and its mirror image
// turns twice as fast as the signal. So all three are looked for.
func (i *image) show(lead int, w way, t *tracker) bool {
	const (
		significant = 16 // of power over variance: e^-16 of chance
		leastTurns  = 1  // of the signal: what turns by less looks like what stands still
	)
	n := len(i.square)
	turned := (w.step*w.sps*(1+w.clock) + t.slope) * float64(n*imageBlock) / (2 * math.Pi)
	if n < 8 || math.Abs(turned) < leastTurns {
		return false
	}
	var a [3][4]complex128 // normal equations
	for b, square := range i.square {
		u := i.turned(b, lead, w, t)
		row := [3]complex128{u, complex(i.power[b], 0), u * u * complex(i.power[b], 0)}
		for r := range row {
			for c := range row {
				a[r][c] += cmplx.Conj(row[r]) * row[c]
			}
			a[r][3] += cmplx.Conj(row[r]) * square
		}
	}
	// What turns fast within a block leaves nothing of itself to be found.
	a[0][0] += complex(1e-3*float64(n), 0)
	a[2][2] += 1e-2 * a[1][1]
	x := solve3(a)
	rest := 0.0
	for b, square := range i.square {
		u := i.turned(b, lead, w, t)
		rest += power(square - x[0]*u - x[1]*complex(i.power[b], 0) - x[2]*u*u*complex(i.power[b], 0))
	}
	still := x[1]
	if size := cmplx.Abs(x[0]); size > 0 {
		axis := x[0] / complex(size, 0)
		still += cmplx.Conj(x[2] * cmplx.Conj(axis) * cmplx.Conj(axis))
	}
	variance := 2 * rest / float64(n-3) / real(a[1][1])
	if !(power(still) > significant*variance) {
		return false
	}
	i.factor = still / 2
	return true
}

// solve3 solves three equations, whose matrix is that of normal ones.
func solve3(a [3][4]complex128) (x [3]complex128) {
	for p := range 3 {
		for r := p + 1; r < 3; r++ {
			f := a[r][p] / a[p][p]
			for c := p; c < 4; c++ {
				a[r][c] -= f * a[p][c]
			}
		}
	}
	for p := 2; p >= 0; p-- {
		sum := a[p][3]
		for c := p + 1; c < 3; c++ {
			sum -= a[p][c] * x[c]
		}
		x[p] = sum / a[p][p]
	}
	return x
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
	for from := 0; from < len(z); from += renew {
		u := i.factor * cmplx.Rect(1, -2*(first+perSymbol*float64(from)))
		turn := cmplx.Rect(1, -2*perSymbol)
		part := z[from:min(from+renew, len(z))]
		for k, x := range part {
			part[k] = x - complex64(u)*complex(real(x), -imag(x))
			u *= turn
		}
	}
}
