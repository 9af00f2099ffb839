package radio

import (
	"math"
	"math/bits"
	"strconv"
	"time"
)

// Hertz is a frequency or a sample rate.
type Hertz float64

// Decibels is a ratio of powers: 10 log10 of it.
type Decibels float64

// Amplitude is the modulus of a sample, 1 at full scale.
type Amplitude float64

// Power is an amplitude squared, 1 at full scale.
type Power float64

// SampleIndex is a position on a stream's own clock, in sample periods.
type SampleIndex int64

// SampleCount is a number of samples.
type SampleCount int64

// Epoch numbers the stretches of a stream within which phase stays the same. 0
// stands for not known; streams count from 1.
type Epoch uint64

// Forever is an index that no stream reaches.
const Forever SampleIndex = math.MaxInt64

// String returns the frequency with the largest unit that leaves at least one.
func (f Hertz) String() string {
	units := [...]struct {
		scale float64
		name  string
	}{{1e12, " THz"}, {1e9, " GHz"}, {1e6, " MHz"}, {1e3, " kHz"}}
	for _, u := range units {
		if math.Abs(float64(f)) >= u.scale {
			return strconv.FormatFloat(float64(f)/u.scale, 'g', 12, 64) + u.name
		}
	}
	return strconv.FormatFloat(float64(f), 'g', 12, 64) + " Hz"
}

// String returns the number with its unit.
func (d Decibels) String() string { return strconv.FormatFloat(float64(d), 'g', 6, 64) + " dB" }

// Power returns 10^(d/10).
func (d Decibels) Power() Power { return Power(math.Pow(10, float64(d)/10)) }

// Amplitude returns 10^(d/20).
func (d Decibels) Amplitude() Amplitude { return Amplitude(math.Pow(10, float64(d)/20)) }

// Power returns a^2.
func (a Amplitude) Power() Power { return Power(a * a) }

// Decibels returns 10 log10(p); p must be 0 or more, and 0 gives minus infinity.
func (p Power) Decibels() Decibels { return Decibels(10 * math.Log10(float64(p))) }

const maxDuration = time.Duration(math.MaxInt64)

// Duration returns the time that n samples take at a rate above 0, rounded up to
// the nanosecond, so that it has passed only when the samples have; the longest
// time.Duration if it is longer. n must be 0 or more.
func (rate Hertz) Duration(n SampleCount) time.Duration {
	whole := uint64(rate)
	if Hertz(whole) != rate {
		ns := math.Ceil(float64(n) / float64(rate) * 1e9)
		if ns >= float64(maxDuration) {
			return maxDuration
		}
		return time.Duration(ns)
	}
	// A product of 128 bits: at 10 Msps a float64 would lose nanoseconds within
	// months and a uint64 overflow within minutes.
	hi, lo := bits.Mul64(uint64(n), 1e9)
	if hi >= whole {
		return maxDuration
	}
	ns, rest := bits.Div64(hi, lo, whole)
	if rest > 0 {
		ns++
	}
	return time.Duration(min(ns, uint64(maxDuration)))
}

// Samples returns the number of whole samples in d, 0 or more, at a rate above 0.
func (rate Hertz) Samples(d time.Duration) SampleCount {
	whole := uint64(rate)
	if Hertz(whole) != rate {
		return SampleCount(d.Seconds() * float64(rate))
	}
	hi, lo := bits.Mul64(uint64(d), whole)
	if hi >= 1e9 {
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, 1e9)
	return SampleCount(min(n, math.MaxInt64))
}
