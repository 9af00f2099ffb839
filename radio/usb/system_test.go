//go:build !usb

package usb_test

import (
	"errors"
	"strings"
	"testing"

	"ringwave/radio/usb"
)

// A build without USB says so, and how to get one.
func TestNoUSB(t *testing.T) {
	_, err := usb.System().List(t.Context(), func(usb.Identity) bool { return true })
	if !errors.Is(err, usb.ErrNoUSBBuild) || !strings.Contains(err.Error(), "-tags usb") {
		t.Error(err)
	}
	if _, err := usb.System().Open(t.Context(), usb.Address{}); !errors.Is(err, usb.ErrNoUSBBuild) {
		t.Error(err)
	}
}
