// Package phy superposes what all devices send at once.
//
// It takes in one vector over Z_q a device and gives their superposition
// y = sum_i H_i x_i + w mod q, with what a receiver can tell of its quality. It
// knows nothing of keys, of learning, or of what the vectors mean. The receiver
// is given the lattice scale alpha and never a gain.
//
// An Uplink is one way to superpose. Ring does it directly on ring elements: a
// fast, bit-exact link for studies of learning and cryptography. Waveform sends
// digits as symbols through radio streams and finds the integers again. On the
// same integer gains, without symbol errors, both give the same element.
package phy

import (
	"context"

	"ringwave/phy/frame"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// headerOf returns the header of a frame of a valid slot.
func headerOf(s slot.Slot, run uint16, group int, repeat uint8) frame.Header {
	return frame.Header{
		Run: run, Round: s.Round, Attempt: uint16(s.Attempt),
		Transmission: uint8(s.Transmission) + slot.Transmissions*s.Again, Group: uint16(group), Repeat: repeat,
	}
}

// Reception is what a receiver has after one transmission.
type Reception struct {
	// Y is the superposed payload. The receiver sizes it.
	Y zq.Vector
	// Pattern is the superposition of the devices' +-1 patterns: the same in two
	// transmissions if and only if every H_i is (phy/README.md, section 4, point 3).
	Pattern []int64
	// CheckPassed reports whether the linear check of the payload held.
	CheckPassed bool
	// Reason says in a few words what the link saw go wrong where CheckPassed is
	// false; empty where it only has the check.
	Reason string
	// Alpha is the lattice scale: H_i = alpha h_i up to a misfit.
	Alpha float64
}

// Receiver is the receiving half of an uplink: Open and Receive for each transmission of a
// round, one after the other. Where it waits for a radio it ends with ctx's error once
// ctx has ended.
type Receiver interface {
	// Open begins a transmission whose payloads have n coefficients. It may have to
	// begin streams anew.
	Open(ctx context.Context, s slot.Slot, n int) error
	// Receive writes the superposition of all that was transmitted since Open.
	Receive(ctx context.Context, rx *Reception) error
	// PatternSymbols returns the length of Reception.Pattern.
	PatternSymbols() int
}

// Uplink is both halves in one process, with one Transmit a device between Open and Receive.
type Uplink interface {
	Receiver
	// Transmit takes x of device i, counted from 0, and waits for nothing. It may be
	// called by several goroutines for different devices. x must stay unchanged until
	// Receive returns.
	Transmit(i int, x zq.Vector) error
}
