//go:build usb && linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

// patience bounds every wait of these tests; none comes near it unless something
// hangs.
const patience = 30 * time.Second

// The boards of these tests run at safetyRate and stop by themselves after
// safetyLimit without samples, which is long because the machine may be busy.
const (
	safetyRate  radio.Hertz = 2e6
	safetyLimit             = time.Second
)

// scene is an emulated bench on which the program runs.
type scene struct {
	bus          *usbfs.Bus
	transmitters []*virtual.HackRF // at 001/001 and 001/002
	receiver     *virtual.HackRF
	receiverAt   usb.Address
}

// newScene plugs in two transmitters and a receiver that hears them, with trigger
// wires and 10 MHz.
func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{}
	cfg := virtual.Config{
		Clock: loopback.WallClock(),
		// Far less than the limit: on a busy machine the bench becomes slow before a
		// board stops.
		Backlog:  safetyLimit / 50,
		Links:    []virtual.Link{{From: 0, To: 2, Gain: 0.5}, {From: 1, To: 2, Gain: 0.35}},
		Triggers: []virtual.Wire{{From: 0, To: 1}, {From: 0, To: 2}},
	}
	for i, api := range []uint16{virtual.API2022, virtual.API2026, virtual.API2022} {
		b := virtualHackRF(t, safetySerial(i), api)
		s.transmitters = append(s.transmitters, b)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: b, Reference: true})
	}
	s.transmitters, s.receiver = s.transmitters[:2], s.transmitters[2]
	bench, err := virtual.NewBench(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bench.Close(); err != nil {
			t.Error(err)
		}
	})
	s.bus = plugged(t, s.transmitters[0], s.transmitters[1])
	if s.receiverAt, err = s.bus.Plug(s.receiver); err != nil {
		t.Fatal(err)
	}
	return s
}

func safetySerial(i int) string { return fmt.Sprintf("0000000000000000%016x", 0x5afe0+i) }

// buildProgram builds the program as its users do.
func buildProgram(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ringwave")
	cmd := exec.Command("go", "build", "-tags", "usb", "-o", path, "ringwave/cmd/ringwave")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// running is the program at work.
type running struct {
	cmd    *exec.Cmd
	folder string
	output bytes.Buffer
}

// start starts a run over the boards of the scene, which goes on for ever.
func (s *scene) start(t testing.TB, program string, more ...string) *running {
	t.Helper()
	r := &running{folder: filepath.Join(t.TempDir(), "run")}
	uri := func(i int) string {
		return fmt.Sprintf("hackrf:%s?limit_ms=%d", safetySerial(i), safetyLimit.Milliseconds())
	}
	args := []string{"run", virtualBenchConfig, "--out", r.folder}
	for _, set := range append([]string{
		"task.dataset=strokes", "task.strokes_train=200", "task.strokes_test=100", "optimizer.rounds=100000",
		fmt.Sprintf("radio.transmitters=[%q, %q]", uri(0), uri(1)), "radio.receiver=" + uri(2),
	}, more...) {
		args = append(args, "--set", set)
	}
	env, err := s.bus.Env()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.Command(program, args...)
	r.cmd.Env = append(os.Environ(), env...)
	r.cmd.Stdout, r.cmd.Stderr = &r.output, &r.output
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it has ended, unless the test failed
		_ = r.cmd.Wait()
	})
	return r
}

// end waits for the program and wants an exit status, -1 for that of SIGKILL.
func (r *running) end(t testing.TB, status int) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		_ = r.cmd.Wait() // it says no more than the status does
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatalf("the program has not ended after %v", patience)
	}
	if got := r.cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("status %d, want %d: %s", got, status, &r.output)
	}
}

func (r *running) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// transmits tells whether a board's carrier is on.
func transmits(b *virtual.HackRF) bool {
	return b.Settings().Mode == virtual.ModeTransmit && b.M0().Active == virtual.M0TXRun
}

// until waits until met, with patience.
func until(t testing.TB, what string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !met(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// onAir waits until all boards do what the run wants of them.
func (s *scene) onAir(t testing.TB, r *running) {
	t.Helper()
	until(t, "the carriers", func() bool {
		return transmits(s.transmitters[0]) && transmits(s.transmitters[1]) && s.receiver.M0().M0Count > 1<<20
	})
}

// sent gives the bytes that each transmitter has sent.
func (s *scene) sent() (counts []uint32) {
	for _, b := range s.transmitters {
		counts = append(counts, b.M0().M0Count)
	}
	return counts
}

// switchedOff wants that the transmitters but for those that are gone were switched
// off by their host, within a number of samples of their own since they had sent so
// many bytes.
func (s *scene) switchedOff(t testing.TB, since []uint32, within radio.SampleCount, gone ...int) {
	t.Helper()
	for i, b := range s.transmitters {
		if slices.Contains(gone, i) {
			continue
		}
		if mode := b.Settings().Mode; mode != virtual.ModeOff {
			t.Errorf("transmitter %d is in mode %d when the program has ended", i, mode)
		}
		m := b.M0()
		if m.Active != virtual.M0Idle || m.Error != virtual.M0NoError {
			t.Errorf("transmitter %d: %+v", i, m)
		}
		more := radio.SampleCount(m.M0Count-since[i]) / 2
		t.Logf("transmitter %d sent %d samples more", i, more)
		if more > within {
			t.Errorf("transmitter %d sent %d samples more; allowed are %d", i, more, within)
		}
	}
}

// stoppedByLimit wants that transmitters stop by themselves, whose host has died: when
// what was on its way to them is sent and the limit is over, in samples of their own.
func (s *scene) stoppedByLimit(t testing.TB) {
	t.Helper()
	const (
		queued = 4 * 262144 // bytes of the driver's transfers
		rings  = 65536      // the most that a board's own buffers hold
		step   = 8192       // in which a bench goes on, at most
	)
	limit := uint32(2 * safetyRate.Samples(safetyLimit))
	dead := s.sent()
	until(t, "the boards to stop by themselves", func() bool {
		return !transmits(s.transmitters[0]) && !transmits(s.transmitters[1])
	})
	for i, b := range s.transmitters {
		m := b.M0()
		if m.Active != virtual.M0Idle || m.Error != virtual.M0TXTimeout {
			t.Errorf("transmitter %d: %+v", i, m)
		}
		if sent := m.M0Count - dead[i]; sent > queued+rings {
			t.Errorf("transmitter %d sent %d bytes after its host's death; allowed are %d", i, sent, queued+rings)
		}
		if m.LongestShortfall < limit || m.LongestShortfall > limit+step {
			t.Errorf("transmitter %d stopped after %d bytes without samples, want %d", i, m.LongestShortfall, limit)
		}
	}
}

// However a run ends, the carriers are off behind it; without the user's word there
// are none.
func TestCarriers(t *testing.T) {
	program := buildProgram(t)
	// A session that ends cuts off what is still to be sent: this is for the signal, and
	// a busy machine.
	prompt := safetyRate.Samples(2 * time.Second)
	// A run that fails has written frames for long after that.
	const ahead = "radio.lead_seconds=10"
	t.Run("Ctrl-C", func(t *testing.T) {
		s := newScene(t)
		r := s.start(t, program)
		s.onAir(t, r)
		since := s.sent()
		r.signal(t, os.Interrupt)
		r.end(t, exitInterrupted)
		s.switchedOff(t, since, prompt)
		wantAll(t, r.output.String(), "ringwave run --resume "+r.folder)
	})
	// The program has no time to switch anything off: the boards do it.
	t.Run("killed", func(t *testing.T) {
		s := newScene(t)
		r := s.start(t, program)
		s.onAir(t, r)
		r.signal(t, syscall.SIGKILL)
		r.end(t, -1)
		s.stoppedByLimit(t)
	})
	// SIGQUIT ends a program as a panic in any of its goroutines does: at once, and
	// without clean-up. (One in the goroutine that feeds a board switches it off: see
	// package hackrf's TestPanicInPump.)
	t.Run("crashed", func(t *testing.T) {
		s := newScene(t)
		r := s.start(t, program)
		s.onAir(t, r)
		r.signal(t, syscall.SIGQUIT)
		r.end(t, 2)
		wantAll(t, r.output.String(), "goroutine")
		s.stoppedByLimit(t)
	})
	t.Run("receiver lost", func(t *testing.T) {
		s := newScene(t)
		r := s.start(t, program, ahead)
		s.onAir(t, r)
		since := s.sent()
		if err := s.bus.Unplug(s.receiverAt); err != nil {
			t.Fatal(err)
		}
		r.end(t, exitFailure)
		s.switchedOff(t, since, prompt)
		wantAll(t, r.output.String(), usb.ErrUnplugged.Error(), "ringwave run --resume "+r.folder)
	})
	t.Run("transmitter lost", func(t *testing.T) {
		s := newScene(t)
		r := s.start(t, program, ahead)
		s.onAir(t, r)
		since := s.sent()
		if err := s.bus.Unplug(usb.Address{Bus: 1, Device: 1}); err != nil {
			t.Fatal(err)
		}
		r.end(t, exitFailure)
		s.switchedOff(t, since, prompt, 0)
		wantAll(t, r.output.String(), usb.ErrUnplugged.Error())
	})
	for name, c := range map[string]struct{ set, says string }{
		"not confirmed": {"radio.transmit=false", "radio.transmit is false"},
		"too strong":    {`radio.transmit_gains_db=["txvga=1", "amp=0"]`, radio.ErrNotPermitted.Error()},
		"beside band":   {"radio.frequency_hz=432.5e6", "radio.band_hz"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			r := s.start(t, program, c.set)
			r.end(t, exitBadInput)
			wantAll(t, r.output.String(), c.says)
			neverSent(t, append(s.transmitters, s.receiver)...)
			if _, err := os.Stat(r.folder); !os.IsNotExist(err) {
				t.Errorf("there is a run folder: %v", err)
			}
		})
	}
	// Another program's board is not touched.
	t.Run("in use", func(t *testing.T) {
		s := newScene(t)
		r := s.start(t, program)
		s.onAir(t, r)
		stdout, stderr, status := output(t, seeing(t, s.bus, program, "devices", "--probe"))
		if status != exitBadInput || !strings.Contains(stderr, "3 of 3 devices could not be opened") {
			t.Errorf("status %d, %s", status, stderr)
		}
		wantAll(t, stdout, "cannot be opened", usb.ErrInUse.Error(), "fuser -v /dev/bus/usb/001/001")
		if !transmits(s.transmitters[0]) || !transmits(s.transmitters[1]) {
			t.Error("looking has switched another program's boards off")
		}
		r.signal(t, os.Interrupt)
		r.end(t, exitInterrupted)
	})
}
