package usb

import (
	"context"
	"errors"
)

// The errors that callers tell apart, by errors.Is.
var (
	// ErrStall: the board refused the request, or halted the endpoint.
	ErrStall = errors.New("the board refused (stall)")
	// ErrTimeout: the board did not answer in time.
	ErrTimeout = errors.New("the board did not answer in time")
	// ErrUnplugged: the board is gone.
	ErrUnplugged = errors.New("the board was unplugged")
	// ErrCancelled: the transfer was cancelled on this side.
	ErrCancelled = errors.New("the transfer was cancelled")
	// ErrClosed: the stream or transport was closed.
	ErrClosed = errors.New("the USB stream is closed")
	// ErrAccess: the user may not open the board.
	ErrAccess = errors.New("permission denied: the board's udev rule is missing, or the user is not in its group")
	// ErrDriverBound: a driver of the kernel holds the board and stays.
	ErrDriverBound = errors.New("a driver of the kernel holds the board")
	// ErrInUse: another program holds the board.
	ErrInUse = errors.New("another program holds the board")
	// ErrNoUSBBuild: the program was built without USB.
	ErrNoUSBBuild = errors.New("this build has no USB; build with: CGO_ENABLED=1 go build -tags usb (needs gcc, pkg-config and libusb 1.0, on Debian libusb-1.0-0-dev)")
)

// FromContext returns what a done ctx means for a transfer: ErrTimeout where its
// deadline passed, ErrCancelled where it was cancelled, nil while it is not done.
func FromContext(ctx context.Context) error {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	}
	return ErrCancelled
}
