//go:build usb && linux

package experiment

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
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

// passesThroughLibusb has tests pass with gousb and libusb in between, each in a process
// that began under the preload library, and wants a line of a test that passed.
func passesThroughLibusb(t *testing.T, name, passed string) {
	t.Helper()
	preload, err := usbfs.Preload()
	experimenttest.NeedBench(t, err, usbfs.ErrNoPreload)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+name+"$", "-test.v", "-test.timeout=2h")
	cmd.Env = append(os.Environ(), byLibusb+"=1", "LD_PRELOAD="+preload)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+passed) {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func TestRunThroughLibusb(t *testing.T) {
	const name = "TestRunOverBoardsIsTheRunOverLoopback"
	passesThroughLibusb(t, name, name+"/N=3")
}

func TestCalibrationThroughLibusb(t *testing.T) {
	for _, name := range []string{"TestCalibrationIsTheSameOverAll", "TestRemeasureAfterALoss"} {
		t.Run(name, func(t *testing.T) { passesThroughLibusb(t, name, name) })
	}
}
