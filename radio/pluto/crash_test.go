//go:build linux

package pluto_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/guard"
	"ringwave/radio/loopback"
	"ringwave/radio/pluto"
)

// crashing is the address of the board that a program transmits with until it dies;
// it is in another process, with the parent's tests.
const crashing = "RINGWAVE_TEST_PLUTO_CRASH"

// patience bounds every wait of these tests; none comes near it unless something hangs.
const patience = 30 * time.Second

// TestTransmitUntilDead is that program, under a guard in a third process. What its
// parent writes is how it is to go on.
func TestTransmitUntilDead(t *testing.T) {
	address := os.Getenv(crashing)
	if address == "" {
		t.Skip("skipped: it is run by TestCrash")
	}
	session, end := context.WithCancel(t.Context())
	defer end()
	g, err := guard.Start(session, os.Args[0], "-test.run", "^TestBeGuard$")
	ok(t, err)
	u, err := radio.ParseURI("pluto:" + address + "?" + ideal + "&block=1024&limit_ms=500")
	ok(t, err)
	d, err := pluto.NewOpener(session, everything(t), g).Open(t.Context(), u)
	ok(t, err)
	tx := transmitter(t, d)
	_, _ = os.Stdout.WriteString("on air\n")
	how, _ := io.ReadAll(os.Stdin) // until the parent wants it to die
	switch string(how) {
	case "panic in the pump":
		pluto.Break(tx)
		_, err := tx.Event(t.Context())
		t.Errorf("no panic: %v", err)
	case "panic":
		go panic("a bug in another goroutine")
		select {}
	case "close":
		ok(t, tx.Close(), d.Close())
	default: // it was stopped, or its guard was
		_, err := tx.Write(t.Context(), make([]complex64, 8), radio.TxMeta{})
		for err == nil {
			_, err = tx.Write(t.Context(), make([]complex64, 8), radio.TxMeta{})
		}
		_, _ = os.Stdout.WriteString("failed: " + err.Error() + "\n")
		_ = tx.Close()
		if again, err := d.(radio.TransmitOpener).OpenTransmitter(t.Context()); err == nil {
			t.Errorf("it transmits again: %v", again.Start(t.Context()))
		}
		ok(t, d.Close())
	}
}

// TestBeGuard is the guard's process.
func TestBeGuard(t *testing.T) {
	if os.Getenv(crashing) == "" {
		t.Skip("skipped: it is run by TestTransmitUntilDead")
	}
	guard.Ignore()
	ok(t, guard.Serve(os.Stdin, os.Stdout, func(ctx context.Context, u radio.URI) (guard.Switch, error) {
		return pluto.OpenSwitch(ctx, u)
	}, os.Stderr))
}

// doomed is the program of TestCrash at work.
type doomed struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *os.File
}

// doom starts the program and waits until it is on air.
func (b *bench) doom(t *testing.T) *doomed {
	t.Helper()
	d := &doomed{cmd: exec.Command(os.Args[0], "-test.run", "^TestTransmitUntilDead$")}
	d.cmd.Env = append(os.Environ(), crashing+"="+b.address)
	var err error
	d.errs, err = os.CreateTemp(t.TempDir(), "") // no pipe: the guard has it, too
	ok(t, err)
	d.cmd.Stderr = d.errs
	d.in, err = d.cmd.StdinPipe()
	ok(t, err)
	out, err := d.cmd.StdoutPipe()
	ok(t, err)
	d.out = bufio.NewReader(out)
	ok(t, d.cmd.Start())
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it has ended, unless the test failed
		_ = d.cmd.Wait()
		ok(t, d.errs.Close())
	})
	if line, err := d.out.ReadString('\n'); line != "on air\n" {
		t.Fatalf("%q, %v\n%s", line, err, d.said(t))
	}
	if b.attribute(t, "ad9361-phy", "TX_LO", "powerdown") != "0" {
		t.Error("the carrier was never on")
	}
	return d
}

// said returns what the program and its guard have said.
func (d *doomed) said(t *testing.T) string {
	t.Helper()
	s, err := os.ReadFile(d.errs.Name())
	ok(t, err)
	return string(s)
}

// tell tells the program how to go on.
func (d *doomed) tell(t *testing.T, how string) {
	t.Helper()
	_, err := io.WriteString(d.in, how)
	ok(t, err, d.in.Close())
}

// eventually waits until met.
func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !met(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// However a program ends, or when it stands still, its carrier goes off; nothing is sent
// without the guard that sees to it.
func TestCrash(t *testing.T) {
	const fell = "the program has ended without switching them off: switched off pluto:"
	for _, c := range []struct {
		how  string
		says []string // on standard error
		fail string   // the stream's failure, where it has one
		do   func(t *testing.T, b *bench, d *doomed)
	}{
		{how: "close", do: func(t *testing.T, _ *bench, d *doomed) { d.tell(t, "close") }},
		{how: "panic in the pump", says: []string{"panic: "}, do: func(t *testing.T, _ *bench, d *doomed) { d.tell(t, "panic in the pump") }},
		{how: "panic", says: []string{"panic: a bug in another goroutine", fell}, do: func(t *testing.T, _ *bench, d *doomed) { d.tell(t, "panic") }},
		{how: "kill", says: []string{fell}, do: func(t *testing.T, _ *bench, d *doomed) { ok(t, d.cmd.Process.Kill()) }},
		{how: "SIGQUIT", says: []string{"goroutine ", fell}, do: func(t *testing.T, _ *bench, d *doomed) { ok(t, d.cmd.Process.Signal(syscall.SIGQUIT)) }},
		{how: "SIGTERM", says: []string{fell}, do: func(t *testing.T, _ *bench, d *doomed) { ok(t, d.cmd.Process.Signal(syscall.SIGTERM)) }},
		{
			how: "stopped", fail: "cannot be relied on",
			says: []string{"the program gave no sign of life for 500ms: switched off pluto:"},
			do: func(t *testing.T, b *bench, d *doomed) {
				ok(t, d.cmd.Process.Signal(syscall.SIGSTOP))
				eventually(t, "the carrier of a program that is stopped to go off", func() bool { return b.silent(t) })
				b.isOff(t)
				b.take()
				ok(t, d.cmd.Process.Signal(syscall.SIGCONT))
				d.tell(t, "stopped")
			},
		},
		{
			how: "the guard killed", fail: "cannot be relied on: it has ended",
			do: func(t *testing.T, b *bench, d *doomed) {
				ok(t, syscall.Kill(child(t, d.cmd.Process.Pid), syscall.SIGKILL))
				eventually(t, "the carrier of a program without its guard to go off", func() bool { return b.silent(t) })
				d.tell(t, "the guard killed")
			},
		},
		{
			how: "the guard stopped", fail: "cannot be relied on: it has not answered",
			do: func(t *testing.T, b *bench, d *doomed) {
				pid := child(t, d.cmd.Process.Pid)
				ok(t, syscall.Kill(pid, syscall.SIGSTOP))
				eventually(t, "the carrier of a program without its guard to go off", func() bool { return b.silent(t) })
				d.tell(t, "the guard stopped")
				ok(t, syscall.Kill(pid, syscall.SIGCONT))
			},
		},
	} {
		t.Run(c.how, func(t *testing.T) { crash(t, c.says, c.fail, c.do) })
	}
}

func crash(t *testing.T, says []string, fail string, do func(*testing.T, *bench, *doomed)) {
	b := newBench(t, loopback.Config{Window: 1 << 14}, nil)
	// Time does not wait for a program that dies before it reads.
	rx := receiver(t, open(t, t.Context(), radio.TransmitPermit{}, b.address, "hold=on&block=1024"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		drain(rx)
	}()
	d := b.doom(t)
	do(t, b, d)
	if fail != "" {
		if line, err := d.out.ReadString('\n'); !strings.HasPrefix(line, "failed: ") || !strings.Contains(line, fail) {
			t.Errorf("%q, %v\n%s", line, err, d.said(t))
		}
	}
	_ = d.cmd.Wait() // what counts is the board
	eventually(t, "the carrier to go off", func() bool { return b.silent(t) })
	b.isOff(t)
	for _, what := range says {
		eventually(t, what, func() bool { return strings.Contains(d.said(t), what) })
	}
	if s := d.said(t); len(says) == 0 && s != "" {
		t.Errorf("it said %q", s)
	}
	// Nothing switches it on again.
	for _, line := range b.take() {
		if strings.Contains(line, "powerdown") && strings.HasSuffix(line, " 0") {
			t.Errorf("after the end: %s", line)
		}
	}
	// The next program has the board at once, and finds it silent.
	tx, err := open(t, t.Context(), everything(t), b.address, ideal).OpenTransmitter(t.Context())
	ok(t, err)
	b.isOff(t)
	ok(t, tx.Start(t.Context()), tx.Close(), rx.Close())
	<-ended
}

// child returns the one process that another has started, by whichever of its threads.
func child(t *testing.T, parent int) int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	ok(t, err)
	var list string
	for _, name := range threads {
		more, err := os.ReadFile(name)
		if err == nil { // a thread may have ended
			list += string(more)
		}
	}
	pid, err := strconv.Atoi(strings.TrimSpace(list))
	ok(t, err)
	return pid
}
