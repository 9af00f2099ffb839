package modem

import "math"

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
	var d damage
	invalid := math.Float32bits(limit)
	suspect := invalid
	if clip > 0 && clip < limit {
		suspect = math.Float32bits(float32(clip))
	}
	low := max(0, c.first)
	high := min(len(samples), c.end+(len(flags)-1)*c.sps)
	if low >= high {
		return d
	}
	next := 0 // symbols before this one are settled
	for from := low; from < high; from += few {
		part := samples[from:min(from+few, high)]
		if allBelow(part, suspect) {
			continue
		}
		for n, x := range part {
			a := bitsOf(x)
			if a < suspect {
				continue
			}
			if a >= invalid {
				d.invalid++
			} else {
				d.clipped++
			}
			at := from + n
			next = max(next, ceilDiv(at-c.end+1, c.sps))
			for next < len(flags) && next*c.sps+c.first <= at {
				flags[next] = true
				next++
			}
		}
	}
	return d
}

// few is how many samples are looked at together: hardly ever is one damaged.
const few = 64

// bitsOf returns those of the larger part of x, without its sign: a float's bits order as
// the number does, and what is no number comes last.
func bitsOf(x complex64) uint32 {
	return max(math.Float32bits(real(x))&^signBit, math.Float32bits(imag(x))&^signBit)
}

// allBelow reports whether all samples have bits below suspect, which has no sign. Within
// the loop of flag it would have too few registers.
//
//go:noinline
func allBelow(samples []complex64, suspect uint32) bool {
	// The differences are negative then.
	all, other := uint32(signBit), uint32(signBit)
	for ; len(samples) >= 4; samples = samples[4:] {
		a, b, c, d := samples[0], samples[1], samples[2], samples[3]
		all &= (math.Float32bits(real(a))&^signBit - suspect) & (math.Float32bits(imag(a))&^signBit - suspect)
		other &= (math.Float32bits(real(b))&^signBit - suspect) & (math.Float32bits(imag(b))&^signBit - suspect)
		all &= (math.Float32bits(real(c))&^signBit - suspect) & (math.Float32bits(imag(c))&^signBit - suspect)
		other &= (math.Float32bits(real(d))&^signBit - suspect) & (math.Float32bits(imag(d))&^signBit - suspect)
	}
	for _, x := range samples {
		all &= bitsOf(x) - suspect
	}
	return all&other != 0
}

func ceilDiv(a, b int) int {
	if a <= 0 {
		return 0
	}
	return (a + b - 1) / b
}
