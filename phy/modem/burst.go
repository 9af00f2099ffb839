package modem

import (
	"math"
	"math/cmplx"
)

// A burst is short noise from elsewhere, louder than what a frame bears. A burst that is
// not clipped shows in two ways: within the window of a flat-top symbol, where all
// devices' pulses are flat, the samples spread; and beside the axis on which devices lie
// after a matched filter, symbols have a part in quadrature. The square of either is held
// against what it is in most of the symbols around.
//
// Noise and what devices leave besides are at their heaviest tails a single Gaussian
// number squared: beyond burstFactor times its 90 % quantile, 2.706 variances, lies one
// symbol in 1.3 10^9; of the four Gaussian numbers in a window of three samples one in
// 10^22.
const (
	burstFactor = 14
	// burstFloor is how much of the strongest symbols' power (their 90 % quantile) goes
	// unnoticed: that of noise and of a converter's steps where there is little of
	// either.
	burstFloor = 3e-4
	// burstNearby is the share of the limit from which the neighbour of a struck window is
	// struck, too: by chance one in 500 of them.
	burstNearby = 0.25
	// burstChunk is the number of symbols that are compared with each other. A tenth of
	// them may be damaged.
	burstChunk = 4096
)

// bursts finds symbols that a burst has damaged.
type bursts struct {
	stray []float32 // of a chunk's symbols: what should be small
	count []int32   // by quantileBin: 0 between quantiles
	some  []uint32  // bins of some symbols
}

func newBursts() bursts {
	return bursts{stray: make([]float32, burstChunk), count: make([]int32, quantileBins), some: make([]uint32, 0, 2*quantileSymbols)}
}

// markWindows flags the symbols of z that are struck, and neighbours that may be, and sets
// them to 0, where a window has more than one sample: the filter is tuned to the first of
// them. Those of other filters are for markAxis. Between samples all neighbours are struck.
func (b *bursts) markWindows(z []complex64, erased []bool, samples []complex64, r receiver, sps int) {
	flat, ok := r.(*integrator)
	if !ok || flat.window < 2 {
		return
	}
	nearby, first := float32(burstNearby), flat.core()
	if flat.fraction != 0 {
		nearby = 0
	}
	for from := 0; from < len(z); from += burstChunk {
		to := min(from+burstChunk, len(z))
		spread(b.stray, z[from:to], samples[first+from*sps:], flat.taken, sps)
		b.mark(z[from:to], erased[from:to], float32(flat.taken), nearby)
	}
}

// markAxis flags struck symbols, their carrier's phase taken off, and all their neighbours.
func (b *bursts) markAxis(z []complex64, erased []bool) {
	for from := 0; from < len(z); from += burstChunk {
		to := min(from+burstChunk, len(z))
		quadrature(b.stray, z[from:to], erased[from:to])
		b.mark(z[from:to], erased[from:to], 1, 0)
	}
}

// mark flags symbols by what strays, each the sum of so many samples' powers.
func (b *bursts) mark(z []complex64, erased []bool, each, nearby float32) {
	stray := b.stray[:len(z)]
	some := b.some[:0]
	for k := 0; k < len(z); k += 1 + len(z)/quantileSymbols {
		if !erased[k] {
			some = append(some, quantileBin(stray[k]))
		}
	}
	limit := burstFactor * b.quantile(some)
	some = some[:0]
	for k := 0; k < len(z); k += 1 + len(z)/quantileSymbols {
		if !erased[k] {
			some = append(some, quantileBin(square(z[k])))
		}
	}
	limit = max(limit, burstFloor*each*b.quantile(some))
	for k, s := range stray {
		if !(s > limit) {
			continue
		}
		for i := max(0, k-1); i <= min(k+1, len(z)-1); i++ {
			if i == k || stray[i] >= nearby*limit {
				z[i], erased[i] = 0, true
			}
		}
	}
}

func square(x complex64) float32 { return real(x)*real(x) + imag(x)*imag(x) }

// spread sets stray to the sum over each symbol's window of the squared distance from its
// mean.
func spread(stray []float32, z, samples []complex64, window, sps int) {
	stray = stray[:len(z)]
	first := 0
	if window == 3 { // as most have
		for k, m := range z {
			w := (*[3]complex64)(samples[first:])
			re0, im0 := real(w[0])-real(m), imag(w[0])-imag(m)
			re1, im1 := real(w[1])-real(m), imag(w[1])-imag(m)
			re2, im2 := real(w[2])-real(m), imag(w[2])-imag(m)
			stray[k] = (re0*re0 + re1*re1 + re2*re2) + (im0*im0 + im1*im1 + im2*im2)
			first += sps
		}
		return
	}
	for k, m := range z {
		mre, mim := real(m), imag(m)
		// Sums of their own for every other sample need not wait for each other.
		var even, odd float32
		w := samples[first : first+window]
		for ; len(w) >= 2; w = w[2:] {
			re0, im0 := real(w[0])-mre, imag(w[0])-mim
			re1, im1 := real(w[1])-mre, imag(w[1])-mim
			even += float32(re0*re0) + float32(im0*im0)
			odd += float32(re1*re1) + float32(im1*im1)
		}
		if len(w) > 0 {
			re, im := real(w[0])-mre, imag(w[0])-mim
			even += float32(re*re) + float32(im*im)
		}
		stray[k] = even + odd
		first += sps
	}
}

// quadrature sets stray to the squares of the symbols' parts beside their common axis,
// which strong ones do not settle alone.
func quadrature(stray []float32, z []complex64, erased []bool) {
	var sum complex128
	for k := 0; k < len(z); k += 1 + len(z)/1024 {
		x := z[k]
		if p := square(x); p > 0 && !erased[k] {
			weight := 1 / math.Sqrt(float64(p))
			sum += complex(weight*float64(real(x*x)), weight*float64(imag(x*x)))
		}
	}
	axis := complex64(cmplx.Rect(1, -cmplx.Phase(sum)/2))
	for k, x := range z {
		q := real(x)*imag(axis) + imag(x)*real(axis)
		stray[k] = q * q
	}
}

// quantileSymbols is about how many symbols a quantile is taken of: a thousand tell it
// within some percent.
const quantileSymbols = 1024

// quantile returns the 90 % quantile of numbers that are not negative, by their bins.
func (b *bursts) quantile(bins []uint32) float32 {
	low, high := uint32(quantileBins), uint32(0)
	for _, bin := range bins {
		b.count[bin]++
		low, high = min(low, bin), max(high, bin)
	}
	if len(bins) == 0 {
		return float32(math.Inf(1))
	}
	left := len(bins) - len(bins)/10
	bin := low
	for left -= int(b.count[bin]); left > 0; left -= int(b.count[bin]) {
		bin++
	}
	clear(b.count[low : high+1])
	return math.Float32frombits((bin + 1) << 19)
}

// quantileBins are the bins of a float's exponent and first four bits, so that a quantile
// comes out at most 6 % too large. Its sign is not looked at.
const quantileBins = 1 << 12

func quantileBin(x float32) uint32 { return math.Float32bits(x) << 1 >> 20 }

// saturated reports whether samples have all reached the amplitude clip in the same
// component and direction: their mean is that of the converter's end, and what was sent
// lies beyond. part reports whether some have and the others have not, which moves their
// mean by less than the noise is: it is as good as any.
func saturated(window []complex64, clip float32) (whole, part bool) {
	var re, im, some int
	for _, x := range window {
		if !valid(x) {
			return false, false
		}
		some += reaches(real(x), clip)&1 | reaches(imag(x), clip)&1
		re += reaches(real(x), clip)
		im += reaches(imag(x), clip)
	}
	n := len(window)
	whole = re == n || re == -n || im == n || im == -n
	return whole, !whole && some > 0
}

// reaches returns the direction in which x reaches the limit, 0 for neither.
func reaches(x, limit float32) int {
	switch {
	case x >= limit:
		return 1
	case x <= -limit:
		return -1
	}
	return 0
}

// settle makes up its mind about the symbols that are flagged, the filter being tuned to
// the first: a flat-top symbol of which only some samples were clipped is not erased, one
// all of whose samples were keeps its value, and all others are set to 0.
func (d *Demodulator) settle(z []complex64, erased []bool, samples []complex64) {
	flat, isFlat := d.recv.(*integrator)
	for k, e := range erased {
		if !e {
			continue
		}
		whole, part := false, false
		if isFlat && d.receive.Clip > 0 {
			at := flat.core() + k*d.sps
			whole, part = saturated(samples[at:at+flat.taken], float32(d.receive.Clip))
		}
		if erased[k] = !part; !whole && !part {
			z[k] = 0
		}
	}
}
