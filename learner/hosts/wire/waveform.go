package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"ringwave/phy"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// Due names a frame of a waveform link within its transmission.
type Due struct{ Group, Repeat int }

// dueSize is the length of a Due: two bytes and one, as headers of frames have them.
const dueSize = 3

func (d Due) append(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(d.Group)), uint8(d.Repeat))
}

// takeDue reads a name, and returns what is behind it.
func takeDue(b []byte) (d Due, rest []byte, err error) {
	if len(b) < dueSize {
		return d, nil, fmt.Errorf("%w: %d bytes where a frame's name should be", ErrMessage, len(b))
	}
	return Due{int(binary.LittleEndian.Uint16(b)), int(b[2])}, b[dueSize:], nil
}

// Bytes returns the body of Listen.
func (d Due) Bytes() []byte { return d.append(nil) }

// ParseDue reads the body of Listen.
func ParseDue(b []byte) (Due, error) {
	d, rest, err := takeDue(b)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes behind a frame's name", ErrMessage, len(rest))
	}
	return d, err
}

// AppendWaveformFrame appends what a device puts on the air of a waveform link: its symbols,
// and how its transmitter sends them.
func AppendWaveformFrame(b []byte, f phy.WaveformFrame) []byte {
	b = Due{f.Group, f.Repeat}.append(b)
	for _, x := range numbersOf(f) {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Correction.Since))
	for _, s := range f.Symbols {
		b = append(b, byte(s))
	}
	return b
}

// numbersOf returns gain, drive and correction, one number behind the other.
func numbersOf(f phy.WaveformFrame) []float64 {
	d, c := f.Drive, f.Correction
	x := []float64{
		float64(f.Gain), float64(d.Peak), float64(d.Amplitude), float64(d.Phase), float64(d.Advance),
		float64(c.Offset), real(c.Image), imag(c.Image), real(c.Leakage), imag(c.Leakage), c.Clock,
	}
	for _, e := range c.Echoes {
		x = append(x, float64(e.Delay), real(e.Gain), imag(e.Gain))
	}
	return x
}

// numbers is how many numbersOf returns.
const numbers = 11 + 3*modem.MaxEchoes

// ParseWaveformFrame reads a frame that is all of b. What its numbers may be, who sends it on
// says (phy.WaveformAir).
func ParseWaveformFrame(b []byte) (f phy.WaveformFrame, err error) {
	d, b, err := takeDue(b)
	if err != nil {
		return f, err
	}
	if n := len(b) - 8*(numbers+1); n < 1 || n > phy.MaxFrameSymbols {
		return f, fmt.Errorf("%w: a frame of %d symbols; allowed are 1 to %d", ErrMessage, n, phy.MaxFrameSymbols)
	}
	var x [numbers]float64
	for i := range x {
		if x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b)); math.IsNaN(x[i]) || math.IsInf(x[i], 0) {
			return f, fmt.Errorf("%w: a device sends by the number %v: it must be finite", ErrMessage, x[i])
		}
		b = b[8:]
	}
	gain, peak := float32(x[0]), float32(x[1])
	if float64(gain) != x[0] || float64(peak) != x[1] {
		return f, fmt.Errorf("%w: a device sends symbols up to %v at the gain %v: both must be numbers of 32 bits", ErrMessage, x[1], x[0])
	}
	f = phy.WaveformFrame{
		Group: d.Group, Repeat: d.Repeat, Gain: gain,
		Drive: modem.Drive{Peak: peak, Amplitude: modem.Amplitude(x[2]), Phase: modem.Radians(x[3]), Advance: modem.Samples(x[4])},
		Correction: modem.Correction{
			Offset: modem.CyclesPerSample(x[5]), Image: complex(x[6], x[7]), Leakage: complex(x[8], x[9]), Clock: x[10],
			Since: int64(binary.LittleEndian.Uint64(b)),
		},
	}
	for i := range f.Correction.Echoes {
		e := x[11+3*i:]
		f.Correction.Echoes[i] = modem.Echo{Delay: modem.Samples(e[0]), Gain: complex(e[1], e[2])}
	}
	b = b[8:]
	f.Symbols = make([]int8, len(b))
	for i, s := range b {
		f.Symbols[i] = int8(s)
	}
	return f, nil
}

// MaxSamples bounds the samples of a frame.
const MaxSamples = 1 << 28

// HeardSize returns how many bytes AppendHeard appends for so many samples.
func HeardSize(samples int) int { return dueSize + 3*4 + 8*samples }

// AppendHeard appends a part of what arrives of a frame.
func AppendHeard(b []byte, d Due, h phy.Heard) []byte {
	b = d.append(b)
	for _, n := range []int{h.At, h.Of, int(h.Clipped)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	for _, x := range h.Samples {
		b = binary.LittleEndian.AppendUint64(b, uint64(math.Float32bits(real(x)))|uint64(math.Float32bits(imag(x)))<<32)
	}
	return b
}

// TakeHeard reads the name of a part of a frame, where it lies, and its bytes, which
// ReadSamples reads. Of is bounded by MaxSamples, and the part is within it.
func TakeHeard(b []byte) (d Due, h phy.Heard, samples []byte, err error) {
	d, b, err = takeDue(b)
	if err != nil {
		return d, h, nil, err
	}
	if len(b) < 12 || len(b)%8 != 4 {
		return d, h, nil, fmt.Errorf("%w: %d bytes of samples", ErrMessage, len(b))
	}
	at, of, clipped := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	b = b[12:]
	if n := uint64(len(b) / 8); of > MaxSamples || uint64(at)+n > uint64(of) || uint64(clipped) > n || n == 0 {
		return d, h, nil, fmt.Errorf("%w: %d samples, %d of them clipped, from sample %d of %d on; allowed are up to %d", ErrMessage, n, clipped, at, of, MaxSamples)
	}
	return d, phy.Heard{At: int(at), Of: int(of), Clipped: radio.SampleCount(clipped)}, b, nil
}

// ReadSamples reads what TakeHeard gave into dst, of as many samples, and reports whether
// all are numbers.
func ReadSamples(dst []complex64, b []byte) bool {
	sum := float32(0)
	for k := range dst {
		bits := binary.LittleEndian.Uint64(b[8*k:])
		re, im := math.Float32frombits(uint32(bits)), math.Float32frombits(uint32(bits>>32))
		sum += re*0 + im*0
		dst[k] = complex(re, im)
	}
	return sum == 0
}
