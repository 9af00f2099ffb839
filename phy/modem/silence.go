package modem

import (
	"math"
	"math/cmplx"
	"slices"
)

// silence finds what stands under a frame from the samples around it that hold no
// signal: the receiver's own offset, which stands still, and what leaks of the devices'
// carriers, which turns with them.
type silence struct {
	receiver, carrier complex128 // amplitudes of samples
	tone              complex128 // amplitude of what else is known to be there
	frequency         float64    // of the tone, cycles a sample
	parts             []silentPart
	sorted            []float64
}

// leastSilence is the shortest silence at either end that is looked at, in samples.
const leastSilence = 16

// measure finds both by least squares, and reports whether there is silence to find them
// in. Where the carrier turns by little from one end to the other, the two look alike there:
// then the smallest amplitudes that explain the silence are taken. Where it turns by about
// whole turns they look alike, too, and not between: the symbols z, from lead on, which
// have a mean of 0 by themselves, tell them apart, each counting as little as its power is large.
func (s *silence) measure(f Frame, w way, t *tracker, z []complex64) bool {
	s.receiver, s.carrier = 0, 0
	if f.Before < leastSilence || f.After < leastSilence || f.Before+f.After > len(f.Samples) || !placed(Samples(w.payload), len(f.Samples)) {
		return false
	}
	s.parts = s.parts[:0]
	for from := 0; from+leastSilence <= f.Before; from += leastSilence {
		s.parts = append(s.parts, s.part(f.Samples, from, w, t))
	}
	for from := len(f.Samples) - f.After; from+leastSilence <= len(f.Samples); from += leastSilence {
		s.parts = append(s.parts, s.part(f.Samples, from, w, t))
	}
	if len(s.parts) == 0 {
		return false
	}
	// Something that is no silence, as an echo or a burst, stands out.
	s.sorted = s.sorted[:0]
	for _, p := range s.parts {
		s.sorted = append(s.sorted, p.moving())
	}
	slices.Sort(s.sorted)
	const most = 8 // times the lower quartile: the variance of 16 samples of noise varies by a third
	limit := most * s.sorted[len(s.sorted)/4]
	s.parts = slices.DeleteFunc(s.parts, func(p silentPart) bool { return p.moving() > limit })
	apart := float64(len(f.Samples)) - float64(f.Before+f.After)/2
	if s.alike() > 0.5 && math.Abs(w.step+t.slope/w.sps)*apart > 1 {
		s.parts = append(s.parts, s.symbols(z, w, t))
	}
	return s.fit()
}

// alike returns how alike what stands still and what turns are in all parts, from 0 to 1.
func (s *silence) alike() float64 {
	n, turns := 0.0, complex128(0)
	for _, p := range s.parts {
		n += p.n
		turns += p.turns
	}
	return cmplx.Abs(turns) / max(1, n)
}

// symbols returns the sums of the symbols from lead on, weighted as the silence's noise is
// to their power.
func (s *silence) symbols(z []complex64, w way, t *tracker) silentPart {
	var p silentPart
	energy := 0.0
	perSymbol := w.step * w.sps * (1 + w.clock)
	first := w.phase(float64(w.instant(0)))
	dstill := turnBy(perSymbol)
	s1, s2, s3, nextStill := together(dstill)
	t.pieces(len(z), w.symbol(w.reference), func(from, to int, phase, step float64) {
		dturn := turnBy(step)
		t1, t2, t3, nextTurn := together(cmplx.Conj(dturn))
		// What four of still times turn add up to, over the first of them.
		four := 1 + dstill*dturn
		four += (dstill * dstill) * (dturn * dturn) * four
		for at := max(from, w.lead); at < to; at += renew {
			still := cmplx.Rect(1, first+perSymbol*float64(at))
			turn := cmplx.Rect(1, -phase-step*float64(at-from))
			part := z[at:min(at+renew, to)]
			for ; len(part) >= 4; part = part[4:] {
				y := (*[4]complex64)(part)
				p.turns += still * cmplx.Conj(turn) * four
				p.sum += complex128(y[0]+y[1]*s1+y[2]*s2+y[3]*s3) * still
				p.turned += complex128(y[0]+y[1]*t1+y[2]*t2+y[3]*t3) * turn
				energy += float64(square(y[0]) + square(y[1]) + square(y[2]) + square(y[3]))
				still *= nextStill
				turn *= nextTurn
			}
			for _, x := range part {
				y := complex128(x)
				p.turns += still * cmplx.Conj(turn)
				p.sum += y * still
				p.turned += y * turn
				energy += power(y)
				still *= dstill
				turn *= cmplx.Conj(dturn)
			}
		}
	})
	noise := 0.0
	for _, part := range s.parts {
		noise += part.moving() / float64(len(s.parts))
	}
	p.n = float64(len(z) - w.lead)
	weight := noise / max(energy/max(1, p.n), math.SmallestNonzeroFloat64)
	p.n *= weight
	p.turns, p.sum, p.turned = p.turns*complex(weight, 0), p.sum*complex(weight, 0), p.turned*complex(weight, 0)
	p.energy = power(p.turned) / max(math.SmallestNonzeroFloat64, p.n) // of no noise: that of the silence counts
	return p
}

// silentPart is what is summed of a part of the silence.
type silentPart struct {
	n, energy          float64
	turns, sum, turned complex128
}

func (s *silence) part(samples []complex64, from int, w way, t *tracker) silentPart {
	var p silentPart
	u := cmplx.Rect(1, w.phase(float64(from))+t.at(w.symbol(float64(from)), w.symbol(w.reference)))
	turn := cmplx.Rect(1, w.step+t.slope/w.sps)
	for n, x := range samples[from : from+leastSilence] {
		if valid(x) {
			x := complex128(x)
			if s.tone != 0 {
				x -= s.tone * cmplx.Rect(1, 2*math.Pi*math.Mod(s.frequency*float64(from+n), 1))
			}
			p.n++
			p.energy += power(x)
			p.turns += u
			p.sum += x
			p.turned += x * cmplx.Conj(u)
		}
		u *= turn
	}
	return p
}

// fit solves for both, from all parts.
func (s *silence) fit() bool {
	var all silentPart
	for _, p := range s.parts {
		all.n += p.n
		all.turns += p.turns
		all.sum += p.sum
		all.turned += p.turned
	}
	if all.n < leastSilence {
		return false
	}
	// (n + ridge) receiver + turns carrier = sum,
	// turns* receiver + (n + ridge) carrier = turned.
	const ridge = 1e-3
	own := all.n * (1 + ridge)
	det := own*own - power(all.turns)
	s.receiver = (complex(own, 0)*all.sum - all.turns*all.turned) / complex(det, 0)
	s.carrier = (complex(own, 0)*all.turned - cmplx.Conj(all.turns)*all.sum) / complex(det, 0)
	if !finite(power(s.receiver)) || !finite(power(s.carrier)) {
		return false
	}
	// What explains no more of the silence than noise would is better left alone.
	const significant = 8 // of the power explained over the noise's, which has 2 in the mean
	explained, noise := 0.0, 0.0
	for _, p := range s.parts {
		explained += real(cmplx.Conj(s.receiver)*p.sum) + real(cmplx.Conj(s.carrier)*p.turned)
		noise += p.moving() * p.n / all.n
	}
	if explained < significant*noise {
		s.receiver, s.carrier = 0, 0
	}
	return true
}

// moving returns the mean power of what neither stands still nor turns with the carrier.
func (p silentPart) moving() float64 {
	n := max(math.SmallestNonzeroFloat64, p.n)
	return (p.energy - power(p.turned)/n) / n
}

// take takes both off symbols that were turned back by the Sync's phase but not by what
// was tracked. still and turning are what the filter makes of them. What has less power than
// least is left alone.
func (s *silence) take(z []complex64, w way, t *tracker, still, turning complex128, least float64) {
	reference := w.symbol(w.reference)
	own, leak := s.receiver*still, s.carrier*turning
	perSymbol := w.step * w.sps * (1 + w.clock)
	first := w.phase(float64(w.instant(0)))
	if power(own) >= least {
		without(z, own*cmplx.Rect(1, -first), -perSymbol)
	}
	if power(leak) < least {
		return
	}
	t.pieces(len(z), reference, func(from, to int, phase, step float64) {
		without(z[from:to], leak*cmplx.Rect(1, phase), step)
	})
}

// without takes off symbols an offset that turns by step from one to the next. Of what is
// erased nothing is left.
func without(z []complex64, offset complex128, step float64) {
	var turns phasors
	turns.set(step, len(z))
	for from := 0; from < len(z); from += renew {
		own := complex64(offset * cmplx.Rect(1, step*float64(from)))
		part := z[from:min(from+renew, len(z))]
		for k, turn := range turns[:len(part)] {
			if x := part[k]; x != 0 {
				part[k] = x - own*turn
			}
		}
	}
}
