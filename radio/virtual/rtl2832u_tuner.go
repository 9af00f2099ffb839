package virtual

import (
	"math/bits"

	"ringwave/radio"
)

// RTLTuner is the tuner of an emulated RTL2832U.
type RTLTuner int

// The tuners. The R820T2 is an R820T to its host.
const (
	R820T RTLTuner = iota
	R828D
	NoTuner
)

// r82xx is an R820T or R828D: registers, of which the first five are states, a
// synthesizer and two amplifiers.
type r82xx struct {
	model    RTLTuner
	unlocked bool // never locks
	reg      [32]byte
	at       byte // the register that is written next
	turns    uint64
	measured bool // the channel filter's code is there
}

// What a tuner answers where this one only has to answer something.
const (
	tunerChip       = 0x96 // register 0
	tunerFilterCode = 0x06
	// Where the oscillator is within its band: the middle, so that its host leaves
	// the divider alone.
	fineR820T = 2
	fineR828D = 1
	// The oscillator locks where data sheets' ranges say and somewhat beyond.
	lowestVCO, highestVCO = 1.70e9, 3.60e9
)

func (t *r82xx) address() byte {
	if t.model == R828D {
		return 0x74
	}
	return 0x34
}

func (t *r82xx) crystal() float64 {
	if t.model == R828D {
		return 16e6
	}
	return rtlCrystal
}

// write takes a message: a register's number and what is written from there on.
func (t *r82xx) write(data []byte) {
	t.at = data[0]
	for _, v := range data[1:] {
		// The states are read-only, and beyond is nothing.
		if t.at >= 5 && int(t.at) < len(t.reg) {
			t.set(t.at, v)
		}
		t.at++
	}
}

func (t *r82xx) set(at, v byte) {
	was := t.reg[at]
	t.reg[at] = v
	switch {
	case at == 0x1a && was&0x08 == 0 && v&0x08 != 0:
		// The last step of a retune: the loop's slow mode.
		t.turns++
	case at == 0x0b && was&0x10 == 0 && v&0x10 != 0 && t.reg[0x0f]&0x04 != 0:
		t.measured = true
	}
}

// read returns registers from 0 on, wherever was written last, each with its bits in
// reverse.
func (t *r82xx) read(data []byte) {
	for k := range data {
		data[k] = bits.Reverse8(t.state(k))
	}
}

func (t *r82xx) state(k int) byte {
	switch {
	case k == 0:
		return tunerChip
	case k == 2 && t.locked():
		return 0x40
	case k == 3:
		return t.reg[0x05]&0x0f | t.reg[0x07]<<4
	case k == 4:
		return t.fine()<<4 | t.filterCode()
	case k >= 5 && k < len(t.reg):
		return t.reg[k]
	}
	return 0
}

func (t *r82xx) fine() byte {
	if t.model == R828D {
		return fineR828D
	}
	return fineR820T
}

func (t *r82xx) filterCode() byte {
	if t.measured {
		return tunerFilterCode
	}
	return 0
}

// vco returns the oscillator's frequency in hertz that the synthesizer is set to.
func (t *r82xx) vco() float64 {
	integer := 4*int(t.reg[0x14]&0x3f) + int(t.reg[0x14]>>6) + 13
	fraction := float64(uint(t.reg[0x16])<<8|uint(t.reg[0x15])) / (1 << 16)
	if t.reg[0x12]&0x08 != 0 {
		fraction = 0
	}
	reference := t.crystal()
	if t.reg[0x10]&0x10 != 0 {
		reference /= 2
	}
	return 2 * reference * (float64(integer) + fraction)
}

// lo returns the local oscillator's frequency.
func (t *r82xx) lo() float64 { return t.vco() / float64(uint(2)<<(t.reg[0x10]>>5)) }

func (t *r82xx) locked() bool {
	v := t.vco()
	return !t.unlocked && v >= lowestVCO && v <= highestVCO
}

// Gains in tenths of a decibel of each setting of the two amplifiers, as others
// measured them.
var (
	tunerLNA   = [16]int{0, 9, 22, 62, 100, 113, 144, 166, 192, 223, 249, 263, 282, 287, 322, 335}
	tunerMixer = [16]int{0, 5, 15, 25, 44, 53, 63, 88, 105, 115, 123, 139, 152, 158, 161, 153}
)

// gain returns what the amplifiers do more than at 0 dB; automatic ones do nothing.
func (t *r82xx) gain() radio.Decibels {
	tenths := 0
	if t.reg[0x05]&0x10 != 0 {
		tenths += tunerLNA[t.reg[0x05]&0x0f]
	}
	if t.reg[0x07]&0x10 == 0 {
		tenths += tunerMixer[t.reg[0x07]&0x0f]
	}
	return radio.Decibels(tenths) / 10
}
