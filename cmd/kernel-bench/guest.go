//go:build linux && amd64

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"unsafe"
)

// guest is the machine's first process. It never returns: the machine ends.
func guest() {
	status, err := work()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernel-bench, in the machine:", err)
	}
	turnOff(status)
}

// work runs the program, and gives its exit status.
func work() (status int, err error) {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}} {
		if err := os.MkdirAll(m[1], 0o755); err != nil {
			return exitFailure, err
		}
		if err := syscall.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return exitFailure, fmt.Errorf("mounting %s: %w", m[1], err)
		}
	}
	if err := raw(os.Stdout); err != nil {
		return exitFailure, err
	}
	for _, m := range modules() {
		if err := load("/modules/" + m); err != nil {
			return exitFailure, err
		}
	}
	b, err := os.ReadFile("/job")
	if err != nil {
		return exitFailure, err
	}
	var j job
	if err := json.Unmarshal(b, &j); err != nil {
		return exitFailure, err
	}
	cmd := exec.Command(j.Args[0], j.Args[1:]...)
	cmd.Env = append([]string{"PATH=/bin", "HOME=/tmp", "TMPDIR=/tmp"}, j.Env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	if err := handOut(); err != nil {
		return exitFailure, err
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return exitFailure, err
	}
	return 0, nil
}

// load loads a module of the kernel.
func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const finitModule = 313 // which package syscall does not have
	none := []byte{0}
	_, _, errno := syscall.Syscall(finitModule, f.Fd(), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno != 0 {
		return fmt.Errorf("loading the module %s: %w", path, errno)
	}
	return nil
}

// raw keeps a serial line from changing what is written to it.
func raw(f *os.File) error {
	var t syscall.Termios
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TCGETS, uintptr(unsafe.Pointer(&t))); errno != 0 {
		return fmt.Errorf("reading the settings of %s: %w", f.Name(), errno)
	}
	t.Oflag &^= syscall.OPOST
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TCSETS, uintptr(unsafe.Pointer(&t))); errno != 0 {
		return fmt.Errorf("changing the settings of %s: %w", f.Name(), errno)
	}
	return nil
}

// drain waits until all that was written to a serial line has left it.
func drain(f *os.File) {
	const tcsbrk = 0x5409
	// What fails here shows in what arrives.
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), tcsbrk, 1)
}

// handOut sends /out, if the program left it, over the second serial line.
func handOut() error {
	from, err := os.Open("/out")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile("/dev/ttyS1", os.O_WRONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := raw(to); err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("handing out /out: %w", err)
	}
	drain(to)
	return nil
}

// turnOff ends the machine with a status, by the port of QEMU's isa-debug-exit.
func turnOff(status int) {
	drain(os.Stdout)
	if port, err := os.OpenFile("/dev/port", os.O_WRONLY, 0); err == nil {
		const exitPort = 0xf4
		_, _ = port.WriteAt([]byte{byte(min(status, 127))}, exitPort)
	}
	// Without it the machine says nothing, which the other side notices.
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}
