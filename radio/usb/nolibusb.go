//go:build !usb

package usb

import "context"

// System returns the machine's own USB, which this build has not: everything fails
// with ErrNoUSBBuild.
func System() Host { return noHost{} }

type noHost struct{}

func (noHost) List(context.Context, func(Identity) bool) ([]Listed, error) {
	return nil, ErrNoUSBBuild
}

func (noHost) Open(context.Context, Address) (Transport, error) { return nil, ErrNoUSBBuild }

func (noHost) OpenBeside(context.Context, Address, func(Identity) bool) (Controller, error) {
	return nil, ErrNoUSBBuild
}
