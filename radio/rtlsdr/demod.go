package rtlsdr

import (
	"fmt"

	"ringwave/radio"
)

const (
	// demodCrystal is what the RTL2832U counts, in Hz.
	demodCrystal = 28.8e6
	// defaultIF is where the tuner's filter is in its middle after init.
	defaultIF = 3.57e6
	// turn is a full turn of the down-converter's and the resampler's phase.
	turn = 1 << 22
)

// filter are the coefficients of the demodulator's low-pass filter, the first half
// of a symmetric 32: 8 of 8 bits, 8 of 12.
var filter = [16]int{-54, -36, -41, -40, -32, -14, 14, 53, 101, 156, 215, 273, 327, 372, 404, 421}

// filterBytes returns the coefficients as the registers have them: the long ones two
// in three bytes.
func filterBytes() []byte {
	var b []byte
	for _, c := range filter[:8] {
		b = append(b, byte(int8(c)))
	}
	for k := 8; k < len(filter); k += 2 {
		v0, v1 := filter[k], filter[k+1]
		b = append(b, byte(v0>>4), byte(v0<<4|v1>>8&0x0f), byte(v1))
	}
	return b
}

// Values of the demodulator's register of page 0 at 0x19.
const (
	samplesPlain   = 0x05
	samplesAGC     = 0x25 // with the digital gain control
	samplesCounter = 0x03 // bytes that count up in place of samples
)

// setSamples chooses what the board sends.
func (r *registers) setSamples(o options) {
	switch {
	case o.test:
		r.demod(0, 0x19, samplesCounter)
	case o.agc:
		r.demod(0, 0x19, samplesAGC)
	}
}

// initDemod brings the RTL2832U from power-on to where it makes samples.
func (r *registers) initDemod() {
	r.write(usbBlock, usbSysctl, 0x09)
	r.write(usbBlock, usbEPAMaxpkt, 0x00, 0x02)
	r.write(usbBlock, usbEPACtl, 0x10, 0x02)
	r.write(sysBlock, sysDemodCtl1, 0x22)
	r.write(sysBlock, sysDemodCtl, 0xe8)
	r.resetDemod()
	r.demod(1, 0x15, 0x00) // spectrum as it is, neighbouring channels not rejected
	r.demod(1, 0x16, 0x00, 0x00)
	for reg := byte(0x16); reg <= 0x1b; reg++ { // no shift in frequency
		r.demod(1, reg, 0x00)
	}
	for k, b := range filterBytes() {
		r.demod(1, 0x1c+byte(k), b)
	}
	r.demod(0, 0x19, samplesPlain)
	r.demod(1, 0x93, 0xf0)
	r.demod(1, 0x94, 0x0f)
	r.demod(1, 0x11, 0x00) // no gain control of the television kind
	r.demod(1, 0x04, 0x00)
	r.demod(0, 0x61, 0x60) // no filter of packets
	r.demod(0, 0x06, 0x80) // converter I to I
	r.demod(1, 0xb1, 0x1b) // zero IF, correction of direct current and of mismatch
	r.demod(0, 0x0d, 0x83)
}

// resetDemod restarts the demodulator.
func (r *registers) resetDemod() {
	r.demod(1, 0x01, 0x14)
	r.demod(1, 0x01, 0x10)
}

// useR82xx prepares for a tuner that gives an intermediate frequency, and gives
// the one that is shifted to 0.
func (r *registers) useR82xx(crystal float64) (intermediate float64) {
	r.demod(1, 0xb1, 0x1a) // not zero IF
	r.demod(0, 0x08, 0x4d) // one converter
	intermediate = r.setIF(defaultIF, crystal)
	r.demod(1, 0x15, 0x01) // the tuner mixes from above: turn the spectrum
	return intermediate
}

// setIF sets the frequency that is shifted to 0 and gives what it is.
func (r *registers) setIF(f, crystal float64) float64 {
	n := int(f * turn / crystal)
	word := uint32(-n)
	r.demod(1, 0x19, byte(word>>16)&0x3f)
	r.demod(1, 0x1a, byte(word>>8))
	r.demod(1, 0x1b, byte(word))
	return float64(n) * crystal / turn
}

// The sample rates that the resampler makes without errors; none between.
const (
	MinRate     radio.Hertz = 225001
	endSlowRate radio.Hertz = 300000
	minFastRate radio.Hertz = 900001
	MaxRate     radio.Hertz = 3200000
	// DefaultRate is that of a board after opening.
	DefaultRate radio.Hertz = 2048000
)

// NearestRate returns the sample rate that the board makes where rate is asked for.
// It fails for rates that the board does not make.
func NearestRate(rate radio.Hertz) (radio.Hertz, error) {
	_, actual, err := planRate(rate)
	return actual, err
}

// planRate returns the resampler's ratio nearest to a rate, and the rate that it
// makes.
func planRate(rate radio.Hertz) (ratio uint32, actual radio.Hertz, err error) {
	if !(rate >= MinRate && rate <= endSlowRate || rate >= minFastRate && rate <= MaxRate) {
		return 0, 0, fmt.Errorf("the sample rate is %v; allowed is %v to %v and %v to %v",
			rate, MinRate, endSlowRate, minFastRate, MaxRate)
	}
	ratio = uint32(demodCrystal*turn/float64(rate)) & 0x0ffffffc
	// The top bit counts twice.
	real := ratio | ratio&0x08000000<<1
	return ratio, radio.Hertz(demodCrystal * turn / float64(real)), nil
}

// setRatio sets the resampler, with a correction of the crystal in parts per
// million.
func (r *registers) setRatio(ratio uint32, ppm int) {
	r.demod(1, 0x9f, byte(ratio>>24), byte(ratio>>16))
	r.demod(1, 0xa1, byte(ratio>>8), byte(ratio))
	offset := int16(-ppm * (1 << 24) / 1e6)
	r.demod(1, 0x3f, byte(offset))
	r.demod(1, 0x3e, byte(offset>>8)&0x3f)
	r.resetDemod()
}

// directSampling takes a converter's input past the tuner.
type directSampling int

const (
	throughTuner directSampling = iota
	directI
	directQ
)

// bypassTuner samples an input of the RTL2832U itself.
func (r *registers) bypassTuner(d directSampling) {
	r.demod(1, 0xb1, 0x1a)
	r.demod(1, 0x15, 0x00)
	r.demod(0, 0x08, 0x4d)
	if d == directQ {
		r.demod(0, 0x06, 0x90)
		return
	}
	r.demod(0, 0x06, 0x80)
}

// biasTeePin feeds the antenna's cable on boards that have a bias tee.
const biasTeePin = 0x01

// biasTeeOff takes the voltage away that another program may have left on the
// antenna. It changes no pin's direction: what pins are for differs by board.
func (r *registers) biasTeeOff() {
	if pins := r.read(sysBlock, sysGPO); pins&biasTeePin != 0 {
		r.write(sysBlock, sysGPO, pins&^biasTeePin)
	}
}

// biasTeeOn makes the pin an output and puts voltage on it.
func (r *registers) biasTeeOn() {
	r.write(sysBlock, sysGPD, r.read(sysBlock, sysGPD)&^biasTeePin)
	r.write(sysBlock, sysGPOE, r.read(sysBlock, sysGPOE)|biasTeePin)
	r.write(sysBlock, sysGPO, r.read(sysBlock, sysGPO)|biasTeePin)
}

// emptyBuffer drops samples that the board holds and lets new ones flow.
func (r *registers) emptyBuffer() {
	r.write(usbBlock, usbEPACtl, 0x10, 0x02)
	r.write(usbBlock, usbEPACtl, 0x00, 0x00)
}

// powerOff switches the converters off.
func (r *registers) powerOff() { r.write(sysBlock, sysDemodCtl, 0x20) }
