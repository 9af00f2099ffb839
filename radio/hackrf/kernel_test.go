//go:build usb && linux

package hackrf_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbip"
)

// enumeration is how long the kernel may take to find the boards of a test, or to
// let them go; under emulation it takes most of a second for each.
const enumeration = 30 * time.Second

// attached are the boards of the last rig, which is the only one at a time.
var attached []*usbip.Attached

// throughKernel plugs boards into this machine's kernel, in place of those of the
// rig before.
func throughKernel(t testing.TB, boards []virtual.Board) usb.Host {
	detachAll(t)
	t.Cleanup(func() { detachAll(t) })
	var serials []string
	for _, b := range boards {
		a, err := usbip.Attach(usbip.Controller, b)
		ok(t, err)
		attached = append(attached, a)
		serials = append(serials, b.Descriptors().Serial())
	}
	ctx, cancel := context.WithTimeout(context.Background(), enumeration)
	defer cancel()
	ok(t, usbip.Appear(ctx, serials))
	return slow{usb.System(), 1}
}

// detachAll unplugs all boards, and waits until the kernel has let go of them.
func detachAll(t testing.TB) {
	for _, a := range attached {
		ok(t, a.Close())
	}
	attached = nil
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(enumeration); len(inKernel(t)) > 0; <-ticker.C {
		if time.Now().After(end) {
			t.Fatalf("the kernel still has boards: %v", inKernel(t))
		}
	}
}

// inKernel returns the serial numbers of the HackRFs that the kernel knows.
func inKernel(t testing.TB) (serials []string) {
	entries, err := filepath.Glob("/sys/bus/usb/devices/*/serial")
	ok(t, err)
	for _, e := range entries {
		if b, err := os.ReadFile(e); err == nil && strings.HasPrefix(string(b), serial(0)[:16]) {
			serials = append(serials, strings.TrimSpace(string(b)))
		}
	}
	return serials
}

// slow is a host for a machine under emulation: control requests may take ten times
// as long, and boards run at a fraction of the rate that they are told.
type slow struct {
	usb.Host
	fraction uint32
}

func (s slow) Open(ctx context.Context, at usb.Address) (usb.Transport, error) {
	t, err := s.Host.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	return slowBoard{t, s.fraction}, nil
}

type slowBoard struct {
	usb.Transport
	fraction uint32
}

func (b slowBoard) Control(s usb.Setup, data []byte, timeout time.Duration) (int, error) {
	const setRate = 6 // frequency and divider
	if s.Request == setRate && len(data) == 8 {
		divider := b.fraction * binary.LittleEndian.Uint32(data[4:])
		data = binary.LittleEndian.AppendUint32(data[:4:4], divider)
	}
	return b.Transport.Control(s, data, 10*timeout)
}

// TestKernel does what the other tests do through a real kernel, libusb and gousb.
// The tests of cmd/kernel-bench run it in a virtual machine that has one.
func TestKernel(t *testing.T) {
	if os.Getenv("RINGWAVE_TEST_KERNEL") != "1" {
		t.Skip("this needs root and a kernel with vhci-hcd: the tests of cmd/kernel-bench run it in a virtual machine")
	}
	front = throughKernel
	t.Cleanup(func() { front = inProcess })
	warmUp(t)
	alike(t)
	t.Run("PluggedIn", testPluggedIn)
	t.Run("RandomFaults", testSlowFaults)
}

// warmUp plugs in a first board: from then on the runtime keeps two file handles for
// itself.
func warmUp(t *testing.T) {
	b, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(0)})
	ok(t, err)
	bench, err := virtual.NewBench(virtual.Config{Boards: []virtual.Place{{Radio: b}}})
	ok(t, err)
	throughKernel(t, []virtual.Board{b})
	detachAll(t)
	ok(t, bench.Close())
}

// testSlowFaults runs schedules of random faults, at 2 Msps in place of 20.
func testSlowFaults(t *testing.T) {
	front = func(t testing.TB, boards []virtual.Board) usb.Host {
		throughKernel(t, boards)
		return slow{usb.System(), 10}
	}
	t.Cleanup(func() { front = throughKernel })
	manyFaults(t, 10, 200)
}

// testPluggedIn plugs boards in and pulls them out while they are used.
func testPluggedIn(t *testing.T) {
	r := newRig(t, rigConfig{boards: 2})
	d := r.open(0, "")
	if _, err := r.tryOpen(0, ""); err == nil {
		t.Error("a board was opened twice")
	}
	ok(t, attached[0].Close()) // the plug itself, not a fault of the board
	for deadline := time.Now().Add(enumeration); slices.Contains(inKernel(t), serial(0)); {
		if time.Now().After(deadline) {
			t.Fatal("the kernel still has the board")
		}
	}
	ok(t, d.Close())
	ok(t, r.open(1, "").Close())
}
