package rtlsdr

import (
	"errors"
	"fmt"
	"math/bits"

	"ringwave/radio"
)

// tunerModel is one of the tuners that are driven alike. The R820T2 cannot be told
// from the R820T.
type tunerModel int

const (
	r820t tunerModel = iota
	r828d
)

// String returns the name that users know.
func (m tunerModel) String() string {
	if m == r828d {
		return "R828D"
	}
	return "R820T/R820T2"
}

// address returns the tuner's I2C address.
func (m tunerModel) address() byte {
	if m == r828d {
		return 0x74
	}
	return 0x34
}

// crystal returns the frequency of the tuner's crystal. The R820T shares that of
// the RTL2832U.
func (m tunerModel) crystal() float64 {
	if m == r828d {
		return 16e6
	}
	return demodCrystal
}

// fineReference is the state of the oscillator's fine tuning at which the divider
// is what the frequency says.
func (m tunerModel) fineReference() byte {
	if m == r828d {
		return 1
	}
	return 2
}

const (
	tunerID       = 0x69 // register 0 as it comes over the bus
	firstRegister = 0x05 // those before are only read
	maxI2CData    = 7    // bytes after the register's number in one message
)

// tunerInit are the registers from 0x05 to 0x1f after a reset.
var tunerInit = [...]byte{
	0x83, 0x32, 0x75, 0xc0, 0x40, 0xd6, 0x6c, 0xf5, 0x63, 0x75, 0x68, 0x6c, 0x83, 0x80,
	0x00, 0x0f, 0x00, 0xc0, 0x30, 0x48, 0xcc, 0x60, 0x00, 0x54, 0xae, 0x4a, 0xc0,
}

// tuner drives an R820T, R820T2 or R828D. Its methods need the repeater on, and
// their failures are the registers', except those of set.
type tuner struct {
	regs  *registers
	model tunerModel
	// crystal is the frequency of the crystal as corrected.
	crystal  float64
	shadow   [32]byte // what was written
	unlocked bool     // the synthesizer, where it was set last
}

// write sets registers from first on.
func (t *tuner) write(first byte, values ...byte) {
	copy(t.shadow[first:], values)
	for len(values) > 0 {
		n := min(len(values), maxI2CData)
		t.regs.i2cWrite(t.model.address(), append([]byte{first}, values[:n]...)...)
		first += byte(n)
		values = values[n:]
	}
}

// set changes the bits of a register that mask has.
func (t *tuner) set(reg, value, mask byte) {
	t.write(reg, t.shadow[reg]&^mask|value&mask)
}

// field is a change of some bits of a register.
type field struct{ reg, value, mask byte }

func (t *tuner) setAll(fields ...field) {
	for _, f := range fields {
		t.set(f.reg, f.value, f.mask)
	}
}

// read returns registers from 0 on. The tuner sends the bits in reverse.
func (t *tuner) read(dst []byte) {
	t.regs.i2cWrite(t.model.address(), 0)
	t.regs.i2cRead(t.model.address(), dst)
	for k, b := range dst {
		dst[k] = bits.Reverse8(b)
	}
}

// init brings the tuner up after power-on: registers, calibration of its channel
// filter, and what a receiver of samples needs of the rest.
func (t *tuner) init() error {
	t.write(firstRegister, tunerInit[:]...)
	code, err := t.calibrate()
	if err != nil {
		return err
	}
	t.setAll(
		field{0x0a, 0x10 | code, 0x1f},
		field{0x0b, 0x6b, 0xef}, // filter bandwidth
		field{0x07, 0x00, 0x80}, // image side
		field{0x06, 0x10, 0x30}, // filter gain
		field{0x1e, 0x60, 0x60}, // extension of the channel filter
		field{0x05, 0x01, 0x80}, // loop through off
		field{0x1f, 0x00, 0x80},
		field{0x0f, 0x00, 0x80},
		field{0x19, 0x60, 0x60}, // polyphase filter's current
	)
	t.setAll(
		field{0x1d, 0xe5, 0xc7}, field{0x1c, 0x24, 0xf8}, // detector of the LNA and of the mixer
		field{0x0d, 0x53, 0xff}, field{0x0e, 0x75, 0xff}, // thresholds of the automatic gains
		field{0x05, 0x00, 0x60}, field{0x06, 0x00, 0x08}, // antenna inputs
		field{0x11, 0x38, 0x38}, field{0x17, 0x30, 0x30}, field{0x0a, 0x40, 0x60}, // currents
		// The first stage settles with one set of thresholds and goes on with
		// another.
		field{0x1d, 0x00, 0x38}, field{0x1c, 0x00, 0x04}, field{0x06, 0x00, 0x40}, field{0x1a, 0x30, 0x30},
		field{0x1d, 0x18, 0x38}, field{0x1c, 0x24, 0x04}, field{0x1e, 0x0e, 0x1f}, field{0x1a, 0x20, 0x30},
	)
	return t.regs.err
}

// calibrationLO is where the channel filter is calibrated.
const calibrationLO = 56e6

// calibrate measures the channel filter and gives its code.
func (t *tuner) calibrate() (code byte, err error) {
	t.setAll(field{0x0c, 0x00, 0x0f}, field{0x13, 0x31, 0x3f}, field{0x1d, 0x00, 0x38})
	for range 2 {
		t.setAll(field{0x0b, 0x6b, 0x60}, field{0x0f, 0x04, 0x04}, field{0x10, 0x00, 0x03})
		if _, err := t.setLO(calibrationLO); err != nil {
			return 0, fmt.Errorf("calibrating the tuner's filter: %w", err)
		}
		t.setAll(field{0x0b, 0x10, 0x10}, field{0x0b, 0x00, 0x10}, field{0x0f, 0x00, 0x04})
		if t.unlocked {
			break // an oscillator that runs free measures nothing
		}
		var state [5]byte
		t.read(state[:])
		if code = state[4] & 0x0f; code != 0 && code != 0x0f {
			return code, t.regs.err
		}
	}
	// The widest filter is the safe one if the measurement says nothing.
	return 0, t.regs.err
}

// band is how the tuner's front end is switched from a frequency on.
type band struct {
	from             float64 // of the local oscillator, Hz
	openDrain        byte    // register 0x17, mask 0x08
	filter           byte    // register 0x1a, mask 0xc3
	trackingCapacity byte    // register 0x1b
}

var bands = [...]band{
	{0, 0x08, 0x02, 0xdf},
	{50e6, 0x08, 0x02, 0xbe},
	{55e6, 0x08, 0x02, 0x8b},
	{60e6, 0x08, 0x02, 0x7b},
	{65e6, 0x08, 0x02, 0x69},
	{70e6, 0x08, 0x02, 0x58},
	{75e6, 0x00, 0x02, 0x44},
	{90e6, 0x00, 0x02, 0x34},
	{110e6, 0x00, 0x02, 0x24},
	{140e6, 0x00, 0x02, 0x14},
	{180e6, 0x00, 0x02, 0x13},
	{250e6, 0x00, 0x02, 0x11},
	{280e6, 0x00, 0x02, 0x00},
	{310e6, 0x00, 0x41, 0x00},
	{588e6, 0x00, 0x40, 0x00},
}

func bandOf(lo float64) band {
	b := bands[0]
	for _, next := range bands {
		// Thresholds are in whole megahertz.
		if lo >= next.from {
			b = next
		}
	}
	return b
}

// r828dInputSwitch is the frequency above which an R828D receives on its other
// input.
const r828dInputSwitch = 345e6

// tune puts the local oscillator at the intermediate frequency above f and gives
// where it is.
func (t *tuner) tune(f, intermediate float64) (lo float64, err error) {
	b := bandOf(f + intermediate)
	t.setAll(
		field{0x17, b.openDrain, 0x08},
		field{0x1a, b.filter, 0xc3},
		field{0x1b, b.trackingCapacity, 0xff},
		field{0x10, 0x00, 0x0b},                          // crystal's capacity
		field{0x08, 0x00, 0x3f}, field{0x09, 0x00, 0x3f}, // image rejection
	)
	if lo, err = t.setLO(f + intermediate); err != nil {
		return 0, err
	}
	if t.model == r828d {
		input := byte(0x60)
		if f > r828dInputSwitch {
			input = 0
		}
		if t.shadow[0x05]&0x60 != input {
			t.set(0x05, input, 0x60)
		}
	}
	return lo, t.regs.err
}

// The oscillator's range; what is mixed with is a power of two, 2 to 64, below.
const (
	minVCO     = 1770e6
	maxVCO     = 3540e6
	maxDivider = 64
)

// pll are the settings of the synthesizer.
type pll struct {
	dividerLog int    // log2 of what the oscillator is divided by, 1 to 6
	integer    int    // of the oscillator over twice the crystal
	fraction   uint16 // of 2^16
}

// lo returns the frequency that the settings make.
func (p pll) lo(crystal float64) float64 {
	vco := 2 * crystal * (float64(p.integer) + float64(p.fraction)/(1<<16))
	return vco / float64(int(1)<<p.dividerLog)
}

var errPLLRange = errors.New("the tuner's synthesizer does not reach it")

// planPLL returns the settings nearest to lo.
func planPLL(lo, crystal float64) (pll, error) {
	for log := 1; 1<<log <= maxDivider; log++ {
		vco := lo * float64(int(1)<<log)
		if !(vco >= minVCO && vco < maxVCO) {
			continue
		}
		ratio := uint64(vco/(2*crystal)*(1<<16) + 0.5)
		return pll{log, int(ratio >> 16), uint16(ratio)}, nil
	}
	return pll{}, fmt.Errorf("a local oscillator of %v: %w; allowed is %v to below %v",
		radio.Hertz(lo), errPLLRange, radio.Hertz(minVCO/maxDivider), radio.Hertz(maxVCO/2))
}

// setLO sets the local oscillator and gives where it is, or is to be: one that does not lock
// is left as it is, and told of by unlocked.
func (t *tuner) setLO(lo float64) (float64, error) {
	p, err := planPLL(lo, t.crystal)
	if err != nil {
		return 0, err
	}
	t.setAll(field{0x10, 0x00, 0x10}, field{0x1a, 0x00, 0x0c}, field{0x12, 0x80, 0xe0})
	t.set(0x10, t.dividerBits(p), 0xe0)
	ni, si := (p.integer-13)/4, (p.integer-13)%4
	t.set(0x14, byte(ni+si<<6), 0xff)
	integerOnly := byte(0)
	if p.fraction == 0 {
		integerOnly = 0x08
	}
	t.set(0x12, integerOnly, 0x08)
	t.set(0x16, byte(p.fraction>>8), 0xff)
	t.set(0x15, byte(p.fraction), 0xff)
	if t.unlocked = !t.locks(); !t.unlocked {
		t.set(0x1a, 0x08, 0x08)
	}
	return p.lo(t.crystal), t.regs.err
}

// dividerBits returns the divider's bits of register 0x10. An oscillator that sits
// in a band of its fine tuning above or below the middle wants the next divider.
func (t *tuner) dividerBits(p pll) byte {
	var state [5]byte
	t.read(state[:])
	code := p.dividerLog - 1
	switch fine, ref := state[4]>>4&3, t.model.fineReference(); {
	case fine > ref:
		code--
	case fine < ref:
		code++
	}
	return byte(min(max(code, 0), 7)) << 5
}

// locks reports whether the synthesizer has locked, and gives it more current and another
// look if not.
func (t *tuner) locks() bool {
	for attempt := range 2 {
		var state [3]byte
		t.read(state[:])
		if state[2]&0x40 != 0 {
			return true
		}
		if attempt == 0 {
			t.set(0x12, 0x60, 0xe0)
		}
	}
	return false
}

// The steps of gain of the first amplifier and of the mixer, in tenths of dB, as
// measured by others at one frequency.
var (
	lnaSteps   = [16]int{0, 9, 13, 40, 38, 13, 31, 22, 26, 31, 26, 14, 19, 5, 35, 13}
	mixerSteps = [16]int{0, 5, 10, 10, 19, 9, 10, 25, 17, 10, 8, 16, 13, 6, 3, -8}
)

// gainSettings are the indices into the two amplifiers of a gain.
type gainSettings struct{ lna, mixer int }

// gains are the gains that can be set, in tenths of dB, ascending.
var gains = [...]int{
	0, 9, 14, 27, 37, 77, 87, 125, 144, 157, 166, 197, 207, 229, 254,
	280, 297, 328, 338, 364, 372, 386, 402, 421, 434, 439, 445, 480, 496,
}

// planGain raises both amplifiers in turn until they give at least tenths.
func planGain(tenths int) gainSettings {
	var s gainSettings
	for total := 0; total < tenths && s.lna < 15; {
		s.lna++
		if total += lnaSteps[s.lna]; total >= tenths {
			break
		}
		s.mixer++
		total += mixerSteps[s.mixer]
	}
	return s
}

// setGain sets the gain by hand, in tenths of dB.
func (t *tuner) setGain(tenths int) {
	t.setAll(field{0x05, 0x10, 0x10}, field{0x07, 0x00, 0x10})
	var state [4]byte
	t.read(state[:])
	s := planGain(tenths)
	t.setAll(
		field{0x0c, 0x08, 0x9f}, // the variable amplifier after the filter at 16.3 dB
		field{0x05, byte(s.lna), 0x0f},
		field{0x07, byte(s.mixer), 0x0f},
	)
}

// autoGain lets the tuner set its gain.
func (t *tuner) autoGain() {
	t.setAll(
		field{0x05, 0x00, 0x10}, field{0x07, 0x10, 0x10},
		field{0x0c, 0x0b, 0x9f}, // the variable amplifier at 26.5 dB
	)
}

// channel is a setting of the tuner's channel filter.
type channel struct {
	reg0a, reg0b byte
	intermediate float64 // where its middle is
}

var lowPasses = [...]float64{1.7e6, 1.6e6, 1.55e6, 1.45e6, 1.2e6, 0.9e6, 0.7e6, 0.55e6, 0.45e6, 0.35e6}

// The corners of the high-pass side that can be switched out for more bandwidth.
const (
	highPass1 = 380e3
	highPass2 = 350e3
)

// planChannel returns the narrowest filter that lets bandwidth through.
func planChannel(bandwidth float64) channel {
	switch {
	case bandwidth > 7e6:
		return channel{0x10, 0x0b, 4.57e6}
	case bandwidth > 6e6:
		return channel{0x10, 0x2a, 4.57e6}
	case bandwidth > lowPasses[0]+highPass1+highPass2:
		return channel{0x10, 0x6b, defaultIF}
	}
	c := channel{0x00, 0x80, 2.3e6}
	width := 0.0
	if bandwidth > lowPasses[0]+highPass2 {
		bandwidth -= highPass1
		c.intermediate += highPass1
		width += highPass1
	} else {
		c.reg0b |= 0x20
	}
	if bandwidth > lowPasses[0] {
		bandwidth -= highPass2
		c.intermediate += highPass2
		width += highPass2
	} else {
		c.reg0b |= 0x40
	}
	narrowest := 0
	for i, w := range lowPasses {
		if w >= bandwidth {
			narrowest = i
		}
	}
	c.reg0b |= byte(15 - narrowest)
	width += lowPasses[narrowest]
	c.intermediate -= width / 2
	return c
}

func (t *tuner) setChannel(c channel) {
	t.setAll(field{0x0a, c.reg0a, 0x10}, field{0x0b, c.reg0b, 0xef})
}

// standby switches off what uses current.
func (t *tuner) standby() {
	for _, f := range [...]field{
		{0x06, 0xb1, 0}, {0x05, 0xa0, 0}, {0x07, 0x3a, 0}, {0x08, 0x40, 0}, {0x09, 0xc0, 0}, {0x0a, 0x36, 0},
		{0x0c, 0x35, 0}, {0x0f, 0x68, 0}, {0x11, 0x03, 0}, {0x17, 0xf4, 0}, {0x19, 0x0c, 0},
	} {
		t.write(f.reg, f.value)
	}
}
