package sigmf

import (
	"encoding/binary"
	"math"

	"ringwave/radio"
)

// Datatype is a dataset format as SigMF writes it.
type Datatype string

const (
	CI8  Datatype = "ci8"     // complex, 8-bit integers
	CI16 Datatype = "ci16_le" // complex, 16-bit integers, little-endian
	CF32 Datatype = "cf32_le" // complex, single precision, little-endian
)

const allowedDatatypes = "ci8, ci16_le, cf32_le"

// sampleBytes gives the length of a sample, 0 for what is no Datatype.
func (d Datatype) sampleBytes() int {
	switch d {
	case CI8:
		return 2
	case CI16:
		return 4
	case CF32:
		return 8
	}
	return 0
}

// limit gives the largest integer written; the smallest is its negative, so that
// both signs have the same range.
func (d Datatype) limit() float64 {
	if d == CI8 {
		return math.MaxInt8
	}
	return math.MaxInt16
}

// customaryScale is for recordings that do not say theirs.
func (d Datatype) customaryScale() float64 {
	switch d {
	case CI8:
		return 1.0 / (1 << 7)
	case CI16:
		return 1.0 / (1 << 15)
	}
	return 1
}

// counts are of samples, each counted at most once.
type counts struct{ clipped, invalid radio.SampleCount }

// encode appends samples to dst as integers round(x/scale), ties to even, within
// the limit, or as they are. NaN has no integer and becomes 0; an infinity is
// clipped. In cf32 both stay, and count as invalid.
func (d Datatype) encode(dst []byte, samples []complex64, scale float64) ([]byte, counts) {
	var c counts
	if d == CF32 {
		for _, x := range samples {
			if !finite(x) {
				c.invalid++
			}
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(real(x)))
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(imag(x)))
		}
		return dst, c
	}
	limit := d.limit()
	for _, x := range samples {
		i, iClipped := quantise(real(x), scale, limit)
		q, qClipped := quantise(imag(x), scale, limit)
		if iClipped || qClipped {
			c.clipped++
		}
		if !finite(x) {
			c.invalid++
		}
		if d == CI8 {
			dst = append(dst, byte(i), byte(q))
		} else {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(i))
			dst = binary.LittleEndian.AppendUint16(dst, uint16(q))
		}
	}
	return dst, c
}

func quantise(x float32, scale, limit float64) (code int16, clipped bool) {
	v := math.RoundToEven(float64(x) / scale)
	switch {
	case v > limit:
		return int16(limit), true
	case v < -limit:
		return int16(-limit), true
	case v != v:
		return 0, false
	}
	return int16(v), false
}

// decode reads len(dst) samples from src. What is not finite becomes 0, so that
// it does not spoil all that a filter gives afterwards, and is counted.
func (d Datatype) decode(dst []complex64, src []byte, scale float64) (invalid radio.SampleCount) {
	switch d {
	case CI8:
		for k := range dst {
			s := src[2*k : 2*k+2]
			dst[k] = complex(amplitude(int16(int8(s[0])), scale), amplitude(int16(int8(s[1])), scale))
		}
	case CI16:
		for k := range dst {
			s := src[4*k : 4*k+4]
			i, q := int16(binary.LittleEndian.Uint16(s)), int16(binary.LittleEndian.Uint16(s[2:]))
			dst[k] = complex(amplitude(i, scale), amplitude(q, scale))
		}
	case CF32:
		for k := range dst {
			s := src[8*k : 8*k+8]
			x := complex(math.Float32frombits(binary.LittleEndian.Uint32(s)), math.Float32frombits(binary.LittleEndian.Uint32(s[4:])))
			if !finite(x) {
				x = 0
				invalid++
			}
			dst[k] = x
		}
	}
	return invalid
}

func amplitude(code int16, scale float64) float32 { return float32(float64(code) * scale) }

// finite tells whether both parts are numbers.
func finite(x complex64) bool { return finitePart(real(x)) && finitePart(imag(x)) }

// finitePart looks for the exponent of infinities and NaN (IEEE 754).
func finitePart(v float32) bool {
	const exponent = 0xff << 23
	return math.Float32bits(v)&exponent != exponent
}
