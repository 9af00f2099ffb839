//go:build usb && linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringwave/learner/experiment/experimenttest"
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
	bench        *virtual.Bench
	bus          *usbfs.Bus
	transmitters []*virtual.HackRF // at 001/001 and 001/002
	receiver     *virtual.HackRF
	receiverAt   usb.Address
}

// newScene plugs in two transmitters and a receiver that hears them, with trigger
// wires and 10 MHz.
func newScene(t testing.TB) *scene {
	t.Helper()
	return newSceneWith(t, func(b *virtual.HackRF) virtual.Board { return b })
}

// newSceneWith is newScene with something between the first board and its plug.
func newSceneWith(t testing.TB, between func(*virtual.HackRF) virtual.Board) *scene {
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
	s.bench, s.bus = bench, plugged(t, between(s.transmitters[0]), s.transmitters[1])
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
	return s.startAs(t, func(args []string) *exec.Cmd { return exec.Command(program, args...) }, more...)
}

// startAs is start with a command that is made of the program's arguments.
func (s *scene) startAs(t testing.TB, command func(args []string) *exec.Cmd, more ...string) *running {
	t.Helper()
	r := &running{folder: filepath.Join(t.TempDir(), "run")}
	uri := func(i int) string {
		return fmt.Sprintf("hackrf:%s?limit_ms=%d", safetySerial(i), safetyLimit.Milliseconds())
	}
	args := []string{"run", experimenttest.VirtualBenchConfig, "--out", r.folder}
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
	r.cmd = command(args)
	r.cmd.Env = append(append(os.Environ(), r.cmd.Env...), env...)
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

// end waits for the program and its guard, and wants an exit status, -1 for that of a
// signal.
func (r *running) end(t testing.TB, status int) {
	t.Helper()
	r.ended(t)
	if got := r.cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("status %d, want %d: %s", got, status, &r.output)
	}
}

// ended waits for the program and its guard, which has its output, too.
func (r *running) ended(t testing.TB) {
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
}

// guard returns the process of the program's guard, its one child, by whichever of its
// threads.
func (r *running) guard(t testing.TB) int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var list string
	for _, name := range threads {
		more, err := os.ReadFile(name)
		if err == nil { // a thread may have ended
			list += string(more)
		}
	}
	guard, err := strconv.Atoi(strings.TrimSpace(list))
	if err != nil {
		t.Fatalf("the program's children are %q", list)
	}
	return guard
}

func (r *running) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// transmits reports whether a board sends samples.
func transmits(b *virtual.HackRF) bool {
	return b.Settings().Mode == virtual.ModeTransmit && b.M0().Active == virtual.M0TXRun
}

// onAir waits until all boards do what the run wants of them.
func (s *scene) onAir(t testing.TB, r *running) {
	t.Helper()
	experimenttest.Until(t, "the carriers", func() bool {
		return transmits(s.transmitters[0]) && transmits(s.transmitters[1]) && s.receiver.M0().M0Count > 1<<20
	})
}

// sent returns the bytes that each transmitter has sent.
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

// carriersOff waits until the transmit chains of all boards are off, samples or none.
func (s *scene) carriersOff(t testing.TB) {
	t.Helper()
	experimenttest.Until(t, "the carriers to go off", func() bool { return len(s.bench.Carriers()) == 0 })
}

// forget forgets what the transmitters were asked for.
func (s *scene) forget() {
	for _, b := range s.transmitters {
		b.ClearTranscript()
	}
}

// fell is what a guard says whose program has ended.
const fell = "ringwave guard: the program has ended without switching them off: switched off hackrf:"

// stoppedByLimit wants that transmitters stop sending samples by themselves, whose host
// has died with its guard: when what was on its way to them is sent and the limit is over,
// in samples of their own. Their transmit chains stay on.
func (s *scene) stoppedByLimit(t testing.TB) {
	t.Helper()
	const (
		queued = 4 * 262144 // bytes of the driver's transfers
		rings  = 65536      // the most that a board's own buffers hold
		step   = 8192       // in which a bench goes on, at most
	)
	limit := uint32(2 * safetyRate.Samples(safetyLimit))
	dead := s.sent()
	experimenttest.Until(t, "the boards to stop by themselves", func() bool {
		return !transmits(s.transmitters[0]) && !transmits(s.transmitters[1])
	})
	for i, b := range s.transmitters {
		m := b.M0()
		if m.Active != virtual.M0Idle || m.Error != virtual.M0TXTimeout || !b.Carrier() {
			t.Errorf("transmitter %d: carrier %v, %+v", i, b.Carrier(), m)
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
// Longer, or of more branches, than most because it is a table of ends.
func TestCarriers(t *testing.T) {
	program := buildProgram(t)
	t.Run("of the dead", func(t *testing.T) { carriersOfTheDead(t, program) })
	t.Run("of the stopped", func(t *testing.T) { carriersOfTheStopped(t, program) })
	t.Run("without a guard", func(t *testing.T) { carriersWithoutGuard(t, program) })
	// A session that ends cuts off what is still to be sent: this is for the signal, and
	// a busy machine.
	prompt := safetyRate.Samples(2 * time.Second)
	// A run that fails has written frames for long after that.
	const ahead = "radio.lead_seconds=10"
	for _, by := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(by.String(), func(t *testing.T) {
			if signal.Ignored(by) {
				t.Skipf("%v is ignored here, as by nohup, and so it is by what this starts", by)
			}
			s := newScene(t)
			r := s.start(t, program)
			s.onAir(t, r)
			since := s.sent()
			r.signal(t, by)
			r.end(t, exitInterrupted)
			s.switchedOff(t, since, prompt)
			experimenttest.WantAll(t, r.output.String(), "ringwave run --resume "+r.folder)
			if strings.Contains(r.output.String(), "ringwave guard:") {
				t.Errorf("the guard had to do it: %s", &r.output)
			}
		})
	}
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
		experimenttest.WantAll(t, r.output.String(), usb.ErrUnplugged.Error(), "ringwave run --resume "+r.folder)
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
		experimenttest.WantAll(t, r.output.String(), usb.ErrUnplugged.Error())
	})
	for name, c := range map[string]struct{ set, says string }{
		"not confirmed": {"radio.transmit=false", "radio.transmit = false: must be true"},
		"too strong":    {`radio.transmit_gains_db=["txvga=1", "amp=0"]`, radio.ErrNotPermitted.Error()},
		"beside band":   {"radio.frequency_hz=432.5e6", "radio.band_hz"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			r := s.start(t, program, c.set)
			r.end(t, exitBadInput)
			experimenttest.WantAll(t, r.output.String(), c.says)
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
		experimenttest.WantAll(t, stdout, "cannot be opened", usb.ErrInUse.Error(), "fuser -v /dev/bus/usb/001/001")
		if !transmits(s.transmitters[0]) || !transmits(s.transmitters[1]) {
			t.Error("looking has switched another program's boards off")
		}
		r.signal(t, os.Interrupt)
		r.end(t, exitInterrupted)
	})
}

// Whatever ends the program, the guard switches the boards off, which has no time to do it
// itself: in the middle of a transmission, before a board has enough to begin, and while one
// waits for its trigger, where there is no limit of the board's own.
// Longer, or of more branches, than most because it is a table of deaths.
func carriersOfTheDead(t *testing.T, program string) {
	dies := func(t *testing.T, s *scene, r *running, by os.Signal) {
		t.Helper()
		r.signal(t, by)
		r.ended(t)
		s.carriersOff(t)
		experimenttest.WantAll(t, r.output.String(), fell)
		for i, b := range s.transmitters {
			if amp := b.Settings().Gains.Amp; amp {
				t.Errorf("transmitter %d's amplifier is on", i)
			}
		}
	}
	// All that end a Go program and that it does not catch, or cannot.
	for _, by := range []syscall.Signal{
		syscall.SIGKILL, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE,
		syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS, syscall.SIGSTKFLT,
	} {
		t.Run(by.String(), func(t *testing.T) {
			s := newScene(t)
			r := s.start(t, program)
			s.onAir(t, r)
			dies(t, s, r, by)
		})
	}
	t.Run("a panic in a goroutine", func(t *testing.T) {
		s := newScene(t)
		r := s.startAs(t, func(args []string) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{childArgs + "=" + strings.Join(args, "\n"), panics + "=1"}
			return cmd
		})
		s.onAir(t, r)
		dies(t, s, r, syscall.SIGALRM)
		experimenttest.WantAll(t, r.output.String(), "panic: a bug in a pool")
	})
	// What ends programs of a terminal, or of its group, does not end the guard.
	t.Run("its group", func(t *testing.T) {
		s := newScene(t)
		r := s.startAs(t, func(args []string) *exec.Cmd {
			cmd := exec.Command(program, args...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			return cmd
		})
		s.onAir(t, r)
		for _, by := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGTSTP} {
			if err := syscall.Kill(r.guard(t), by); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r.ended(t)
		s.carriersOff(t)
		experimenttest.WantAll(t, r.output.String(), fell)
	})
	t.Run("before it has begun", func(t *testing.T) {
		s := newSceneWith(t, func(b *virtual.HackRF) virtual.Board {
			f := virtual.NewFaulty(b)
			if err := f.OnTransfer(0x02, 1, virtual.Hang); err != nil {
				t.Fatal(err)
			}
			return f
		})
		r := s.start(t, program)
		first := s.transmitters[0]
		experimenttest.Until(t, "a board that waits for samples", func() bool { return first.Carrier() && first.M0().Active == virtual.M0TXStart })
		dies(t, s, r, syscall.SIGKILL)
		if n := first.M0().M0Count; n != 0 {
			t.Errorf("it has sent %d bytes", n)
		}
	})
	t.Run("armed", func(t *testing.T) {
		s := newScene(t)
		if err := s.bench.CutTrigger(virtual.Wire{From: 0, To: 1}); err != nil {
			t.Fatal(err)
		}
		r := s.start(t, program)
		experimenttest.Until(t, "a board that waits for its trigger", s.transmitters[1].Armed)
		dies(t, s, r, syscall.SIGKILL)
	})
}

// A program that stands still for longer than the limit has its boards switched off, and
// sends nothing when it goes on.
func carriersOfTheStopped(t *testing.T, program string) {
	for _, by := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTSTP} {
		t.Run(by.String(), func(t *testing.T) {
			s := newScene(t)
			r := s.startAs(t, func(args []string) *exec.Cmd {
				cmd := exec.Command(program, args...)
				// SIGTSTP stops none that is in an orphaned process group.
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				return cmd
			})
			s.onAir(t, r)
			r.signal(t, by)
			s.carriersOff(t)
			s.forget()
			since := s.sent()
			r.signal(t, syscall.SIGCONT)
			r.end(t, exitFailure)
			experimenttest.WantAll(t, r.output.String(), "ringwave guard: the program gave no sign of life for 1s: switched off hackrf:",
				radio.ErrGuard.Error()+" cannot be relied on", "ringwave run --resume "+r.folder)
			if strings.Contains(r.output.String(), "receiv") {
				t.Errorf("the receiver is blamed: %s", &r.output)
			}
			neverSent(t, s.transmitters...)
			for i, b := range s.transmitters {
				if n := b.M0().M0Count; n != since[i] {
					t.Errorf("transmitter %d sent %d bytes on waking", i, n-since[i])
				}
			}
		})
	}
}

// Without a living guard the program sends nothing, and says why.
// Longer, or of more branches, than most because it is a table of what happens to a guard.
func carriersWithoutGuard(t *testing.T, program string) {
	t.Run("killed", func(t *testing.T) {
		s := newScene(t)
		r := s.start(t, program)
		s.onAir(t, r)
		since := s.sent()
		if err := syscall.Kill(r.guard(t), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r.end(t, exitFailure)
		s.switchedOff(t, since, safetyRate.Samples(2*time.Second))
		experimenttest.WantAll(t, r.output.String(), radio.ErrGuard.Error()+" cannot be relied on: it has ended")
	})
	t.Run("stopped", func(t *testing.T) {
		s := newScene(t)
		r := s.start(t, program)
		s.onAir(t, r)
		guard := r.guard(t)
		if err := syscall.Kill(guard, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		s.carriersOff(t)
		if err := syscall.Kill(guard, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		r.end(t, exitFailure)
		experimenttest.WantAll(t, r.output.String(), radio.ErrGuard.Error()+" cannot be relied on: it has not answered for")
	})
	// The program's own file is gone, so that it cannot be started once more.
	t.Run("cannot start", func(t *testing.T) {
		s := newScene(t)
		own := filepath.Join(t.TempDir(), "ringwave")
		if err := os.Link(program, own); err != nil {
			t.Fatal(err)
		}
		r := s.startAs(t, func(args []string) *exec.Cmd {
			return exec.Command("/bin/sh", append([]string{"-c", `exec 9<"$0"; rm "$0"; exec /proc/self/fd/9 "$@"`, own}, args...)...)
		})
		r.ended(t)
		if r.cmd.ProcessState.Success() {
			t.Errorf("it runs: %s", &r.output)
		}
		experimenttest.WantAll(t, r.output.String(), radio.ErrGuard.Error()+" did not start")
		neverSent(t, append(s.transmitters, s.receiver)...)
	})
	// This is what remains where both are gone: samples end, carriers do not.
	t.Run("both killed", func(t *testing.T) {
		s := newScene(t)
		r := s.start(t, program)
		s.onAir(t, r)
		guard := r.guard(t)
		r.signal(t, syscall.SIGSTOP) // or it switches them off
		for _, pid := range []int{guard, r.cmd.Process.Pid} {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		r.end(t, -1)
		s.stoppedByLimit(t)
	})
}
