//go:build !linux

package usbfs

import (
	"errors"

	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// Bus is an emulated USB bus, which only Linux can have.
type Bus struct{}

// ErrNoPreload: umockdev's preload library is not there.
var ErrNoPreload = errors.New("umockdev's preload library needs Linux")

// Preload fails with ErrNoPreload.
func Preload() (path string, err error) { return "", ErrNoPreload }

// NewBus fails with ErrNoPreload.
func NewBus() (*Bus, error) { return nil, ErrNoPreload }

// Env fails with ErrNoPreload.
func (b *Bus) Env() ([]string, error) { return nil, ErrNoPreload }

// Enter fails with ErrNoPreload.
func Enter() error { return ErrNoPreload }

// Dir returns nothing.
func (b *Bus) Dir() string { return "" }

// Plug fails with ErrNoPreload.
func (b *Bus) Plug(virtual.Board) (usb.Address, error) { return usb.Address{}, ErrNoPreload }

// Unplug fails with ErrNoPreload.
func (b *Bus) Unplug(usb.Address) error { return ErrNoPreload }

// Close does nothing.
func (b *Bus) Close() error { return nil }
