package modem

import (
	"math"
	"unsafe"
)

// limit bounds what counts as a sample: 96 dB over full scale, there is none.
const limit = 1 << 16

const signBit = 1 << 31

// MarkLost marks samples as lost, as a receiver does that knows of a gap: what
// depends on them is flagged.
func MarkLost(samples []complex64) {
	nan := float32(math.NaN())
	for n := range samples {
		samples[n] = complex(nan, nan)
	}
}

// valid reports whether x is a sample at all.
func valid(x complex64) bool {
	return real(x) < limit && real(x) > -limit && imag(x) < limit && imag(x) > -limit
}

// damage is what is wrong with samples.
type damage struct {
	invalid, clipped int
}

// comb is a row of symbols of sps samples, each made of the samples [first, end)
// plus its number times sps.
type comb struct {
	first, end, sps int
}

// inside returns the range [from, to) of n symbols that lie in a capture of so many
// samples with all they are made of.
func (c comb) inside(samples, n int) (from, to int) {
	if c.first < 0 {
		from = min(n, (-c.first+c.sps-1)/c.sps)
	}
	if c.end > samples {
		return from, from
	}
	to = min(n, (samples-c.end)/c.sps+1)
	return min(from, to), to
}

// flag sets flags[k] where symbol k is made of a sample that is invalid or reaches
// the amplitude clip; clip is 0 where none is too large.
func (c comb) flag(flags []bool, samples []complex64, clip Amplitude) damage {
	f := c.flagger(flags, samples, clip)
	f.until(len(flags))
	return f.damage
}

// flagger does what flag does, some symbols at a time.
type flagger struct {
	comb
	flags   []bool
	samples []complex64
	suspect uint32 // the bits from which on a sample may be damaged
	at      int    // the sample that is looked at next
	next    int    // symbols before this one are settled
	damage  damage
}

const invalidBits = (127 + 16) << 23 // those of limit

// flagger returns one that has looked at nothing yet.
func (c comb) flagger(flags []bool, samples []complex64, clip Amplitude) flagger {
	f := flagger{comb: c, flags: flags, samples: samples, suspect: invalidBits, at: max(0, c.first)}
	if clip > 0 && clip < limit {
		f.suspect = math.Float32bits(float32(clip))
	}
	return f
}

// until looks at the samples of all symbols before number k.
func (f *flagger) until(k int) {
	for high := min(len(f.samples), f.end+(k-1)*f.sps); f.at < high; {
		to := min(f.at+few, high)
		if !allBelow(f.samples[f.at:to], f.suspect) {
			f.look(f.at, to)
		}
		f.at = to
	}
}

// look looks at samples one by one.
func (f *flagger) look(from, to int) {
	for at := from; at < to; at++ {
		a := bitsOf(f.samples[at])
		if a < f.suspect {
			continue
		}
		if a >= invalidBits {
			f.damage.invalid++
		} else {
			f.damage.clipped++
		}
		f.next = max(f.next, ceilDiv(at-f.end+1, f.sps))
		for f.next < len(f.flags) && f.next*f.sps+f.first <= at {
			f.flags[f.next] = true
			f.next++
		}
	}
}

// few is how many samples are looked at together: hardly ever is one damaged.
const few = 64

// bitsOf returns those of the larger part of x, without its sign: a float's bits order as
// the number does, and what is no number comes last.
func bitsOf(x complex64) uint32 {
	return max(math.Float32bits(real(x))&^signBit, math.Float32bits(imag(x))&^signBit)
}

// allBelow reports whether all samples have bits below suspect, which has no sign.
func allBelow(samples []complex64, suspect uint32) bool {
	// Both parts of a sample are looked at as one word. A part without its sign, and what
	// suspect lacks of the sign's bit added, has that bit if it is no less than suspect, and
	// never a higher one.
	const magnitudes = (signBit-1)<<32 | (signBit - 1)
	lack := uint64(signBit-suspect)<<32 | uint64(signBit-suspect)
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(samples))), len(samples))
	var sums, others uint64
	for ; len(words) >= 8; words = words[8:] {
		w := (*[8]uint64)(words)
		sums |= w[0]&magnitudes + lack
		others |= w[1]&magnitudes + lack
		sums |= w[2]&magnitudes + lack
		others |= w[3]&magnitudes + lack
		sums |= w[4]&magnitudes + lack
		others |= w[5]&magnitudes + lack
		sums |= w[6]&magnitudes + lack
		others |= w[7]&magnitudes + lack
	}
	for _, w := range words {
		sums |= w&magnitudes + lack
	}
	return (sums|others)&^magnitudes == 0
}

func ceilDiv(a, b int) int {
	if a <= 0 {
		return 0
	}
	return (a + b - 1) / b
}
