//go:build usb && linux

package experiment

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

// byLibusb tells a test process that its boards are on a bus which libusb, in the same
// process, takes for the machine's.
const byLibusb = "RINGWAVE_TEST_LIBUSB"

func init() {
	if os.Getenv(byLibusb) != "" {
		plugBoards = throughLibusb
	}
}

func throughLibusb(t testing.TB, boards []virtual.Board) usb.Host {
	t.Helper()
	bus, err := usbfs.NewBus()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bus.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := os.Setenv("UMOCKDEV_DIR", bus.Dir()); err != nil {
		t.Fatal(err)
	}
	for _, b := range boards {
		if _, err := bus.Plug(b); err != nil {
			t.Fatal(err)
		}
	}
	return usb.System()
}

// TestRunThroughLibusb does what TestRunOverBoardsIsTheRunOverLoopback does, with gousb
// and libusb in between, in a process that began under the preload library.
func TestRunThroughLibusb(t *testing.T) {
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
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestRunOverBoardsIsTheRunOverLoopback$", "-test.v", "-test.timeout=2h")
	cmd.Env = append(os.Environ(), byLibusb+"=1", "LD_PRELOAD="+preload)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestRunOverBoardsIsTheRunOverLoopback/N=3") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
