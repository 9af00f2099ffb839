package rtlsdr

import (
	"errors"
	"fmt"
	"time"

	"ringwave/radio/usb"
)

// block is one of the address spaces of the RTL2832U.
type block uint16

const (
	demodBlock block = 0
	usbBlock   block = 1
	sysBlock   block = 2
	i2cBlock   block = 6
)

// The registers outside the demodulator that are used here.
const (
	usbSysctl     = 0x2000
	usbEPACtl     = 0x2148
	usbEPAMaxpkt  = 0x2158
	sysDemodCtl   = 0x3000
	sysGPO        = 0x3001
	sysGPOE       = 0x3003
	sysGPD        = 0x3004
	sysDemodCtl1  = 0x300b
	writeFlag     = 0x10
	demodRegister = 0x20
)

// controlTimeout bounds each request; the board answers within a few milliseconds
// or not at all.
const controlTimeout = 300 * time.Millisecond

// registers reads and writes those of an RTL2832U. After a failure it does
// nothing more until take: a sequence of accesses is checked once, at its end.
// It is for one goroutine at a time.
type registers struct {
	board usb.Transport
	err   error
}

// take returns the first failure since the last take.
func (r *registers) take() error {
	err := r.err
	r.err = nil
	return err
}

// orTake returns err, or the first failure since the last take where err is nil. err
// may be that failure itself.
func (r *registers) orTake(err error) error {
	if failed := r.take(); err == nil {
		return failed
	}
	return err
}

// transfer does one request. A caller's context ends no sequence in the middle: a
// board half set is in a state that nobody knows. The timeout bounds them.
func (r *registers) transfer(what string, requestType byte, value, index uint16, data []byte) {
	if r.err != nil {
		return
	}
	s := usb.Setup{RequestType: requestType, Value: value, Index: index}
	n, err := r.board.Control(s, data, controlTimeout)
	if err == nil && n != len(data) {
		err = fmt.Errorf("%d bytes instead of %d", n, len(data))
	}
	if err != nil {
		r.err = fmt.Errorf("%s at %#04x: %w", what, value, err)
	}
}

// write sets a register of a block; a value of two bytes goes high byte first.
func (r *registers) write(b block, address uint16, value ...byte) {
	r.transfer("writing a register", usb.VendorOut, address, uint16(b)<<8|writeFlag, value)
}

func (r *registers) read(b block, address uint16) byte {
	var value [1]byte
	r.transfer("reading a register", usb.VendorIn, address, uint16(b)<<8, value[:])
	return value[0]
}

// demod sets registers of a page of the demodulator, from reg on. All drivers read
// the status after each write, and so does this one.
func (r *registers) demod(page, reg byte, value ...byte) {
	address := uint16(reg)<<8 | demodRegister
	r.transfer("writing a demodulator register", usb.VendorOut, address, uint16(page)|writeFlag, value)
	var status [1]byte
	r.transfer("reading the demodulator's status", usb.VendorIn, 0x01<<8|demodRegister, 0x0a, status[:])
}

// repeater connects the tuner to the I2C bus of the RTL2832U, or disconnects it so
// that the bus does not disturb reception.
func (r *registers) repeater(on bool) {
	if on {
		r.demod(1, 0x01, 0x18)
		return
	}
	r.demod(1, 0x01, 0x10)
}

// i2cWrite sends at most 8 bytes to a chip on the I2C bus: a register and what is
// written from there on.
func (r *registers) i2cWrite(address byte, data ...byte) {
	r.transfer("writing to I2C", usb.VendorOut, uint16(address), uint16(i2cBlock)<<8|writeFlag, data)
}

func (r *registers) i2cRead(address byte, data []byte) {
	r.transfer("reading from I2C", usb.VendorIn, uint16(address), uint16(i2cBlock)<<8, data)
}

// present reports whether a chip on the I2C bus answers register 0 with id. A stall
// is how a chip that is not there answers.
func (r *registers) present(address, id byte) bool {
	if r.err != nil {
		return false
	}
	var got [1]byte
	r.i2cWrite(address, 0)
	r.i2cRead(address, got[:])
	if errors.Is(r.err, usb.ErrStall) {
		r.err = nil
		return false
	}
	return r.err == nil && got[0] == id
}

var errNoTuner = errors.New("no R820T, R820T2 or R828D tuner answers; other tuners are not supported")
