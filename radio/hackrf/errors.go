package hackrf

import (
	"errors"

	"ringwave/radio"
	"ringwave/radio/usb"
)

// The errors that callers tell apart, by errors.Is, beside those of packages radio
// and usb. Unplugged boards are usb.ErrUnplugged, boards that refuse are
// usb.ErrStall, and those that do not answer, take or give samples in time are
// usb.ErrTimeout.
var (
	// ErrOldFirmware: the board's firmware lacks what was asked for.
	ErrOldFirmware = errors.New("the board's firmware is too old")
	// ErrUnderrunLimit: the board got no samples for longer than its limit and has
	// stopped sending any. The driver then switches its transmit chain off.
	ErrUnderrunLimit error = limit("the board got no samples for longer than its underrun limit and has stopped sending")
	// ErrOverrunLimit: as above for a board that was not read, and stopped.
	ErrOverrunLimit error = limit("the board was not read for longer than its overrun limit and has stopped")
	// ErrNoClock: the reference clock is not there.
	ErrNoClock = errors.New("there is no reference clock at the board's input")
	// ErrCarrier: the board could not be switched off.
	ErrCarrier = errors.New("the board could not be switched off, so that its carrier may still be on: unplug it")
	// ErrSessionOver: the session's context has ended, and the carrier is off.
	ErrSessionOver = errors.New("the session is over")
)

// limit is the error of a board that has stopped by itself.
type limit string

func (l limit) Error() string { return string(l) }

// Is says that it is a radio.ErrStarved.
func (limit) Is(target error) bool { return target == radio.ErrStarved }

// gone reports whether a board can no longer be asked for anything.
func gone(err error) bool {
	return errors.Is(err, usb.ErrUnplugged) || errors.Is(err, usb.ErrClosed)
}
