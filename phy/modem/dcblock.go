package modem

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// dcBlock finds the high-pass of first order that a receiver keeps its own offset out
// with, and undoes it. Devices' symbols are independent, so that their spectrum is flat:
// what is missing around 0 Hz is what the filter took. It takes low frequencies of the
// samples, whose mean over a symbol is its height times the pulse's area over the period:
// with that share d a symbol's spectrum has |1 - d corner/(corner + j f)|^2 left.
type dcBlock struct {
	left     float64 // (1 - d)^2
	ffts     map[int]*fourier.CmplxFFT
	sums     []complex128 // of blocks of symbols
	spectrum []float64    // power at 1, 2, ... bins to either side of 0 Hz, added
	beyond   []beyond     // of each of these bins on
	restored []complex64
}

const (
	// blockSums is how many symbols are added to one number before the transform: what is
	// left of a flat spectrum is flat, and corners lie far below the symbol rate.
	blockSums = 16
	// blockSettles is how many symbols behind a header are not looked at: it is no white
	// sequence, and a high-pass answers it for a while.
	blockSettles = 2048
	// leastSums is the shortest transform that a corner is looked for in.
	leastSums = 256
)

// beyond is what bins from one on add up to: their powers, these over the squares of their
// numbers, and ones over these squares.
type beyond struct{ power, over, ones float64 }

// newDCBlock returns one for a pulse, and the filter that receives it.
func newDCBlock(p Pulse, r receiver, sps int) dcBlock {
	area := 0.0
	half := p.half(sps)
	const steps = 16 // a sample
	for k := -int(half * steps); k <= int(half*steps); k++ {
		area += p.at(Samples(k)/steps, sps) / steps
	}
	r.tune(0)
	share := area / float64(sps) * real(r.response(0))
	return dcBlock{left: (1 - share) * (1 - share)}
}

// find returns the corner of the filter that the symbols have passed, as they were
// received, in cycles a symbol, and whether it is certain; 0 if a flat spectrum is as
// likely. It is the likeliest one, each power being exponential about its mean (Whittle).
func (b *dcBlock) find(z []complex64) (corner float64, isCertain bool) {
	const (
		// Log-likelihoods over that of a flat spectrum, both sides of which may be alike:
		// of random payloads one in ten has a likely corner. A certain one is not doubted
		// in any round of a run whose keys stay the same.
		likely, certain = 4, 24
		steps           = 1.3 // from one corner tried to the next
	)
	n := leastSums
	if len(z) < leastSums*blockSums {
		return 0, false
	}
	for 2*n*blockSums <= len(z) {
		n *= 2
	}
	b.transform(z, n)
	flat := b.likelihood(0)
	best, most := 0.0, flat+likely
	for corner := 0.5; corner < float64(n)/8; corner *= steps {
		if l := b.likelihood(corner); l > most {
			best, most = corner, l
		}
	}
	if best == 0 {
		return 0, false
	}
	low, high := best/steps, best*steps
	for high-low > 1e-3*best {
		x, y := low+(high-low)/3, high-(high-low)/3
		if b.likelihood(x) < b.likelihood(y) {
			low = x
		} else {
			high = y
		}
	}
	return (low + high) / 2 / float64(n*blockSums), most > flat+certain
}

// transform sets the spectrum of n sums.
func (b *dcBlock) transform(z []complex64, n int) {
	fft := b.ffts[n]
	if fft == nil {
		if b.ffts == nil {
			b.ffts = map[int]*fourier.CmplxFFT{}
		}
		fft = fourier.NewCmplxFFT(n)
		b.ffts[n] = fft
	}
	if cap(b.sums) < n {
		b.sums, b.spectrum, b.beyond = make([]complex128, n), make([]float64, n/2-1), make([]beyond, n/2)
	}
	sums := b.sums[:n]
	for i := range sums {
		var re, im float32
		for _, x := range z[i*blockSums : (i+1)*blockSums] {
			re += real(x)
			im += imag(x)
		}
		sums[i] = complex(float64(re), float64(im))
	}
	fft.Coefficients(sums, sums)
	b.spectrum = b.spectrum[:n/2-1]
	for k := range b.spectrum {
		b.spectrum[k] = power(sums[k+1]) + power(sums[n-k-1])
	}
	var all beyond
	for k := len(b.spectrum) - 1; k >= 0; k-- {
		p, over := b.spectrum[k], 1/(float64(k+1)*float64(k+1))
		all = beyond{all.power + p, all.over + p*over, all.ones + over}
		b.beyond[k] = all
	}
	b.beyond[len(b.spectrum)] = beyond{}
}

// likelihood returns the logarithm of that of a corner, in bins, but for what all have.
func (b *dcBlock) likelihood(corner float64) float64 {
	// Logarithms take the longest: one of a product is that of its factors, of which none
	// is below 1 or so large that a few overflow.
	const few = 16
	// So many times a corner and beyond it takes its square over that of the frequency, to
	// 1 in 60,000: what has been added up serves for all of that.
	const far = 16
	sum, logs := 0.0, 0.0
	square := corner * corner
	left := b.left * square
	near := b.spectrum[:min(int(far*corner), len(b.spectrum))]
	for from := 0; from < len(near); from += few {
		product := 1.0
		for k, p := range near[from:min(from+few, len(near))] {
			f := float64(from + k + 1)
			g := (f*f + square) / (f*f + left) // by which the filter has made it less
			sum += p * g
			product *= g
		}
		logs += math.Log(product)
	}
	rest := b.beyond[len(near)]
	sum += rest.power + (square-left)*rest.over
	logs += (square - left) * rest.ones
	return -2 * (float64(len(b.spectrum))*math.Log(sum) - logs)
}

// restore returns the samples as they were before a filter of that corner, in cycles a
// sample, between silences of the given lengths. It holds until the next call.
//
// The filter is y[n] = a (y[n-1] + x[n] - x[n-1]), a = e^{-2 pi corner}, so that x is y/a
// and the sum of what was taken before. That begins with what makes the first silence
// silent, and the noise that it gathers is known at the second one. Samples that reach the
// amplitude clip, if that is not 0, are lost: nobody sees any more that they did.
func (b *dcBlock) restore(samples []complex64, corner float64, before, after int, clip Amplitude) []complex64 {
	if cap(b.restored) < len(samples) {
		b.restored = make([]complex64, len(samples))
	}
	x := b.restored[:len(samples)]
	own := math.Exp(2 * math.Pi * corner)
	gain, more := float32(own), own-1
	var taken complex128
	for n, y := range samples {
		x[n] = complex(gain*real(y), gain*imag(y)) + complex64(taken)
		if valid(y) {
			taken += complex(more*float64(real(y)), more*float64(imag(y)))
		}
		if clip > 0 && (reaches(real(y), float32(clip)) != 0 || reaches(imag(y), float32(clip)) != 0) {
			MarkLost(x[n : n+1])
		}
	}
	first, last := meanOf(x[:before]), meanOf(x[len(x)-after:])
	rise := (last - first) / complex(float64(max(1, len(x)-(before+after)/2)), 0)
	off := first - rise*complex(float64(before)/2, 0)
	for n := range x {
		x[n] -= complex64(off)
		off += rise
	}
	return x
}

func meanOf(x []complex64) complex128 {
	var sum complex128
	n := 0
	for _, v := range x {
		if valid(v) {
			sum += complex128(v)
			n++
		}
	}
	return sum / complex(float64(max(1, n)), 0)
}
