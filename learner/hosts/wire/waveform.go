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
	b = AppendMakeUp(appendNumber(b, float64(f.Gain)), f.MakeUp)
	for _, s := range f.Symbols {
		b = append(b, byte(s))
	}
	return b
}

func appendNumber(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

// AppendMakeUp appends what a device makes up for.
func AppendMakeUp(b []byte, m phy.MakeUp) []byte {
	for _, x := range numbersOf(m) {
		b = appendNumber(b, x)
	}
	return binary.LittleEndian.AppendUint64(b, uint64(m.Correction.Since))
}

// numbersOf returns drive and correction, one number behind the other.
func numbersOf(m phy.MakeUp) []float64 {
	d, c := m.Drive, m.Correction
	x := []float64{
		float64(d.Peak), float64(d.Amplitude), float64(d.Phase), float64(d.Advance),
		float64(c.Offset), real(c.Image), imag(c.Image), real(c.Leakage), imag(c.Leakage), c.Clock,
	}
	for _, e := range c.Echoes {
		x = append(x, float64(e.Delay), real(e.Gain), imag(e.Gain))
	}
	return x
}

// numbers is how many numbersOf returns.
const numbers = 10 + 3*modem.MaxEchoes

// takeNumbers reads finite numbers into x, and returns what is behind them.
func takeNumbers(b []byte, x []float64) ([]byte, error) {
	if len(b) < 8*len(x) {
		return nil, fmt.Errorf("%w: %d bytes where %d numbers should be", ErrMessage, len(b), len(x))
	}
	for i := range x {
		if x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b)); math.IsNaN(x[i]) || math.IsInf(x[i], 0) {
			return nil, fmt.Errorf("%w: a device sends by the number %v: it must be finite", ErrMessage, x[i])
		}
		b = b[8:]
	}
	return b, nil
}

// ParseMakeUp reads what a device makes up for, which is all of b. What its numbers may be,
// who sends by them says (phy.WaveformSender).
func ParseMakeUp(b []byte) (phy.MakeUp, error) {
	m, rest, err := takeMakeUp(b)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes behind what a device makes up for", ErrMessage, len(rest))
	}
	return m, err
}

func takeMakeUp(b []byte) (m phy.MakeUp, rest []byte, err error) {
	var x [numbers]float64
	if rest, err = takeNumbers(b, x[:]); err != nil {
		return m, nil, err
	}
	if len(rest) < 8 {
		return m, nil, fmt.Errorf("%w: %d bytes where an index should be", ErrMessage, len(rest))
	}
	peak := float32(x[0])
	if float64(peak) != x[0] {
		return m, nil, fmt.Errorf("%w: a device sends symbols up to %v: it must be a number of 32 bits", ErrMessage, x[0])
	}
	m = phy.MakeUp{
		Drive: modem.Drive{Peak: peak, Amplitude: modem.Amplitude(x[1]), Phase: modem.Radians(x[2]), Advance: modem.Samples(x[3])},
		Correction: modem.Correction{
			Offset: modem.CyclesPerSample(x[4]), Image: complex(x[5], x[6]), Leakage: complex(x[7], x[8]), Clock: x[9],
			Since: int64(binary.LittleEndian.Uint64(rest)),
		},
	}
	for i := range m.Correction.Echoes {
		e := x[10+3*i:]
		m.Correction.Echoes[i] = modem.Echo{Delay: modem.Samples(e[0]), Gain: complex(e[1], e[2])}
	}
	return m, rest[8:], nil
}

// ParseWaveformFrame reads a frame that is all of b. What its numbers may be, who sends it on
// says (phy.WaveformAir).
func ParseWaveformFrame(b []byte) (f phy.WaveformFrame, err error) {
	d, b, err := takeDue(b)
	if err != nil {
		return f, err
	}
	if n := len(b) - 8*(numbers+2); n < 1 || n > phy.MaxFrameSymbols {
		return f, fmt.Errorf("%w: a frame of %d symbols; allowed are 1 to %d", ErrMessage, n, phy.MaxFrameSymbols)
	}
	var gain [1]float64
	if b, err = takeNumbers(b, gain[:]); err != nil {
		return f, err
	}
	f = phy.WaveformFrame{Group: d.Group, Repeat: d.Repeat, Gain: float32(gain[0])}
	if float64(f.Gain) != gain[0] {
		return f, fmt.Errorf("%w: a device sends at the gain %v: it must be a number of 32 bits", ErrMessage, gain[0])
	}
	if f.MakeUp, b, err = takeMakeUp(b); err != nil {
		return f, err
	}
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
