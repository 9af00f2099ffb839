package main

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// signalled starts the program with the arguments of a run into dir and sends it signals
// until it has ended, as many as most, from when metrics.csv has begun. It returns the exit
// status, -1 where a signal has ended the program, and what that said.
func signalled(t *testing.T, dir string, command, args []string, sent os.Signal, most int) (status int, said string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), childArgs+"="+strings.Join(append(args, "--out", dir), "\n"))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	go cancelAfter(filepath.Join(dir, runfolder.MetricsName), 300, func() { close(begun) })
	select {
	case <-begun:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill() // the test has failed
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it says no more than the status does
		close(ended)
	}()
	for range most {
		if err := cmd.Process.Signal(sent); err != nil {
			break // it has ended
		}
		runtime.Gosched()
	}
	<-ended
	return cmd.ProcessState.ExitCode(), out.String()
}

// The end of a terminal stops a run as Ctrl-C does, with a checkpoint and the line that
// says how to go on, however often the signal comes; a run that is to outlive its terminal
// goes on to its end.
func TestHangUp(t *testing.T) {
	// A signal that this process catches is not ignored by those that it starts, also
	// where the tests themselves are to outlive their terminal.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	program := []string{os.Args[0]}
	args := append([]string{"run", experimenttest.LoopbackConfig}, small...)
	args = append(args, "--set", "devices.count=2", "--set", "encryption.parameter_set=lean-2048", "--set", "optimizer.checkpoint_every_rounds=100000")
	long := append(slices.Clone(args), "--set", "optimizer.rounds=100000")
	for _, c := range []struct {
		name string
		sent os.Signal
		most int
	}{
		{"Ctrl-C", os.Interrupt, 1},
		{"SIGHUP", syscall.SIGHUP, 1},
		{"SIGHUP again and again", syscall.SIGHUP, math.MaxInt},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		status, said := signalled(t, dir, program, long, c.sent, c.most)
		if status != exitInterrupted || !strings.Contains(said, "ringwave run --resume "+dir) {
			t.Errorf("%s: status %d\n%s", c.name, status, said)
			continue
		}
		folder, err := runfolder.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		point, err := folder.LoadCheckpoint()
		if err != nil || point.Round == 0 || point.MetricsOffset != int64(len(experimenttest.ReadFile(t, dir, runfolder.MetricsName))) {
			t.Errorf("%s: the checkpoint is of round %d, %v", c.name, point.Round, err)
		}
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	}
	// This is what nohup does.
	dir := filepath.Join(t.TempDir(), "run")
	nohup := []string{"/bin/sh", "-c", `trap "" HUP; exec "$0"`, os.Args[0]}
	if status, said := signalled(t, dir, nohup, append(args, "--set", "optimizer.rounds=300"), syscall.SIGHUP, 1); status != 0 {
		t.Errorf("without a terminal from the beginning: status %d\n%s", status, said)
	}
}
