package modem

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// tones finds a narrow interferer, a carrier of somebody else's, in the silence around a
// frame, its frequency in the frame's symbols, and takes it off these.
type tones struct {
	ffts   map[int]*fourier.CmplxFFT
	line   []complex128
	power  []float64
	sorted []float64
	silent *fourier.CmplxFFT

	strongest float64 // power of the silence's strongest bin, as that of a tone
	frequency float64 // cycles a sample
	amplitude complex128
}

const (
	toneBins   = 256 // of the silence's spectrum
	toneRounds = 3
	// certainTone is the power of a bin over the bins' median: noise alone has no such bin
	// in a hundred thousand silences.
	certainTone = 16
)

// quiet is the share of the symbols' power below which what is narrow is left alone: 70 dB
// below them it moves none, and a silence that a converter has rounded to a constant shows
// more of it than there is.
const quiet = 1e-7

// measure looks for a tone in samples whose ends hold no signal but the offsets of s, and
// reports whether there is one. known is its frequency, in cycles a sample, if an earlier frame has
// shown it; otherwise z, the frame's symbols turned back by the Sync's phase, of the mean power
// given, do.
func (t *tones) measure(f Frame, s *silence, w way, track *tracker, z []complex64, symbols float64) bool {
	known := f.Tone
	after := len(f.Samples) - f.After
	coarse, ok := t.coarse(f, s, w, track, after)
	if !ok {
		return false
	}
	switch {
	case t.strongest < quiet*symbols:
		return false
	case known != 0:
		t.frequency = float64(known)
	case len(z)-w.lead-len(f.Known) >= leastSums*blockSums:
		t.frequency = t.fine(z[w.lead+len(f.Known):], w, coarse)
	default:
		return false
	}
	// The ends' phases tell the rest: they are as far apart as the frame is long.
	first, last := t.at(f, s, w, track, 0, f.Before), t.at(f, s, w, track, after, f.After)
	if known == 0 {
		apart := float64(after) + float64(f.After-f.Before)/2
		t.frequency += cmplx.Phase(last*cmplx.Conj(first)) / (2 * math.Pi * apart)
		first, last = t.at(f, s, w, track, 0, f.Before), t.at(f, s, w, track, after, f.After)
	}
	t.amplitude = (first + last) / 2
	// Offsets and tone look a little alike in so short a time: each is found again without
	// the other.
	for range toneRounds {
		s.tone, s.frequency = t.amplitude, t.frequency
		if !s.measure(f, w, track, z) {
			break
		}
		t.amplitude = (t.at(f, s, w, track, 0, f.Before) + t.at(f, s, w, track, after, f.After)) / 2
	}
	s.tone = 0
	return true
}

// rest returns a sample of the silence without the offsets.
func (s *silence) rest(samples []complex64, n int, w way, track *tracker) complex128 {
	x := samples[n]
	if !valid(x) {
		return 0
	}
	phase := w.phase(float64(n)) + track.at(w.symbol(float64(n)), w.symbol(w.reference))
	return complex128(x) - s.receiver - s.carrier*cmplx.Rect(1, phase)
}

// at returns the amplitude of a tone of the frequency in n samples of silence.
func (t *tones) at(f Frame, s *silence, w way, track *tracker, from, n int) complex128 {
	var sum complex128
	for k := from; k < from+n; k++ {
		sum += s.rest(f.Samples, k, w, track) * cmplx.Rect(1, -2*math.Pi*math.Mod(t.frequency*float64(k), 1))
	}
	return sum / complex(float64(n), 0)
}

// coarse returns the frequency of the silence's strongest bin, if it stands out.
func (t *tones) coarse(f Frame, s *silence, w way, track *tracker, after int) (float64, bool) {
	if t.silent == nil {
		t.silent = fourier.NewCmplxFFT(toneBins)
		t.power, t.sorted = make([]float64, toneBins), make([]float64, toneBins)
	}
	t.line = slices.Grow(t.line[:0], toneBins)[:toneBins]
	clear(t.power)
	for _, part := range [...][2]int{{0, f.Before}, {after, f.After}} {
		clear(t.line)
		for k := range min(part[1], toneBins) {
			t.line[k] = s.rest(f.Samples, part[0]+k, w, track)
		}
		for k, x := range t.silent.Coefficients(t.line, t.line) {
			t.power[k] += power(x)
		}
	}
	copy(t.sorted, t.power)
	slices.Sort(t.sorted)
	best := 0
	for k, p := range t.power {
		if p > t.power[best] {
			best = k
		}
	}
	before, behind := float64(min(f.Before, toneBins)), float64(min(f.After, toneBins))
	t.strongest = t.power[best] / (before*before + behind*behind)
	if !(t.power[best] > certainTone*t.sorted[toneBins/2]) {
		return 0, false
	}
	return math.Remainder(float64(best)/toneBins, 1), true
}

// toneSums is how many symbols are added to one number before the transform, once they are
// turned by the coarse frequency: a line lies within half of the first zero of that.
const toneSums = 8

// fine returns the frequency near a coarse one at which the symbols have the strongest
// line.
func (t *tones) fine(z []complex64, w way, coarse float64) float64 {
	n := leastSums
	for 2*n*toneSums <= len(z) {
		n *= 2
	}
	fft := t.ffts[n]
	if fft == nil {
		if t.ffts == nil {
			t.ffts = map[int]*fourier.CmplxFFT{}
		}
		fft = fourier.NewCmplxFFT(n)
		t.ffts[n] = fft
	}
	period := w.sps * (1 + w.clock)
	turned := w.step / (2 * math.Pi) // of the symbols, a sample
	t.line = t.sums(z[:n*toneSums], 2*math.Pi*math.Mod((coarse-turned)*period, 1))
	fft.Coefficients(t.line, t.line)
	length := float64(n * toneSums)
	around := min(n/2-1, int(math.Ceil(period/toneBins*length)))
	index := func(bin int) int { return (bin + n) % n }
	best := 0
	for bin := -around; bin <= around; bin++ {
		if power(t.line[index(bin)]) > power(t.line[index(best)]) {
			best = bin
		}
	}
	// Between two bins a line is where their ratio says, with no window on the symbols.
	left, here, right := t.line[index(best-1)], t.line[index(best)], t.line[index(best+1)]
	shift := real((left - right) / (2*here - left - right))
	if !(math.Abs(shift) <= 1) {
		shift = 0
	}
	return coarse + (float64(best)+shift)/(period*length)
}

// sums returns sums of toneSums symbols turned back by so many radians each.
func (t *tones) sums(z []complex64, step float64) []complex128 {
	line := slices.Grow(t.line[:0], len(z)/toneSums)[:len(z)/toneSums]
	var within [toneSums]complex64
	for k := range within {
		within[k] = complex64(cmplx.Rect(1, -step*float64(k)))
	}
	for i := range line {
		var sum complex64
		for k, u := range within {
			sum += z[i*toneSums+k] * u
		}
		line[i] = complex128(sum) * cmplx.Rect(1, -step*toneSums*float64(i))
	}
	return line
}

// take takes the tone off symbols that were turned back by the Sync's phase; response is
// what their filter makes of it, and late how far behind a symbol's instant its filter's
// middle lies.
func (t *tones) take(z []complex64, w way, response complex128, late float64) {
	perSymbol := w.sps * (1 + w.clock)
	first := float64(w.instant(0))
	step := 2*math.Pi*t.frequency*perSymbol - w.step*perSymbol
	phase := 2*math.Pi*t.frequency*(first+late) - w.phase(first)
	without(z, t.amplitude*response*cmplx.Rect(1, phase), step)
}
