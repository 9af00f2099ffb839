//go:build linux

package usbfs_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

func requireLines(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in the output\n%s", line, out)
		}
	}
}

const (
	serialA = "0000000000000000a06063c8234e5f5f"
	serialB = "000000000000000087c867dc2b6a3bcf"
)

// plug makes a bench and plugs its boards in.
func plug(t *testing.T, cfg virtual.Config) *usbfs.Bus {
	t.Helper()
	bus := radiotest.Bus(t)
	radiotest.Bench(t, cfg)
	for _, p := range cfg.Boards {
		if _, err := bus.Plug(p.Radio); err != nil {
			t.Fatal(err)
		}
	}
	return bus
}

// requests returns a transcript, a line each.
func requests(h *virtual.HackRF) []string {
	var all []string
	for _, r := range h.Transcript() {
		all = append(all, r.String())
	}
	return all
}

func TestHackRFInfo(t *testing.T) {
	radiotest.Leaks(t)
	a := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialA, Revision: virtual.R9, API: virtual.API2026})
	b := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialB, API: virtual.API2018})
	bus := plug(t, virtual.Config{Boards: []virtual.Place{{Radio: a}, {Radio: b}}})
	out := run(t, radiotest.Tool(t, bus, "hackrf", "hackrf_info"))
	requireLines(t, out,
		"Serial number: "+serialA, "Board ID Number: 4 (HackRF One)", "Firmware Version: git (API:1.12)", "Hardware Revision: r9", "manufactured by Great Scott Gadgets",
		"Serial number: "+serialB, "Board ID Number: 2 (HackRF One)", "Firmware Version: 2018.01.1 (API:1.02)", "Part ID Number: 0xa000cb3c")
	if strings.Count(out, "Found HackRF") != 2 {
		t.Errorf("not two boards in\n%s", out)
	}
}

func TestHackRFClock(t *testing.T) {
	radiotest.Leaks(t)
	a, b := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialA}), radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialB})
	bus := plug(t, virtual.Config{Boards: []virtual.Place{{Radio: a, Reference: true}, {Radio: b}}})
	requireLines(t, run(t, radiotest.Tool(t, bus, "hackrf", "hackrf_clock", "-d", serialA, "-i")), "CLKIN status: clock signal detected")
	requireLines(t, run(t, radiotest.Tool(t, bus, "hackrf", "hackrf_clock", "-d", serialB, "-i")), "CLKIN status: no clock signal detected")
	run(t, radiotest.Tool(t, bus, "hackrf", "hackrf_clock", "-d", serialB, "-o", "1"))
	if !b.Settings().ClockOut || a.Settings().ClockOut {
		t.Error("the clock output was not turned on, or at the wrong board")
	}
	run(t, radiotest.Tool(t, bus, "hackrf", "hackrf_clock", "-d", serialA, "-a"))
}

// TestFileArrives has hackrf_transfer send a file on one board and hackrf_transfer
// receive it on another, with each firmware's flush.
func TestFileArrives(t *testing.T) {
	for _, api := range []uint16{virtual.API2018, virtual.API2022, virtual.API2026} {
		t.Run(fmt.Sprintf("%04x", api), func(t *testing.T) { fileArrives(t, api) })
	}
}

func fileArrives(t *testing.T, api uint16) {
	radiotest.Leaks(t)
	a := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialA, API: api})
	b := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialB, API: api})
	bus := plug(t, virtual.Config{
		Boards: []virtual.Place{{Radio: a}, {Radio: b}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 1}},
		Await:  []int{0, 1},
	})
	dir := t.TempDir()
	sent := make([]byte, 3<<20+1234)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range sent {
		sent[i] = byte(random.Uint32())
	}
	if err := os.WriteFile(filepath.Join(dir, "sent"), sent, 0o600); err != nil {
		t.Fatal(err)
	}
	rx := radiotest.Tool(t, bus, "hackrf", "hackrf_transfer", "-d", serialB, "-r", filepath.Join(dir, "got"), "-s", "8000000", "-f", "433920000", "-n", "2000000")
	var log bytes.Buffer
	rx.Stdout, rx.Stderr = &log, &log
	if err := rx.Start(); err != nil {
		t.Fatal(err)
	}
	run(t, radiotest.Tool(t, bus, "hackrf", "hackrf_transfer", "-d", serialA, "-t", filepath.Join(dir, "sent"), "-s", "8000000", "-f", "433920000"))
	if err := rx.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	got, err := os.ReadFile(filepath.Join(dir, "got"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4000000 {
		t.Errorf("%d bytes were received, want 4,000,000", len(got))
	}
	if !bytes.HasPrefix(got, sent) {
		i := 0
		for i < len(got) && i < len(sent) && got[i] == sent[i] {
			i++
		}
		t.Errorf("%d bytes were sent and %d received; they differ from %d on", len(sent), len(got), i)
	}
	want := []string{
		"out  6 value 0000 index 0000 length 8 data 00127a0001000000",
		"out  7 value 8d80 index 005b length 0 data ",
		"out 29 value 0000 index 0000 length 0 data ",
		"out 16 value 0000 index 0000 length 8 data b1010000c0090e00",
		"in  21 value 0000 index 0000 length 1 data 01",
		"out  1 value 0002 index 0000 length 0 data ",
	}
	if all := requests(a); !slices.Equal(all[:min(len(all), len(want))], want) {
		t.Errorf("the transmitter's requests are\n%s\nwant first\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
}

// TestSettingsArrive: what hackrf_transfer is told is what the board is set to.
func TestSettingsArrive(t *testing.T) {
	radiotest.Leaks(t)
	h := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialA})
	bus := plug(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
	run(t, radiotest.Tool(t, bus, "hackrf", "hackrf_transfer", "-r", filepath.Join(t.TempDir(), "got"), "-s", "10000000", "-f", "2450000000",
		"-a", "1", "-l", "24", "-g", "30", "-b", "5000000", "-n", "100000"))
	want := virtual.Settings{Frequency: 2450e6, Rate: 10e6, Filter: 5e6, Gains: virtual.Gains{LNA: 24, VGA: 30, Amp: true}}
	if got := h.Settings(); got != want {
		t.Errorf("settings are\n%+v, want\n%+v", got, want)
	}
}

// TestHackRFSweep: hackrf_sweep finds the carrier of another board where that is, and has looked
// everywhere else.
func TestHackRFSweep(t *testing.T) {
	for _, api := range []uint16{virtual.API2022, virtual.API2026} {
		t.Run(fmt.Sprintf("%04x", api), func(t *testing.T) { sweepsOver(t, api) })
	}
}

func sweepsOver(t *testing.T, api uint16) {
	radiotest.Leaks(t)
	a := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialA, API: api})
	b := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialB, API: api})
	bus := plug(t, virtual.Config{
		Boards: []virtual.Place{{Radio: a}, {Radio: b}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 0.5}},
		Await:  []int{0, 1},
	})
	tx := radiotest.Tool(t, bus, "hackrf", "hackrf_transfer", "-d", serialA, "-c", "127", "-s", "20000000", "-f", "2437300000")
	if err := tx.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Wait() }() // killed
	defer func() { _ = tx.Process.Kill() }()
	file := filepath.Join(t.TempDir(), "swept")
	run(t, radiotest.Tool(t, bus, "hackrf", "hackrf_sweep", "-d", serialB, "-f", "2400:2480", "-w", "500000", "-N", "2", "-r", file))
	swept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	looked := map[float64]int{}
	loudest, where := math.Inf(-1), 0.0
	for _, line := range strings.Split(strings.TrimSpace(string(swept)), "\n") {
		var numbers []float64
		for _, field := range strings.Split(line, ", ")[2:] { // behind date and time
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			numbers = append(numbers, v)
		}
		looked[numbers[0]]++
		for k, db := range numbers[4:] {
			if db > loudest {
				loudest, where = db, numbers[0]+(float64(k)+0.5)*numbers[2]
			}
		}
	}
	if math.Abs(where-2437.3e6) > 0.5e6 {
		t.Errorf("the loudest is %.1f dB at %.2f MHz\n%s", loudest, where/1e6, swept)
	}
	for f := 2400e6; f < 2480e6; f += 5e6 {
		if looked[f] < 2 {
			t.Errorf("%v MHz was looked at %d times in 2 sweeps", f/1e6, looked[f])
		}
	}
	if s := b.Settings(); s.Mode != virtual.ModeOff || s.Rate != 20e6 {
		t.Errorf("%+v", s)
	}
}

// awaitStream waits until samples flow.
func awaitStream(t *testing.T, h *virtual.HackRF) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); h.M0().M0Count == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("no samples flow")
		}
	}
}

// TestUnplugged: a program in the middle of a stream notices that its board is gone.
func TestUnplugged(t *testing.T) {
	radiotest.Leaks(t)
	h := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialA})
	bus := plug(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
	cmd := radiotest.Tool(t, bus, "hackrf", "hackrf_transfer", "-r", "/dev/null", "-s", "10000000", "-f", "2450000000")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitStream(t, h)
	if err := bus.Unplug(usb.Address{Bus: 1, Device: 1}); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // what it printed tells how it ended
	requireLines(t, log.String(), "hackrf_exit() done")
	if out, err := radiotest.Tool(t, bus, "hackrf", "hackrf_info").CombinedOutput(); err == nil {
		t.Errorf("a board is found that is not there:\n%s", out)
	}
	if err := bus.Unplug(usb.Address{Bus: 1, Device: 2}); err == nil {
		t.Error("a board that never was is unplugged")
	}
}

// TestOneProgram: a board is one program's at a time.
func TestOneProgram(t *testing.T) {
	radiotest.Leaks(t)
	h := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialA})
	bus := plug(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}, Await: []int{0}})
	first := radiotest.Tool(t, bus, "hackrf", "hackrf_transfer", "-r", "/dev/null", "-s", "10000000")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	awaitStream(t, h)
	out, err := radiotest.Tool(t, bus, "hackrf", "hackrf_transfer", "-r", "/dev/null", "-s", "10000000", "-n", "1000").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "busy") {
		t.Errorf("a second program gets %v\n%s", err, out)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // killed
	// A program that died has left the board.
	run(t, radiotest.Tool(t, bus, "hackrf", "hackrf_transfer", "-r", "/dev/null", "-s", "10000000", "-n", "1000"))
}
