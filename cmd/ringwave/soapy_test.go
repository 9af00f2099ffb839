//go:build soapy && linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/radio/soapy/soapytest"
)

// soapyBench is transmitters T1 and T2 and a receiver R of the module for tests, whose carriers
// are told in a folder, as hardware that outlives its program.
type soapyBench struct {
	states string
	env    []string
	uri    string // but for the serial number
}

// newSoapyBench has the boards in the program itself, or at a server.
func newSoapyBench(t testing.TB, remote bool) *soapyBench {
	t.Helper()
	b := &soapyBench{states: t.TempDir(), uri: "soapy:driver=" + soapytest.Driver + ",pps_ms=200,gain=0.4,serial="}
	b.env = []string{"SOAPY_SDR_PLUGIN_PATH=" + soapytest.Build(t), "RINGTEST_STATE=" + b.states, "RINGTEST_BOARDS=T1,T2,R"}
	if remote {
		b.uri = "soapy-remote:" + soapytest.Serve(t, b.env...) + "?driver=" + soapytest.Driver + "&pps_ms=200&gain=0.4&serial="
		b.env = nil
	}
	return b
}

// on reports whether a board's carrier is on.
func (b *soapyBench) on(t testing.TB, serial string) bool {
	text, err := os.ReadFile(filepath.Join(b.states, serial))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.HasPrefix(string(text), "on")
}

// await waits until both carriers are on, or off, and returns how long that took.
func (b *soapyBench) await(t testing.TB, on bool, output *bytes.Buffer) time.Duration {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	began := time.Now()
	for time.Since(began) < time.Minute {
		if b.on(t, "T1") == on && b.on(t, "T2") == on {
			return time.Since(began)
		}
		<-look.C
	}
	t.Fatalf("after a minute carriers are on: %v and %v, and not %v\n%s", b.on(t, "T1"), b.on(t, "T2"), on, output)
	return 0
}

// However a program ends that sends through SoapySDR, or stands still, its carriers go off.
func TestSoapyCarriers(t *testing.T) {
	for _, at := range []string{"here", "at a server"} {
		b := newSoapyBench(t, at != "here")
		for _, c := range []struct {
			name string
			by   syscall.Signal
		}{{"Ctrl-C", syscall.SIGINT}, {"panic", syscall.SIGALRM}, {"kill -9", syscall.SIGKILL}, {"SIGSTOP", syscall.SIGSTOP}} {
			t.Run(c.name+" "+at, func(t *testing.T) {
				args := []string{"run", experimenttest.VirtualBenchConfig, "--out", filepath.Join(t.TempDir(), "run")}
				for _, set := range []string{
					"task.dataset=strokes", "task.strokes_train=200", "task.strokes_test=100", "optimizer.rounds=100000", "radio.trigger=pps",
					`radio.transmitters=["` + b.uri + `T1", "` + b.uri + `T2"]`, "radio.receiver=" + b.uri + "R",
					`radio.transmit_gains_db=["PAD=0"]`, `radio.receive_gains_db=[]`,
				} {
					args = append(args, "--set", set)
				}
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(append(os.Environ(), childArgs+"="+strings.Join(args, "\n"), panics+"=1"), b.env...)
				var output bytes.Buffer
				cmd.Stdout, cmd.Stderr = &output, &output
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
				})
				b.await(t, true, &output)
				if err := cmd.Process.Signal(c.by); err != nil {
					t.Fatal(err)
				}
				t.Logf("carriers were off after %v", b.await(t, false, &output).Round(time.Millisecond))
			})
		}
	}
}
