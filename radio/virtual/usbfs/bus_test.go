//go:build linux

package usbfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// TestAddresses: addresses are used again only when all have been used, and a board
// that stays keeps its own.
func TestAddresses(t *testing.T) {
	checkLeaks(t)
	bus := newBus(t)
	stays := newHackRF(t, virtual.HackRFConfig{})
	newBench(t, virtual.Config{Boards: []virtual.Place{{Radio: stays}}})
	at, err := bus.Plug(stays)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[usb.Address]int{}
	for range 2 * 126 {
		h := newHackRF(t, virtual.HackRFConfig{})
		newBench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
		a, err := bus.Plug(h)
		if err != nil {
			t.Fatal(err)
		}
		if a == at {
			t.Fatalf("two boards are at %v", a)
		}
		seen[a]++
		if err := bus.Unplug(a); err != nil {
			t.Fatal(err)
		}
	}
	for a, n := range seen {
		if n != 2 {
			t.Errorf("%v was used %d times, want 2", a, n)
		}
	}
	entries, err := os.ReadDir(filepath.Join(bus.Dir(), "sys/bus/usb/devices"))
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %d entries in sysfs, want 1: %v", len(entries), err)
	}
}

// TestNoBoards: programs find an empty bus, and say so.
func TestNoBoards(t *testing.T) {
	bus := newBus(t)
	out, err := tool(t, bus, "hackrf_info").CombinedOutput()
	if err == nil {
		t.Errorf("hackrf_info found a board:\n%s", out)
	}
	requireLines(t, string(out), "No HackRF boards found.")
}

func TestClosedBus(t *testing.T) {
	checkLeaks(t)
	bus := newBus(t)
	for range 2 {
		if err := bus.Close(); err != nil {
			t.Error(err)
		}
	}
	h := newHackRF(t, virtual.HackRFConfig{})
	newBench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
	if _, err := bus.Plug(h); err == nil {
		t.Error("a closed bus takes a board")
	}
	if _, err := os.Stat(bus.Dir()); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}
