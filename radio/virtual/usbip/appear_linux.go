package usbip

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Appear waits until the kernel has enumerated boards of these serial numbers, one
// for each, so that programs can open them. It fails with ctx's error, and names a
// board that is not there.
func Appear(ctx context.Context, serials []string) error {
	return appear(ctx, "/", serials)
}

// appear looks below a root, which is / but for tests.
func appear(ctx context.Context, root string, serials []string) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		missing := ""
		there := present(root)
		for _, s := range serials {
			if there[s]--; there[s] < 0 {
				missing = s
			}
		}
		if missing == "" {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the kernel to find the virtual board with serial number %s: %w", missing, ctx.Err())
		}
	}
}

// present counts the USB devices of each serial number that are configured and have
// a node.
func present(root string) map[string]int {
	there := map[string]int{}
	entries, err := filepath.Glob(filepath.Join(root, "sys/bus/usb/devices/*/serial"))
	if err != nil {
		return there // not with this pattern
	}
	for _, e := range entries {
		value := func(name string) string {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(e), name))
			if err != nil {
				return "" // the device has left meanwhile
			}
			return strings.TrimSpace(string(b))
		}
		bus, busErr := strconv.Atoi(value("busnum"))
		device, deviceErr := strconv.Atoi(value("devnum"))
		if value("bConfigurationValue") == "" || busErr != nil || deviceErr != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, fmt.Sprintf("dev/bus/usb/%03d/%03d", bus, device))); err == nil {
			there[value("serial")]++
		}
	}
	return there
}
