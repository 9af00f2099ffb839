package pluto_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/pluto"
)

// crashing is the address of the board that a program transmits with until it dies;
// it is in another process, with the parent's tests.
const crashing = "RINGWAVE_TEST_PLUTO_CRASH"

// TestTransmitUntilDead is that program.
func TestTransmitUntilDead(t *testing.T) {
	address := os.Getenv(crashing)
	if address == "" {
		t.Skip("skipped: it is run by TestCrash")
	}
	tx := transmitter(t, open(t, t.Context(), everything(t), address, ideal+"&block=1024"))
	_, _ = os.Stdout.WriteString("on air\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent wants it to die
	pluto.Break(tx)
	_, err := tx.Event(t.Context())
	t.Errorf("no panic: %v", err)
}

// A program that panics switches the carrier off first. Of one that is killed the
// samples end; its carrier stays on, which only a user can be told.
func TestCrash(t *testing.T) {
	for _, how := range []string{"panic", "kill"} {
		b := newBench(t, loopback.Config{Window: 1 << 14}, nil)
		cmd := exec.Command(os.Args[0], "-test.run", "^TestTransmitUntilDead$")
		cmd.Env = append(os.Environ(), crashing+"="+b.address)
		var errs strings.Builder
		cmd.Stderr = &errs
		in, err := cmd.StdinPipe()
		ok(t, err)
		out, err := cmd.StdoutPipe()
		ok(t, err)
		ok(t, cmd.Start())
		rx := receiver(t, open(t, t.Context(), radio.TransmitPermit{}, b.address, "hold=on&block=1024"))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			drain(rx)
		}()
		line, err := bufio.NewReader(out).ReadString('\n')
		if line != "on air\n" {
			t.Fatalf("%q, %v\n%s", line, err, errs.String())
		}
		if b.attribute(t, "ad9361-phy", "TX_LO", "powerdown") != "0" {
			t.Error("the carrier was never on")
		}
		if how == "kill" {
			ok(t, cmd.Process.Kill())
		} else {
			ok(t, in.Close())
		}
		if err := cmd.Wait(); err == nil {
			t.Error("it lives")
		}
		if how == "panic" {
			if !strings.Contains(errs.String(), "panic: ") {
				t.Errorf("no panic\n%s", errs.String())
			}
			b.isOff(t)
		}
		// The next program has the board at once, and finds it silent.
		tx, err := open(t, t.Context(), everything(t), b.address, ideal).OpenTransmitter(t.Context())
		ok(t, err)
		b.isOff(t)
		ok(t, tx.Start(t.Context()), tx.Close(), rx.Close())
		<-ended
	}
}
