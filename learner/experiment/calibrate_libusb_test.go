//go:build usb && linux

package experiment

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ringwave/radio/virtual/usbfs"
)

// TestCalibrationThroughLibusb does what the tests named do, with gousb and libusb in
// between, each in a process that began under the preload library.
func TestCalibrationThroughLibusb(t *testing.T) {
	preload, err := usbfs.Preload()
	if errors.Is(err, usbfs.ErrNoPreload) {
		if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
			t.Fatal(err)
		}
		t.Skipf("%v (RINGWAVE_REQUIRE_BENCH=1 makes this a failure)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TestCalibrationIsTheSameOverAll", "TestRemeasureAfterALoss"} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+name+"$", "-test.v", "-test.timeout=1h")
			cmd.Env = append(os.Environ(), byLibusb+"=1", "LD_PRELOAD="+preload)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
