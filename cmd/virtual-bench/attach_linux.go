package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"ringwave/radio/virtual/usbip"
)

// enumeration is how long the kernel may take to find the boards; under emulation
// it takes most of a second for each.
const enumeration = 30 * time.Second

// attach plugs the boards into the kernel, and waits until it has found them.
func (b *bench) attach(ctx context.Context) error {
	for _, r := range b.boards {
		a, err := usbip.Attach(usbip.Controller, r)
		if errors.Is(err, usbip.ErrNoController) || errors.Is(err, os.ErrPermission) {
			return badInput{err}
		}
		if err != nil {
			return err
		}
		b.attached = append(b.attached, a)
	}
	ctx, cancel := context.WithTimeout(ctx, enumeration)
	defer cancel()
	return usbip.Appear(ctx, b.serials)
}

// standApart makes a program one that the terminal's signals do not reach.
func standApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
