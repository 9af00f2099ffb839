package usbfs

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Enter makes this process one that can see boards, for drivers in it that go by
// libusb: it starts the program again in its own place, with the same arguments
// and under the preload library, and returns nil when that is so already. Call it
// first of all, in main or TestMain. From then on os.Setenv of UMOCKDEV_DIR to a
// bus's Dir shows the boards of that bus, as long as the program has cgo, by which
// C sees what Go sets.
func Enter() error {
	preload, err := Preload()
	if err != nil {
		return err
	}
	const variable = "LD_PRELOAD"
	if strings.Contains(os.Getenv(variable), preload) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to start it again: %w", err)
	}
	if err := os.Setenv(variable, preload); err != nil {
		return err
	}
	err = syscall.Exec(self, os.Args, os.Environ())
	return fmt.Errorf("starting this program again: %w", err)
}
