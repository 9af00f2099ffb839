package usb

import (
	"bytes"
	"io"
)

// eventError is in the lines that gousb logs where libusb's loop of events was disturbed, as
// by a signal.
const eventError = "handle_events: error: "

// WithoutEventErrors returns a writer for package log, which gousb writes to by itself: it
// leaves out the lines about libusb's loop of events. That goes on after each of them, and
// what came to harm by it fails with an error of its own.
func WithoutEventErrors(w io.Writer) io.Writer { return quiet{w} }

type quiet struct{ w io.Writer }

// Write writes one line, as package log does.
func (q quiet) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(eventError)) {
		return len(line), nil
	}
	return q.w.Write(line)
}
