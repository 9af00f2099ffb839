package modem

import (
	"math"
	"math/cmplx"
)

// silence finds what stands under a frame from the samples around it that hold no
// signal: the receiver's own offset, which stands still, and what leaks of the devices'
// carriers, which turns with them.
type silence struct {
	receiver, carrier complex128 // amplitudes of samples
}

// leastSilence is the shortest silence at either end that is looked at, in samples.
const leastSilence = 16

// measure finds both by least squares, and reports whether there is silence to find them
// in. Where the carrier turns by little from one end to the other, or by whole turns, the
// two look alike there: then the smallest amplitudes that explain the silence are taken.
func (s *silence) measure(f Frame, w way, t *tracker) bool {
	s.receiver, s.carrier = 0, 0
	if f.Before < leastSilence || f.After < leastSilence || f.Before+f.After > len(f.Samples) || !placed(Samples(w.payload), len(f.Samples)) {
		return false
	}
	var n float64
	var turns, sum, turned complex128
	reference := w.symbol(w.reference)
	add := func(from, to int) {
		if w.step == 0 && len(t.phase) == 0 {
			u := cmplx.Rect(1, w.phase(float64(from)))
			for _, x := range f.Samples[from:to] {
				if valid(x) {
					n++
					turns += u
					sum += complex128(x)
					turned += complex128(x) * cmplx.Conj(u)
				}
			}
			return
		}
		step := w.step + t.slope/w.sps
		u := cmplx.Rect(1, w.phase(float64(from))+t.at(w.symbol(float64(from)), reference))
		turn := cmplx.Rect(1, step)
		for _, x := range f.Samples[from:to] {
			if valid(x) {
				n++
				turns += u
				sum += complex128(x)
				turned += complex128(x) * cmplx.Conj(u)
			}
			u *= turn
		}
	}
	add(0, f.Before)
	add(len(f.Samples)-f.After, len(f.Samples))
	if n < leastSilence {
		return false
	}
	// (n + ridge) receiver + turns carrier = sum,
	// turns* receiver + (n + ridge) carrier = turned.
	const ridge = 1e-3
	own := n * (1 + ridge)
	det := own*own - power(turns)
	s.receiver = (complex(own, 0)*sum - turns*turned) / complex(det, 0)
	s.carrier = (complex(own, 0)*turned - cmplx.Conj(turns)*sum) / complex(det, 0)
	return !math.IsNaN(real(s.receiver)) && !math.IsNaN(real(s.carrier))
}

// take takes both off symbols that were turned back by the Sync's phase but not by what
// was tracked. still and turning are what the filter makes of them.
func (s *silence) take(z []complex64, flags []bool, w way, t *tracker, still, turning complex128) {
	reference := w.symbol(w.reference)
	own, leak := s.receiver*still, s.carrier*turning
	perSymbol := w.step * w.sps * (1 + w.clock)
	first := w.phase(float64(w.instant(0)))
	t.pieces(len(z), reference, func(from, to int, phase, step float64) {
		for at := from; at < to; at += renew {
			u := own * cmplx.Rect(1, -first-perSymbol*float64(at))
			v := leak * cmplx.Rect(1, phase+step*float64(at-from))
			du, dv := cmplx.Rect(1, -perSymbol), cmplx.Rect(1, step)
			for k := at; k < min(at+renew, to); k++ {
				if !flags[k] {
					z[k] -= complex64(u + v)
				}
				u *= du
				v *= dv
			}
		}
	})
}
