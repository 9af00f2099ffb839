// Package native makes SoapySDR's calls through its library: it takes in calls of
// soapy.Backend and gives what the C API (SoapySDR/Device.h, 0.8) answers. It is for builds
// with cgo and the tag soapy; in others New's back end fails with soapy.ErrNoBuild. It knows
// nothing of radio.Devices.
//
// A call of the library's cannot be cancelled. Each runs in a goroutine of its own, so that
// who waits for it can go; memory that C writes to is C's. A board of which a call does not
// return is not given back any more, as the call is still in it: Close says so.
//
// What the library and its modules print is not printed: the last warning of a call that fails
// is part of its error.
package native

import "errors"

// ErrNoModule: SoapySDR has no module for the board, or the board is not there.
var ErrNoModule = errors.New("SoapySDR finds no such board")
