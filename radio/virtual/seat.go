package virtual

import (
	"context"

	"ringwave/radio"
)

// Radio is a Board with an antenna, as a Bench sees it. The bench calls the methods
// that are not Board's, all but Join with its lock held. An unplugged board is Off.
type Radio interface {
	Board
	// Join gives the board its seat on a bench, once and before all else.
	Join(*Seat)
	// Activity tells what the board does.
	Activity() Activity
	// Send puts into dst the next samples that the board sends, zeros where its
	// host gave it none in time.
	Send(dst []complex64)
	// Receive gives the board the next samples that it hears, which it loses where
	// it has no room.
	Receive(src []complex64)
	// Edge is a rising edge at the trigger input.
	Edge()
}

// Mode is what a board's antenna does.
type Mode int

// The modes of a board. One that waits for a trigger is Off.
const (
	Off Mode = iota
	Receiving
	Transmitting
)

// Activity is what a board does at a time. Only Mode and Carrier matter while it is Off.
type Activity struct {
	Mode Mode
	// Carrier says that the transmit chain is on, samples or none.
	Carrier bool
	// Stream and Tuning count starts and retunes, each of which leaves a new
	// phase.
	Stream, Tuning uint64
	Rate           radio.Hertz
	Frequency      radio.Hertz
	// Gain is that of the direction, against the board's reference setting.
	Gain radio.Decibels
	// Room is the number of samples that the board can send, or take, without
	// loss before its host does anything more: what lock-step goes by.
	Room int
	// Stays says that it goes on though nobody wants it to: time does not go on for its sake.
	Stays bool
}

// Seat is a board's place on a bench: its lock, its time and its wires. What a
// board's host can see or change is guarded by it.
type Seat struct {
	bench  *Bench
	member *member
}

// Lock locks the bench and brings time up to now, so that what follows happens at
// the right one.
func (s *Seat) Lock() { s.bench.lock() }

// Unlock lets time go on where it waited for what was done, unlocks the bench, and
// then calls what Complete was given.
func (s *Seat) Unlock() { s.bench.unlock() }

// Complete has done called, in the order of the calls, once the lock is free. Call
// it with the lock held.
func (s *Seat) Complete(done func()) {
	s.bench.completions = append(s.bench.completions, done)
}

// Fire is an edge on the board's trigger output. Call it with the lock held.
func (s *Seat) Fire() { s.bench.fire(s.member.index) }

// Reference reports whether 10 MHz is on the board's clock input. Call it with the
// lock held.
func (s *Seat) Reference() bool { return s.member.reference }

// Wait returns the lock up until true is given by met, which is asked with the lock
// held whenever anything has changed, or fails with ctx's error. Call it with the
// lock held; it is held again afterwards.
func (s *Seat) Wait(ctx context.Context, met func() bool) error { return s.bench.wait(ctx, met) }
