//go:build usb && linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/radio/boards"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

// plugged puts boards on an emulated bus that programs see in its environment.
func plugged(t testing.TB, boards ...virtual.Board) *usbfs.Bus {
	t.Helper()
	bus, err := usbfs.NewBus()
	experimenttest.NeedBench(t, err, usbfs.ErrNoPreload)
	t.Cleanup(func() {
		if err := bus.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, b := range boards {
		if _, err := bus.Plug(b); err != nil {
			t.Fatal(err)
		}
	}
	return bus
}

// seeing makes this test binary, as the program, a command that sees a bus.
func seeing(t testing.TB, bus *usbfs.Bus, program string, args ...string) *exec.Cmd {
	t.Helper()
	env, err := bus.Env()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(append(os.Environ(), env...), childArgs+"="+strings.Join(args, "\n"))
	return cmd
}

// output runs a command and gives what it printed and its exit status.
func output(t testing.TB, cmd *exec.Cmd) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// The program, through gousb and libusb, on emulated boards.
func TestDevicesLibusb(t *testing.T) {
	one, newer := virtualHackRF(t, oneSerial, 0), virtualHackRF(t, otherSerial, virtual.API2026)
	dongle, err := virtual.NewRTL2832U(virtual.RTL2832UConfig{Serial: "00000001"})
	if err != nil {
		t.Fatal(err)
	}
	joined(t, false, one, newer, dongle)
	bus := plugged(t, one, newer, dongle)
	for _, probe := range []bool{false, true} {
		args := []string{"devices", "--json"}
		if probe {
			args = append(args, "--probe")
		}
		stdout, stderr, status := output(t, seeing(t, bus, os.Args[0], args...))
		var inv boards.Inventory
		if err := json.Unmarshal([]byte(stdout), &inv); err != nil || status != 0 || stderr != "" || len(inv.Devices) != 3 || !inv.USB.Listed {
			t.Fatalf("%v, status %d, %s%s", err, status, stdout, stderr)
		}
		for i, serial := range []string{oneSerial, otherSerial, "00000001"} {
			if f := inv.Devices[i]; f.Serial != serial || f.Opened != probe || (len(f.Capabilities) > 0) != probe || f.Problem != "" || f.Address != fmt.Sprintf("001/%03d", i+1) {
				t.Errorf("probe %v: %+v", probe, f)
			}
		}
		if !probe && len(one.Transcript())+len(newer.Transcript()) > 0 {
			t.Error("boards were asked without --probe")
		}
	}
	neverSent(t, one, newer)
}

// A board whose node the user may not open: the rule that mends it.
func TestDevicesNoPermission(t *testing.T) {
	one := virtualHackRF(t, oneSerial, 0)
	joined(t, false, one)
	bus := plugged(t, one)
	node := filepath.Join(bus.Dir(), "dev/bus/usb/001/001")
	cmd := seeing(t, bus, os.Args[0], "devices")
	if os.Geteuid() == 0 {
		// To root all is allowed: the program must be another user's, who can reach it
		// and, as the preload library has it, write into the bus's folder and its socket.
		dir, err := os.MkdirTemp("", "ringwave-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		program := filepath.Join(dir, "ringwave")
		b, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(program, b, 0o755), os.Chmod(dir, 0o755), os.Chmod(bus.Dir(), 0o777), os.Chmod(filepath.Join(bus.Dir(), "ioctl/dev/bus/usb/001/001"), 0o777)); err != nil {
			t.Fatal(err)
		}
		const nobody = 65534
		cmd = seeing(t, bus, program, "devices")
		cmd.Dir = "/"
		cmd.Env = append(cmd.Env, "UMOCKDEV_DIR="+bus.Dir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if err := os.Chmod(node, fs.FileMode(0)); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := output(t, cmd)
	if status != 0 || stderr != "" {
		t.Errorf("status %d, %s", status, stderr)
	}
	experimenttest.WantAll(t, stdout, "hackrf:?at=001%2F001", "cannot be opened: "+usb.ErrAccess.Error(), `ATTR{idProduct}=="6089", MODE="0660"`, "udevadm control --reload")
}
