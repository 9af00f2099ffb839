package sampler

import (
	"encoding/binary"
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/secret"
)

// Flood is a wide discrete Gaussian over the integers, for noise that is to drown
// other noise: every integer up to Bound is reachable, so that the low bits hide
// as well as the high ones. It is a plain value; the zero value is the narrowest,
// of standard deviation 2^14.06.
//
// A sample is
//
//	e = 2^k x + (u1 + u2 + u3 + u4) - 2 (2^k - 1),
//
// u1 to u4 exactly uniform on k bits, and x of deviation sigma_x = 2^14.06 put
// together from eight samples of a cumulative table of sigma_0 = 16/sqrt(10) by
// three steps x <- x + z x', z = 3, 10, 106 (Micciancio and Walter, "Gaussian
// sampling over the integers: efficient, generic, constant-time", CRYPTO 2017).
//
// The statistical distance of one sample to the discrete Gaussian of the same
// variance is below 2^-62, the chi-square divergence (which bounds that of
// Kullback and Leibler) below 2^-70. The distance has three parts, each checked
// in the tests.
//
// The tables, 2^-63.4: the table is rounded to 2^-63, a distance of 2^-59.9 for
// each of its samples, but rounding errors alternate from one value to the next,
// and the other seven samples blur neighbours together. Given is what is left in
// x, computed from the whole law.
//
// The convolutions, 2^-64.4: the probability of y = x + z x', both of deviation
// sigma, is that of the Gaussian of deviation sigma sqrt(1+z^2) times the sum of
// a Gaussian of deviation s = sigma/sqrt(1+z^2) over a shifted copy of the
// integers, which by Poisson summation is constant but for a relative
// 2 exp(-2 pi^2 s^2). The steps have s = 1.600, 1.592, 1.516: relative errors of
// 2^-71.9, 2^-71.1 and 2^-64.5, which bound their distances. The first step is
// taken four times, the second twice.
//
// The low bits, 2^-64.5: spreading 2^k x by four uniforms is interpolating its
// law with a spline of order 4. Seen in the characteristic function, and with
// A = E|Z^4 - 6 Z^2 + 3| = 2.801 for a standard normal Z, this does two things.
// The images of the Gaussian about the frequencies 2 pi j/2^k, j = 1, -1, 2, ...,
// fall on fourth-order zeros of the spline, which leave (1/(2 pi j sigma_x))^4 of
// its fourth Hermite function: together a distance of at most
// (2/pi) zeta(4) A/(2 pi sigma_x)^4 = 2^-65.8. And the uniforms are no Gaussians:
// to leading order they bring a fourth cumulant of -4 (16^k - 1)/120, at most
// 1/(30 sigma_x^4) of the variance squared, a distance of
// A/(48 * 30 sigma_x^4) = 2^-65.2.
type Flood struct {
	k uint // low bits, at most maxLowBits
}

// The factors of the three convolutions, and the number of table samples.
const (
	z0, z1, z2 = 3, 10, 106

	floodWords = 8
)

// maxLowBits keeps |e| < 2^(96+17.8) + 2^98: thirteen bits are left below 2^127
// for gains and sums.
const maxLowBits = 96

// oneWordBits is the widest u of which four have a sum below 2^64.
const oneWordBits = 62

// NewFlood returns the narrowest Flood whose standard deviation is at least sigma,
// which is less than 2 sigma. It is an error to ask for 2^13.06 or less, half of the
// narrowest (small noise is Distribution's), or for more than 2^110.05.
func NewFlood(sigma float64) (Flood, error) {
	least, most := Flood{}, Flood{maxLowBits}
	if !(sigma > least.Std()/2 && sigma <= most.Std()) {
		return Flood{}, fmt.Errorf("sampler: a flooding deviation of %g is outside (%g, %g]", sigma, least.Std()/2, most.Std())
	}
	f := least
	for f.Std() < sigma {
		f.k++
	}
	return f, nil
}

// Variance returns the variance of what Sample draws, exactly but for the rounding
// of float64: 4^k sigma_x^2 + 4 (4^k - 1)/12.
func (f Flood) Variance() float64 {
	x := tableVariance(floodTail[:]) * (1 + z0*z0) * (1 + z1*z1) * (1 + z2*z2)
	scale := math.Ldexp(1, 2*int(f.k))
	return scale*x + (scale-1)/3
}

// Std returns the standard deviation of what Sample draws.
func (f Flood) Std() float64 { return math.Sqrt(f.Variance()) }

// Bound returns the largest absolute value that Sample can draw, below 2^114.
func (f Flood) Bound() Int128 {
	x := Int128From(int64(len(floodTail)) * (1 + z0) * (1 + z1) * (1 + z2))
	return x.Lsh(f.k).Add(f.centre())
}

// String returns the name as it is printed in parameter sets.
func (f Flood) String() string {
	return fmt.Sprintf("flooding(sigma=2^%.2f)", math.Log2(f.Std()))
}

// centre returns 2 (2^k - 1), the mean of u1 + u2 + u3 + u4.
func (f Flood) centre() Int128 { return Int128From(2).Lsh(f.k).Add(Int128From(-2)) }

// Narrow reports whether every sample fits into one word: whether SampleNarrow draws it.
func (f Flood) Narrow() bool { return f.k <= mostNarrowBits }

// mostNarrowBits keeps |e| < 2^(44+17.8) + 2^46 below 2^62.
const mostNarrowBits = 44

// Sample fills dst with independent samples. Each takes 96 bytes of keystream,
// or 128 if the deviation is above 2^76.06, so that the first samples are the same
// however many follow.
func (f Flood) Sample(dst []Int128, s *keystream.Stream) {
	secret.Do(func() { f.sample(dst, s) })
}

// SampleNarrow is Sample of a Narrow one: the same samples, in words, |e| < 2^62.
func (f Flood) SampleNarrow(dst []int64, s *keystream.Stream) {
	secret.Do(func() { f.sampleNarrow(dst, s) })
}

func (f Flood) sample(dst []Int128, s *keystream.Stream) {
	var b floodBatch
	table, down := floodTable(), f.centre().Neg()
	for len(dst) > 0 {
		now := dst[:b.draw(f, len(dst), table, s)]
		for i := range now {
			now[i] = Int128From(b.wide(i)).Lsh(f.k).Add(f.sumLowBits(b.low(f, i))).Add(down)
		}
		dst = dst[len(now):]
	}
	b.wipe()
}

func (f Flood) sampleNarrow(dst []int64, s *keystream.Stream) {
	var b floodBatch
	table, down, k := floodTable(), int64(f.centre().Lo), f.k&63
	mask := uint64(1)<<k - 1
	for len(dst) > 0 {
		now := dst[:b.draw(f, len(dst), table, s)]
		for i := range now {
			now[i] = b.wide(i)<<k + int64(sumLowWords(b.low(f, i), mask)) - down
		}
		dst = dst[len(now):]
	}
	b.wipe()
}

// floodBatch is what a few samples are made of.
type floodBatch struct {
	random [batchSamples * (floodBytes + 64)]byte
	words  [batchSamples * floodBytes]byte
	table  [batchSamples * floodWords]int8
}

const (
	batchSamples = 16
	floodBytes   = 8 * floodWords
)

// bytes returns how many bytes of keystream a sample takes.
func (f Flood) bytes() int {
	if f.k > oneWordBits {
		return floodBytes + 64
	}
	return floodBytes + 32
}

// draw draws what the next samples are made of, and returns how many.
func (b *floodBatch) draw(f Flood, wanted int, table *table, s *keystream.Stream) int {
	count, bytes := min(wanted, batchSamples), f.bytes()
	s.Fill(b.random[:count*bytes])
	for i := range count {
		copy(b.words[floodBytes*i:][:floodBytes], b.random[bytes*i:])
	}
	table.sample(b.table[:floodWords*count], b.words[:floodBytes*count])
	return count
}

// wide returns x of a sample, |x| < 2^17.8.
func (b *floodBatch) wide(i int) int64 {
	a := (*[floodWords]int8)(b.table[floodWords*i:])
	pair := func(i int) int64 { return int64(a[i]) + z0*int64(a[i+1]) }
	return pair(0) + z1*pair(2) + z2*(pair(4)+z1*pair(6))
}

func (b *floodBatch) wipe() {
	clear(b.random[:])
	clear(b.words[:])
	clear(b.table[:])
}

// low returns the keystream of a sample's low bits.
func (b *floodBatch) low(f Flood, i int) []byte {
	bytes := f.bytes()
	return b.random[bytes*i+floodBytes : bytes*(i+1)]
}

// sumLowBits returns u1 + u2 + u3 + u4 < 2^(k+2), with 32 bytes of keystream if one
// word holds the sum, with 64 otherwise.
func (f Flood) sumLowBits(random []byte) Int128 {
	if f.k <= oneWordBits {
		return Int128{Lo: sumLowWords(random, 1<<f.k-1)}
	}
	mask := Int128From(1).Lsh(f.k).Add(Int128From(-1))
	var sum Int128
	for i := range 4 {
		sum = sum.Add(Int128{
			Hi: int64(binary.LittleEndian.Uint64(random[16*i+8:])) & mask.Hi,
			Lo: binary.LittleEndian.Uint64(random[16*i:]) & mask.Lo,
		})
	}
	return sum
}

// sumLowWords returns the sum of four words, of each the bits of the mask.
func sumLowWords(random []byte, mask uint64) (sum uint64) {
	random = random[:32]
	for i := range 4 {
		sum += binary.LittleEndian.Uint64(random[8*i:]) & mask
	}
	return sum
}
