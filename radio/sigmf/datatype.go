package sigmf

import (
	"math"

	"ringwave/radio/iq"
)

// Datatype is a dataset format as SigMF writes it.
type Datatype string

const (
	CI8  Datatype = "ci8"     // complex, 8-bit integers
	CI16 Datatype = "ci16_le" // complex, 16-bit integers, little-endian
	CF32 Datatype = "cf32_le" // complex, single precision, little-endian
)

const allowedDatatypes = "ci8, ci16_le, cf32_le"

// format returns how the bytes of a dataset stand for samples; ok is false for what is
// no Datatype.
func (d Datatype) format() (f iq.Format, ok bool) {
	switch d {
	case CI8:
		return iq.CI8, true
	case CI16:
		return iq.CI16LE, true
	case CF32:
		return iq.CF32LE, true
	}
	return 0, false
}

// codec converts between samples and integers that stand for multiples of scale.
func (d Datatype) codec(scale float64) *iq.Codec {
	format, _ := d.format()
	return iq.New(iq.Config{Format: format, Step: scale})
}

// sampleBytes returns the length of a sample.
func (d Datatype) sampleBytes() int {
	format, _ := d.format()
	return format.SampleBytes()
}

// limit returns the largest integer written; the smallest is its negative, so that
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
