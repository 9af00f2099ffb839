//go:build !linux

package main

import (
	"context"
	"errors"
	"os/exec"
)

// attach fails: only Linux has a virtual host controller.
func (b *bench) attach(context.Context) error { return badInput{errors.New("--kernel needs Linux")} }

// standApart does nothing: Debian's programs run on Linux.
func standApart(*exec.Cmd) {}
