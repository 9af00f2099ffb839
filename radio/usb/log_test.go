package usb_test

import (
	"bytes"
	"log"
	"testing"

	"ringwave/radio/usb"
)

// What gousb says of libusb's loop of events is left out, and nothing else.
func TestWithoutEventErrors(t *testing.T) {
	var got bytes.Buffer
	l := log.New(usb.WithoutEventErrors(&got), "", 0)
	l.Printf("handle_events: error: %s", "libusb: interrupted [code -10]")
	l.Print("Device on bus 1 address 2 offered a descriptor")
	l.SetFlags(log.LstdFlags)
	l.Printf("handle_events: error: %s", "libusb: i/o error [code -1]")
	if want := "Device on bus 1 address 2 offered a descriptor\n"; got.String() != want {
		t.Errorf("%q is left, want %q", got.String(), want)
	}
}
