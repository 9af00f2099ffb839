//go:build !linux

package main

import (
	"context"
	"errors"
)

// attach fails: only Linux has a virtual host controller.
func (b *bench) attach(context.Context) error { return badInput{errors.New("--kernel needs Linux")} }
