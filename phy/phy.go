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
	"fmt"
	"math"

	"ringwave/phy/channel"
	"ringwave/phy/frame"
	"ringwave/phy/zq"
)

// Transmission is one of the four uplink transmissions of a round.
type Transmission int

const (
	TxKey   Transmission = iota // b, phase 1
	TxC0                        // c0, phase 2
	TxC1                        // c1, phase 2
	TxShare                     // D, phase 3
)

// Transmissions is the number of transmissions of a round.
const Transmissions = channel.Transmissions

// String gives the paper's symbol of what is sent.
func (t Transmission) String() string {
	switch t {
	case TxKey:
		return "b"
	case TxC0:
		return "c0"
	case TxC1:
		return "c1"
	case TxShare:
		return "D"
	}
	return "unknown transmission"
}

// Slot names one transmission of one attempt at one round.
type Slot struct {
	Round, Attempt uint32
	Transmission   Transmission
	// Again counts how often the transmission was sent before in this attempt, the
	// same payload under new check weights: a decryption share that was not received
	// is never made anew. It is MaxAgain at most.
	Again uint8
}

// The limits of a Slot: what a frame's header has room for.
const (
	MaxAttempt = math.MaxUint16
	MaxAgain   = math.MaxUint8 / Transmissions
)

// validate refuses slots that do not exist.
func (s Slot) validate() error {
	if s.Transmission < 0 || s.Transmission >= Transmissions {
		return fmt.Errorf("transmission %d: a round has %d", s.Transmission, Transmissions)
	}
	if s.Attempt > MaxAttempt || s.Again > MaxAgain {
		return fmt.Errorf("attempt %d, sent again %d times: allowed are %d and %d at most", s.Attempt, s.Again, MaxAttempt, MaxAgain)
	}
	return nil
}

// header returns the header of a frame of a valid slot.
func (s Slot) header(run uint16, group int, repeat uint8) frame.Header {
	return frame.Header{
		Run: run, Round: s.Round, Attempt: uint16(s.Attempt),
		Transmission: uint8(s.Transmission) + Transmissions*s.Again, Group: uint16(group), Repeat: repeat,
	}
}

// Reception is what a receiver has after one transmission.
type Reception struct {
	// Y is the superposed payload. The receiver sizes it.
	Y zq.Vector
	// Pattern is the superposition of the devices' +-1 patterns: the same in two
	// transmissions if and only if every H_i is (physics.md section 4, point 3).
	Pattern []int64
	// CheckPassed tells whether the linear check of the payload held.
	CheckPassed bool
	// Reason says in a few words what the link saw go wrong where CheckPassed is
	// false; empty where it only has the check.
	Reason string
	// Alpha is the lattice scale: H_i = alpha h_i up to a misfit.
	Alpha float64
}

// Uplink carries the transmissions of a round, one after the other: Open, one
// Transmit a device, Receive.
type Uplink interface {
	// Open begins a transmission whose payloads have n coefficients.
	Open(slot Slot, n int) error
	// Transmit sends x from device i, counted from 0. It may be called by
	// several goroutines for different devices. x must stay unchanged until
	// Receive returns.
	Transmit(i int, x zq.Vector) error
	// Receive writes the superposition of all that was transmitted since Open.
	Receive(rx *Reception) error
	// PatternSymbols gives the length of Reception.Pattern.
	PatternSymbols() int
}
