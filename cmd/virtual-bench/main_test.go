package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/radio/virtual/usbfs"
)

// needBench skips, or fails where a bench is required.
func needBench(t *testing.T) {
	t.Helper()
	_, err := usbfs.Preload()
	if err == nil {
		return
	}
	if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
		t.Fatal(err)
	}
	t.Skipf("%v (RINGWAVE_REQUIRE_BENCH=1 makes this a failure)", err)
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-n 0", "--transmitters is 0"},
		{"-n 13", "allowed is 1 to 12"},
		{"--api 0105", "--api is \"0105\""},
		{"-n 2 --gain 1", "--gain has 1 values"},
		{"-n 1 --gain 17", "--gain has the value 17"},
		{"--noise 2", "--noise is 2"},
		{"--noise NaN", "--noise is NaN"},
		{"--offset-ppm -1", "--offset-ppm is -1"},
		{"--lock-step --await 3", "--await names the board \"3\""},
		{"--await 1", "--lock-step"},
		{"--backlog 0s", "--backlog is 0s"},
		{"--fault rx", "--fault is \"rx\""},
		{"--fault 3:dc=0.1", "--fault names the board \"3\""},
		{"--fault 0:dc=0.1", "allowed is tx, rx, all or the number of a transmitter, 1 to 2"},
		{"--fault ty:dc=0.1", "allowed is tx, rx, all or the number of a transmitter, 1 to 2"},
		{"--fault rx:dc=0.6", "dc = \"0.6\"; allowed is 0 to 0.5"},
		{"--fault rx:dc=NaN", "dc = \"NaN\""},
		{"--fault rx:dc", "dc = \"\""},
		{"--fault rx:bits=2.5", "bits = \"2.5\"; allowed is whole numbers"},
		{"--fault rx:hum=1", "the key \"hum\""},
		{"--fault tx:echo=3", "echo = \"3\""},
		{"--fault tx:echo=5000/-10", "echo = \"5000/-10\""},
		{"--fault tx:echo=8/-10/Inf", "echo = \"8/-10/Inf\""},
		{"--fault rx:burst=80", "bursts of 80 samples"},
		{"--fault rx:loop-hz=1e3", "loop-hz without phase-noise-rad"},
		{"--offset-ppm 900 --fault rx:ppm=400", "--fault and --offset-ppm give the receiver"},
		{"--transmitter usrp", "--transmitter is \"usrp\"; allowed is hackrf, antsdr-e200, antsdr-e310, fmcomms5, pluto, pluto-plus"},
		{"--receiver usrp", "--receiver is \"usrp\""},
		{"--port 65534", "--port is 65534; allowed is 0 to 65533"},
		{"--nothing", "unknown flag"},
		{"-n one", "invalid argument"},
	} {
		var stdout, stderr bytes.Buffer
		if status := execute(context.Background(), strings.Fields(c.args), &stdout, &stderr); status != exitBadInput {
			t.Errorf("%s: status %d, want %d", c.args, status, exitBadInput)
		}
		if !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: %q, want one line with %q", c.args, stderr.String(), c.want)
		}
	}
}

func TestProgram(t *testing.T) {
	needBench(t)
	var stdout, stderr bytes.Buffer
	args := []string{"-n", "3", "--rtl", "--noise", "0.01", "--phases", "--offset-ppm", "5", "--fault", "all:dc=0.01,bits=6", "--fault", "1:echo=8/-20", "--", "sh", "-c", "echo $UMOCKDEV_DIR; exit 3"}
	if status := execute(context.Background(), args, &stdout, &stderr); status != 3 {
		t.Errorf("status %d, want the program's, 3: %s", status, stderr.String())
	}
	dir := strings.TrimSpace(stdout.String())
	if dir == "" {
		t.Fatal("the program has no UMOCKDEV_DIR")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder %s is left: %v", dir, err)
	}
	if n := strings.Count(stderr.String(), "HackRF One"); n != 4 {
		t.Errorf("%d HackRFs in %q, want 4", n, stderr.String())
	}
	if status := execute(context.Background(), []string{"--", "no-such-program-here"}, &stdout, &stderr); status != exitBadInput {
		t.Errorf("status %d for a program that is not there, want %d", status, exitBadInput)
	}
}

func TestStays(t *testing.T) {
	needBench(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	if status := execute(ctx, nil, &stdout, &stderr); status != exitInterrupted {
		t.Errorf("status %d, want %d", status, exitInterrupted)
	}
	for _, want := range []string{"export LD_PRELOAD=", "export UMOCKDEV_DIR="} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in %q", want, stdout.String())
		}
	}
}

// TestSeen: Debian's hackrf_info finds all boards.
func TestSeen(t *testing.T) {
	needBench(t)
	if _, err := exec.LookPath("hackrf_info"); err != nil {
		if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
			t.Fatal(err)
		}
		t.Skip("hackrf_info is not installed (on Debian: apt-get install hackrf)")
	}
	var stdout, stderr bytes.Buffer
	if status := execute(context.Background(), []string{"-n", "2", "--", "hackrf_info"}, &stdout, &stderr); status != 0 {
		t.Errorf("status %d: %s", status, stderr.String())
	}
	if n := strings.Count(stdout.String(), "Found HackRF"); n != 3 {
		t.Errorf("%d boards were found, want 3", n)
	}
}

// Plutos need nothing of this machine but ports, at which programs find them, all of them
// on one bench with others.
func TestPlutos(t *testing.T) {
	program := []string{"--", "sh", "-c", "echo [$LD_PRELOAD]"}
	var stdout, stderr bytes.Buffer
	args := append([]string{"-n", "2", "--transmitter", "pluto", "--receiver", "fmcomms5", "--port", "0", "--fault", "rx:ppm=20"}, program...)
	if status := execute(context.Background(), args, &stdout, &stderr); status != 0 || strings.TrimSpace(stdout.String()) != "[]" {
		t.Errorf("status %d, %s %s", status, stdout.String(), stderr.String())
	}
	for _, want := range []string{"pluto:127.0.0.1:", "AD9363A), emulated, transmitter 1, heard at gain 0.5\n", "ad9361, emulated, receiver\n"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is missing in %s", want, stderr.String())
		}
	}
	needBench(t)
	stdout.Reset()
	stderr.Reset()
	args = append([]string{"-n", "2", "--receiver", "pluto", "--rtl", "--port", "0"}, program...)
	if status := execute(context.Background(), args, &stdout, &stderr); status != 0 || !strings.Contains(stdout.String(), "umockdev") {
		t.Errorf("status %d, %s %s", status, stdout.String(), stderr.String())
	}
	for _, want := range []string{"HackRF One, transmitter 1, heard", "AD9363A), emulated, receiver\n", "RTL2832U, receiver\n"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is missing in %s", want, stderr.String())
		}
	}
}

// A port that is taken is the user's to mend.
func TestTakenPort(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	args := []string{"-n", "1", "--transmitter", "pluto", "--port", port, "--", "true"}
	if status := execute(context.Background(), args, &stdout, &stderr); status != exitBadInput || !strings.Contains(stderr.String(), "--port chooses others") {
		t.Errorf("status %d, %s", status, stderr.String())
	}
}

// Debian's programs see the board through Debian's iiod, which is gone with the bench.
func TestThroughIIOD(t *testing.T) {
	if _, err := findIIOD(); err != nil {
		if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
			t.Fatal(err)
		}
		t.Skipf("%v (RINGWAVE_REQUIRE_BENCH=1 makes this a failure)", err)
	}
	o := options{transmitters: 1, transmitter: "antsdr-e310", api: "0106", backlog: plutoBacklog, iiod: true}
	b, err := build(o, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.serve(t.Context(), &o); err != nil {
		t.Fatal(errors.Join(err, b.close()))
	}
	out, err := exec.Command("iio_attr", "-u", "ip:"+b.plutos[1].address, "-i", "-c", "ad9361-phy", "voltage1", "hardwaregain_available").CombinedOutput()
	if err := errors.Join(err, b.close()); err != nil || strings.TrimSpace(string(out)) != "[-3 1 71]" {
		t.Errorf("%s, %v", out, err)
	}
	if conn, err := net.Dial("tcp", b.plutos[1].address); err == nil {
		t.Errorf("iiod is still there: %v", conn.Close())
	}
}

// A program has Ctrl-C from the terminal, and no second one from the bench; whoever ends the
// bench alone ends its program.
func TestPassOn(t *testing.T) {
	for cause, want := range map[error]int{errInterrupted: 0, context.Canceled: 1} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		told := 0
		if err := passOn(ctx, func(os.Signal) error { told++; return nil }); err != nil || told != want {
			t.Errorf("%v: the program was told %d times, want %d; %v", cause, told, want, err)
		}
	}
}
