// Package radiotest is what the tests of drivers and of emulated boards share: benches
// and buses that end with their test, programs of Debian's that see such a bus, streams
// that have to work, and a look at what a test leaves behind.
package radiotest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

// Patience is how long a test waits for what must come.
const Patience = 20 * time.Second

// Leaks fails the test if it leaves goroutines or file handles behind. Call it first.
func Leaks(t testing.TB) {
	t.Helper()
	files := OpenFiles()
	t.Cleanup(func() {
		if n := OpenFiles(); n > files {
			t.Errorf("%d file handles were left, before there were %d", n, files)
		}
	})
	Goroutines(t)
}

// Goroutines fails the test if it leaves goroutines behind. Call it first.
func Goroutines(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		// What was told to end may still be on its way out.
		for end := time.Now().Add(Patience); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("%d goroutines were left, before there were %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		}
	})
}

// OpenFiles returns the number of open file handles, 0 where the system does not say.
func OpenFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// Missing skips the test, or fails it where a bench is required.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
		t.Fatal(what)
	}
	t.Skip(what + " (RINGWAVE_REQUIRE_BENCH=1 makes this a failure)")
}

// Bus returns a bus that programs see, with boards plugged in.
func Bus(t testing.TB, boards ...virtual.Board) *usbfs.Bus {
	t.Helper()
	bus, err := usbfs.NewBus()
	if errors.Is(err, usbfs.ErrNoPreload) {
		Missing(t, err.Error())
	}
	must(t, err)
	t.Cleanup(func() {
		t.Helper()
		if err := bus.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, b := range boards {
		_, err := bus.Plug(b)
		must(t, err)
	}
	return bus
}

// Bench returns a bench of emulated boards.
func Bench(t testing.TB, cfg virtual.Config) *virtual.Bench {
	t.Helper()
	b, err := virtual.NewBench(cfg)
	must(t, err)
	t.Cleanup(func() {
		t.Helper()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// HackRF returns an emulated board.
func HackRF(t testing.TB, cfg virtual.HackRFConfig) *virtual.HackRF {
	t.Helper()
	h, err := virtual.NewHackRF(cfg)
	must(t, err)
	return h
}

// Tool returns a command of a package of Debian's that sees the bus; it may run for a
// minute.
func Tool(t testing.TB, bus *usbfs.Bus, pkg, name string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name+" is not installed (on Debian: apt-get install "+pkg+")")
	}
	env, err := bus.Env()
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// Receiver opens a receive stream.
func Receiver(t testing.TB, d radio.Device) radio.Receiver {
	t.Helper()
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	must(t, err)
	return rx
}

// Started opens a receive stream and starts it.
func Started(t testing.TB, d radio.Device) radio.Receiver {
	t.Helper()
	rx := Receiver(t, d)
	must(t, rx.Start(t.Context()))
	return rx
}

// Read reads n samples.
func Read(t testing.TB, rx radio.Receiver, n int) ([]complex64, radio.Meta) {
	t.Helper()
	x := make([]complex64, n)
	got, meta, err := radio.ReadFull(t.Context(), rx, x)
	if got != n || err != nil {
		t.Fatalf("read %d of %d: %v", got, n, err)
	}
	return x, meta
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
