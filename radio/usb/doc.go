// Package usb carries bytes to and from boards on USB.
//
// It takes in control requests and filled buffers, and gives answers, filled
// buffers and a list of what is plugged in. It knows nothing of samples, nor of
// any board's requests.
//
// System is the machine's own USB through libusb. It is only in builds with the
// tag usb, which need cgo and libusb 1.0; in others it fails with ErrNoUSBBuild,
// which says how to get one. A Host of other boards, such as emulated ones, can
// stand in its place.
//
// # Streams
//
// A stream keeps a number of transfers queued with the board at all times: a
// HackRF at 20 Msps has room for 1.6 ms and loses what comes after that. So one
// goroutine a stream does nothing but hand transfers over, and a ring of buffers
// lies between it and the reader. A reader's context ends its waiting only, never
// the stream.
//
// A writer is to be a goroutine that the driver keeps for it: a write whose
// context ends is lost with everything that is queued, because a transfer that
// was cancelled may have been sent in part.
package usb
