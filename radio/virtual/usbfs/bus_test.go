//go:build linux

package usbfs_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

// TestAddresses: addresses are used again only when all have been used, and a board
// that stays keeps its own.
func TestAddresses(t *testing.T) {
	radiotest.Leaks(t)
	bus := radiotest.Bus(t)
	stays := radiotest.HackRF(t, virtual.HackRFConfig{})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: stays}}})
	at, err := bus.Plug(stays)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[usb.Address]int{}
	for range 2 * 126 {
		h := radiotest.HackRF(t, virtual.HackRFConfig{})
		radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
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
	bus := radiotest.Bus(t)
	out, err := radiotest.Tool(t, bus, "hackrf", "hackrf_info").CombinedOutput()
	if err == nil {
		t.Errorf("hackrf_info found a board:\n%s", out)
	}
	requireLines(t, string(out), "No HackRF boards found.")
}

func TestClosedBus(t *testing.T) {
	radiotest.Leaks(t)
	bus := radiotest.Bus(t)
	for range 2 {
		if err := bus.Close(); err != nil {
			t.Error(err)
		}
	}
	h := radiotest.HackRF(t, virtual.HackRFConfig{})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
	if _, err := bus.Plug(h); err == nil {
		t.Error("a closed bus takes a board")
	}
	if _, err := os.Stat(bus.Dir()); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// TestStartTogether: programs that start at the same time do not take each other's
// files away.
func TestStartTogether(t *testing.T) {
	radiotest.Leaks(t)
	bus := radiotest.Bus(t)
	const programs, times = 6, 10
	for range times {
		var cmds []*exec.Cmd
		var said [programs]bytes.Buffer
		for i := range programs {
			cmd := radiotest.Tool(t, bus, "hackrf", "hackrf_info")
			cmd.Stdout, cmd.Stderr = &said[i], &said[i]
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			cmds = append(cmds, cmd)
		}
		for i, cmd := range cmds {
			_ = cmd.Wait() // there is no board, which is a failure to it
			requireLines(t, said[i].String(), "No HackRF boards found.")
		}
	}
}

// TestViews: each program's folder has the boards that are plugged in, before it is
// made and behind, and not those that were unplugged.
func TestViews(t *testing.T) {
	bus := radiotest.Bus(t)
	places := make([]virtual.Place, 3)
	for i := range places {
		places[i].Radio = radiotest.HackRF(t, virtual.HackRFConfig{})
	}
	radiotest.Bench(t, virtual.Config{Boards: places})
	view := func() string {
		env, err := bus.Env()
		if err != nil {
			t.Fatal(err)
		}
		_, dir, _ := strings.Cut(env[1], "=")
		return dir
	}
	plug := func(i int) usb.Address {
		at, err := bus.Plug(places[i].Radio)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	plug(0)
	first := view()
	second := plug(1)
	if err := bus.Unplug(second); err != nil {
		t.Fatal(err)
	}
	plug(2)
	views := []string{bus.Dir(), first, view()}
	if views[0] == views[1] || views[1] == views[2] {
		t.Errorf("programs share a folder: %v", views)
	}
	for _, dir := range views {
		for name, want := range map[string]int{"sys/bus/usb/devices": 2, "sys/devices/vusb/usb1": 2, "dev/bus/usb/001": 2, "dev/.node": 2} {
			if entries, err := os.ReadDir(filepath.Join(dir, name)); err != nil || len(entries) != want {
				t.Errorf("%s in %s has %v, want %d: %v", name, dir, entries, want, err)
			}
		}
		if serial, err := os.ReadFile(filepath.Join(dir, "sys/bus/usb/devices/1-3/idVendor")); err != nil || string(serial) != "1d50\n" {
			t.Errorf("%s: vendor %q, %v", dir, serial, err)
		}
	}
}

// asKilled names the folder of temporary files of a bus in a child, which is killed.
const asKilled = "RINGWAVE_TEST_KILLED"

// TestKilledChild is what TestSweep starts.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(asKilled)
	if dir == "" {
		t.Skip("for TestSweep")
	}
	t.Setenv("TMPDIR", dir)
	bus, err := usbfs.NewBus()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(bus.Dir())
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// TestSweep: the folder of a program that was killed is taken away by the next, and
// nothing else is.
func TestSweep(t *testing.T) {
	if _, err := usbfs.Preload(); err != nil {
		radiotest.Missing(t, err.Error())
	}
	temporary, err := os.MkdirTemp("", "") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temporary) })
	t.Setenv("TMPDIR", temporary)
	child := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
	child.Env = append(os.Environ(), asKilled+"="+temporary)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	killed := strings.TrimSpace(line)
	others := filepath.Join(temporary, "ringwave-bench-others")
	elsewhere := filepath.Join(temporary, "elsewhere")
	for _, dir := range []string{others, elsewhere} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	there := func(dir string, want bool) {
		t.Helper()
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
	lives := radiotest.Bus(t)
	there(killed, true)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	radiotest.Bus(t)
	there(killed, false)
	there(lives.Dir(), true)
	there(others, true)
	there(elsewhere, true)
}
