package pluto

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"ringwave/radio"
)

// format is how I or Q stand in the 16 bits that they have.
type format struct {
	order binary.ByteOrder
	bits  int // that count, 12 to 16
	shift int // of these from the right
}

const (
	// converterBits is the width of the board's converters.
	converterBits = 12
	// fullScale is the converter's integer for an amplitude of 1. The integer
	// below its negative is received and never sent.
	fullScale = 1<<(converterBits-1) - 1
	// clipLevel is the amplitude that only integers at the limit reach.
	clipLevel radio.Amplitude = (fullScale - 0.5) / fullScale
	// sampleBytes is the length of a sample: I and Q of 16 bits.
	sampleBytes = 4
)

var formats = regexp.MustCompile(`^(le|be):[sS](\d{1,2})/16>>(\d{1,2})$`)

// parseFormat reads a format as descriptions have it: le:S12/16>>0.
func parseFormat(s string) (format, error) {
	m := formats.FindStringSubmatch(s)
	if m == nil {
		return format{}, fmt.Errorf("samples have the format %q; allowed is signed in 16 bits, as le:S12/16>>0", s)
	}
	f := format{order: binary.LittleEndian}
	if m[1] == "be" {
		f.order = binary.BigEndian
	}
	f.bits, _ = strconv.Atoi(m[2]) // two digits
	f.shift, _ = strconv.Atoi(m[3])
	if f.bits < converterBits || f.bits+f.shift > 16 {
		return format{}, fmt.Errorf("samples have the format %q; allowed is %d bits or more within 16", s, converterBits)
	}
	return f, nil
}

// decode reads len(dst) samples from src and counts those at the converter's limit.
func (f format) decode(dst []complex64, src []byte) (clipped int) {
	src = src[:sampleBytes*len(dst)]
	for k := range dst {
		s := src[sampleBytes*k : sampleBytes*k+sampleBytes]
		i, q := f.code(f.order.Uint16(s)), f.code(f.order.Uint16(s[2:]))
		dst[k] = complex(float32(i)/fullScale, float32(q)/fullScale)
		if atLimit(i) || atLimit(q) {
			clipped++
		}
	}
	return clipped
}

// code gives the converter's integer: what is wider than the converter is shifted
// down to it.
func (f format) code(raw uint16) int {
	return int(int16(raw<<(16-f.bits-f.shift)) >> (16 - converterBits))
}

func atLimit(code int) bool { return code >= fullScale || code <= -fullScale }

// encode writes the samples of src to dst and counts those that were limited. What
// is not a number becomes 0 and counts, too.
func (f format) encode(dst []byte, src []complex64) (clipped int) {
	dst = dst[:sampleBytes*len(src)]
	for k, x := range src {
		i, iClipped := quantise(real(x))
		q, qClipped := quantise(imag(x))
		f.order.PutUint16(dst[sampleBytes*k:], f.raw(i))
		f.order.PutUint16(dst[sampleBytes*k+2:], f.raw(q))
		if iClipped || qClipped {
			clipped++
		}
	}
	return clipped
}

// raw puts an integer into the upper bits of those that count.
func (f format) raw(code int) uint16 { return uint16(code) << (f.bits - converterBits + f.shift) }

// quantise gives round(2047 x), ties to even, limited to 2047 on both sides.
func quantise(x float32) (code int, clipped bool) {
	v := math.RoundToEven(float64(x) * fullScale)
	switch {
	case v != v:
		return 0, true
	case v > fullScale:
		return fullScale, true
	case v < -fullScale:
		return -fullScale, true
	}
	return int(v), false
}
