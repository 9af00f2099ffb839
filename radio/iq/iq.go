// Package iq converts samples to the bytes that boards and recordings have, and back.
//
// It knows how I and Q stand in bytes, how an amplitude is rounded to an integer and what
// is limited. It knows nothing of boards, streams and files.
package iq

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Format is what I and Q are in bytes; I comes first.
type Format uint8

const (
	CI8    Format = iota // signed, of 8 bits
	CU8                  // of 8 bits, where u stands for u - 127.5
	CI16LE               // signed, of 16 bits, little-endian
	CI16BE               // signed, of 16 bits, big-endian
	CF32LE               // single precision, little-endian
)

// SampleBytes returns the length of a sample.
func (f Format) SampleBytes() int {
	switch f {
	case CI8, CU8:
		return 2
	case CI16LE, CI16BE:
		return 4
	}
	return 8
}

// Config describes the bytes of a stream.
type Config struct {
	Format Format
	// Step is the amplitude between an integer and the next, above 0. CF32LE has none.
	Step float64
	// Bits is the width of an integer within 16 bits, 0 for 16, and Shift the number
	// of unused bits to the right of it.
	Bits, Shift int
	// Single has Encode to CI8 scale in single precision, which is faster. It differs
	// where that rounds what lies beside the middle of two integers to the middle.
	Single bool
}

// Counts are of samples; each counts once whether I, Q or both are concerned.
type Counts struct {
	// Clipped were beyond the range of the integers and were set to its end, or, when
	// decoded, are at or below an end that is sent.
	Clipped int
	// Invalid were infinite or NaN.
	Invalid int
	// Limited were clipped or NaN: what integers cannot tell.
	Limited int
}

// Codec converts between samples and bytes. It is safe for use by several goroutines.
type Codec struct {
	cfg Config
	// limit is the largest integer that is encoded. The least is its negative, so that
	// both signs have the same range; CU8 has its range shifted by a half.
	limit int
	// drop moves the integer within 16 bits to the left end, and narrow back to the
	// right end, which extends its sign.
	drop, narrow int

	amplitudes [1 << 8]float32 // of the bytes of CI8 and CU8
	ends       [1 << 8]uint8   // 1 for those at the ends of the range
}

// New returns a codec.
func New(cfg Config) *Codec {
	c := &Codec{cfg: cfg}
	switch cfg.Format {
	case CI8:
		c.limit = math.MaxInt8
		c.ends[0x80] = 1
		c.ends[0x81] = 1
		c.ends[0x7f] = 1
	case CU8:
		c.ends[0x00] = 1
		c.ends[0xff] = 1
	case CI16LE, CI16BE:
		width := cfg.Bits
		if width == 0 {
			width = 16
		}
		c.limit = 1<<(width-1) - 1
		c.narrow = 16 - width
		c.drop = c.narrow - cfg.Shift
	}
	for b := range c.amplitudes {
		v := float64(int8(b))
		if cfg.Format == CU8 {
			v = float64(b) - 127.5
		}
		c.amplitudes[b] = float32(v * cfg.Step)
	}
	return c
}

// Decode reads len(dst) samples from src. Of CF32LE, what is not finite becomes 0, so
// that it does not spoil all that a filter makes of it.
func (c *Codec) Decode(dst []complex64, src []byte) (n Counts) {
	src = src[:c.cfg.Format.SampleBytes()*len(dst)]
	switch c.cfg.Format {
	case CI8, CU8:
		n.Clipped = c.decode8(dst, src)
	case CI16LE, CI16BE:
		n.Clipped = c.decode16(dst, src)
	case CF32LE:
		n.Invalid = decodeFloats(dst, src)
	}
	return n
}

func (c *Codec) decode8(dst []complex64, src []byte) (clipped int) {
	src = src[:2*len(dst)]
	for k := range dst {
		i, q := src[2*k], src[2*k+1]
		dst[k] = complex(c.amplitudes[i], c.amplitudes[q])
		clipped += int(c.ends[i] | c.ends[q])
	}
	return clipped
}

func (c *Codec) decode16(dst []complex64, src []byte) (clipped int) {
	drop, narrow, step, limit := c.drop&15, c.narrow&15, c.cfg.Step, c.limit
	swap := c.cfg.Format == CI16BE
	for k := range dst {
		both := binary.LittleEndian.Uint32(src[4*k:])
		if swap {
			both = bits.RotateLeft32(bits.ReverseBytes32(both), 16)
		}
		i, q := int(int16(uint16(both)<<drop)>>narrow), int(int16(uint16(both>>16)<<drop)>>narrow)
		dst[k] = complex(float32(float64(i)*step), float32(float64(q)*step))
		if max(i, -i, q, -q) >= limit {
			clipped++
		}
	}
	return clipped
}

func decodeFloats(dst []complex64, src []byte) (invalid int) {
	for k := range dst {
		both := binary.LittleEndian.Uint64(src[8*k:])
		x := complex(math.Float32frombits(uint32(both)), math.Float32frombits(uint32(both>>32)))
		if !finite(x) {
			x = 0
			invalid++
		}
		dst[k] = x
	}
	return invalid
}

// Encode writes the samples of src to dst, as the nearest integers within the limit,
// ties to even, and of CU8 ties up, or as they are. NaN has no integer and becomes 0, or
// the 128 of CU8; in CF32LE it stays, as infinities do.
func (c *Codec) Encode(dst []byte, src []complex64) (n Counts) {
	dst = dst[:c.cfg.Format.SampleBytes()*len(src)]
	switch {
	case c.cfg.Format == CF32LE:
		n.Invalid = encodeFloats(dst, src)
	case c.cfg.Format == CU8:
		c.encodeOffset(dst, src, &n)
	case c.cfg.Format == CI8 && c.cfg.Single:
		c.encodeSingle(dst, src, &n)
	default:
		c.encodeIntegers(dst, src, &n)
	}
	return n
}

func encodeFloats(dst []byte, src []complex64) (invalid int) {
	for k, x := range src {
		if !finite(x) {
			invalid++
		}
		both := uint64(math.Float32bits(imag(x)))<<32 | uint64(math.Float32bits(real(x)))
		binary.LittleEndian.PutUint64(dst[8*k:], both)
	}
	return invalid
}

// roundingBias32 makes the lowest bits of a float32 those of the number rounded to the
// nearest integer, ties to even: at 1.5 * 2^23 their step is 1. roundingBias64 does so
// for a float64.
const (
	roundingBias32 = 3 << 22
	roundingBias64 = 3 << 51
)

func (c *Codec) encodeSingle(dst []byte, src []complex64, n *Counts) {
	// All limits are odd, so that half a step more is the least that rounds beyond.
	limit, perUnit := float32(c.limit), float32(1/c.cfg.Step)
	beyond := limit + 0.5
	for k, x := range src {
		i, q := real(x)*perUnit, imag(x)*perUnit
		if !(i < beyond && i > -beyond && q < beyond && q > -beyond) {
			n.limited(x, outside(i, beyond) || outside(q, beyond))
			i, q = within(i, limit), within(q, limit)
		}
		dst[2*k] = byte(math.Float32bits(i + roundingBias32))
		dst[2*k+1] = byte(math.Float32bits(q + roundingBias32))
	}
}

func (c *Codec) encodeIntegers(dst []byte, src []complex64, n *Counts) {
	limit, step := float64(c.limit), c.cfg.Step
	beyond := limit + 0.5
	left := (c.narrow - c.drop) & 15
	for k, x := range src {
		i, q := float64(real(x))/step, float64(imag(x))/step
		if !(i < beyond && i > -beyond && q < beyond && q > -beyond) {
			n.limited(x, outside(i, beyond) || outside(q, beyond))
			i, q = within(i, limit), within(q, limit)
		}
		a, b := uint16(math.Float64bits(i+roundingBias64)), uint16(math.Float64bits(q+roundingBias64))
		switch c.cfg.Format {
		case CI8:
			dst[2*k], dst[2*k+1] = byte(a), byte(b)
		case CI16LE:
			binary.LittleEndian.PutUint32(dst[4*k:], uint32(a<<left)|uint32(b<<left)<<16)
		case CI16BE:
			binary.BigEndian.PutUint32(dst[4*k:], uint32(a<<left)<<16|uint32(b<<left))
		}
	}
}

// encodeOffset rounds ties up, so that an amplitude of 0 is 128, as converters have it.
func (c *Codec) encodeOffset(dst []byte, src []complex64, n *Counts) {
	for k, x := range src {
		i, q := math.Floor(float64(real(x))/c.cfg.Step+128), math.Floor(float64(imag(x))/c.cfg.Step+128)
		if !(i >= 0 && i <= math.MaxUint8 && q >= 0 && q <= math.MaxUint8) {
			n.limited(x, i < 0 || i > math.MaxUint8 || q < 0 || q > math.MaxUint8)
			i, q = 128+within(i-128, 128), 128+within(q-128, 128)
			i, q = min(i, math.MaxUint8), min(q, math.MaxUint8)
		}
		dst[2*k], dst[2*k+1] = byte(i), byte(q)
	}
}

// limited counts a sample that no integers tell.
func (n *Counts) limited(x complex64, clipped bool) {
	n.Limited++
	if clipped {
		n.Clipped++
	}
	if !finite(x) {
		n.Invalid++
	}
}

func outside[T float32 | float64](v, beyond T) bool { return v >= beyond || v <= -beyond }

// within returns v within the limits, 0 for NaN.
func within[T float32 | float64](v, limit T) T {
	switch {
	case v > limit:
		return limit
	case v < -limit:
		return -limit
	case v != v:
		return 0
	}
	return v
}

// finite reports whether both parts are numbers.
func finite(x complex64) bool { return finitePart(real(x)) && finitePart(imag(x)) }

// finitePart looks for the exponent of infinities and NaN (IEEE 754).
func finitePart(v float32) bool {
	const exponent = 0xff << 23
	return math.Float32bits(v)&exponent != exponent
}
