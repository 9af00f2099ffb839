//go:build usb && linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/radio/virtual/usbfs"
)

// bringUp is the program as it tries the boards of a scene.
func (s *scene) bringUp(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	env, err := s.bus.Env()
	if err != nil {
		t.Fatal(err)
	}
	uri := func(i int) string {
		return fmt.Sprintf("hackrf:%s?limit_ms=%d", safetySerial(i), safetyLimit.Milliseconds())
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{
		"bringup", experimenttest.VirtualBenchConfig, "--set", fmt.Sprintf("radio.transmitters=[%q, %q]", uri(0), uri(1)), "--set", "radio.receiver=" + uri(2),
	}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// off wants all carriers off.
func (s *scene) off(t *testing.T) {
	t.Helper()
	for i, h := range s.transmitters {
		if h.Carrier() {
			t.Errorf("transmitter %d is on", i+1)
		}
	}
}

// Through libusb: carriers go off, also when a second program is killed that sends, and a
// clock that is missing is named. What is written is there.
func TestBringUpThroughLibusb(t *testing.T) {
	s, program, dir := newScene(t), buildProgram(t), t.TempDir()
	out, err := s.bringUp(t, program, "--yes", "--steps", "boards,clock,carrier", "--out", filepath.Join(dir, "good")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "a second program sends the tone") || strings.Contains(string(out), "fail") {
		t.Errorf("%v\n%s", err, out)
	}
	s.off(t)
	if err := s.bench.SetReference(1, false); err != nil {
		t.Fatal(err)
	}
	cmd := s.bringUp(t, program, "--steps", "boards,clock", "--out", filepath.Join(dir, "bad"))
	out, err = cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitFailure || !strings.Contains(string(out), safetySerial(1)[24:]+"?limit_ms=1000, does not follow a reference clock") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range []string{"good", "bad"} {
		if info, err := os.Stat(filepath.Join(dir, name, "bringup.tar.gz")); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stopper interrupts a program once it says a word.
type stopper struct {
	said bytes.Buffer
	word string
	stop func()
}

func (s *stopper) Write(p []byte) (int, error) {
	if s.stop != nil && strings.Contains(string(p), s.word) {
		s.stop()
		s.stop = nil
	}
	return s.said.Write(p)
}

// Ctrl-C while boards send ends with carriers off, and keeps what was measured.
func TestBringUpIsStopped(t *testing.T) {
	s, program, dir := newScene(t), buildProgram(t), filepath.Join(t.TempDir(), "b")
	cmd := s.bringUp(t, program, "--yes", "--steps", "boards,clock,samples", "--out", dir)
	said := &stopper{word: "are switched on"}
	said.stop = func() { _ = cmd.Process.Signal(syscall.SIGINT) }
	cmd.Stderr = said
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("%v\n%s", err, said.said.String())
	}
	s.off(t)
	results, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil || !strings.Contains(string(results), `"step": "clock"`) || !strings.Contains(string(results), "it was stopped") {
		t.Errorf("%v\n%s", err, results)
	}
}

// On a bench with one thing wrong the program names it, and nothing else fails.
func TestBringUpNamesFaults(t *testing.T) {
	if os.Getenv("RINGWAVE_LONG") == "" {
		t.Skip("takes minutes (RINGWAVE_LONG=1)")
	}
	if _, err := usbfs.Preload(); err != nil {
		experimenttest.NeedBench(t, err, usbfs.ErrNoPreload)
	}
	program, bench := buildProgram(t), filepath.Join(t.TempDir(), "virtual-bench")
	if out, err := exec.Command("go", "build", "-o", bench, "ringwave/cmd/virtual-bench").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const usual = "-n 2 --gain 0.5,0.35"
	for _, c := range []struct{ name, bench, set, step, want string }{
		{"clean", usual, "", "", ""},
		{"clean, second receiver", usual + " --rtl", "--second rtlsdr:00000001", "", ""},
		{"clock missing", usual + " --fault rx:ppm=20", "", "clock", "the receiver, hackrf:72696e6700000002, does not follow a reference clock"},
		{"clipping", "-n 2 --gain 2.5,0.35", "", "levels", "transmitter 1, hackrf:72696e6700000000, clips"},
		{"DC spike", usual + " --fault rx:dc=0.2", "", "silence", "the receiver has a DC spike of -13.9 dB"},
		{"leak", usual + " --fault 2:dc=0.2", "", "images", "transmitter 2, hackrf:72696e6700000001, leaks its oscillator at -13.8 dB"},
		{"image", usual + " --fault 1:iq-gain-db=3", "", "images", "transmitter 1, hackrf:72696e6700000000, has an image of -15.3 dB"},
		{"receiver's image", usual + " --fault rx:iq-gain-db=2", "", "images", "the receiver, hackrf:72696e6700000002, has an image of -18.8 dB"},
		{"receiver off", usual + " --fault rx:ppm=60", "--set radio.clock=shared", "ppm", "the receiver, hackrf:72696e6700000002, is 60 ppm off"},
		{"transmitters apart", usual + " --fault 2:ppm=2", "--set radio.clock=shared", "ppm", "transmitter 2, hackrf:72696e6700000001, is 868.2 Hz (2 ppm) off the first"},
		{"lost samples", usual + " --fault rx:lose-every=1000000,lose=5000", "", "samples", "the receiver, hackrf:72696e6700000002, lost samples"},
		{"underruns", usual + " --fault 2:lose-every=1000000,lose=5000", "", "samples", "transmitter 2, hackrf:72696e6700000001, had nothing to send"},
		{"trigger wire missing", usual + " --fault 2:no-trigger=1", "", "starts", "transmitter 2, hackrf:72696e6700000001, was never triggered"},
		{"start offset", usual + " --fault 2:delay=6", "", "starts", "transmitter 2, hackrf:72696e6700000001, is 6.00 samples behind the first"},
		{"weak", "-n 2 --gain 0.5,0.01", "", "levels", "transmitter 2, hackrf:72696e6700000001, is weak: it arrives at 0.01"},
		{"dead", "-n 2 --gain 0.5,0", "", "levels", "transmitter 2, hackrf:72696e6700000001, is not heard at all"},
		{"carrier stays", usual + " --fault 2:stays=0.1", "", "carrier", "transmitter 2, hackrf:72696e6700000001, stays on"},
		{"board missing", "-n 1 --gain 0.5", "", "boards", `the receiver: device "hackrf:72696e6700000002": no HackRF is known by this`},
		{"old firmware", usual + " --api 0102", "", "boards", "firmware is too old"},
		{"another transmitter", usual + " --fault rx:tone-hz=-300000,tone=0.3", "", "silence", "something sends at 433.37"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "b")
			args := append(strings.Fields(c.bench), "--noise", "0.003", "--backlog", "20ms", "--", program, "bringup", experimenttest.VirtualBenchConfig, "--yes", "--out", dir, "--set", "task.dataset=strokes")
			out, err := exec.CommandContext(t.Context(), bench, append(args, strings.Fields(c.set)...)...).CombinedOutput()
			text := strings.Join(strings.Fields(string(out)), " ")
			switch {
			case c.step == "" && err != nil:
				t.Errorf("%v\n%s", err, out)
			case c.step != "" && (err == nil || !strings.Contains(text, c.want) || !strings.Contains(text, "ringwave: failed: "+c.step)):
				t.Errorf("%v\n%s", err, out)
			case strings.Contains(text, "failed: "+c.step+","):
				t.Errorf("more than that has failed\n%s", out)
			}
		})
	}
}
