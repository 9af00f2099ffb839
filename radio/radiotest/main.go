package radiotest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"ringwave/radio/virtual/usbfs"
)

// Main is TestMain of tests that go by libusb: it starts them again under umockdev's preload
// library, which must be there before libusb is. Where there is none, those that need it say
// so.
func Main(m *testing.M) {
	if err := usbfs.Enter(); err != nil && !errors.Is(err, usbfs.ErrNoPreload) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
